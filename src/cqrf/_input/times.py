"""Times as a user may write them: numbers, or timedeltas, which are read in days."""

from __future__ import annotations

import warnings
from datetime import date, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cqrf._runtime.arguments import is_missing, read_floats

SECONDS_PER_DAY = 86_400


class TimedeltaWarning(UserWarning):
    """Times are timedeltas, which are read in days."""


def read_times(name: str, values: NDArray[Any]) -> NDArray[np.float64]:
    """Times as floats: numbers as they are, timedeltas in days."""
    objects = values.ravel().tolist() if values.dtype.kind == "O" else []
    first = next((value for value in objects if not is_missing(value)), None)
    if values.dtype.kind == "M" or isinstance(first, date):
        raise ValueError(
            f"{name} holds dates: pass the time since each row's start, as in "
            "(end - start) / pd.Timedelta(days=1)."
        )
    if values.dtype.kind == "m" or isinstance(first, timedelta):
        if objects:
            values = np.array([None if is_missing(value) else value for value in objects])
        warnings.warn(
            f"{name} holds timedeltas: it is read in days, and predictions are in days. For "
            "another unit pass numbers, as in time / pd.Timedelta(hours=1); else ignore "
            "cqrf.TimedeltaWarning.",
            TimedeltaWarning,
            stacklevel=4,
        )
        ticks = values.astype("timedelta64[us]")
        days = ticks.astype(np.int64) / (1e6 * SECONDS_PER_DAY)
        return np.where(np.isnat(ticks), np.nan, days)
    return read_floats(name, values)


def count_others(rows: NDArray[np.bool_]) -> str:
    """How many rows besides the first one, for messages."""
    others = int(rows.sum()) - 1
    return "" if others == 0 else f" and in {others} other row{'s' if others > 1 else ''}"
