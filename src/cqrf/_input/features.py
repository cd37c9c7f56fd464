"""Features: reads ``X``, an array or a frame, into a matrix of numbers.

Numbers stay numbers, and booleans become 0 and 1. Dates become seconds since 1970 and durations
seconds, whatever the frame's unit. Text and categories become codes in the alphabetical order of
their labels, whatever the frame's order: a split may send any set of them left, so the codes
themselves mean nothing. Missing is NaN in every column.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array
from sklearn.utils.validation import validate_data

from cqrf._runtime.arguments import is_number

# One byte per code, less one code for missing and one spare that no level ever has.
MAX_LEVELS = 254
NUMBER, DATE, DURATION, CATEGORY = "number", "date", "duration", "category"
PLURAL = {NUMBER: "numbers", DATE: "dates", DURATION: "durations", CATEGORY: "categories"}


@dataclass(frozen=True)
class Columns:
    """Kind of each column of the training table, and its levels if it is a category."""

    kinds: tuple[str, ...]
    levels: tuple[tuple[str, ...] | None, ...]

    @property
    def categorical(self) -> NDArray[np.bool_]:
        """Which columns are categories."""
        return np.array([levels is not None for levels in self.levels], dtype=bool)


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


class ColumnPart(NamedTuple):
    """What a part of a table shows of one column.

    ``labels`` are those of text, categories and Python objects: numbers among these are labels
    if another part has text. At most ``MAX_LEVELS + 1`` are kept, enough to show that there are
    too many; ``n_labels`` counts all.
    """

    name: Any
    kind: str
    is_empty: bool
    is_object: bool
    labels: frozenset[str]
    n_labels: int


def read_features(
    estimator: Any, X: Any, columns: Columns | None = None
) -> tuple[NDArray[Any], Columns]:
    """The table as floats, shape (n, n_columns), with codes in the columns that are categories.

    Without ``columns`` this is the training table: they are learnt from it, and the estimator
    receives the number and the names of its features. With them X is checked against these. A
    level that training did not have is missing, with one warning for the whole table.
    """
    frame = _as_frame(X)
    if frame is None:
        return _read_array(estimator, X, columns)
    validate_data(estimator, X, skip_check_array=True, reset=columns is None)
    table = _columns_of(frame)
    if columns is None:
        columns = join_columns([[_survey(column) for column in table]])
    unseen: list[str] = []
    read = [
        _read_column(column, kind, levels, unseen)
        for column, kind, levels in zip(table, columns.kinds, columns.levels, strict=True)
    ]
    if unseen:
        warnings.warn(
            f"levels that were not in the training table are treated as missing: "
            f"{'; '.join(unseen)}.",
            UserWarning,
            stacklevel=4,
        )
    matrix = np.column_stack(read) if read else np.empty((len(frame), 0))
    return check_array(
        matrix, ensure_all_finite="allow-nan", input_name="X", estimator=estimator
    ), columns


def feature_names(estimator: Any) -> list[str]:
    """Names of a fitted estimator's features; ``"feature 0"`` and so on if X had none."""
    names = getattr(estimator, "feature_names_in_", None)
    if names is None:
        return [f"feature {j}" for j in range(estimator.n_features_in_)]
    return [str(name) for name in names]


def copy_feature_names(source: Any, estimator: Any) -> None:
    """Give an estimator the number and the names of another one's features."""
    estimator.__dict__.pop("feature_names_in_", None)
    for name in ("n_features_in_", "feature_names_in_"):
        if hasattr(source, name):
            setattr(estimator, name, getattr(source, name))


def survey_part(X: Any) -> list[ColumnPart]:
    """What a frame, a part of a larger one, shows of its columns."""
    return [_survey(column, is_part=True) for column in _columns_of(_as_frame(X))]


def join_columns(
    parts: Sequence[Sequence[ColumnPart]], numbers: Sequence[int] | None = None
) -> Columns:
    """The columns of a table, from its parts; messages name parts by these numbers."""
    columns = list(zip(*parts, strict=True))
    kinds = tuple(_join_kinds(column, numbers or range(len(parts))) for column in columns)
    levels = tuple(
        _join_levels(column) if kind == CATEGORY else None
        for column, kind in zip(columns, kinds, strict=True)
    )
    return Columns(kinds, levels)


def _join_kinds(parts: Sequence[ColumnPart], numbers: Sequence[int]) -> str:
    with_values = [part for part in parts if not part.is_empty] or parts[:1]
    found = {part.kind for part in with_values}
    certain = {part.kind for part in with_values if part.kind != NUMBER or not part.is_object}
    if len(found) > 1 and certain == {CATEGORY}:
        return CATEGORY
    if len(found) > 1:
        first = with_values[0]
        other = next(part for part in with_values if part.kind != first.kind)
        one, two = (numbers[parts.index(part)] for part in (first, other))
        raise ValueError(
            f"column {first.name!r} holds {PLURAL[first.kind]} in partition {one} but "
            f"{PLURAL[other.kind]} in partition {two}; give it the same type everywhere."
        )
    return with_values[0].kind


def _join_levels(parts: Sequence[ColumnPart]) -> tuple[str, ...]:
    levels = frozenset[str]().union(*(part.labels for part in parts))
    n_levels = max(len(levels), *(part.n_labels for part in parts))
    if n_levels > MAX_LEVELS:
        at_least = "at least " if len(parts) > 1 else ""
        raise ValueError(
            f"column {parts[0].name!r} has {at_least}{n_levels} levels; a category may have at "
            f"most {MAX_LEVELS}. Group rare levels, encode it as numbers, or drop it."
        )
    return tuple(sorted(levels))


def _survey(column: Column, is_part: bool = False) -> ColumnPart:
    has_labels = column.kind == CATEGORY or (column.is_object and is_part)
    labels = sorted(set(column.list_labels()) - {None}) if has_labels else []
    return ColumnPart(
        column.name,
        column.kind,
        is_part and bool(column.missing.all()),
        column.is_object,
        frozenset(labels[: MAX_LEVELS + 1]),
        len(labels),
    )


def _read_array(estimator: Any, X: Any, columns: Columns | None) -> tuple[NDArray[Any], Columns]:
    if columns is not None and columns.categorical.any():
        raise ValueError(
            "some columns were categories in fit, so X must be a frame with the same "
            "columns; found an array, whose numbers cannot be matched to labels."
        )
    if isinstance(X, np.ndarray) and X.dtype.kind in "mM":
        raise ValueError("X is an array of dates: pass a frame, or numbers.")
    matrix = validate_data(
        estimator,
        X,
        dtype=[np.float64, np.float32],
        ensure_all_finite="allow-nan",
        reset=columns is None,
    )
    n_columns = matrix.shape[1]
    return matrix, columns or Columns((NUMBER,) * n_columns, (None,) * n_columns)


def _read_column(
    column: Column, kind: str, levels: tuple[str, ...] | None, unseen: list[str]
) -> NDArray[np.float64]:
    """Numbers or codes of a column that had this kind in training; adds to ``unseen``."""
    found = column.kind
    if kind == CATEGORY and found == NUMBER and column.is_object:
        found = CATEGORY  # objects that are numbers may be labels
    if found == kind:
        return _read_numbers(column) if levels is None else _read_codes(column, levels, unseen)
    if column.missing.all():  # without a single value it has no type of its own
        return np.full(len(column.series), np.nan)
    raise ValueError(
        f"column {column.name!r} held {PLURAL[kind]} in fit but holds {PLURAL[found]} now; "
        "give it the same type."
    )


def _as_frame(X: Any) -> Any:
    """X as a narwhals frame, or None if it is no frame (or narwhals is not installed)."""
    if isinstance(X, np.ndarray | list | tuple):
        return None
    try:
        import narwhals as nw
    except ImportError:
        return None
    frame = nw.from_native(X, pass_through=True)
    if isinstance(frame, nw.LazyFrame):
        raise ValueError("X is a lazy frame: pass X.collect().")
    if isinstance(frame, nw.DataFrame):
        return frame
    if hasattr(X, "__arrow_c_stream__"):
        return nw.from_arrow(X, backend="pyarrow")
    if hasattr(X, "__dataframe__"):
        from pyarrow.interchange import from_dataframe

        return nw.from_native(from_dataframe(X), eager_only=True)
    return None


def _columns_of(frame: Any) -> list[Column]:
    import narwhals as nw

    table = []
    for name, series in zip(frame.columns, frame.iter_columns(), strict=True):
        dtype = series.dtype
        if dtype == nw.Unknown:
            series = _in_utc(series)
            dtype = series.dtype
        table.append(Column(name, series, dtype, _kind(series, dtype)))
    return table


def _in_utc(series: Any) -> Any:
    """The series, moved to UTC if it has a time zone whose name narwhals does not know."""
    import narwhals as nw

    native = series.to_native()
    if not str(getattr(native, "dtype", "")).startswith("datetime64"):
        return series
    return nw.from_native(native.dt.tz_convert("UTC"), series_only=True)


def _kind(series: Any, dtype: Any) -> str:
    import narwhals as nw

    if dtype in (nw.Date, nw.Datetime):
        return DATE
    if dtype == nw.Duration:
        return DURATION
    if dtype == nw.Object:
        known = series.drop_nulls().to_list()
        return NUMBER if known and all(is_number(value) for value in known) else CATEGORY
    return CATEGORY if dtype in (nw.Categorical, nw.Enum, nw.String) else NUMBER


def _read_codes(column: Column, levels: tuple[str, ...], unseen: list[str]) -> NDArray[np.float64]:
    labels = column.list_labels()
    code_of = {level: float(code) for code, level in enumerate(levels)}
    new = sorted(set(labels) - code_of.keys() - {None})
    if new:
        more = "" if len(new) <= 3 else f" and {len(new) - 3} more"
        unseen.append(f"column {column.name!r}: {', '.join(map(repr, new[:3]))}{more}")
    return np.array([code_of.get(label, np.nan) for label in labels], dtype=np.float64)


def _read_numbers(column: Column) -> NDArray[np.float64]:
    import narwhals as nw

    series, dtype = column.series, column.dtype
    try:
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
