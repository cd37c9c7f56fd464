"""Prediction: weights are made once, and read by any number of readers.

:func:`read_weights` splits the queries into chunks. For each chunk it finds the leaves, makes the
weights, and passes both to every reader; then each reader joins its parts. Results depend neither
on the chunks nor on the number of threads. A reader is a subclass of :class:`Reader` in this file,
with ``read(chunk)`` and ``join(parts)``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from cqrf._forest.traversal import Leaves, find_leaves
from cqrf._forest.weights import Weights, chunk_queries, forest_weights
from cqrf._input.target import oriented
from cqrf._model.bag_checks import check_errors
from cqrf._model.fitted import Model
from cqrf._model.kinds import TreeKinds, split_kinds
from cqrf._model.queries import Queries
from cqrf._runtime.arguments import is_number, read_choice, read_floats, read_times
from cqrf._runtime.threads import computed_once, thread_map
from cqrf._survival.curves import Steps, as_curves, compute_steps, step_curves
from cqrf._survival.interval_curves import REACHED, IntervalSteps, interval_steps
from cqrf._survival.little_bags import bag_variances, standard_errors, survival_interval
from cqrf._survival.quantiles import QuantileSolver, Solution, curve_quantiles
from cqrf._survival.step_curve import BEYOND
from cqrf._survival.step_curves import BEYOND_MEAN, StepCurves

Part = TypeVar("Part")
Result = TypeVar("Result")


@dataclass(frozen=True, eq=False)
class Chunk:
    """Consecutive queries with their leaves and weights."""

    model: Model
    rows: slice
    """Which of all queries these are: for readers with an argument per query."""
    queries: Queries
    leaves: Leaves

    @property
    def n_queries(self) -> int:
        """Number of queries."""
        return len(self.leaves.sizes)

    @property
    def given(self) -> NDArray[np.float64] | None:
        """Times that the queries have already survived."""
        return self.queries.given

    @computed_once
    def weights(self) -> Weights:
        """Weights of the training rows, by rank, from all trees."""
        model = self.model
        return forest_weights(
            self.leaves, model.forest.leaf_rows, len(model.order), model.rows.weight
        )

    @computed_once
    def by_kind(self) -> TreeKinds | None:
        """Leaves and weights of direct and of residual trees; None without a working model."""
        return split_kinds(self.model, self.queries, self.leaves)

    @computed_once
    def steps(self) -> Steps:
        """Steps of the survival curves of T, on times oriented to the right."""
        if self.by_kind is not None:
            return self.by_kind.mix()
        if self.interval_steps is not None:
            return self.interval_steps.at_right()
        return compute_steps(self.weights, self.model.ranked_target)

    @computed_once
    def interval_steps(self) -> IntervalSteps | None:
        """Steps of all trees with both ends; None without interval censoring."""
        ends = self.model.interval_ends
        return None if ends is None else interval_steps(self.weights, ends)

    @computed_once
    def survival(self) -> StepCurves:
        """Survival curves of T; of the remaining time, if some time was survived."""
        curves = as_curves(self.steps, self.model.censoring)
        return curves if self.given is None else curves.given(self.given)

    @computed_once
    def censoring_survival(self) -> StepCurves:
        """Survival curves of C."""
        model = self.model
        return step_curves(
            self.weights, model.ranked_target, of_censoring=True, censoring=model.censoring
        )


class Reader(Generic[Part, Result]):
    """What is read from weights."""

    def check(self, model: Model) -> None:
        """Raise if this model does not allow the reading; called once, before the first chunk."""

    def read(self, chunk: Chunk) -> Part:
        """Result for the queries of a chunk; called in threads."""
        raise NotImplementedError

    def join(self, parts: list[Part]) -> Result:
        """Result for all queries, from those of the chunks in order."""
        raise NotImplementedError


def read_weights(
    model: Model,
    queries: Queries,
    readers: Sequence[Reader[Any, Any]],
    n_jobs: int | None = None,
) -> list[Any]:
    """Make the weights of each chunk of queries once, and return the result of every reader."""
    for reader in readers:
        reader.check(model)
    n_train = len(model.order)

    def read(rows: slice) -> list[Any]:
        asked = queries.take(rows)
        leaves = find_leaves(model.forest, asked.codes, asked.in_bag)
        chunk = Chunk(model, rows, asked, leaves)
        return [reader.read(chunk) for reader in readers]

    chunks = chunk_queries(model.forest, queries.codes, n_train, queries.in_bag, n_jobs)
    parts = list(thread_map(read, [(rows,) for rows in chunks], n_jobs))
    return [reader.join([part[k] for part in parts]) for k, reader in enumerate(readers)]


def read_one(
    model: Model, queries: Queries, reader: Reader[Any, Result], n_jobs: int | None = None
) -> Result:
    """Result of a single reader."""
    result: Result = read_weights(model, queries, [reader], n_jobs)[0]
    return result


class ArrayReader(Reader[NDArray[np.float64], NDArray[np.float64]]):
    """A reader whose parts are arrays with one entry, or one row, per query."""

    def join(self, parts: list[NDArray[np.float64]]) -> NDArray[np.float64]:
        """The arrays of all chunks."""
        return np.concatenate(parts)


@dataclass(frozen=True, eq=False)
class Quantiles(Reader[Solution, Solution]):
    """Quantiles at some levels."""

    solver: QuantileSolver
    levels: NDArray[np.float64]

    def read(self, chunk: Chunk) -> Solution:
        """Quantiles of shape (n_queries, n_levels), and the last neighbours."""
        if chunk.model.lower is not None:
            self.solver.check_reads_curves("a forest of intervals")
            return curve_quantiles(chunk.survival, self.levels, tolerance=REACHED)
        if chunk.given is not None:
            return curve_quantiles(chunk.survival, self.levels)
        if chunk.by_kind is not None:
            self.solver.check_reads_curves()
            return chunk.by_kind.quantiles(self.levels)
        return self.solver.solve(chunk.weights, chunk.model.ranked_target, self.levels)

    def join(self, parts: list[Solution]) -> Solution:
        """The solutions of all chunks."""
        return Solution(
            np.concatenate([part.values for part in parts]),
            np.concatenate([part.last_neighbor for part in parts]),
        )


@dataclass(frozen=True, eq=False)
class MaxLevel(ArrayReader):
    """Largest identifiable level of each query (the smallest, under left censoring)."""

    solver: QuantileSolver

    def read(self, chunk: Chunk) -> NDArray[np.float64]:
        """Levels of shape (n_queries,)."""
        has_curves = chunk.by_kind is not None or chunk.model.lower is not None
        if chunk.given is not None or has_curves:
            curves, censoring = chunk.survival, chunk.model.censoring
            return 1.0 - curves.each(np.full(chunk.n_queries, oriented(np.inf, censoring)))
        return self.solver.max_level(chunk.weights, chunk.model.ranked_target)


class SurvivalCurves(Reader[StepCurves, StepCurves]):
    """Survival curves P(T > t | x)."""

    def read(self, chunk: Chunk) -> StepCurves:
        """One curve per query."""
        return chunk.survival

    def join(self, parts: list[StepCurves]) -> StepCurves:
        """The curves of all chunks."""
        return StepCurves.join(parts)


class CensoringCurves(SurvivalCurves):
    """Survival curves P(C > t | x) of the censoring time."""

    def check(self, model: Model) -> None:
        """Raise if there is no censoring time."""
        check_censoring_time(model)

    def read(self, chunk: Chunk) -> StepCurves:
        """One curve per query."""
        return chunk.censoring_survival


class SurvivalAt(ArrayReader):
    """P(T > t | x) at times, the same for all queries.

    ``beyond``: the flat line (``"extend"``) or ``"nan"`` where a curve is not known.
    """

    def __init__(self, times: ArrayLike, beyond: str = "extend") -> None:
        self.times = np.atleast_1d(read_floats("times", times))
        self.beyond = read_choice("beyond", beyond, BEYOND)

    def read(self, chunk: Chunk) -> NDArray[np.float64]:
        """Probabilities of shape (n_queries, n_times)."""
        return chunk.survival(self.times, self.beyond)


class CensoringAt(SurvivalAt):
    """P(C > t | x) at times, the same for all queries."""

    def check(self, model: Model) -> None:
        """Raise if there is no censoring time."""
        check_censoring_time(model)

    def read(self, chunk: Chunk) -> NDArray[np.float64]:
        """Probabilities of shape (n_queries, n_times)."""
        return chunk.censoring_survival(self.times, self.beyond)


@dataclass(frozen=True, eq=False)
class KnownTimes(ArrayReader):
    """First and last time at which the survival curve of each query is known."""

    of_censoring: bool = False

    def read(self, chunk: Chunk) -> NDArray[np.float64]:
        """Times of shape (n_queries, 2)."""
        curves = chunk.censoring_survival if self.of_censoring else chunk.survival
        return np.column_stack([curves.start, curves.end])


@dataclass(frozen=True, eq=False)
class RestrictedMean(ArrayReader):
    """E[min(T, horizon) | x]; under left censoring E[max(T, horizon) | x].

    The default horizon is the end of the follow-up, ``model.follow_up``; less the time already
    survived, if there is one. ``beyond`` is what :meth:`StepCurves.restricted_mean` takes.
    """

    horizon: float | None = None
    beyond: str = "extend"

    def check(self, model: Model) -> None:
        """Raise unless the horizon is a finite time."""
        horizon = self.horizon
        if horizon is not None and not (is_number(horizon) and np.isfinite(horizon)):
            raise ValueError(f"horizon={horizon!r} must be a finite time.")
        read_choice("beyond", self.beyond, BEYOND_MEAN)

    def horizon_of(self, chunk: Chunk) -> NDArray[np.float64]:
        """The horizon of all queries, or of each."""
        if self.horizon is not None:
            return np.asarray(self.horizon, dtype=np.float64)
        return chunk.model.follow_up - (np.zeros(()) if chunk.given is None else chunk.given)

    def read(self, chunk: Chunk) -> NDArray[np.float64]:
        """Means of shape (n_queries,)."""
        horizon, censoring = self.horizon_of(chunk), chunk.model.censoring
        means = chunk.survival.restricted_mean(horizon, censoring, self.beyond)
        # Of a row that has survived the follow-up nothing more is known.
        return means if chunk.given is None else np.where(np.greater(horizon, 0), means, np.nan)


class BagReader(Reader[Part, Result]):
    """A reader for forests that were grown in bags."""

    def check(self, model: Model) -> None:
        """Raise unless the forest was grown in bags."""
        check_errors(model)


class SurvivalErrors(BagReader, ArrayReader):
    """Standard errors of P(T > t | x) at times, by the bootstrap of little bags."""

    def __init__(self, times: ArrayLike) -> None:
        self.times = read_times(times)

    def read(self, chunk: Chunk) -> NDArray[np.float64]:
        """Errors of shape (n_queries, n_times)."""
        return survival_errors(chunk, np.tile(self.times, (chunk.n_queries, 1)))


class Confident(NamedTuple):
    """Quantiles, ends of intervals (n, n_intervals, 2), standard errors of curves (n, n_times)."""

    solution: Solution
    ends: NDArray[np.float64]
    errors: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Confidence(BagReader[Confident, Confident]):
    """Quantiles, intervals of the first of them, errors of curves: one pass over the bags."""

    solver: QuantileSolver
    levels: NDArray[np.float64]
    n_intervals: int
    times: NDArray[np.float64]
    width: float

    def read(self, chunk: Chunk) -> Confident:
        """Estimates for the queries of a chunk."""
        censoring, n = chunk.model.censoring, self.n_intervals
        solution = Quantiles(self.solver, self.levels).read(chunk)
        values = solution.fill("clip")[:, :n]
        # S may cross the level in one large step: its error before the step counts as well.
        before = np.nextafter(values, oriented(-np.inf, censoring))
        times = np.tile(self.times, (chunk.n_queries, 1))
        errors = survival_errors(chunk, np.hstack([values, before, times]))
        of_level = np.maximum(errors[:, :n], errors[:, n : 2 * n])
        lower, upper = survival_interval(1.0 - self.levels[:n], self.width * of_level, censoring)
        first = np.minimum(chunk.survival.first_at_most(upper), values)
        last = np.maximum(chunk.survival.first_at_most(lower), values)
        return Confident(solution, np.stack([first, last], axis=-1), errors[:, 2 * n :])

    def join(self, parts: list[Confident]) -> Confident:
        """The estimates of all chunks."""
        solutions, ends, errors = zip(*parts, strict=True)
        joined = Quantiles(self.solver, self.levels).join(list(solutions))
        return Confident(joined, np.concatenate(ends), np.concatenate(errors))


@dataclass(frozen=True, eq=False)
class QuantileIntervals(BagReader, ArrayReader):
    """Confidence intervals of quantiles, ``width`` standard errors on each side."""

    solver: QuantileSolver
    levels: NDArray[np.float64]
    width: float

    def read(self, chunk: Chunk) -> NDArray[np.float64]:
        """Ends of shape (n_queries, n_levels, 2)."""
        n_levels, no_times = len(self.levels), np.empty(0)
        return Confidence(self.solver, self.levels, n_levels, no_times, self.width).read(chunk).ends


class WeightRows(Reader[sparse.csr_array, sparse.csr_array]):
    """The weights themselves, with the training rows as columns in the order of their table."""

    def read(self, chunk: Chunk) -> sparse.csr_array:
        """A sparse array of shape (n_queries, n_train)."""
        weights, order = chunk.weights, chunk.model.order
        rows = sparse.csr_array(  # a copy: sorting is in place, and other readers read the weights
            (weights.values.copy(), order[weights.ranks], weights.offsets),
            shape=(chunk.n_queries, len(order)),
        )
        rows.sort_indices()
        return rows

    def join(self, parts: list[sparse.csr_array]) -> sparse.csr_array:
        """The rows of all chunks."""
        return parts[0] if len(parts) == 1 else sparse.vstack(parts, format="csr")


def check_censoring_time(model: Model) -> None:
    """Raise for interval-censored rows: they are censored by visits, not at one time."""
    if model.lower is not None:
        raise ValueError("a forest of intervals has no censoring time to predict.")


def survival_errors(chunk: Chunk, times: NDArray[np.float64]) -> NDArray[np.float64]:
    """Standard errors of the survival curves at times of shape (n_queries, n_times)."""
    model = chunk.model
    at = np.ascontiguousarray(oriented(times, model.censoring))
    bag_size = model.sampling.bag_size
    n_bags = len(model.forest.roots) // bag_size
    if chunk.by_kind is not None:
        return standard_errors(chunk.by_kind.bag_variances(at, bag_size // 2), n_bags)
    variances = bag_variances(
        chunk.leaves, model.forest.leaf_rows, chunk.weights, model.ranked_target, at, bag_size
    )
    return standard_errors(variances, n_bags)
