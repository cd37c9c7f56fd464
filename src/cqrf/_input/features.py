"""Features: reads ``X``, an array or a frame, into a matrix of numbers.

Numbers stay numbers, and booleans become 0 and 1. Dates become seconds since 1970 and durations
seconds, whatever the frame's unit; Python's own dates and decimals are read like these. Text and
categories become codes in the alphabetical order of their labels, whatever the frame's order: a
split may send any set of them left, so the codes themselves mean nothing. Missing is NaN in every
column. A sparse array is read as the dense one that it stands for.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import check_array
from sklearn.utils.validation import validate_data

from cqrf._input.columns import (
    CATEGORY,
    MAX_LEVELS,
    NUMBER,
    PLURAL,
    ColumnPart,
    Columns,
    join_columns,
)
from cqrf._input.frames import Column, as_frame, columns_of, read_numbers
from cqrf._runtime.arguments import name_row


class UnseenLevelWarning(UserWarning):
    """Levels that the training table did not have are treated as missing.

    Parameters
    ----------
    levels : mapping of column names to collections of str
        The new levels of each column.
    """

    def __init__(self, levels: Mapping[Any, Collection[str]]) -> None:
        self.levels = levels
        shown = (f"column {name!r}: {_list_levels(new)}" for name, new in levels.items())
        super().__init__(
            "levels that were not in the training table are treated as missing: "
            f"{'; '.join(shown)}."
        )


def read_features(
    estimator: Any, X: Any, columns: Columns | None = None
) -> tuple[NDArray[Any], Columns]:
    """The table as floats, shape (n, n_columns), with codes in the columns that are categories.

    Without ``columns`` this is the training table: they are learnt from it, and the estimator
    receives the number and the names of its features. With them X is checked against these. A
    level that training did not have is missing, with one warning for the whole table.
    """
    if getattr(getattr(X, "dtype", None), "kind", "") == "c":
        raise ValueError(
            "Complex data not supported: pass the real and imaginary parts of X, or modulus and "
            "angle, as two columns."
        )
    if sparse.issparse(X):
        X = _densify(X)
    frame = as_frame(X)
    if frame is None:
        return _read_array(estimator, X, columns)
    validate_data(estimator, X, skip_check_array=True, reset=columns is None)
    table = columns_of(frame)
    if columns is None:
        columns = join_columns([[_survey(column) for column in table]])
    unseen: dict[Any, list[str]] = {}
    read = [
        _read_column(column, kind, levels, unseen)
        for column, kind, levels in zip(table, columns.kinds, columns.levels, strict=True)
    ]
    for column, values in zip(table, read, strict=True):
        _refuse_infinity(column.name, values)
    if unseen:
        warnings.warn(UnseenLevelWarning(unseen), stacklevel=4)
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
    return [_survey(column, is_part=True) for column in columns_of(as_frame(X))]


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
    try:
        matrix = validate_data(
            estimator,
            X,
            dtype=[np.float64, np.float32],
            ensure_all_finite="allow-nan",
            reset=columns is None,
        )
    except ValueError as error:
        if "could not convert string" not in str(error):
            raise
        raise ValueError(
            f"X is an array with text ({error}): pass a frame, whose columns of text are "
            "categories."
        ) from error
    n_columns = matrix.shape[1]
    return matrix, columns or Columns((NUMBER,) * n_columns, (None,) * n_columns)


def _densify(X: Any) -> NDArray[Any]:
    """The array of a sparse one: as large as any X of its shape, and nothing besides."""
    return np.asarray(X.astype(X.dtype if X.dtype == np.float32 else np.float64).toarray())


def _refuse_infinity(name: Any, values: NDArray[np.float64]) -> None:
    infinite = np.flatnonzero(np.isinf(values))
    if len(infinite):
        raise ValueError(
            f"Input X contains infinity: column {name!r}, in {name_row(int(infinite[0]))}. A "
            "missing value is NaN; an unknown bound is better a large number."
        )


def _read_column(
    column: Column, kind: str, levels: tuple[str, ...] | None, unseen: dict[Any, list[str]]
) -> NDArray[np.float64]:
    """Numbers or codes of a column that had this kind in training; adds to ``unseen``."""
    found = column.kind
    if kind == CATEGORY and column.is_object:
        found = CATEGORY  # objects of any kind may be labels
    if found == kind:
        return read_numbers(column) if levels is None else _read_codes(column, levels, unseen)
    if column.missing.all():  # without a single value it has no type of its own
        return np.full(len(column.series), np.nan)
    raise ValueError(
        f"column {column.name!r} held {PLURAL[kind]} in fit but holds {PLURAL[found]} now; "
        "give it the same type."
    )


def _list_levels(levels: Collection[str]) -> str:
    more = "" if len(levels) <= 3 else f" and {len(levels) - 3} more"
    return ", ".join(map(repr, sorted(levels)[:3])) + more


def _read_codes(
    column: Column, levels: tuple[str, ...], unseen: dict[Any, list[str]]
) -> NDArray[np.float64]:
    labels = column.list_labels()
    code_of = {level: float(code) for code, level in enumerate(levels)}
    new = sorted(set(labels) - code_of.keys() - {None})
    if new:
        unseen[column.name] = new
    return np.array([code_of.get(label, np.nan) for label in labels], dtype=np.float64)
