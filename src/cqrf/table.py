"""The table: what a user brings as ``X``, as a matrix of numbers.

Numbers stay numbers, and booleans become 0 and 1. Dates become seconds since 1970 and durations
seconds, in whatever unit the frame keeps them. Text and categories become codes, by the
alphabetical order of their labels, whatever order the frame gives them: a split may send any
set of them left, so the codes themselves mean nothing. Missing is NaN in every column.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array
from sklearn.utils.validation import validate_data

from cqrf.arguments import is_number

# One byte per code, less one code for missing and one spare that no level ever has.
MAX_LEVELS = 254
NUMBER, DATE, DURATION, CATEGORY = "number", "date", "duration", "category"
PLURAL = {NUMBER: "numbers", DATE: "dates", DURATION: "durations", CATEGORY: "categories"}


@dataclass(frozen=True)
class Columns:
    """What each column of the training table was: its kind, and its levels if a category."""

    kinds: tuple[str, ...]
    levels: tuple[tuple[str, ...] | None, ...]

    @property
    def categorical(self) -> NDArray[np.bool_]:
        """Which columns are categories."""
        return np.array([levels is not None for levels in self.levels], dtype=bool)


class ColumnPart(NamedTuple):
    """What a part of a table tells of one column.

    ``labels`` are those of text, categories and Python objects: numbers among these are labels
    if another part has text. No more are kept than show that ``n_labels`` are too many.
    """

    name: Any
    kind: str
    is_empty: bool
    is_object: bool
    labels: frozenset[str]
    n_labels: int


def read_table(
    estimator: Any, X: Any, columns: Columns | None = None
) -> tuple[NDArray[Any], Columns]:
    """The table as floats, shape (n, n_columns), with codes in the columns that are categories.

    Without ``columns`` this is the training table: they are learnt from it, and the estimator
    receives its number and names of features. With them X is checked against these. A level
    that training did not have is missing, with one warning for the whole table.
    """
    learn = columns is None
    frame = _as_frame(X)
    if frame is None:
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
            reset=learn,
        )
        n_columns = matrix.shape[1]
        return matrix, columns or Columns((NUMBER,) * n_columns, (None,) * n_columns)
    validate_data(estimator, X, skip_check_array=True, reset=learn)
    named = list(zip(frame.columns, map(_in_utc, frame.iter_columns()), strict=True))
    if columns is None:
        columns = join_columns([[_survey(name, series) for name, series in named]])
    kinds = [
        _kind_beside(series, then) for (_, series), then in zip(named, columns.kinds, strict=True)
    ]
    gone = []
    for (name, series), now, then in zip(named, kinds, columns.kinds, strict=True):
        # A column without a single value has no type of its own.
        gone.append(now != then and bool(series.is_null().all()))
        if now != then and not gone[-1]:
            raise ValueError(
                f"column {name!r} held {PLURAL[then]} in fit but holds {PLURAL[now]} now; "
                "give it the same type."
            )
    unseen: list[str] = []
    read = []
    for (name, series), kind, known, is_gone in zip(
        named, kinds, columns.levels, gone, strict=True
    ):
        if is_gone:
            read.append(np.full(len(frame), np.nan))
        elif known is None:
            read.append(_read_numbers(name, series, kind))
        else:
            read.append(_read_codes(name, series, known, unseen))
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


def survey_part(X: Any) -> list[ColumnPart]:
    """What a frame, a part of a larger one, tells of its columns."""
    frame = _as_frame(X)
    return [
        _survey(name, series, is_part=True)
        for name, series in zip(frame.columns, map(_in_utc, frame.iter_columns()), strict=True)
    ]


def join_columns(
    parts: Sequence[Sequence[ColumnPart]], numbers: Sequence[int] | None = None
) -> Columns:
    """The columns of a table from what its parts, of these numbers, tell of them."""
    columns = list(zip(*parts, strict=True))
    kinds = tuple(_join_kinds(column, numbers or range(len(parts))) for column in columns)
    levels = tuple(
        _join_levels(column) if kind == CATEGORY else None
        for column, kind in zip(columns, kinds, strict=True)
    )
    return Columns(kinds, levels)


def _join_kinds(parts: Sequence[ColumnPart], numbers: Sequence[int]) -> str:
    telling = [part for part in parts if not part.is_empty] or parts[:1]
    found = {part.kind for part in telling}
    firm = {part.kind for part in telling if part.kind != NUMBER or not part.is_object}
    if len(found) > 1 and firm == {CATEGORY}:
        return CATEGORY
    if len(found) > 1:
        first = telling[0]
        other = next(part for part in telling if part.kind != first.kind)
        one, two = (numbers[parts.index(part)] for part in (first, other))
        raise ValueError(
            f"column {first.name!r} holds {PLURAL[first.kind]} in partition {one} but "
            f"{PLURAL[other.kind]} in partition {two}; give it the same type everywhere."
        )
    return telling[0].kind


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


def _survey(name: Any, series: Any, is_part: bool = False) -> ColumnPart:
    import narwhals as nw

    kind = _kind(series)
    is_object = bool(series.dtype == nw.Object)
    labels = (
        sorted(set(_labels(series)) - {None}) if kind == CATEGORY or (is_object and is_part) else []
    )
    return ColumnPart(
        name,
        kind,
        is_part and bool(series.is_null().all()),
        is_object,
        frozenset(labels[: MAX_LEVELS + 1]),
        len(labels),
    )


def _kind_beside(series: Any, then: str) -> str:
    """Kind of a column that was of another kind then: objects that are numbers may be labels."""
    import narwhals as nw

    now = _kind(series)
    return CATEGORY if then == CATEGORY and series.dtype == nw.Object and now == NUMBER else now


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


def _in_utc(series: Any) -> Any:
    """The series, moved to UTC if narwhals does not know the name of its time zone."""
    import narwhals as nw

    native = series.to_native()
    kind = str(getattr(native, "dtype", ""))
    if series.dtype != nw.Unknown or not kind.startswith("datetime64"):
        return series
    return nw.from_native(native.dt.tz_convert("UTC"), series_only=True)


def _kind(series: Any) -> str:
    import narwhals as nw

    if series.dtype in (nw.Date, nw.Datetime):
        return DATE
    if series.dtype == nw.Duration:
        return DURATION
    if series.dtype == nw.Object:
        known = series.drop_nulls().to_list()
        return NUMBER if known and all(is_number(value) for value in known) else CATEGORY
    return CATEGORY if series.dtype in (nw.Categorical, nw.Enum, nw.String) else NUMBER


def _labels(series: Any) -> list[Any]:
    """Labels as text, None where they are missing."""
    missing = np.asarray(series.is_null().to_numpy(), dtype=bool).tolist()
    values = np.asarray(series.to_numpy(), dtype=object).tolist()
    return [None if gone else str(value) for value, gone in zip(values, missing, strict=True)]


def _read_codes(
    name: Any, series: Any, levels: tuple[str, ...], unseen: list[str]
) -> NDArray[np.float64]:
    labels = _labels(series)
    code_of = {level: float(code) for code, level in enumerate(levels)}
    new = sorted(set(labels) - code_of.keys() - {None})
    if new:
        more = "" if len(new) <= 3 else f" and {len(new) - 3} more"
        unseen.append(f"column {name!r}: {', '.join(map(repr, new[:3]))}{more}")
    return np.array([code_of.get(label, np.nan) for label in labels], dtype=np.float64)


def _as_floats(series: Any) -> NDArray[np.float64]:
    import narwhals as nw

    if series.dtype.is_integer():  # some frames refuse to round those above 2**53
        return np.asarray(series.to_numpy(), dtype=np.float64)
    return np.asarray(series.cast(nw.Float64).to_numpy(), dtype=np.float64)


def _read_numbers(name: Any, series: Any, kind: str) -> NDArray[np.float64]:
    import narwhals as nw

    try:
        if kind == NUMBER:
            return _as_floats(series)
        missing = np.asarray(series.is_null().to_numpy(), dtype=bool)
        if kind == DATE:
            if series.dtype == nw.Date:
                series = series.cast(nw.Datetime("us"))
            values = np.asarray(series.dt.timestamp("us").to_numpy(), dtype=np.float64) / 1e6
        else:
            values = np.asarray(series.dt.total_microseconds().to_numpy(), dtype=np.float64) / 1e6
    except Exception as error:
        raise ValueError(
            f"column {name!r} of type {series.dtype} cannot be read as numbers; convert it to "
            "numbers or text, or drop it."
        ) from error
    return np.where(missing, np.nan, values)
