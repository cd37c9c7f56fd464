"""Weights are made once, and read by any number of readers.

:func:`read_weights` splits the queries into chunks. For each chunk it finds the leaves, makes the
weights, and passes both to every reader; then each reader joins its parts. Results depend neither
on the chunks nor on the number of threads. A reader is a subclass of :class:`Reader`, with
``read(chunk)`` and ``join(parts)``, in a file of this package.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from cqrf._forest.traversal import Leaves, find_leaves
from cqrf._forest.weights import Weights, chunk_queries, forest_weights
from cqrf._model.fitted import Model
from cqrf._model.kinds import TreeKinds, split_kinds
from cqrf._model.queries import Queries
from cqrf._runtime.threads import computed_once, thread_map
from cqrf._survival.curves import Steps, as_curves, compute_steps, step_curves
from cqrf._survival.interval_curves import IntervalSteps, interval_steps
from cqrf._survival.step_curves import StepCurves

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
