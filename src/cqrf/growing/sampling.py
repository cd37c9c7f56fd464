"""Sampling: which rows a tree sees, and which half of an honest tree each one joins.

What is drawn are *units*: rows, or whole clusters of rows. A unit's fate depends on the
tree's seed and the unit's number alone. In an honest tree one half of the units chooses
the splits and the other half fills the leaves; no unit is ever in both.

Trees may come in bags of a few that draw from the same half of the units: how far bags differ
then tells how far another sample would have moved the forest.
"""

from __future__ import annotations

import numpy as np

from cqrf.chance import derive, draw_with_replacement, draw_without_replacement
from cqrf.kernel import kernel

# Number of the bags' own seed: behind those of all trees.
BAGS = 2**32


@kernel
def draw_for_tree(seed, number, n_units, size, bootstrap, honest, bag_size):
    """How often tree ``number`` draws each unit; see :func:`draw_units`."""
    tree_seed = derive(derive(seed, number), 0)
    if bag_size == 1:
        return draw_units(tree_seed, n_units, size, bootstrap, honest)
    bag_seed = derive(derive(seed, BAGS), number // bag_size)
    bag = draw_without_replacement(bag_seed, n_units, n_units // 2)
    of_bag = draw_units(tree_seed, len(bag), size, bootstrap, honest)
    draws = np.zeros(n_units, np.int32)
    for i in range(len(bag)):
        draws[bag[i]] = of_bag[i]
    return draws


@kernel
def draw_units(seed, n_units, size, bootstrap, honest):
    """How often each unit is drawn: positive in the split half, negative in the leaf half.

    A tree that is not honest has only positive draws. If the leaf half of an honest tree
    would be empty, all its units move there: a tree without splits still has its root leaf.
    """
    draws = np.zeros(n_units, np.int32)
    n_in_leaf_half = 0
    if bootstrap:
        in_split_half = np.zeros(n_units, np.bool_)
        drawn = draw_without_replacement(derive(seed, 1), n_units, n_units // 2)
        for i in range(drawn.shape[0]):
            in_split_half[drawn[i]] = True
        drawn = draw_with_replacement(derive(seed, 0), n_units, size)
        for i in range(size):
            unit = drawn[i]
            sign = 1 if in_split_half[unit] or not honest else -1
            draws[unit] += sign
            n_in_leaf_half += sign < 0
    else:
        n_split = size // 2 if honest else size
        drawn = draw_without_replacement(derive(seed, 0), n_units, size)
        for i in range(size):
            draws[drawn[i]] = 1 if i < n_split else -1
        n_in_leaf_half = size - n_split
    if honest and n_in_leaf_half == 0:
        for unit in range(n_units):
            draws[unit] = -draws[unit]
    return draws


@kernel
def rows_drawn(draws, unit_of_row, sign):
    """Rows of the units whose draws have this sign, ascending, as often as drawn.

    A row of unit -1 belongs to none and is never drawn.
    """
    n_drawn = 0
    for row in range(unit_of_row.shape[0]):
        unit = unit_of_row[row]
        n_drawn += 0 if unit < 0 else max(0, sign * draws[unit])
    rows = np.empty(n_drawn, np.int32)
    at = 0
    for row in range(unit_of_row.shape[0]):
        unit = unit_of_row[row]
        for _ in range(0 if unit < 0 else sign * draws[unit]):
            rows[at] = row
            at += 1
    return rows
