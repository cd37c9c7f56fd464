"""Columns of a table: their kinds, and the levels of those that are categories.

A table may come in parts, such as the partitions of a Dask frame: each part shows what its columns
hold, and :func:`join_columns` decides for the whole.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cqrf._input.written_values import describe_written

# One byte per code, less one code for missing and one spare that no level ever has.
MAX_LEVELS = 254
NUMBER, DATE, DURATION, CATEGORY = "number", "date", "duration", "category"
CONVERSION = {
    "dates": "pd.to_datetime (mind dayfirst)",
    "numbers": "pd.to_numeric (without currency signs and separators of thousands)",
}
PLURAL = {NUMBER: "numbers", DATE: "dates", DURATION: "durations", CATEGORY: "categories"}


class TextColumnWarning(UserWarning):
    """Columns of text are read as categories though they look like dates or numbers."""


@dataclass(frozen=True)
class Columns:
    """Kind of each column of the training table, and its levels if it is a category."""

    kinds: tuple[str, ...]
    levels: Sequence[tuple[str, ...] | None]

    @property
    def categorical(self) -> NDArray[np.bool_]:
        """Which columns are categories."""
        return np.array([kind == CATEGORY for kind in self.kinds], dtype=bool)


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
    _warn_of_written([column[0].name for column in columns], levels)
    return Columns(kinds, levels)


def _join_kinds(parts: Sequence[ColumnPart], numbers: Sequence[int]) -> str:
    with_values = [part for part in parts if not part.is_empty] or parts[:1]
    found = {part.kind for part in with_values}
    # Python objects of any kind may be labels.
    certain = {part.kind for part in with_values if not part.is_object}
    if len(found) > 1 and certain <= {CATEGORY}:
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
        written = describe_written(levels)
        advice = "Group rare levels, encode it as numbers, or drop it."
        if written is not None:
            advice = f"Its texts look like {written}: convert it with {CONVERSION[written]}."
        raise ValueError(
            f"column {parts[0].name!r} has {at_least}{n_levels} levels; a category may have at "
            f"most {MAX_LEVELS}. {advice}"
        )
    return tuple(sorted(levels))


def _warn_of_written(names: Sequence[Any], levels: Sequence[tuple[str, ...] | None]) -> None:
    """One warning for all columns of text that look like dates or numbers."""
    found = [
        f"column {name!r} looks like {written}"
        for name, texts in zip(names, levels, strict=True)
        if (written := describe_written(texts or ()))
    ]
    if found:
        warnings.warn(
            f"text is read as categories, but {', '.join(found)}. Convert dates with "
            f"{CONVERSION['dates']}, numbers with {CONVERSION['numbers']}; or ignore "
            "cqrf.TextColumnWarning if categories are meant.",
            TextColumnWarning,
            stacklevel=5,
        )
