"""Numbers: rounded for JSON, and formatted for readers.

JSON has no NaN or infinity, so these become None. Rounding keeps significant digits.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

DIGITS = 4
MAX_EXACT = 1e15  # below it a float holds every whole number


def round_number(value: float, digits: int = DIGITS) -> float | int | None:
    """Round to significant digits, to an int if the result is whole; None if not finite."""
    value = float(value)
    if not math.isfinite(value):
        return None
    if 10**digits <= abs(value) < MAX_EXACT:
        return round(value)
    rounded = float(f"{value:.{digits}g}")
    return int(rounded) if rounded.is_integer() and abs(rounded) < MAX_EXACT else rounded


def round_numbers(values: Iterable[float], digits: int = DIGITS) -> list[float | int | None]:
    """Round each of the numbers."""
    return [round_number(value, digits) for value in values]


def format_number(value: float, digits: int = DIGITS) -> str:
    """Format with thousands separators and a few significant digits."""
    rounded = round_number(value, digits)
    if rounded is None:
        return "unknown"
    if 1e-4 <= abs(rounded) < MAX_EXACT or rounded == 0:
        is_float = isinstance(rounded, float)
        text = f"{rounded:,.10f}".rstrip("0").rstrip(".") if is_float else f"{rounded:,}"
        return text.replace("-", "−")
    return f"{rounded:g}".replace("-", "−")


def format_percent(share: float) -> str:
    """Format a share as a percentage, with one decimal near 0 and near 100."""
    if not math.isfinite(share):
        return "unknown"
    percent = 100 * share
    if 0 < percent < 0.1:
        return "under 0.1\u00a0%"
    if 99.9 < percent < 100:
        return "over 99.9\u00a0%"
    text = f"{percent:.1f}" if abs(percent) < 10 or abs(percent) > 90 else f"{percent:.0f}"
    return f"{text.removesuffix('.0').replace('-', '−')}\u00a0%"


def format_count(n: int, singular: str, plural: str | None = None) -> str:
    """Format a count with its noun: 1 row, 2 rows."""
    return f"{n:,} {singular if n == 1 else plural or singular + 's'}"
