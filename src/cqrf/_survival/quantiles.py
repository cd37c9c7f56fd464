"""Quantiles from rows of weights, by the equation of :mod:`cqrf._survival.equation`.

A quantile that is not identifiable because of censoring is infinite, with a warning; it is never
replaced by a finite number unless the caller asks for that.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from cqrf._forest.weights import Weights
from cqrf._input.risk_sets import TOLERANCE
from cqrf._input.sample_weight import read_sample_weight, scale_down
from cqrf._input.target import SIDES, Target, between, oriented, pair, rank_target
from cqrf._runtime.arguments import is_count, is_number, read_choice, read_fraction
from cqrf._survival.curves import RankedTarget, as_curves
from cqrf._survival.equation import (
    BERAN,
    KM,
    KNN,
    Equation,
    argmin_rule,
    beran_roots,
    largest_levels,
    make_work,
    marginal_censoring_survival,
    root_rule,
)
from cqrf._survival.innermost import number_ends
from cqrf._survival.interval_curves import REACHED, interval_steps
from cqrf._survival.step_curves import StepCurves

CENSORING_SURVIVALS = {"beran": BERAN, "knn": KNN, "km": KM}
RULES = {"root": root_rule, "argmin": argmin_rule}
UNIDENTIFIED = ("inf", "clip", "nan")


class UnidentifiedQuantileWarning(UserWarning):
    """Some of the quantiles are not identifiable, because too much is censored."""


def solve_quantiles(
    weights: Any,
    time: ArrayLike | None = None,
    event: ArrayLike | None = None,
    quantiles: float | Sequence[float] = 0.5,
    censoring_survival: str = "beran",
    n_neighbors: int | float | None = None,
    solver: str = "root",
    *,
    censoring: str = "right",
    entry: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    unidentified: str = "inf",
    lower: ArrayLike | None = None,
    upper: ArrayLike | None = None,
) -> NDArray[np.float64]:
    """Censored quantiles from any weights: of another forest, of a kernel, of neighbours.

    Parameters
    ----------
    weights : array-like or sparse matrix of shape (n_queries, n_train)
        Weights of the training rows for each query, not negative; rows are scaled to sum to 1.
    time, event : array-like of shape (n_train,)
        Times of the training rows, and whether the event was observed.
    quantiles : float or sequence of float
        Levels in (0, 1).
    censoring_survival, n_neighbors, solver, censoring
        As for :class:`~cqrf.CensoredQuantileForest`. Without ``n_neighbors``, ``"knn"`` uses the
        rows of more than average weight, or all rows if none has.
    entry : array-like of shape (n_train,), optional
        Times from which the training rows are at risk (right censoring only).
    sample_weight : array-like of shape (n_train,), optional
        How often each training row, and its column of ``weights``, counts.
    unidentified : {"inf", "clip", "nan"}
        Value of a quantile that is not identifiable: infinity, the last neighbour, or NaN.
    lower, upper : array-like of shape (n_train,), optional
        Ends of intervals, as for :func:`cqrf.interval`, instead of ``time`` and ``event``. A
        quantile is then the right end of the interval that it lies in.

    Returns
    -------
    ndarray of shape (n_queries,) or (n_queries, n_quantiles)

    Examples
    --------
    >>> from cqrf import solve_quantiles
    >>> solve_quantiles([[1, 1, 1, 1]], [1, 2, 3, 4], [1, 0, 1, 1], [0.25, 0.5]).tolist()
    [[1.0, 3.0]]
    """
    quantile_solver = QuantileSolver(
        censoring_survival=censoring_survival,
        n_neighbors=n_neighbors,
        solver=solver,
        censoring=censoring,
    )
    levels, is_scalar = read_levels(quantiles)
    target = _read_rows((time, event, entry), lower, upper)
    values = _solve(quantile_solver, weights, target, levels, sample_weight).fill(unidentified)
    return values[:, 0] if is_scalar else values


def _solve(
    solver: QuantileSolver,
    weights: Any,
    target: Target,
    levels: NDArray[np.float64],
    sample_weight: ArrayLike | None,
) -> Solution:
    """Solution for weights of the rows of a target, in the order of both."""
    if target.lower is not None and not solver.reads_curves:
        solver.check_reads_curves("a table of intervals")
    if not target.event.any():
        raise ValueError("event is False in every row: nothing can be estimated without events.")
    ranked, order = rank_target(target, solver.censoring)
    rows, copies = _scale_down(_read_weights(weights, order)), None
    if sample_weight is not None:
        copies = read_sample_weight(sample_weight, len(order))[order]
        rows = sparse.csr_array(rows.multiply(copies))
    if ranked.lower is not None:
        curves = as_curves(
            interval_steps(_scale_rows(rows), number_ends(ranked)).at_right(), "right"
        )
        return curve_quantiles(curves, levels, tolerance=REACHED)
    return solver.solve(_scale_rows(rows), RankedTarget.of(ranked, copies), levels)


def _read_rows(times: tuple[Any, Any, Any], lower: Any, upper: Any) -> Target:
    """The target of times, events and entries, or else of intervals; raises unless it is one."""
    if lower is None and upper is None:
        if times[0] is None or times[1] is None:
            raise ValueError("give time and event, or lower and upper.")
        time, event, entry = times
        return pair(time, event, entry)
    if lower is None or upper is None:
        raise ValueError(
            "give both lower and upper; -inf and inf stand for ends that are not there."
        )
    if any(each is not None for each in times):
        raise ValueError("lower and upper are instead of time, event and entry: leave these out.")
    return between(lower, upper)


class Solution(NamedTuple):
    """Quantiles of shape (n_queries, n_levels), and the last neighbour of each query.

    A quantile that is not identifiable is inf, or -inf under left censoring. It is beyond the last
    neighbour, which is finite. A query without weights is NaN in both.
    """

    values: NDArray[np.float64]
    last_neighbor: NDArray[np.float64]

    def fill(
        self, unidentified: str, stacklevel: int = 3, of_cause: bool = False
    ) -> NDArray[np.float64]:
        """Quantiles, with those that are not identifiable as the user wants them."""
        read_choice("unidentified", unidentified, UNIDENTIFIED)
        missing = np.isinf(self.values)
        if not missing.any():
            return self.values
        if unidentified == "clip":
            return np.where(missing, self.last_neighbor[:, np.newaxis], self.values)
        if unidentified == "nan":
            return np.where(missing, np.nan, self.values)
        if of_cause:
            warnings.warn(
                "the incidence of this cause does not reach some of the levels, as other causes "
                "come first or too much is censored: these quantiles are infinite. "
                "max_quantile(X, cause=...) gives the limit at each row.",
                UnidentifiedQuantileWarning,
                stacklevel=stacklevel,
            )
            return self.values
        warnings.warn(
            "some quantiles cannot be estimated, because too much is censored where they lie; they "
            "are infinite. Ask for lower levels (max_quantile gives the limit at each row; higher "
            "ones under left censoring). unidentified='clip' gives the last observed neighbour "
            "instead, 'nan' NaN. For tools that call predict(X), set prediction='mean' on the "
            "estimator, or prediction='risk' for scikit-survival's metrics.",
            UnidentifiedQuantileWarning,
            stacklevel=stacklevel,
        )
        return self.values


def curve_quantiles(
    curves: StepCurves,
    levels: NDArray[np.float64],
    censoring: str = "right",
    tolerance: float = TOLERANCE,
) -> Solution:
    """Quantiles read off survival curves of times that are oriented to the right.

    The last neighbour of a curve that falls to 0 is at its last step. A curve has reached a value
    if it is above it by no more than ``tolerance``.
    """
    taus = levels if censoring == "right" else 1.0 - levels
    values = np.empty((len(curves), len(levels)))
    for k, tau in enumerate(taus):
        values[:, k] = curves.first_at_most(1.0 - tau + tolerance)
    is_known = ~np.isneginf(curves.end)
    values[~is_known] = np.nan
    falls_to_0 = np.isposinf(curves.end)
    last = np.where(is_known, curves.end, np.nan)
    last[falls_to_0] = curves.times[curves.offsets[1:][falls_to_0] - 1]
    return Solution(oriented(values, censoring), oriented(last, censoring))


class QuantileSolver:
    """The estimating equation with an estimate of G and a rule, solved for rows of weights."""

    def __init__(
        self,
        *,
        censoring_survival: str = "beran",
        n_neighbors: int | float | None = None,
        solver: str = "root",
        censoring: str = "right",
    ) -> None:
        self.method = CENSORING_SURVIVALS[
            read_choice("censoring_survival", censoring_survival, tuple(CENSORING_SURVIVALS))
        ]
        self.rule = read_choice("solver", solver, tuple(RULES))
        self.censoring = read_choice("censoring", censoring, SIDES)
        self.n_neighbors = n_neighbors

    def check_neighbors(self, n_train: int) -> None:
        """Raise if there cannot be as many neighbours among so many rows."""
        if self.n_neighbors is not None:
            count_neighbors(self.n_neighbors, n_train, n_train)

    @property
    def reads_curves(self) -> bool:
        """Whether the solution is where the survival curve crosses 1 - tau."""
        return self.method == BERAN and self.rule == "root"

    def check_reads_curves(self, of_intervals: str = "") -> None:
        """Raise unless the solution is where the survival curve crosses 1 - tau.

        ``of_intervals``: what it is that has intervals; otherwise it is a working model that asks.
        """
        if not self.reads_curves:
            way_out = "" if of_intervals else ", or fit with working_model=None"
            raise ValueError(
                f"{of_intervals or 'a forest with a working model'} reads quantiles off its "
                'survival curves: censoring_survival must be "beran" and solver "root"'
                f"{way_out}."
            )

    def solve(
        self, weights: Weights, target: RankedTarget, levels: NDArray[np.float64]
    ) -> Solution:
        """Quantiles of each row of weights at each level."""
        taus = levels if self.censoring == "right" else 1.0 - levels
        order = np.argsort(taus, kind="stable")
        lengths = np.diff(weights.offsets)
        has_weights = lengths > 0
        solved = np.full((len(lengths), len(taus)), np.inf)
        solved[~has_weights] = np.nan
        longest = lengths.max(initial=0)
        if self.method == BERAN and self.rule == "root" and target.first_at_risk is None:
            at_risk = np.empty(longest + 1)
            beran_roots(weights, target.time, target.event, taus[order], at_risk, solved)
        else:
            equation, rule = self._make_equation(target), RULES[self.rule]
            work = make_work(longest, len(taus))
            rule(weights, target, equation, taus[order], work, solved)
        values = np.empty_like(solved)
        values[:, order] = oriented(solved, self.censoring)
        last = np.full(len(lengths), np.nan)
        last[has_weights] = target.time[weights.ranks[weights.offsets[1:][has_weights] - 1]]
        return Solution(values, oriented(last, self.censoring))

    def max_level(self, weights: Weights, target: RankedTarget) -> NDArray[np.float64]:
        """Largest identifiable level of each row; under left censoring the smallest."""
        lengths = np.diff(weights.offsets)
        levels = np.empty(len(lengths))
        work = make_work(lengths.max(initial=0))
        largest_levels(weights, target, self._make_equation(target), work, levels)
        levels[lengths == 0] = np.nan
        return levels if self.censoring == "right" else 1.0 - levels

    def _make_equation(self, target: RankedTarget) -> Equation:
        n_train, n_neighbors, n_copies = len(target.time), 0.0, float(len(target.time))
        if self.method == KNN and self.n_neighbors is not None:
            total = n_train if target.weight is None else float(target.weight.sum())
            n_neighbors = count_neighbors(self.n_neighbors, n_train, total)
        if self.method == KNN and target.weight is not None:
            n_copies = float(np.cumsum(target.weight, dtype=np.float64)[-1])
        return Equation(
            method=self.method,
            n_neighbors=n_neighbors,
            n_copies=n_copies,
            marginal=marginal_censoring_survival(target) if self.method == KM else np.empty(0),
            neighbors_only=self.method == KNN and self.rule == "argmin",
        )


def count_neighbors(n_neighbors: int | float, n_train: int, total: float) -> float:
    """Number of neighbours, from a count or a fraction of the training rows' weight.

    A count is at most the total weight of the rows.
    """
    if is_count(n_neighbors):
        if not 1 <= n_neighbors <= n_train:
            raise ValueError(
                f"n_neighbors={n_neighbors} must lie between 1 and the {n_train} training rows."
            )
        return min(float(n_neighbors), total)
    if is_number(n_neighbors) and 0 < n_neighbors <= 1:
        return float(max(1, round(float(n_neighbors) * total)))
    raise ValueError(
        f"n_neighbors={n_neighbors!r} must be a count of training rows or a fraction in (0, 1]."
    )


def read_levels(
    quantiles: float | Sequence[float] | NDArray[np.float64],
) -> tuple[NDArray[np.float64], bool]:
    """Levels as an array, and whether a single number was given."""
    try:
        levels = np.asarray(quantiles, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"quantiles must be numbers in (0, 1); found {quantiles!r}.") from error
    if levels.ndim > 1 or levels.size == 0:
        raise ValueError(
            f"quantiles must be a number or a list of numbers in (0, 1); found {quantiles!r}."
        )
    if not ((levels > 0) & (levels < 1)).all():
        raise ValueError(f"quantiles must lie strictly between 0 and 1; found {quantiles!r}.")
    return np.atleast_1d(levels), levels.ndim == 0


def interval_levels(coverage: float) -> list[float]:
    """Levels that bound an interval of this coverage, with half of the rest on each side."""
    tail = (1.0 - read_fraction("coverage", coverage, 0.0, 1.0)) / 2.0
    if not 0.0 < tail < 0.5:
        raise ValueError(f"coverage={coverage!r} must lie strictly between 0 and 1.")
    return [tail, 1.0 - tail]


def _read_weights(weights: Any, order: NDArray[np.int32]) -> sparse.csr_array:
    """Weights with their columns in time order."""
    try:
        rows = sparse.csr_array(weights, dtype=np.float64, copy=True)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"weights must be a matrix of numbers, dense or sparse; found {type(weights).__name__}."
        ) from error
    rows.sum_duplicates()
    if rows.ndim != 2 or rows.shape[1] != len(order):
        raise ValueError(
            f"weights has shape {rows.shape}; it needs one column for each of the {len(order)} "
            "training rows."
        )
    if not np.isfinite(rows.data).all() or (rows.data < 0).any():
        raise ValueError("weights must be finite and not negative.")
    return sparse.csr_array(rows[:, order])


def _scale_down(rows: sparse.csr_array) -> sparse.csr_array:
    """The rows, very large or very small ones times a power of two."""
    for start, end in itertools.pairwise(rows.indptr.tolist()):
        rows.data[start:end] = scale_down(rows.data[start:end])
    return rows


def _scale_rows(rows: sparse.csr_array) -> Weights:
    """Rows that sum to 1, without their zeros."""
    rows.eliminate_zeros()
    rows.sort_indices()
    totals = rows.sum(axis=1)
    if (totals <= 0).any():
        empty = int(np.flatnonzero(totals <= 0)[0])
        raise ValueError(f"row {empty} of weights sums to 0: no training row has weight for it.")
    values = rows.data / np.repeat(totals, np.diff(rows.indptr))
    return Weights(rows.indptr.astype(np.int64), rows.indices.astype(np.int32), values)
