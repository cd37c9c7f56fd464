"""Interval-censored rows as pages show them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cqrf._input.target import Target


def is_left_censored(target: Target) -> NDArray[np.bool_]:
    """Rows of which only the right end is known.

    Their left end is minus infinity, or 0 for durations: times of which none is negative.
    """
    if target.lower is None:
        return np.zeros(len(target.time), bool)
    start = 0.0 if target.lower[np.isfinite(target.lower)].min(initial=0.0) >= 0 else -np.inf
    return target.event & (target.lower < target.time) & (target.lower <= start)


def find_left_ends(target: Target) -> list[float | None] | None:
    """Left end of each row; None if it is left-censored. None without intervals.

    It is the time itself of a row that is exact or right-censored.
    """
    if target.lower is None:
        return None
    pairs = zip(target.lower.tolist(), is_left_censored(target).tolist(), strict=True)
    return [None if is_open else lower for lower, is_open in pairs]


def count_kinds(target: Target) -> dict[str, int]:
    """Rows of each kind, by its name."""
    lower = target.time if target.lower is None else target.lower
    is_exact, is_open = target.event & (lower == target.time), is_left_censored(target)
    return {
        "exact": int(is_exact.sum()),
        "interval": int((target.event & ~is_exact & ~is_open).sum()),
        "left-censored": int(is_open.sum()),
        "right-censored": int((~target.event).sum()),
    }


def left_end_of(ends: list[float | None] | None, row: int) -> dict[str, Any]:
    """The left end of a row, by the name of its field; empty without intervals."""
    return {} if ends is None else {"lower": ends[row]}
