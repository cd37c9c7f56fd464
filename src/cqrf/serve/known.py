"""What is known at a time, as JSON has it: a value, or the end of the curve."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

AFTER, BEFORE, TOO_LATE = "after_bound", "before_bound", "given_too_late"
NEVER = "never"  # of a level that the incidence of a cause does not reach
DECIMALS = 6  # of probabilities and weights on the page


def known_content(
    name: str, value: float, time: float, known: NDArray[np.float64]
) -> dict[str, Any]:
    """What is known at a time, or the end of the curve and the side on which the time lies."""
    first, last = known.tolist()
    if not math.isnan(value):
        return {name: value, "bound": None, "reason": None}
    if is_known_nowhere(known):
        return {name: None, "bound": None, "reason": TOO_LATE}
    if time > last:
        return {name: None, "bound": last, "reason": AFTER}
    return {name: None, "bound": first, "reason": BEFORE}


def is_known_nowhere(known: NDArray[np.float64]) -> bool:
    """Whether no time is in the range, as after a time that no neighbour has survived."""
    return bool(known[1] < known[0])


def round_all(values: NDArray[np.float64]) -> list[float | None]:
    """Probabilities with as many decimals as a chart shows; None where they are not known."""
    rounded: list[float | None] = np.round(values, DECIMALS).tolist()
    if not np.isnan(values).any():
        return rounded
    return [None if value != value else value for value in rounded]
