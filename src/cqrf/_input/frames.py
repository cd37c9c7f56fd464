"""Frames: any of them as a list of columns, each with its kind and its values as numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cqrf._input.columns import CATEGORY, DATE, DURATION, NUMBER
from cqrf._runtime.arguments import is_number


@dataclass(frozen=True)
class Column:
    """A column of a frame. Its type is asked for once: some frames then inspect every value."""

    name: Any
    series: Any
    dtype: Any
    kind: str

    @property
    def is_object(self) -> bool:
        """Whether it holds Python objects."""
        import narwhals as nw

        return bool(self.dtype == nw.Object)

    @cached_property
    def missing(self) -> NDArray[np.bool_]:
        """Which values are missing."""
        return np.asarray(self.series.is_null().to_numpy(), dtype=bool)

    def list_labels(self) -> list[Any]:
        """Values as text, None where they are missing."""
        values = np.asarray(self.series.to_numpy(), dtype=object).tolist()
        missing = self.missing.tolist()
        return [None if gone else str(value) for value, gone in zip(values, missing, strict=True)]


def as_frame(X: Any) -> Any:
    """X as a narwhals frame, or None if it is no frame (or narwhals is not installed)."""
    if isinstance(X, np.ndarray | list | tuple):
        return None
    try:
        import narwhals as nw
    except ImportError:
        return None
    _refuse_duplicates(X)
    frame = nw.from_native(X, pass_through=True)
    if isinstance(frame, nw.LazyFrame):
        raise ValueError("X is a lazy frame: pass X.collect().")
    if isinstance(frame, nw.DataFrame) and not _is_only_interchange(frame):
        return frame
    if hasattr(X, "__arrow_c_stream__"):
        from pyarrow import table

        return nw.from_native(table(X), eager_only=True)
    if hasattr(X, "__dataframe__"):
        from pyarrow.interchange import from_dataframe

        return nw.from_native(from_dataframe(X), eager_only=True)
    return None


def _is_only_interchange(frame: Any) -> bool:
    """Whether narwhals reads no values of it; newer versions make no such frame."""
    return getattr(frame, "_level", "full") == "interchange"


def _refuse_duplicates(X: Any) -> None:
    if not hasattr(X, "shape"):  # lazy, or not a frame
        return
    names = X.column_names if hasattr(X, "column_names") else getattr(X, "columns", ())
    twice = [name for name, times in Counter(names).items() if times > 1]
    if twice:
        raise ValueError(
            f"X has more than one column named {', '.join(map(repr, twice))}: rename or drop all "
            "but one."
        )


def columns_of(frame: Any) -> list[Column]:
    """The columns of a narwhals frame."""
    import narwhals as nw

    table = []
    for name, series in zip(frame.columns, frame.iter_columns(), strict=True):
        dtype = series.dtype
        if dtype == nw.Unknown:
            series = _in_utc(series)
            dtype = series.dtype
        table.append(Column(name, series, dtype, _kind(name, series, dtype)))
    return table


def _in_utc(series: Any) -> Any:
    """The series, moved to UTC if it has a time zone whose name narwhals does not know."""
    import narwhals as nw

    native = series.to_native()
    if not str(getattr(native, "dtype", "")).startswith("datetime64"):
        return series
    return nw.from_native(native.dt.tz_convert("UTC"), series_only=True)


def _kind(name: Any, series: Any, dtype: Any) -> str:
    import narwhals as nw

    if dtype in (nw.Date, nw.Datetime):
        return DATE
    if dtype == nw.Duration:
        return DURATION
    if dtype == nw.Object:
        kinds = {_kind_of_object(name, value) for value in series.drop_nulls().to_list()}
        return kinds.pop() if len(kinds) == 1 else CATEGORY
    if dtype in (nw.List, nw.Array, nw.Struct):
        raise _is_nested(name, dtype)
    if str(getattr(series.to_native(), "dtype", "")).startswith("complex"):
        raise _is_complex(name)
    return CATEGORY if dtype in (nw.Categorical, nw.Enum, nw.String) else NUMBER


def _kind_of_object(name: Any, value: Any) -> str:
    if isinstance(value, str):
        return CATEGORY
    if isinstance(value, date | np.datetime64):  # a datetime is a date, too
        return DATE
    if isinstance(value, timedelta | np.timedelta64):  # NumPy's is an integer, too
        return DURATION
    if is_number(value) or isinstance(value, Decimal):
        return NUMBER
    if isinstance(value, complex | np.complexfloating):
        raise _is_complex(name)
    if isinstance(value, list | dict | set | np.ndarray):
        raise _is_nested(name, type(value).__name__)
    return CATEGORY


def _is_complex(name: Any) -> ValueError:
    return ValueError(
        f"column {name!r} holds complex numbers, which have no order: pass their real and "
        "imaginary parts, or modulus and angle, as two columns."
    )


def _is_nested(name: Any, found: Any) -> ValueError:
    return ValueError(
        f"column {name!r} holds values of type {found}, which are several values each: give each "
        "its own column, or drop it."
    )


def read_numbers(column: Column) -> NDArray[np.float64]:
    """Numbers of a column that is no category; NaN where it is missing."""
    import narwhals as nw

    series, dtype = column.series, column.dtype
    try:
        if column.is_object:
            return _read_objects(column)
        if column.kind == DATE:
            if dtype == nw.Date:
                series = series.cast(nw.Datetime("us"))
            ticks = series.dt.timestamp("us")
        elif column.kind == DURATION:
            ticks = series.dt.total_microseconds()
        elif dtype.is_integer():  # some frames refuse to round those above 2**53
            return np.asarray(series.to_numpy(), dtype=np.float64)
        else:
            return np.asarray(series.cast(nw.Float64).to_numpy(), dtype=np.float64)
        values = np.asarray(ticks.to_numpy(), dtype=np.float64) / 1e6
    except Exception as error:
        raise ValueError(
            f"column {column.name!r} of type {dtype} cannot be read as numbers; convert it to "
            "numbers or text, or drop it."
        ) from error
    return np.where(column.missing, np.nan, values)


def _read_objects(column: Column) -> NDArray[np.float64]:
    """Numbers of Python objects; seconds of dates, since 1970, and of durations."""
    readers: dict[str, Callable[[Any], float]]
    readers = {NUMBER: float, DATE: _since_1970, DURATION: _seconds}
    read = readers[column.kind]
    values = zip(column.series.to_list(), column.missing.tolist(), strict=True)
    return np.array([np.nan if gone else read(value) for value, gone in values], dtype=np.float64)


def _since_1970(value: Any) -> float:
    if isinstance(value, np.datetime64):
        return float(value.astype("datetime64[us]").astype(np.int64)) / 1e6
    if not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)
    if value.tzinfo is None:  # as in columns of dates
        value = value.replace(tzinfo=UTC)
    return float(value.timestamp())


def _seconds(value: Any) -> float:
    if isinstance(value, np.timedelta64):
        return float(value.astype("timedelta64[us]").astype(np.int64)) / 1e6
    return float(value.total_seconds())
