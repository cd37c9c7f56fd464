"""Subsampling: which rows a tree draws, and which half of an honest tree each one joins.

Trees draw *units*: rows, or whole clusters of rows. Whether a tree draws a unit depends on the
tree's keys and the unit's number alone. In an honest tree one half of the units chooses the splits
and the other half fills the leaves; no unit is ever in both.

With little bags, a few consecutive trees draw from the same half of the units. The variance between
such bags estimates the sampling variance of the forest.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cqrf._forest.spec import Sampling, Subsamples
from cqrf._runtime.compiling import called, kernel
from cqrf._runtime.random import (
    below,
    derive,
    draw_without_replacement,
    mix,
    permutation_keys,
    permuted,
)
from cqrf._runtime.threads import thread_map

# Number of the seed that the bags derive theirs from: larger than that of any tree.
BAG_STREAM = 2**32
# Trees whose bits are found by one task: a multiple of 8, so that tasks write whole bytes.
TREES_TOGETHER = 64


class TreeKeys(NamedTuple):
    """Per-tree keys and seeds; the first axis runs over trees.

    Attributes
    ----------
    order : (n_trees, n_key) uint64
        Keys of the permutation whose first units are drawn, or, with the bootstrap, halved.
    bag : (n_trees, n_key) uint64, or None
        Keys of the permutation whose first half a bag draws from; None: all units.
    bootstrap : (n_trees,) uint64, or None
        Seeds of draws with replacement; None: without.
    growth : (n_trees,) uint64
        Seeds of the candidate features.
    """

    order: NDArray[np.uint64]
    bag: NDArray[np.uint64] | None
    bootstrap: NDArray[np.uint64] | None
    growth: NDArray[np.uint64]

    def take(self, trees: slice) -> TreeKeys:
        """The keys of some of the trees."""
        return TreeKeys(
            order=self.order[trees],
            bag=None if self.bag is None else self.bag[trees],
            bootstrap=None if self.bootstrap is None else self.bootstrap[trees],
            growth=self.growth[trees],
        )


def number_trees(n_trees: int, with_residual_trees: bool) -> NDArray[np.int64]:
    """Number of each tree of a forest; trees are drawn and grown by their number.

    Direct trees come first. If there are residual trees (see ``_working_model``), the even numbers
    are direct and the odd ones residual, so that a bag holds as many of both.
    """
    numbers = np.arange(n_trees)
    return np.concatenate([numbers[::2], numbers[1::2]]) if with_residual_trees else numbers


def derive_tree_keys(sampling: Sampling, seed: int, numbers: ArrayLike) -> TreeKeys:
    """Keys of the trees with these numbers, in the forest with this seed."""
    trees = np.asarray(numbers, dtype=np.int64)
    of_trees = derive(seed, trees)
    seeds = derive(of_trees, 0)
    n_places, bag = sampling.n_units, None
    if sampling.bag_size > 1:
        n_places = sampling.n_units // 2
        bag_seeds = derive(derive(seed, BAG_STREAM), trees // sampling.bag_size)
        bag = permutation_keys(bag_seeds, sampling.n_units)
    return TreeKeys(
        order=permutation_keys(derive(seeds, int(sampling.bootstrap)), n_places),
        bag=bag,
        bootstrap=derive(seeds, 0) if sampling.bootstrap else None,
        growth=derive(of_trees, 1),
    )


def growth_seed(seed: int, tree: int) -> NDArray[np.uint64]:
    """Seed of the candidate features of one tree, as an array of length 1."""
    return derive(derive(seed, [tree]), 1)


def subsample_units(
    sampling: Sampling, seed: int, tree: int
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Units that one tree draws, ascending, and how often; see :func:`draw_units` for the sign.

    Takes memory in proportion to the units drawn, except with the bootstrap or bags.
    """
    if sampling.bootstrap or sampling.bag_size > 1:
        keys = derive_tree_keys(sampling, seed, [tree])
        draws = np.empty(sampling.n_units, np.int32)
        _draw_units(keys, sampling.size, sampling.honest, draws)
        units = np.flatnonzero(draws)
        return units, draws[units]
    order_seed = derive(derive(derive(seed, tree), 0), 0)
    drawn = draw_without_replacement(order_seed, sampling.n_units, sampling.size)
    n_split = sampling.size // 2 if sampling.honest else sampling.size
    order = np.argsort(drawn)
    return drawn[order], np.where(order < n_split, 1, -1).astype(np.int32)


def draw_subsamples(sampling: Sampling, keys: TreeKeys) -> Subsamples:
    """Ranks that the trees with these keys draw."""
    n_trees = len(keys.growth)
    starts = np.empty(2 * n_trees + 1, np.int64)
    capacity = n_trees * sampling.size
    while True:
        ranks, leaf_half = np.empty((2, capacity + 1), np.uint32)
        work = DrawWork(np.empty(sampling.n_units, np.int32), leaf_half)
        n_drawn = _draw_rows(keys, sampling, starts, ranks, work)
        if n_drawn <= capacity:
            return Subsamples(ranks[:n_drawn], starts, keys.growth)
        capacity = n_drawn  # clusters of many rows


def in_bag_bits(
    sampling: Sampling,
    numbers: ArrayLike,
    seed: int,
    units: NDArray[np.integer[Any]] | None = None,
    n_jobs: int | None = None,
) -> NDArray[np.uint8]:
    """Which units the trees with these numbers have drawn.

    Bits of shape (n_units, n_trees / 8, rounded up), or those of some units, with trees in
    parallel.
    """
    keys = derive_tree_keys(sampling, seed, numbers)
    if units is None:
        return _find_bits(sampling, keys)
    first_trees = range(0, max(1, len(keys.growth)), TREES_TOGETHER)
    tasks = [(sampling, keys.take(slice(i, i + TREES_TOGETHER)), units) for i in first_trees]
    return np.concatenate(list(thread_map(_find_bits, tasks, n_jobs)), axis=1)


def _find_bits(
    sampling: Sampling, keys: TreeKeys, units: NDArray[np.integer[Any]] | None = None
) -> NDArray[np.uint8]:
    """Bits of all units or of some of them, from the keys of trees."""
    n_units = sampling.n_units
    bits = np.zeros((n_units, (len(keys.growth) + 7) // 8), np.uint8)
    _in_bag_bits(keys, sampling.size, np.empty(n_units, np.int32), bits)
    return bits if units is None else bits[units]


class DrawWork(NamedTuple):
    """Work arrays: draws per unit (int32), and ranks of the leaf half (uint32)."""

    draws: NDArray[np.int32]
    leaf_half: NDArray[np.uint32]


@called
def draw_units(keys, bag_keys, seeds, k, size, honest, draws):
    """Write how often the k-th tree draws each unit, negative in the leaf half.

    The first three arguments are fields of :class:`TreeKeys`; ``draws`` is (n_units,) int32. A tree
    that is not honest has only positive draws. If the leaf half of an honest tree would be empty,
    all its units move there: a tree without splits still has its root leaf.
    """
    n_units = draws.shape[0]
    n = n_units if bag_keys is None else n_units // 2
    for unit in range(n_units):
        draws[unit] = 0
    # Positions in the permutation: those drawn or, with the bootstrap, all; the first half splits.
    n_places = size if seeds is None else n
    n_split = n_places // 2 if honest else n_places
    first = 0
    if seeds is not None:
        word = mix(seeds[k])
        for i in range(size):
            place = below(mix(word ^ np.uint64(i)), n)
            draws[place if bag_keys is None else permuted(place, n_units, bag_keys[k])] += 1
        first = n_split
    n_in_leaf_half = 0
    for i in range(first, n_places):
        place = permuted(i, n, keys[k])
        unit = place if bag_keys is None else permuted(place, n_units, bag_keys[k])
        count = 1 if seeds is None else draws[unit]
        draws[unit] = count if i < n_split else -count
        n_in_leaf_half += count if i >= n_split else 0
    if honest and n_in_leaf_half == 0:
        for unit in range(n_units):
            draws[unit] = -draws[unit]


@kernel
def _draw_units(keys, size, honest, draws):
    """:func:`draw_units` for the first tree of ``keys``, a TreeKeys."""
    draw_units(keys.order, keys.bag, keys.bootstrap, 0, size, honest, draws)


@kernel
def _draw_rows(keys, sampling, starts, ranks, work):
    """Write the subsample of each tree (see :class:`Subsamples`); return how many rows all have.

    keys : TreeKeys; sampling : Sampling; work : DrawWork
    starts : (2 * n_trees + 1,) int64, written; ranks : uint32, written
    ``ranks`` and ``work.leaf_half`` hold one row more than they may receive. If there are more,
    they are counted but not all written.
    """
    capacity = ranks.shape[0] - 1
    leaf_half = work.leaf_half
    at, n_lost = 0, 0
    starts[0] = 0
    for k in range(keys.order.shape[0]):
        draw_units(
            keys.order, keys.bag, keys.bootstrap, k, sampling.size, sampling.honest, work.draws
        )
        n_late = 0
        for row in range(sampling.unit_of_row.shape[0]):
            unit = sampling.unit_of_row[row]
            count = 0 if unit < 0 else work.draws[unit]
            while True:
                # Written to both, kept in one or none: a branch would be mispredicted.
                ranks[at] = row
                leaf_half[n_late] = row
                at += count > 0
                n_late += count < 0
                if at + n_late > capacity:
                    n_lost += at + n_late
                    at, n_late = 0, 0
                if -1 <= count <= 1:
                    break
                count -= 1 if count > 0 else -1
        starts[2 * k + 1] = at
        for i in range(n_late):
            ranks[at + i] = leaf_half[i]
        at += n_late
        starts[2 * k + 2] = at
    return at + n_lost


@kernel
def _in_bag_bits(keys, size, draws, bits):
    """Set the bit of each tree in the rows of the units that it draws.

    keys : TreeKeys; draws : (n_units,) int32, work array
    bits : (n_units, n_trees / 8, rounded up) uint8, 0 before; written
    """
    for t in range(keys.order.shape[0]):
        # Which units are drawn does not depend on how honest halves share them out.
        draw_units(keys.order, keys.bag, keys.bootstrap, t, size, False, draws)
        for unit in range(draws.shape[0]):
            # Not a branch: it would be mispredicted.
            bits[unit, t >> 3] |= np.uint8(draws[unit] != 0) << np.uint8(t & 7)
