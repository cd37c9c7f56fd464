"""Quantiles: the estimating equation, and the two rules that read a quantile off it.

    S_n(q) = (1 - tau) G(q) - H(q),    H(q) = sum_i w_i 1(Y_i > q),

over the candidates q = Y_i with w_i > 0, up to the last event among them (beyond it both
terms may vanish together, which says nothing).

root
    The first candidate with S_n(q) >= 0 (0 = 0, where nobody is left, does not count). With
    Beran's G this is where the survival curve S = H / G reaches 1 - tau. Monotone in tau; the
    ordinary weighted quantile where nothing is censored. Where S_n stays below 0 the quantile
    cannot be estimated: inf.
argmin
    The candidate with the smallest |S_n(q)|, the first of equals: the paper's rule. With
    ``knn`` only neighbours are candidates, as in the paper.

G is estimated by ``beran`` (product-limit with the same weights), ``knn`` (Kaplan-Meier over
the rows of largest weight) or ``km`` (Kaplan-Meier over all rows).
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from cqrf.arguments import is_count, is_number, read_choice
from cqrf.curves import product_limit
from cqrf.growing.labels import TOLERANCE
from cqrf.kernel import kernel
from cqrf.target import Target, first_at_risk, oriented, pair, rank_target, read_sample_weight
from cqrf.weights import Weights

BERAN, KNN, KM = 0, 1, 2
CENSORING_SURVIVALS = {"beran": BERAN, "knn": KNN, "km": KM}
SOLVERS = ("root", "argmin")


class UnidentifiedQuantileWarning(UserWarning):
    """Some of the quantiles asked for lie beyond what the censored data can tell."""


def solve_quantiles(
    weights: Any,
    time: ArrayLike,
    event: ArrayLike,
    quantiles: float | Sequence[float],
    censoring_survival: str = "beran",
    n_neighbors: int | float | None = None,
    solver: str = "root",
    *,
    censoring: str = "right",
    entry: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    unidentified: str = "inf",
) -> NDArray[np.float64]:
    """Censored quantiles from any weights: of another forest, a kernel, neighbours.

    Parameters
    ----------
    weights : array-like or sparse matrix of shape (n_queries, n_train)
        Weight of each training row for each query: none negative, each row with a
        positive sum. Rows are scaled to sum to 1.
    time, event : array-like of shape (n_train,)
        Times of the training rows, and whether the event was seen.
    quantiles : float or sequence of float
        Levels in (0, 1).
    censoring_survival : {"beran", "knn", "km"}
        How the survival of the censoring time is estimated.
    n_neighbors : int or float, optional
        For ``"knn"``: how many of the rows of largest weight to use, a count or a fraction
        of n_train; rows tied with the last are in, rows without weight are not. None: the
        rows with more than the average weight 1 / n_train (all rows if none has).
    solver : {"root", "argmin"}
        How the quantile is read off the estimating equation.
    censoring : {"right", "left"}
        Side on which times are censored.
    entry : array-like of shape (n_train,), optional
        Times from which the training rows are at risk (right censoring only).
    sample_weight : array-like of shape (n_train,), optional
        How often each training row counts: 2 is the same as the row twice, with the same
        column of ``weights`` twice.
    unidentified : {"inf", "clip", "nan"}
        What stands for a quantile that cannot be estimated: infinity, the largest observed
        neighbour (the smallest under left censoring), or NaN.

    Returns
    -------
    ndarray of shape (n_queries,) or (n_queries, n_quantiles)

    Examples
    --------
    >>> import numpy as np
    >>> from cqrf import solve_quantiles
    >>> weights = np.full((1, 4), 0.25)
    >>> solve_quantiles(weights, [1, 2, 3, 4], [1, 0, 1, 1], [0.25, 0.5]).tolist()
    [[1.0, 3.0]]
    """
    quantile_solver = QuantileSolver(
        censoring_survival=censoring_survival,
        n_neighbors=n_neighbors,
        solver=solver,
        censoring=censoring,
    )
    target = pair(time, event, entry)
    if not target.event.any():
        raise ValueError("event is False in every row: nothing can be estimated without events.")
    levels, is_scalar = read_levels(quantiles)
    ranked, order = rank_target(target, censoring)
    rows, copies = _read_weights(weights, order), None
    if sample_weight is not None:
        copies = read_sample_weight(sample_weight, len(order))[order]
        rows = sparse.csr_array(rows.multiply(copies))
    solution = quantile_solver.solve(
        _scale_rows(rows),
        ranked,
        levels,
        first_at_risk=first_at_risk(ranked),
        sample_weight=copies,
    )
    values = solution.settled(unidentified)
    return values[:, 0] if is_scalar else values


class Solution(NamedTuple):
    """Quantiles, inf where they cannot be estimated (-inf under left censoring)."""

    values: NDArray[np.float64]
    last_neighbor: NDArray[np.float64]

    def settled(self, unidentified: str, stacklevel: int = 3) -> NDArray[np.float64]:
        """Values with the unidentified ones written as the user wants them."""
        read_choice("unidentified", unidentified, ("inf", "clip", "nan"))
        missing = np.isinf(self.values)
        if not missing.any():
            return self.values
        if unidentified == "clip":
            return np.where(missing, self.last_neighbor[:, np.newaxis], self.values)
        if unidentified == "nan":
            return np.where(missing, np.nan, self.values)
        warnings.warn(
            f"{int(missing.sum())} of {missing.size} quantiles cannot be estimated, because too "
            "much is censored where they lie; they are infinite. Ask for less extreme levels "
            "(max_quantile gives the limit at each row), or pass unidentified='clip' for the "
            "last observed neighbour or 'nan' for NaN.",
            UnidentifiedQuantileWarning,
            stacklevel=stacklevel,
        )
        return self.values


class QuantileSolver:
    """The estimating equation with its choices made, to be solved for rows of weights."""

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
        self.use_root = read_choice("solver", solver, SOLVERS) == "root"
        self.censoring = read_choice("censoring", censoring, ("right", "left"))
        self.n_neighbors = n_neighbors

    def check_neighbors(self, n_train: int) -> None:
        """Raise if there cannot be as many neighbours among so many rows."""
        if self.n_neighbors is not None:
            count_neighbors(self.n_neighbors, n_train)

    def solve(
        self,
        weights: Weights,
        target: Target,
        levels: NDArray[np.float64],
        *,
        first_at_risk: NDArray[np.int32] | None = None,
        sample_weight: NDArray[np.floating] | None = None,
    ) -> Solution:
        """Quantiles of shape (n_queries, n_levels); the target by rank, oriented to the right."""
        taus = levels if self.censoring == "right" else 1.0 - levels
        order = np.argsort(taus, kind="stable")
        values = np.empty((len(weights.offsets) - 1, len(levels)))
        solved, last, _ = self._run(weights, target, taus[order], first_at_risk, sample_weight)
        values[:, order] = oriented(solved, self.censoring)
        return Solution(values, oriented(last, self.censoring))

    def max_level(
        self,
        weights: Weights,
        target: Target,
        *,
        first_at_risk: NDArray[np.int32] | None = None,
        sample_weight: NDArray[np.floating] | None = None,
    ) -> NDArray[np.float64]:
        """Largest level that can be estimated; under left censoring the smallest."""
        _, _, level = self._run(weights, target, np.empty(0), first_at_risk, sample_weight)
        return level if self.censoring == "right" else 1.0 - level

    def _run(
        self,
        weights: Weights,
        target: Target,
        taus: NDArray[np.float64],
        first_at_risk: NDArray[np.int32] | None,
        sample_weight: NDArray[np.floating] | None,
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        n_train = len(target.time)
        if self.method == BERAN and self.use_root and first_at_risk is None and len(taus):
            return *_read_roots(*weights, target.time, target.event, taus), np.empty(0)
        n_neighbors = 0.0
        if self.method == KNN and self.n_neighbors is not None:
            total = n_train if sample_weight is None else float(sample_weight.sum())
            n_neighbors = count_neighbors(self.n_neighbors, total)
        return _solve_rows(
            *weights,
            target.time,
            target.event,
            first_at_risk,
            sample_weight,
            self.method,
            n_neighbors,
            taus,
            self.use_root,
        )


def count_neighbors(n_neighbors: int | float, total: float) -> float:
    """Number of neighbours, from a count or a fraction of the training rows' weight."""
    if is_count(n_neighbors):
        if not 1 <= n_neighbors <= total:
            raise ValueError(
                f"n_neighbors={n_neighbors} must lie between 1 and the {total:g} training rows."
            )
        return float(n_neighbors)
    if is_number(n_neighbors) and 0 < n_neighbors <= 1:
        return float(max(1, round(float(n_neighbors) * total)))
    raise ValueError(
        f"n_neighbors={n_neighbors!r} must be a count of training rows or a fraction in (0, 1]."
    )


def read_levels(quantiles: float | Sequence[float]) -> tuple[NDArray[np.float64], bool]:
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


def _scale_rows(rows: sparse.csr_array) -> Weights:
    """Rows that sum to 1, without their zeros."""
    rows.eliminate_zeros()
    rows.sort_indices()
    totals = rows.sum(axis=1)
    if (totals <= 0).any():
        empty = int(np.flatnonzero(totals <= 0)[0])
        raise ValueError(f"row {empty} of weights sums to 0: no training row speaks for it.")
    values = rows.data / np.repeat(totals, np.diff(rows.indptr))
    return Weights(rows.indptr.astype(np.int64), rows.indices.astype(np.int32), values)


@kernel
def _read_roots(offsets, ranks, weights, time, event, taus):
    """The default: where S reaches 1 - tau for each of the ascending taus, Beran's G.

    As S = A / G with A the weight still at risk, an event only compares A with
    (1 - tau) G, and only a censoring divides. The walk ends with the last tau.
    """
    n_queries, n_taus = offsets.shape[0] - 1, taus.shape[0]
    quantiles, last_time = np.full((n_queries, n_taus), np.inf), np.full(n_queries, np.nan)
    at_risk = np.empty(time.shape[0] + 1)
    for q in range(n_queries):
        start, end = offsets[q], offsets[q + 1]
        if start == end:
            quantiles[q] = np.nan
            continue
        remaining = 0.0
        at_risk[end - start] = 0.0
        for i in range(end - 1, start - 1, -1):
            remaining += weights[i]
            at_risk[i - start] = remaining
        last_time[q] = time[ranks[end - 1]]
        k, g = 0, at_risk[0]
        threshold = (1.0 - taus[0] + TOLERANCE) * g
        for i in range(end - start):
            rank = ranks[start + i]
            if not event[rank]:
                g *= at_risk[i + 1] / at_risk[i]
                threshold = (1.0 - taus[k] + TOLERANCE) * g
                continue
            while at_risk[i + 1] <= threshold:
                quantiles[q, k] = time[rank]
                k += 1
                if k == n_taus:
                    break
                threshold = (1.0 - taus[k] + TOLERANCE) * g
            if k == n_taus:
                break
    return quantiles, last_time


@kernel
def _solve_rows(
    offsets,
    ranks,
    weights,
    time,
    event,
    first_at_risk,
    sample_weight,
    method,
    n_neighbors,
    taus,
    use_root,
):
    """Solve for each row of weights and each of the ascending taus.

    Returns the quantiles (inf where unidentified), the last time of each row that has
    weight, and the largest level that can be solved for.
    """
    n_queries, n_train = offsets.shape[0] - 1, time.shape[0]
    quantiles = np.full((n_queries, taus.shape[0]), np.inf)
    last_time, max_level = np.full(n_queries, np.nan), np.zeros(n_queries)
    at_risk = np.empty(n_train + 1)
    survival, beran, other = np.empty(n_train), np.empty(n_train), np.empty(n_train)
    ones, unused = np.empty(n_train), np.empty(n_train)

    total = 1.0 * n_train
    if sample_weight is not None:
        total = 0.0
        for rank in range(n_train):
            total += sample_weight[rank]
    marginal = np.empty(0)
    if method == KM:
        marginal = np.empty(n_train)
        for rank in range(n_train):
            ones[rank] = 1.0 if sample_weight is None else np.float64(sample_weight[rank])
        all_ranks = np.arange(n_train).astype(np.int32)
        product_limit(all_ranks, ones, event, first_at_risk, at_risk, unused, marginal)
        for rank in range(n_train - 2, -1, -1):
            if time[rank] == time[rank + 1]:
                marginal[rank] = marginal[rank + 1]

    for q in range(n_queries):
        row, w = ranks[offsets[q] : offsets[q + 1]], weights[offsets[q] : offsets[q + 1]]
        n = row.shape[0]
        if n == 0:
            quantiles[q] = np.nan
            max_level[q] = np.nan
            continue
        product_limit(row, w, event, first_at_risk, at_risk, survival, beran)
        if method == KNN:
            mark_neighbors(row, w, sample_weight, n_neighbors, total, ones)
            product_limit(row, ones[:n], event, first_at_risk, at_risk, unused, other)
        elif method == KM:
            for i in range(n):
                other[i] = marginal[row[i]]
        last_time[q] = time[row[n - 1]]
        neighbors_only = method == KNN and not use_root
        end = n
        while end > 0 and (not event[row[end - 1]] or (neighbors_only and ones[end - 1] == 0.0)):
            end -= 1
        # A candidate is a time: it is judged where its last tied row has been passed.
        while 0 < end < n and time[row[end]] == time[row[end - 1]]:
            end += 1
        smallest = np.full(taus.shape[0], np.inf)
        k, is_candidate = 0, False
        for i in range(end):
            is_candidate |= not neighbors_only or ones[i] > 0.0
            if i + 1 < n and time[row[i + 1]] == time[row[i]]:
                continue
            if not is_candidate:
                continue
            is_candidate = False
            still_there = survival[i] * beran[i]
            g = beran[i] if method == BERAN else other[i]
            s = survival[i]
            if method != BERAN and g > 0.0:
                s = still_there / g
            elif method != BERAN and still_there > 0.0:
                s = 1.0
            max_level[q] = max(max_level[q], 1.0 - s)
            if use_root:
                while k < taus.shape[0] and s <= 1.0 - taus[k] + TOLERANCE:
                    quantiles[q, k] = time[row[i]]
                    k += 1
                if k == taus.shape[0] and k > 0:
                    break
            elif g > 0.0 or still_there > 0.0:
                for j in range(taus.shape[0]):
                    distance = abs((1.0 - taus[j]) * g - still_there)
                    if distance < smallest[j]:
                        smallest[j] = distance
                        quantiles[q, j] = time[row[i]]
    return quantiles, last_time, max_level


@kernel
def mark_neighbors(row, weights, sample_weight, n_neighbors, total, marks):
    """Write the weight in a Kaplan-Meier curve of each row: 0 unless it is a neighbour.

    A row with sample weight s is s copies, which share its weight; ``total`` is the number
    of all copies. Without a number of neighbours they are the rows of more than average
    weight, or all if there are none.
    """
    n = row.shape[0]
    share = np.empty(n)
    for i in range(n):
        share[i] = weights[i] if sample_weight is None else weights[i] / sample_weight[row[i]]
    least = (1.0 + TOLERANCE) / total
    if n_neighbors > 0:
        copies = 0.0
        for i in np.argsort(-share):
            least = share[i] * (1.0 - TOLERANCE)
            copies += 1.0 if sample_weight is None else np.float64(sample_weight[row[i]])
            if copies >= n_neighbors * (1.0 - TOLERANCE):
                break
    elif share.max() < least:
        least = 0.0
    for i in range(n):
        mark = 1.0 if sample_weight is None else np.float64(sample_weight[row[i]])
        marks[i] = mark if share[i] >= least else 0.0
