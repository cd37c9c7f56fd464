"""Sampling: which rows a tree sees, and which half of an honest tree each one joins.

What is drawn are *units*: rows, or whole clusters of rows. A unit's fate depends on the
tree's seed and the unit's number alone. In an honest tree one half of the units chooses
the splits and the other half fills the leaves; no unit is ever in both.
"""

from __future__ import annotations

import numpy as np

from cqrf.chance import derive, draw_with_replacement, draw_without_replacement
from cqrf.kernel import kernel


@kernel
def draw_units(seed, n_units, size, bootstrap, honest):
    """How often each unit is drawn: positive in the split half, negative in the leaf half.

    A tree that is not honest has only positive draws. If the leaf half of an honest tree
    would be empty, all its units move there: a tree without splits still has its root leaf.
    """
    draws = np.zeros(n_units, np.int32)
    if bootstrap:
        half = draw_without_replacement(derive(seed, 1), n_units, n_units // 2)
        side = np.full(n_units, -1 if honest else 1, np.int32)
        side[half] = 1
        for unit in draw_with_replacement(derive(seed, 0), n_units, size):
            draws[unit] += side[unit]
    else:
        drawn = draw_without_replacement(derive(seed, 0), n_units, size)
        n_split = size // 2 if honest else size
        draws[drawn[:n_split]] = 1
        draws[drawn[n_split:]] = -1
    if honest and draws.min() >= 0:
        draws *= -1
    return draws


@kernel
def rows_drawn(draws, unit_of_row, sign):
    """Rows of the units whose draws have this sign, ascending, as often as drawn."""
    n_drawn = 0
    for row in range(unit_of_row.shape[0]):
        n_drawn += max(0, sign * draws[unit_of_row[row]])
    rows = np.empty(n_drawn, np.int32)
    at = 0
    for row in range(unit_of_row.shape[0]):
        for _ in range(sign * draws[unit_of_row[row]]):
            rows[at] = row
            at += 1
    return rows
