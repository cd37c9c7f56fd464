"""Numbers: as the page keeps them (four digits, None for what is none) and as it says them."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from cqrf._survival.curves import StepCurve

DIGITS = 4


def plain(value: float, digits: int = DIGITS) -> float | int | None:
    """A number with so many digits, whole if it can be; None for NaN and infinity."""
    value = float(value)
    if not math.isfinite(value):
        return None
    if abs(value) >= 10**digits and abs(value) < 1e15:
        return round(value)
    rounded = float(f"{value:.{digits}g}")
    return int(rounded) if rounded.is_integer() and abs(rounded) < 1e15 else rounded


def plain_list(values: Iterable[float], digits: int = DIGITS) -> list[float | int | None]:
    """Each of the numbers, plain."""
    return [plain(value, digits) for value in values]


def say(value: float, digits: int = DIGITS) -> str:
    """A number in words a reader expects: thousands apart, no more digits than mean something."""
    kept = plain(value, digits)
    if kept is None:
        return "not known"
    if 1e-4 <= abs(kept) < 1e15 or kept == 0:
        text = f"{kept:,.10f}".rstrip("0").rstrip(".") if isinstance(kept, float) else f"{kept:,}"
        return text.replace("-", "−")
    return f"{kept:g}".replace("-", "−")


def say_share(share: float) -> str:
    """A share as a percentage; small ones, and those just below all, keep a digit."""
    if not math.isfinite(share):
        return "not known"
    percent = 100 * share
    if 0 < percent < 0.1:
        return "under 0.1\u00a0%"
    if 99.9 < percent < 100:
        return "over 99.9\u00a0%"
    text = f"{percent:.1f}" if abs(percent) < 10 or abs(percent) > 90 else f"{percent:.0f}"
    return f"{text.removesuffix('.0').replace('-', '−')}\u00a0%"


def count(n: int, one: str, many: str | None = None) -> str:
    """A number of things: 1 row, 2 rows."""
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def evenly(n: int, most: int) -> NDArray[np.intp]:
    """At most so many of n rows, evenly spaced."""
    if n <= most:
        return np.arange(n)
    return np.linspace(0, n - 1, most).round().astype(np.intp)


def thin(curve: StepCurve, most: int) -> StepCurve:
    """At most so many of a curve's steps, at even heights, the first and the last among them."""
    n = len(curve.times)
    if n <= most:
        return curve
    heights = np.linspace(curve.values[0], curve.values[-1], most)
    found = np.searchsorted(-curve.values, -heights, side="left")
    kept = np.unique(np.append(found.clip(0, n - 1), [0, n - 1]))
    if len(kept) > most:
        kept = np.delete(kept, len(kept) // 2)
    return StepCurve(curve.times[kept], curve.values[kept], curve.initial)
