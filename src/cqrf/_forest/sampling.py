"""Sampling: which rows a tree sees, and which half of an honest tree each one joins.

What is drawn are *units*: rows, or whole clusters of rows. A unit's fate depends on the
tree's seed and the unit's number alone. In an honest tree one half of the units chooses
the splits and the other half fills the leaves; no unit is ever in both.

Trees may come in bags of a few that draw from the same half of the units: how far bags differ
then tells how far another sample would have moved the forest.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cqrf._runtime.compiling import called, kernel
from cqrf._runtime.random import below, derive, mix, permutation_keys, permuted

# Number of the bags' own seed: behind those of all trees.
BAGS = 2**32


class Lots(NamedTuple):
    """What some trees draw by, one of each for every tree; see :func:`draw_units`."""

    keys: NDArray[np.uint64]
    bag_keys: NDArray[np.uint64] | None
    """None: trees draw from all units."""
    seeds: NDArray[np.uint64] | None
    """Of a bootstrap. None: units are drawn without replacement."""
    tree_seeds: NDArray[np.uint64]
    """Not for draws: what a tree is grown by."""

    def of(self, trees: slice) -> Lots:
        """The lots of some of the trees."""
        bag_keys = None if self.bag_keys is None else self.bag_keys[trees]
        seeds = None if self.seeds is None else self.seeds[trees]
        return Lots(self.keys[trees], bag_keys, seeds, self.tree_seeds[trees])


def cast_lots(
    seed: int, first: int, end: int, n_units: int, bootstrap: bool, bag_size: int
) -> Lots:
    """What trees ``first`` to ``end - 1`` of the forest that hangs on ``seed`` draw by."""
    trees = np.arange(first, end)
    of_trees = derive(seed, trees)
    seeds = derive(of_trees, 0)
    n_places, bag_keys = n_units, None
    if bag_size > 1:
        n_places = n_units // 2
        bag_seeds = derive(derive(seed, BAGS), trees // bag_size)
        bag_keys = permutation_keys(bag_seeds, n_units)
    return Lots(
        permutation_keys(derive(seeds, int(bootstrap)), n_places),
        bag_keys,
        derive(seeds, 0) if bootstrap else None,
        derive(of_trees, 1),
    )


def draw_for_tree(
    seed: int, tree: int, n_units: int, size: int, bootstrap: bool, honest: bool, bag_size: int
) -> NDArray[np.int32]:
    """How often a tree draws each unit; see :func:`draw_units`."""
    *lots, _ = cast_lots(seed, tree, tree + 1, n_units, bootstrap, bag_size)
    draws = np.empty(n_units, np.int32)
    _draw_units(*lots, 0, size, honest, draws)
    return draws


@kernel
def _draw_units(keys, bag_keys, seeds, k, size, honest, draws):
    draw_units(keys, bag_keys, seeds, k, size, honest, draws)


@called
def draw_units(keys, bag_keys, seeds, k, size, honest, draws):
    """Write how often the k-th tree draws each unit, negative in the leaf half.

    A tree that is not honest has only positive draws. If the leaf half of an honest tree
    would be empty, all its units move there: a tree without splits still has its root leaf.
    """
    n_units = draws.shape[0]
    n = n_units if bag_keys is None else n_units // 2
    for unit in range(n_units):
        draws[unit] = 0
    # Places of the permutation: those drawn or, of a bootstrap, all; the first half splits.
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
def draw_rows(keys, bag_keys, seeds, size, honest, unit_of_row, draws, starts, rows, late):
    """Write the rows that each tree draws, ascending, and where they start; count them.

    Those of tree k that choose its splits start at ``starts[2 * k]``, those that only fill its
    leaves behind them at ``starts[2 * k + 1]``; a tree that is not honest has none of these. A
    row of unit -1 belongs to none and is never drawn. ``rows``, and ``late``, which is scratch,
    have room for one row more than they may receive: if there are more, they are only counted.
    """
    room = rows.shape[0] - 1
    at, n_lost = 0, 0
    starts[0] = 0
    for k in range(keys.shape[0]):
        draw_units(keys, bag_keys, seeds, k, size, honest, draws)
        n_late = 0
        for row in range(unit_of_row.shape[0]):
            unit = unit_of_row[row]
            count = 0 if unit < 0 else draws[unit]
            while True:
                # Written to both, kept in one or none: a processor cannot guess which.
                rows[at] = row
                late[n_late] = row
                at += count > 0
                n_late += count < 0
                if at + n_late > room:
                    n_lost += at + n_late
                    at, n_late = 0, 0
                if -1 <= count <= 1:
                    break
                count -= 1 if count > 0 else -1
        starts[2 * k + 1] = at
        for i in range(n_late):
            rows[at + i] = late[i]
        at += n_late
        starts[2 * k + 2] = at
    return at + n_lost
