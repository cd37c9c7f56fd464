"""Growing: what a worker does for some trees, a batch of them.

Which units a tree draws hangs on the seed and the tree alone, so every partition finds for itself
which of its rows are wanted. The rows of a tree then meet in one task and are grown into it.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cqrf._forest.rows import Rows
from cqrf._forest.sampling import growth_seed, subsample_units
from cqrf._forest.spec import Growing, Sampling, Subsamples, Trees
from cqrf._forest.training import grow_from
from cqrf._input.target import oriented, time_order
from cqrf.dask.reading import Binned, Kept, join_kept


class Drawing(NamedTuple):
    """How trees draw units; the fields of :class:`cqrf._forest.training.Sampling` without its rows."""

    seed: int
    n_units: int
    size: int
    bootstrap: bool
    honest: bool
    bag_size: int


class Batch(NamedTuple):
    """Trees ``first`` to ``end - 1``."""

    drawing: Drawing
    first: int
    end: int


class Ground(NamedTuple):
    """What trees are grown by, beside their rows.

    ``are_late`` says whether any row of the table enters after its first time.
    """

    growing: Growing
    categorical: NDArray[np.bool_]
    censoring: str
    are_late: bool


class Drawn(NamedTuple):
    """Rows of a partition that the trees of a batch have drawn, tree by tree.

    ``draws`` is positive for rows that choose splits, negative for those that fill leaves.
    """

    n_rows: NDArray[np.int64]
    rows: Kept
    codes: NDArray[np.uint8]
    draws: NDArray[np.int32]


class Grown(NamedTuple):
    """Some trees, their leaves by row of the whole table, their gains, and these rows if asked."""

    trees: Trees
    gains: NDArray[np.float64]
    leaf_rows: Kept | None


@lru_cache(maxsize=2)
def draw_units(batch: Batch) -> list[tuple[NDArray[np.int64], NDArray[np.int32]]]:
    """Units that each tree draws, ascending, and how often: one answer for many partitions."""
    return [_draw_for_tree(batch.drawing, tree) for tree in range(batch.first, batch.end)]


def _draw_for_tree(drawing: Drawing, tree: int) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    sampling = Sampling(np.empty(0, np.int32), *drawing[1:])
    return subsample_units(sampling, drawing.seed, tree)


def draw_part(part: Binned, batch: Batch) -> Drawn:
    """The rows of a partition that the trees of a batch have drawn."""
    found = [_find_rows(part, units, draws) for units, draws in draw_units(batch)]
    rows = np.concatenate([rows for rows, _ in found])
    return Drawn(
        n_rows=np.array([len(rows) for rows, _ in found]),
        rows=part.take(rows),
        codes=part.codes[rows],
        draws=np.concatenate([draws for _, draws in found]),
    )


def _find_rows(
    part: Binned, units: NDArray[np.int64], draws: NDArray[np.int32]
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Rows of the units that are here, ascending, and how often each is drawn."""
    if len(part.unit) == 0:
        return part.row_of_unit, np.empty(0, np.int32)
    here = slice(*np.searchsorted(units, (part.unit[0], np.int64(part.unit[-1]) + 1)))
    wanted = units[here].astype(np.int32)
    begin = np.searchsorted(part.unit, wanted)
    size = np.searchsorted(part.unit, wanted, side="right") - begin
    steps = np.arange(size.sum()) - np.repeat(np.cumsum(size) - size, size)
    rows = part.row_of_unit[np.repeat(begin, size) + steps]
    order = np.argsort(rows, kind="stable")
    return rows[order], np.repeat(draws[here], size)[order]


def grow_batch(parts: list[Drawn], batch: Batch, ground: Ground, bring_rows: bool) -> Grown:
    """The trees of a batch; with ``bring_rows``, the rows that stand in their leaves too."""
    ends = [np.cumsum(part.n_rows) for part in parts]
    trees, gains, leaf_rows = [], [], []
    for k in range(batch.end - batch.first):
        cuts = [np.arange(end[k] - part.n_rows[k], end[k]) for part, end in zip(parts, ends)]
        drawn = join_kept([part.rows.take(cut) for part, cut in zip(parts, cuts)])
        codes, draws = (
            np.concatenate([getattr(part, name)[cut] for part, cut in zip(parts, cuts)])
            for name in ("codes", "draws")
        )
        order = time_order(oriented(drawn.target.time, ground.censoring), drawn.target.event)
        drawn = drawn.take(order)
        grown, its_gains = _grow_tree(
            drawn, codes[order], draws[order], batch.drawing, batch.first + k, ground
        )
        row_of_place: NDArray[Any] = drawn.row
        trees.append(grown._replace(leaf_rows=row_of_place[grown.leaf_rows]))
        gains.append(its_gains)
        if bring_rows:
            leaf_rows.append(drawn.take(np.unique(grown.leaf_rows)))
    together = Trees(*map(np.concatenate, zip(*trees, strict=True)))
    return Grown(together, np.concatenate(gains), join_distinct(leaf_rows) if bring_rows else None)


def join_distinct(parts: list[Kept]) -> Kept:
    """Rows of several parts, each once, in the order of the table."""
    together = join_kept(parts)
    return together.take(np.unique(together.row, return_index=True)[1])


def _grow_tree(
    drawn: Kept,
    codes: NDArray[np.uint8],
    draws: NDArray[np.int32],
    drawing: Drawing,
    tree: int,
    ground: Ground,
) -> tuple[Trees, NDArray[np.float64]]:
    """A tree from its own rows in time order, numbered by their place in it."""
    time, first_at_risk = oriented(drawn.target.time, ground.censoring), None
    if ground.are_late and drawn.target.entry is not None:
        first_at_risk = np.searchsorted(time, drawn.target.entry, side="right").astype(np.int32)
    rows = Rows(
        codes=np.ascontiguousarray(codes.T),
        categorical=ground.categorical,
        time=time,
        event=drawn.target.event,
        weight=drawn.weight,
        first_at_risk=first_at_risk,
    )
    places = np.arange(len(draws), dtype=np.uint32)
    split, fill = (np.repeat(places, np.maximum(sign * draws, 0)) for sign in (1, -1))
    starts = np.array([0, len(split), len(split) + len(fill)])
    samples = Subsamples(np.concatenate([split, fill]), starts, growth_seed(drawing.seed, tree))
    return grow_from(rows, ground.growing, drawing.honest, samples)
