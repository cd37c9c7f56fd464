"""Checks of arguments, one for each kind of value a user passes.

Every error names the argument, what was found, and what is expected.
"""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray


def read_choice(name: str, value: Any, choices: Sequence[str]) -> str:
    """The value, if it is one of the choices."""
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{name}={value!r} is unknown; choose one of {', '.join(choices)}.")
    return value


def read_count(name: str, value: Any, least: int) -> int:
    """The value as an int, if it is a whole number of at least ``least``."""
    if not is_count(value) or value < least:
        raise ValueError(f"{name}={value!r} must be a whole number of at least {least}.")
    return int(value)


def read_fraction(name: str, value: Any, low: float, high: float) -> float:
    """The value as a float, if it lies in [low, high]."""
    if not is_number(value) or not low <= value <= high:
        raise ValueError(f"{name}={value!r} must be a number from {low:g} to {high:g}.")
    return float(value)


def read_share(name: str, value: Any) -> float:
    """The value as a float, if it lies in (0, 1]."""
    if not is_number(value) or not 0 < value <= 1:
        raise ValueError(f"{name}={value!r} must be a number above 0 and at most 1.")
    return float(value)


def read_floats(name: str, values: Any) -> NDArray[np.float64]:
    """The values as an array of floats."""
    array = np.asarray(values)
    if array.dtype.kind in "fiub":
        return array.astype(np.float64)
    texts = [value for value in array.ravel().tolist() if isinstance(value, str)]
    try:
        if array.dtype.kind == "O" and not texts:
            return array.astype(np.float64)
    except (TypeError, ValueError):
        pass
    advice = f", text such as {texts[0]!r}: convert them with pd.to_numeric" if texts else ""
    raise ValueError(f"{name} must be numbers; found {array.dtype} values{advice}.")


def read_times(times: Any) -> NDArray[np.float64]:
    """A time or a list of times as an array of one dimension, without NaN."""
    values = np.atleast_1d(read_floats("times", times))
    if values.ndim > 1 or np.isnan(values).any():
        raise ValueError(
            f"times must be a number or a list of numbers without NaN; found {times!r}."
        )
    return values


def read_flag(name: str, value: Any) -> bool:
    """The value, if it is True or False."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name}={value!r} must be True or False.")
    return bool(value)


def is_count(value: Any) -> bool:
    """Whether the value is a whole number."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def is_number(value: Any) -> bool:
    """Whether the value is a real number."""
    return isinstance(value, Real) and not isinstance(value, bool)


def is_missing(value: Any) -> bool:
    """Whether a value is None, NaN, NaT or pandas' NA."""
    try:
        return value is None or bool(value != value)
    except TypeError:  # NA, which is neither itself nor another
        return True


def name_row(row: int) -> str:
    """A row of the user's table, for messages."""
    return f"row {row} (the first row is 0)"


def exactly(number: float) -> str:
    """Shortest text that reads back as the same number."""
    text = f"{number:.15g}"
    return text if float(text) == number else repr(float(number))
