"""Ridge Cox regression: the penalised partial likelihood and its maximum by Newton's method.

    sum over events of v_i (eta_i - log sum over the risk set of v_j exp(eta_j)) - penalty |b|^2 / 2

with eta = Z b and sample weights v. Ties by Breslow's rule: all rows of a tied time are at risk at
it. A row that enters late is at risk at times after its entry.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dposv

from cqrf._runtime.compiling import kernel

MOST_STEPS = 30
MOST_HALVINGS = 10
GAIN = 1e-8  # relative to the log likelihood; a step that gains less is the last
# Linear predictors may differ by so much: where times follow from the columns without noise the
# likelihood has no other bound, and exp overflows.
LARGEST_SPREAD = 100.0

Floats = NDArray[np.float64]


class CoxRows(NamedTuple):
    """Rows in time order, with the risk set of every event.

    Attributes
    ----------
    weight : (n,) float64
    events : (n_events,) intp
        Rows with an event.
    first : (n_events,) intp
        First row of the tied time of each event: this row and all behind it have not ended.
    n_past : (n,) intp
        Events up to the time of each row.
    by_entry : (n,) intp, or None
        Rows by entry time; None if no row enters late.
    first_late : (n_events,) intp, or None
        First place in ``by_entry`` of rows that enter at the time of the event or later.
    n_before : (n,) intp, or None
        Events up to the entry of each row.
    """

    weight: Floats
    events: NDArray[np.intp]
    first: NDArray[np.intp]
    n_past: NDArray[np.intp]
    by_entry: NDArray[np.intp] | None = None
    first_late: NDArray[np.intp] | None = None
    n_before: NDArray[np.intp] | None = None

    def risk_sums(self, values: Floats) -> Floats:
        """Sums of values, one row each, over the risk set of every event."""
        sums = np.cumsum(values[::-1], axis=0)[::-1][self.first]
        if self.by_entry is not None:
            late = np.cumsum(values[self.by_entry[::-1]], axis=0)[::-1]
            late = np.concatenate([late, np.zeros_like(late[:1])])
            sums = sums - late[self.first_late]
        return sums

    def weighted_risk_sums(self, matrix: Floats, weight: Floats) -> Floats:
        """``risk_sums`` of the rows of a matrix, each times a weight; in one pass over the rows."""
        sums = np.empty((len(self.events), matrix.shape[1]))
        running = np.empty(matrix.shape[1])
        _sum_behind(matrix, weight, None, self.first, running, sums)
        if self.by_entry is not None:
            late = np.empty_like(sums)
            _sum_behind(matrix, weight, self.by_entry, self.first_late, running, late)
            sums -= late
        return sums

    def sums_at_risk(self, values: Floats) -> Floats:
        """Sums of values of events, one row each, over the times at which every row is at risk."""
        sums = np.concatenate([np.zeros((1, *values.shape[1:])), np.cumsum(values, axis=0)])
        at_end = sums[self.n_past]
        return at_end if self.n_before is None else at_end - sums[self.n_before]


def make_rows(
    time: Floats, event: NDArray[np.bool_], weight: Floats, entry: Floats | None
) -> CoxRows:
    """Rows in time order, as the likelihood reads them."""
    events = np.flatnonzero(event)
    times = time[events]
    rows = CoxRows(
        weight=weight,
        events=events,
        first=np.searchsorted(time, times, side="left"),
        n_past=np.searchsorted(times, time, side="right"),
    )
    if entry is None or not (entry >= time[:1]).any():
        return rows
    by_entry = np.argsort(entry, kind="stable")
    return rows._replace(
        by_entry=by_entry,
        first_late=np.searchsorted(entry[by_entry], times, side="left"),
        n_before=np.searchsorted(times, entry, side="right"),
    )


class Point(NamedTuple):
    """The likelihood at some coefficients: what its derivatives need."""

    log_likelihood: float
    relative_risk: Floats
    """Weighted, relative to the largest: exp overflows."""
    risk_sums: Floats


def evaluate(rows: CoxRows, linear_predictor: Floats) -> Point:
    """Partial likelihood at a linear predictor."""
    largest = linear_predictor.max(initial=-np.inf)
    risk = rows.weight * np.exp(linear_predictor - largest)
    sums = np.maximum(rows.risk_sums(risk), np.finfo(np.float64).tiny)
    of_events = linear_predictor[rows.events] - largest - np.log(sums)
    return Point(float(rows.weight[rows.events] @ of_events), risk, sums)


def maximise(
    rows: CoxRows, matrix: Floats, penalty: float, start: Floats, most_steps: int = MOST_STEPS
) -> Floats:
    """Coefficients that maximise the penalised partial likelihood, from a start on."""
    if len(start) == 0:
        return start
    coefficients = start
    point = evaluate(rows, matrix @ coefficients)
    value = point.log_likelihood - penalty / 2 * coefficients @ coefficients
    for _ in range(most_steps):
        step = _newton_step(rows, matrix, point, penalty, coefficients)
        for halving in range(MOST_HALVINGS):
            found = coefficients + step / 2**halving
            linear_predictor = matrix @ found
            new_point = evaluate(rows, linear_predictor)
            new_value = new_point.log_likelihood - penalty / 2 * found @ found
            if new_value >= value and np.ptp(linear_predictor) <= LARGEST_SPREAD:
                break
        else:
            return coefficients
        gain = new_value - value
        coefficients, point, value = found, new_point, new_value
        if gain <= GAIN * abs(value):
            break
    return coefficients


def baseline_hazard(rows: CoxRows, linear_predictor: Floats) -> Floats:
    """Breslow's increase of the cumulative baseline hazard at every event."""
    point = evaluate(rows, linear_predictor)
    return rows.weight[rows.events] / (point.risk_sums * np.exp(linear_predictor.max()))


def _newton_step(
    rows: CoxRows, matrix: Floats, point: Point, penalty: float, coefficients: Floats
) -> Floats:
    of_events = rows.weight[rows.events]
    risk = point.relative_risk
    means = rows.weighted_risk_sums(matrix, risk)
    means /= point.risk_sums[:, np.newaxis]
    gradient = of_events @ (matrix[rows.events] - means) - penalty * coefficients
    hazard = rows.sums_at_risk(of_events / point.risk_sums)
    information = (matrix * (risk * hazard)[:, np.newaxis]).T @ matrix
    information -= (means * of_events[:, np.newaxis]).T @ means
    information.flat[:: len(information) + 1] += penalty
    step: Floats
    _, step, status = dposv(information, gradient)
    if status != 0:
        raise np.linalg.LinAlgError(
            "the information matrix of the Cox model is not positive definite: the penalty must be "
            f"positive and the columns finite; found penalty {penalty}."
        )
    return step


@kernel
def _sum_behind(matrix, weight, order, first, running, sums):
    """Write weighted sums of the rows from some places on, each sum from the last row backwards.

    matrix : (n, n_columns) float64; weight : (n,) float64
    order : (n,) intp, rows in the order that places count, or None
    first : (n_sums,) intp, ascending places; running : (n_columns,) float64, work array
    sums : (n_sums, n_columns) float64, written
    """
    n_columns = matrix.shape[1]
    for j in range(n_columns):
        running[j] = 0.0
    place = matrix.shape[0]
    for k in range(first.shape[0] - 1, -1, -1):
        while place > first[k]:
            place -= 1
            row = place if order is None else order[place]
            for j in range(n_columns):
                running[j] += matrix[row, j] * weight[row]
        for j in range(n_columns):
            sums[k, j] = running[j]
