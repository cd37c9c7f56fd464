"""Rows that trees are grown from: features in bins, the outcome, weights; and copies of some.

A kind of outcome is fields of :class:`Rows` here, and a criterion that reads them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cqrf._input.risk_sets import first_position
from cqrf._runtime.compiling import called


class Rows(NamedTuple):
    """Rows that trees are grown from, in time order.

    Attributes
    ----------
    codes : (n_features, n) uint8
        Bins, contiguous per feature.
    categorical : (n_features,) bool, or None
        Which features are categories. Kernels take None where none is.
    time : (n,) float64
        Ascending, oriented so that censoring is on the right.
    event : (n,) bool
    weight : (n,) float32, or None
        Sample weights; None if all rows weigh the same.
    first_at_risk : (n,) int32, or None
        First rank at which each row is at risk; None without delayed entry.
    scores : (n, n_scores) float64, or None
        What the criterion of treatment effects sums (see ``criteria/effect.py``).
    stratum : (n,) uint8, or None
        One bit for each stratum that a row belongs to: a child keeps rows of all of them.
    cause : (n,) uint8, or None
        With several causes: the number of each row's cause, from 1 on; 0 if it is censored.
    bounds : (n, 2) float64, or None
        With interval censoring: both ends of each row, in cells (``_survival/interval_scale.py``).
    """

    codes: NDArray[np.uint8]
    categorical: NDArray[np.bool_]
    time: NDArray[np.float64]
    event: NDArray[np.bool_]
    weight: NDArray[np.float32] | None = None
    first_at_risk: NDArray[np.int32] | None = None
    scores: NDArray[np.float64] | None = None
    stratum: NDArray[np.uint8] | None = None
    cause: NDArray[np.uint8] | None = None
    bounds: NDArray[np.float64] | None = None

    def for_kernels(self) -> Rows:
        """The same, with None for ``categorical`` if no feature is a category."""
        absent: Any = None  # the type is the one outside of kernels
        return self if self.categorical.any() else self._replace(categorical=absent)


def empty_rows(rows: Rows, n_rows: int, padding: int) -> Rows:
    """Arrays to copy some of the rows into; columns of codes are padded."""
    return Rows(
        codes=np.empty((len(rows.codes), n_rows + padding), np.uint8),
        categorical=rows.categorical,
        time=np.empty(n_rows),
        event=np.empty(n_rows, np.bool_),
        weight=None if rows.weight is None else np.empty(n_rows, np.float32),
        first_at_risk=None if rows.first_at_risk is None else np.empty(n_rows, np.int32),
        scores=None if rows.scores is None else np.empty((n_rows, rows.scores.shape[1])),
        stratum=None if rows.stratum is None else np.empty(n_rows, np.uint8),
        cause=None if rows.cause is None else np.empty(n_rows, np.uint8),
        bounds=None if rows.bounds is None else np.empty((n_rows, 2)),
    )


@called
def take_rows(rows, chosen, copy):
    """Copy some rows, ascending indices, into the arrays of ``copy``."""
    codes, time, event = rows.codes, rows.time, rows.event
    to_codes, to_time, to_event = copy.codes, copy.time, copy.event
    for f in range(codes.shape[0]):
        for i in range(chosen.shape[0]):
            to_codes[f, i] = codes[f, chosen[i]]
    for i in range(chosen.shape[0]):
        to_time[i], to_event[i] = time[chosen[i]], event[chosen[i]]
    take_weights(rows.weight, chosen, copy.weight)
    take_first_at_risk(rows.first_at_risk, chosen, copy.first_at_risk)
    take_scores(rows.scores, chosen, copy.scores)
    take_bytes(rows.stratum, chosen, copy.stratum)
    take_bytes(rows.cause, chosen, copy.cause)
    take_scores(rows.bounds, chosen, copy.bounds)


@called
def take_weights(weight, chosen, copy):
    """Copy the weights of some rows, if rows have weights."""
    if weight is not None:
        for i in range(chosen.shape[0]):
            copy[i] = weight[chosen[i]]


@called
def take_first_at_risk(first_at_risk, chosen, copy):
    """Write the first position among some rows at which each of them is at risk."""
    if first_at_risk is not None:
        for i in range(chosen.shape[0]):
            copy[i] = first_position(chosen, first_at_risk[chosen[i]])


@called
def take_scores(scores, chosen, copy):
    """Copy the scores or the bounds of some rows, if rows have them."""
    if scores is not None:
        for i in range(chosen.shape[0]):
            for k in range(scores.shape[1]):
                copy[i, k] = scores[chosen[i], k]


@called
def take_bytes(values, chosen, copy):
    """Copy the strata or the causes of some rows, if rows have them."""
    if values is not None:
        for i in range(chosen.shape[0]):
            copy[i] = values[chosen[i]]
