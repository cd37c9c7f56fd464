"""Training: all trees of a forest, grown in batches and in parallel."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cqrf._forest.grower import Grown, grow_trees
from cqrf._forest.layout import finish_trees, join_trees
from cqrf._forest.rows import Rows
from cqrf._forest.sampling import TreeKeys, derive_tree_keys, draw_subsamples
from cqrf._forest.spec import Forest, Growing, Sampling, Subsamples, Trees
from cqrf._forest.workspace import make_workspace
from cqrf._runtime.threads import parallel_map

Progress = Callable[[Iterator[Any], int], Iterable[Any]]

# Trees are grown in batches of about this many row visits (rows times features): long enough to
# hide the cost of a task, short enough to stop soon when interrupted.
BATCH_WORK = 400_000
# At least so many batches, so that threads end at the same time; each costs some Python.
MIN_BATCHES = 8


class TreeGroup(NamedTuple):
    """Trees that are grown from the same rows: the rows, how they are drawn, and how split."""

    rows: Rows
    sampling: Sampling
    growing: Growing
    keys: TreeKeys


def grow_forest(
    rows: Rows,
    sampling: Sampling,
    growing: Growing,
    n_trees: int,
    seed: int,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> Forest:
    """Grow trees 0 .. n_trees - 1 of the forest with this seed, all from the same rows."""
    keys = derive_tree_keys(sampling, seed, range(n_trees))
    groups = [TreeGroup(rows, sampling, growing, keys)]
    ((trees, gains),) = grow_groups(groups, n_jobs, progress)
    return join_trees(trees, rows.categorical, gains)


def grow_groups(
    groups: Sequence[TreeGroup],
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> list[tuple[Trees, NDArray[np.float64]]]:
    """Trees of each group, and the gain of each feature in all of them together.

    ``progress`` wraps the iterator over finished batches, with the number of batches.
    """
    tasks, ends = [], []
    for rows, sampling, growing, keys in groups:
        weighted = rows.time if rows.weight is None else rows.time[rows.weight > 0]
        scaled = scale_criterion(growing, float(np.abs(weighted).max()))
        n_trees = len(keys.growth)
        rows_per_tree = sampling.size * len(rows.time) // sampling.n_units
        size = max(1, rows_per_tree * len(rows.categorical))
        batch = max(1, min(BATCH_WORK // size, n_trees // MIN_BATCHES))
        tasks += [
            (rows, sampling, scaled, keys.take(slice(first, first + batch)))
            for first in range(0, n_trees, batch)
        ]
        ends.append(len(tasks))
    batches: Iterable[Any] = parallel_map(grow_batch, tasks, n_jobs)
    if progress is not None:
        batches = progress(iter(batches), len(tasks))
    iterator, grown = iter(batches), []
    for first, end in zip([0, *ends], ends):
        trees, gains = concatenate_batches(islice(iterator, end - first))
        grown.append((trees, gains.sum(axis=0)))
    next(iterator, None)  # the last batch counts as done once another one is asked for
    return grown


def scale_criterion(growing: Growing, largest_time: float) -> Growing:
    """The same, with the criterion adapted to the largest absolute time of the training rows."""
    return growing._replace(criterion=growing.criterion.scaled_to(largest_time))


def grow_batch(
    rows: Rows, sampling: Sampling, growing: Growing, keys: TreeKeys
) -> tuple[Trees, NDArray[np.float64]]:
    """The trees with these keys, and the gain of each feature in each of them."""
    return grow_from(rows, growing, sampling.honest, draw_subsamples(sampling, keys))


def grow_from(
    rows: Rows, growing: Growing, honest: bool, samples: Subsamples
) -> tuple[Trees, NDArray[np.float64]]:
    """A tree from each of the subsamples, and the gain of each feature in each of them.

    One kernel call serves all trees: on a small table the call costs more than a tree. Growing and
    layout are two kernels, as each compiles everything that it calls.
    """
    rows = rows.for_kernels()
    n_trees = len(samples.seeds)
    most_rows = np.diff(samples.starts)[::2].max()
    n_labels = growing.criterion.n_labels
    work = make_workspace(n_trees, most_rows, rows, n_labels, growing.limits)
    first_node, first_subset = np.empty((2, n_trees + 1), np.int64)
    grown = Grown(first_node, first_subset, np.zeros((n_trees, len(rows.codes))))
    grow_trees(rows, samples, growing, work, grown)
    return finish_trees(rows, honest, samples, work, grown), grown.gains


def concatenate_batches(batches: Iterable[Any]) -> tuple[Trees, NDArray[np.float64]]:
    """Trees and gains of all batches.

    Fields are joined from the last to the first, so that only one is held twice at a time.
    """
    fields: list[list[NDArray[Any]]] = [[] for _ in range(len(Trees._fields) + 1)]
    for part, gains in batches:
        for field, array in zip(fields, (*part, gains), strict=True):
            field.append(array)
    joined = [np.concatenate(fields.pop()) for _ in range(len(fields))]
    gains = joined.pop(0)
    return Trees._make(reversed(joined)), gains
