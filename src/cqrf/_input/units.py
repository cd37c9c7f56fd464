"""Sampling units: what a tree draws, single rows or clusters of rows.

Each training row has a *unit code*, an int32:

========  ===============================================================================
code      meaning
========  ===============================================================================
u >= 0    the row is drawn whenever unit u is
-1        the row is never drawn (its sample weight is 0) and belongs to no unit
-2 - u    the row is never drawn, but it belongs to the cluster that is unit u
========  ===============================================================================

The last kind matters out of bag: a row of weight 0 must not be predicted by trees that have drawn
the other rows of its cluster. Kernels only ask whether a code is negative; this module is the only
one that knows the rest.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cqrf._runtime.arguments import is_missing

NO_UNIT = -1


class Units(NamedTuple):
    """The units of a table."""

    of_row: NDArray[np.int32]
    """Unit code of each row; empty where the rows are not in this process."""
    n_units: int
    noun: str
    """What a unit is called in messages: ``"rows"`` or ``"groups"``."""

    def take(self, rows: NDArray[Any]) -> Units:
        """The same units, with the codes of some rows in the order given."""
        return self._replace(of_row=self.of_row[rows])


def number_units(has_weight: NDArray[np.bool_], groups: ArrayLike | None) -> Units:
    """Units of the rows that have positive weight: the rows themselves, or their groups."""
    codes = np.full(len(has_weight), NO_UNIT, dtype=np.int32)
    if groups is None:
        codes[has_weight] = np.arange(has_weight.sum())
        return Units(codes, int(codes.max()) + 1, "rows")
    labels = read_groups(groups, len(has_weight))
    codes[has_weight] = list_by_appearance(labels[has_weight])[1]
    if not has_weight.all():
        _, group = np.unique(labels, return_inverse=True)
        unit_of_group = np.full(group.max() + 1, NO_UNIT)
        unit_of_group[group[has_weight]] = codes[has_weight]
        codes[~has_weight] = code_undrawn(unit_of_group[group[~has_weight]])
    return Units(codes, int(codes.max()) + 1, "groups")


def code_undrawn(unit: NDArray[Any]) -> NDArray[Any]:
    """Codes of rows that are never drawn, from their clusters' units (NO_UNIT for none)."""
    return NO_UNIT - 1 - unit


def find_clusters(codes: NDArray[np.int32]) -> NDArray[np.int32]:
    """Unit that each row belongs to, drawn or not; NO_UNIT for none."""
    return np.where(codes < NO_UNIT, NO_UNIT - 1 - codes, codes)


def are_unit_codes(codes: NDArray[np.int32], n_units: int) -> bool:
    """Whether every code is NO_UNIT or names one of the units."""
    lowest = NO_UNIT - n_units  # that of an undrawn row of the last unit
    return not len(codes) or bool(lowest <= codes.min() <= codes.max() < n_units)


def read_groups(groups: ArrayLike, n: int) -> NDArray[Any]:
    """Label of each row's group, checked."""
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
    """First row of each group, and the number of each row's group in that order.

    Groups are numbered by first appearance, so that renaming them changes nothing.
    """
    _, first, number = np.unique(labels, return_index=True, return_inverse=True)
    return np.sort(first), np.argsort(np.argsort(first))[number]
