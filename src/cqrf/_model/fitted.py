"""The model: what a fit leaves behind, and everything that is read from its weights.

A fit turns the matrix into bytes, puts the rows in time order, and grows the forest. A query
is a row of bytes; its weights give curves, quantiles and means.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.utils import check_consistent_length

from cqrf._forest.binning import encode, find_edges, level_edges
from cqrf._forest.sampling import in_bag_bits
from cqrf._forest.spec import Forest, Rows, Sampling
from cqrf._forest.training import grow_forest
from cqrf._forest.traversal import find_leaves
from cqrf._forest.weights import Weights, chunk_queries, forest_weights
from cqrf._input.features import Columns
from cqrf._input.risk_sets import first_at_risk
from cqrf._input.sample_weight import relative_weight
from cqrf._input.target import Target, oriented, rank_target
from cqrf._model.settings import Plan
from cqrf._runtime.arguments import is_missing, is_number, read_floats
from cqrf._runtime.progress import show_progress
from cqrf._runtime.threads import thread_map
from cqrf._survival.curves import StepCurves, step_curves
from cqrf._survival.little_bags import log_log_interval, survival_errors
from cqrf._survival.quantiles import QuantileSolver, Solution
from cqrf.metrics.censoring import marginal_weights
from cqrf.metrics.quantile import censored_quantile_loss

Result = TypeVar("Result")

FEWEST_UNITS = 20  # rows or groups that half-samples can tell something by
NO_UNIT = -1


class Queries(NamedTuple):
    """Codes of shape (n, n_features), and bits of the trees to leave out for each row."""

    codes: NDArray[np.uint8]
    in_bag: NDArray[np.uint8] | None = None


@dataclass(frozen=True)
class Model:
    """A fitted forest with what its predictions need.

    Training rows stand by rank; ``order`` gives the row of each rank in the table. A forest
    that was grown where the table lies keeps no codes: ``rows.codes`` then has no columns.
    """

    columns: Columns
    edges: list[NDArray[np.float64]]
    forest: Forest
    rows: Rows
    entry: NDArray[np.float64] | None
    order: NDArray[np.int32]
    sampling: Sampling
    seed: int
    censoring: str

    @property
    def target(self) -> Target:
        """Times and events by rank, oriented to the right."""
        return Target(self.rows.time, self.rows.event, self.entry)

    @property
    def last_time(self) -> float:
        """Last time of the training rows that count (the first, under left censoring)."""
        weight = self.rows.weight
        last = len(self.order) - 1 if weight is None else np.flatnonzero(weight)[-1]
        return float(oriented(self.rows.time[last], self.censoring))

    @property
    def keeps_features(self) -> bool:
        """Whether the features of the training rows are there."""
        return self.rows.codes.shape[1] > 0

    def training_rows(self) -> tuple[Target, NDArray[np.float64]]:
        """Target and weights of the training rows, as they stood in the table."""
        back = np.argsort(self.order)
        time = oriented(self.rows.time, self.censoring)
        weight = np.ones(len(back)) if self.rows.weight is None else self.rows.weight[back]
        return Target(time, self.rows.event, self.entry).take(back), np.asarray(weight, np.float64)

    def queries(self, matrix: NDArray[Any], n_jobs: int | None = None) -> Queries:
        """Queries from the rows of a matrix."""
        return Queries(np.ascontiguousarray(encode(matrix, self.edges, n_jobs).T))

    def training_queries(self) -> Queries:
        """The training rows, in their own order, each without the trees that drew it."""
        if not self.keeps_features:
            raise ValueError(
                "a forest grown on Dask keeps no features of its training rows, so nothing is out "
                "of bag: judge it on rows held out, with predict and score."
            )
        back = np.argsort(self.order)
        drawn = in_bag_bits(self.sampling, len(self.forest.roots), self.seed)
        unit = self.sampling.unit_of_row[back]
        unit = np.where(unit < NO_UNIT, NO_UNIT - 1 - unit, unit)  # that of its group
        drawn = np.where(unit[:, np.newaxis] >= 0, drawn[unit], np.uint8(0))
        return Queries(np.ascontiguousarray(self.rows.codes[:, back].T), drawn)

    def has_tree(self, queries: Queries) -> NDArray[np.bool_]:
        """Queries that some tree speaks for."""
        if queries.in_bag is None:
            return np.full(len(queries.codes), True)
        n_drawn = np.bitwise_count(queries.in_bag).sum(axis=1, dtype=np.int64)
        return np.asarray(n_drawn < len(self.forest.roots))

    def map(
        self, read: Callable[[Weights], Result], queries: Queries, n_jobs: int | None
    ) -> list[Result]:
        """What ``read`` makes of the weights, for consecutive chunks of queries."""
        n_train, weight = len(self.order), self.rows.weight
        chunks = chunk_queries(self.forest, queries.codes, n_train, queries.in_bag, n_jobs)

        def task(rows: slice) -> Result:
            bag = None if queries.in_bag is None else queries.in_bag[rows]
            leaves = find_leaves(self.forest, queries.codes[rows], bag)
            return read(forest_weights(leaves, self.forest.leaf_rows, n_train, weight))

        return list(thread_map(task, [(chunk,) for chunk in chunks], n_jobs))

    def solve(
        self,
        queries: Queries,
        solver: QuantileSolver,
        levels: NDArray[np.float64],
        n_jobs: int | None = None,
    ) -> Solution:
        """Quantiles of shape (n_queries, n_levels)."""
        read = partial(solver.solve, levels=levels, **self._at_risk())
        parts = self.map(read, queries, n_jobs)
        return Solution(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))

    def max_level(
        self, queries: Queries, solver: QuantileSolver, n_jobs: int | None = None
    ) -> NDArray[np.float64]:
        """Largest level that can be estimated (the smallest, under left censoring)."""
        return np.concatenate(
            self.map(partial(solver.max_level, **self._at_risk()), queries, n_jobs)
        )

    def curves(
        self,
        queries: Queries,
        times: ArrayLike | None = None,
        *,
        of_censoring: bool = False,
        n_jobs: int | None = None,
    ) -> StepCurves | NDArray[np.float64]:
        """Survival of T, or of C: step curves, or their values at times."""
        read = partial(self._step_curves, of_censoring=of_censoring)
        if times is None:
            return StepCurves.join(self.map(read, queries, n_jobs))
        at = np.atleast_1d(read_floats("times", times))
        return np.concatenate(self.map(lambda weights: read(weights)(at), queries, n_jobs))

    def survival_errors(
        self, queries: Queries, at: NDArray[np.float64], n_jobs: int | None = None
    ) -> NDArray[np.float64]:
        """Standard error of the survival curve at times of shape (n_queries, n_times)."""
        if self.sampling.bag_size == 1:
            raise ValueError(
                "standard errors need trees in bags: fit with bag_size=2 or more (and some hundred "
                "bags, n_estimators / bag_size)."
            )
        if not self.sampling.honest:
            raise ValueError("standard errors need honest trees: fit with honest=True.")
        if self.sampling.bootstrap:  # with repeated rows they come out a third too large
            raise ValueError("standard errors need each row drawn once: fit with bootstrap=False.")
        if len(self.forest.roots) < 2 * self.sampling.bag_size:
            raise ValueError("standard errors need at least two bags: more n_estimators.")
        if self.sampling.n_units < FEWEST_UNITS:
            raise ValueError(
                f"standard errors need at least {FEWEST_UNITS} rows or groups; found "
                f"{self.sampling.n_units}."
            )
        if np.isnan(at).any():
            raise ValueError("times must be numbers without NaN.")
        if self.rows.first_at_risk is not None:
            raise ValueError("standard errors are not there for rows that enter late.")
        return survival_errors(
            self.forest,
            queries.codes,
            self.rows.time,
            self.rows.event,
            self.rows.weight,
            np.ascontiguousarray(oriented(at, self.censoring)),
            self.sampling.bag_size,
            n_jobs,
        )

    def survival_interval(
        self, survival: NDArray[np.float64], width: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Interval of P(T > t), whose mirror image under left censoring is that of P(-T > -t)."""
        if self.censoring == "right":
            return log_log_interval(survival, width)
        lower, upper = log_log_interval(1.0 - survival, width)
        return 1.0 - upper, 1.0 - lower

    def quantile_interval(
        self,
        queries: Queries,
        solver: QuantileSolver,
        levels: NDArray[np.float64],
        width: float,
        n_jobs: int | None = None,
    ) -> NDArray[np.float64]:
        """Ends of the quantiles, shape (n_queries, n_levels, 2), ``width`` standard errors away."""
        values = self.solve(queries, solver, levels, n_jobs).settled("clip")
        # S may cross the level in one large step: its error before the step counts as well.
        before = np.nextafter(values, oriented(-np.inf, self.censoring))
        errors = self.survival_errors(queries, np.hstack([values, before]), n_jobs)
        errors = errors.reshape(len(values), 2, len(levels)).max(axis=1)
        curves = self.curves(queries, n_jobs=n_jobs)
        assert isinstance(curves, StepCurves)
        ends = np.empty((*values.shape, 2))
        for k, level in enumerate(levels):
            middle = np.full(len(values), 1.0 - level)
            lower, upper = self.survival_interval(middle, width * errors[:, k])
            ends[:, k, 0] = np.minimum(curves.first_at_most(upper), values[:, k])
            ends[:, k, 1] = np.maximum(curves.first_at_most(lower), values[:, k])
        return ends

    def restricted_mean(
        self, queries: Queries, horizon: float | None = None, n_jobs: int | None = None
    ) -> NDArray[np.float64]:
        """Mean of T cut off at the horizon."""
        end = self.last_time if horizon is None else horizon
        if not is_number(end) or not np.isfinite(end):
            raise ValueError(f"horizon={horizon!r} must be a finite time.")

        def read(weights: Weights) -> NDArray[np.float64]:
            return self._step_curves(weights).restricted_mean(float(end), self.censoring)

        return np.concatenate(self.map(read, queries, n_jobs))

    def weight_matrix(self, queries: Queries, n_jobs: int | None = None) -> sparse.csr_array:
        """Weights with the training rows as columns, in the order of the table."""
        parts = self.map(lambda weights: weights, queries, n_jobs)
        lengths = np.concatenate([np.diff(part.offsets) for part in parts])
        ranks = np.concatenate([part.ranks for part in parts])
        matrix = sparse.csr_array(
            (
                np.concatenate([part.values for part in parts]),
                self.order[ranks],
                np.concatenate([[0], np.cumsum(lengths)]),
            ),
            shape=(len(queries.codes), len(self.order)),
        )
        matrix.sort_indices()
        return matrix

    def skill(
        self,
        predicted: NDArray[np.float64],
        test: Target,
        levels: NDArray[np.float64],
        sample_weight: ArrayLike | None = None,
        censored_as: Target | None = None,
    ) -> float:
        """One minus the loss of the predictions over that of the marginal curve.

        Rows are taken to be censored as the training rows are, or as others.
        """
        check_consistent_length(predicted, test.time)
        weight, n = self.rows.weight, len(self.order)
        marginal = QuantileSolver(censoring=self.censoring).solve(
            marginal_weights(weight, n),
            self.target,
            levels,
            first_at_risk=self.rows.first_at_risk,
        )
        baseline = np.repeat(marginal.settled("clip"), len(test.time), axis=0)
        train = Target(oriented(self.rows.time, self.censoring), self.rows.event, self.entry)
        forest_loss, marginal_loss = (
            censored_quantile_loss(
                censored_as or train,
                test,
                values,
                levels,
                censoring=self.censoring,
                train_weight=weight if censored_as is None else None,
                sample_weight=sample_weight,
            ).mean()
            for values in (predicted, baseline)
        )
        if marginal_loss == 0:  # all times alike: nothing to be better than
            return 0.0 if forest_loss == 0 else -np.inf
        return float(1.0 - forest_loss / marginal_loss)

    def skill_in_training(
        self, predicted: NDArray[np.float64], levels: NDArray[np.float64]
    ) -> float:
        """Skill of predictions for the training rows; rows without one (NaN) do not count."""
        known = np.flatnonzero(~np.isnan(predicted).any(axis=1))
        if len(known) == 0:
            raise ValueError(
                "no row is out of bag: every tree has drawn all of them. Fit with max_samples "
                "below 1, or with bootstrap=True."
            )
        ranks = np.argsort(self.order)[known]
        test = Target(oriented(self.rows.time, self.censoring), self.rows.event).take(ranks)
        weight = None if self.rows.weight is None else self.rows.weight[ranks]
        return self.skill(predicted[known], test, levels, weight)

    def _step_curves(self, weights: Weights, of_censoring: bool = False) -> StepCurves:
        return step_curves(
            weights,
            self.rows.time,
            self.rows.event,
            first_at_risk=self.rows.first_at_risk,
            of_censoring=of_censoring,
            censoring=self.censoring,
        )

    def _at_risk(self) -> dict[str, Any]:
        return {
            "target": self.target,
            "first_at_risk": self.rows.first_at_risk,
            "sample_weight": self.rows.weight,
        }


def fit_model(
    matrix: NDArray[Any],
    columns: Columns,
    target: Target,
    sample_weight: ArrayLike | None,
    groups: ArrayLike | None,
    plan: Plan,
    *,
    n_jobs: int | None,
    verbose: bool,
) -> Model:
    """Grow the forest of a table."""
    check_consistent_length(matrix, target.time)
    n = len(matrix)
    check_n_rows(n)
    weight = None if sample_weight is None else relative_weight(sample_weight, n)
    counts = np.ones(n, dtype=bool) if weight is None else weight > 0
    check_events(bool(target.event[counts].any()))
    ranked, order = rank_target(target, plan.censoring)
    counted = matrix if counts.all() else matrix[counts]
    edges = find_bins(counted, columns, plan, n_jobs)
    rows = Rows(
        codes=np.take(encode(matrix, edges, n_jobs), order, axis=1),
        categorical=columns.categorical,
        time=ranked.time,
        event=ranked.event,
        weight=None if weight is None else weight[order],
        first_at_risk=first_at_risk(ranked),
    )
    units = number_units(counts, groups)
    unit = "rows" if groups is None else "groups"
    sampling = plan.sample(units[order], int(units.max()) + 1, unit)
    progress = partial(show_progress, total=plan.n_trees) if verbose else None
    forest = grow_forest(rows, sampling, plan.growing, plan.n_trees, plan.seed, n_jobs, progress)
    return Model(
        columns, edges, forest, rows, ranked.entry, order, sampling, plan.seed, plan.censoring
    )


def find_bins(
    matrix: NDArray[Any], columns: Columns, plan: Plan, n_jobs: int | None = None
) -> list[NDArray[np.float64]]:
    """Edges of every column, from rows that count."""
    edges = find_edges(matrix, plan.max_bins, plan.seed, n_jobs)
    return [
        edge if levels is None else level_edges(len(levels))
        for edge, levels in zip(edges, columns.levels, strict=True)
    ]


def check_events(there_is: bool) -> None:
    """Refuse a table of which no row that counts has an event."""
    if not there_is:
        raise ValueError(
            "every row is censored (event is never True): nothing can be learnt about the "
            "time of the event. Check which value of the status means that it was seen."
        )


def check_n_rows(n: int) -> None:
    """Refuse a table whose rows cannot be numbered in 32 bits."""
    most = np.iinfo(np.int32).max
    if n > most:
        raise ValueError(f"X has {n} rows; a forest takes at most {most} rows: fit on a sample.")


def number_units(counts: NDArray[np.bool_], groups: ArrayLike | None) -> NDArray[np.int32]:
    """Number of the unit each row is drawn with, its own or its group's.

    Below 0: never drawn. A row that does not count but is of a group with unit u, and so is out
    of bag where that is, has NO_UNIT - 1 - u.
    """
    units = np.full(len(counts), NO_UNIT, dtype=np.int32)
    if groups is None:
        units[counts] = np.arange(counts.sum())
        return units
    labels = read_groups(groups, len(counts))
    units[counts] = list_by_appearance(labels[counts])[1]
    if not counts.all():
        _, group = np.unique(labels, return_inverse=True)
        unit_of_group = np.full(group.max() + 1, NO_UNIT)
        unit_of_group[group[counts]] = units[counts]
        units[~counts] = NO_UNIT - 1 - unit_of_group[group[~counts]]
    return units


def read_groups(groups: ArrayLike, n: int) -> NDArray[Any]:
    """The group of each row, checked."""
    labels = np.asarray(groups)
    if labels.shape != (n,):
        raise ValueError(f"groups has shape {labels.shape}; expected ({n},).")
    if labels.dtype.kind == "O":
        has_gaps = any(map(is_missing, labels.tolist()))
    else:
        has_gaps = bool((labels != labels).any())
    if has_gaps:
        raise ValueError("groups contains None or NaN: give every row a group.")
    return labels


def list_by_appearance(labels: NDArray[Any]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Where each group appears first, and the number of each row's group in that order.

    By first appearance, so that other names for the groups change nothing.
    """
    _, first, number = np.unique(labels, return_index=True, return_inverse=True)
    return np.sort(first), np.argsort(np.argsort(first))[number]
