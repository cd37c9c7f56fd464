"""Values: as JSON has them, and as the forest reads them.

Numbers are numbers (true and false are 1 and 0), categories are their labels, dates are ISO 8601
text, durations are numbers of days, and a missing value is null.
"""

from __future__ import annotations

import datetime
import itertools
import math
import sys
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cqrf._input.columns import CATEGORY, DATE, DURATION

SECONDS_PER_DAY = 86400.0
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
MAX_NUMBER = sys.float_info.max
MAX_DAYS = 1e300
MAX_SHOWN = 60  # characters of a value in a message
MAX_PROBLEMS = 20

Value = float | int | str | None


class Column(NamedTuple):
    """Name and kind of a column, and its levels if it is a category."""

    name: str
    kind: str
    levels: tuple[str, ...] | None = None


class Problem(NamedTuple):
    """What is wrong, and where."""

    message: str
    field: str | None = None
    row: int | None = None
    column: str | None = None


class UnseenLevelError(ValueError):
    """A category has a level that training did not have."""


class RowsRead(NamedTuple):
    """Rows as the forest reads them, and notes on the values of each row."""

    matrix: NDArray[np.float64]
    notes: list[list[str]]

    def take(self, rows: slice) -> RowsRead:
        """Some of the rows."""
        return RowsRead(self.matrix[rows], self.notes[rows])


class RequestError(Exception):
    """A request that is refused, with its problems and the HTTP status."""

    def __init__(self, *problems: Problem, status: int = 422) -> None:
        super().__init__(problems[0].message)
        self.problems, self.status = problems, status


def read_rows(
    rows: Sequence[dict[str, Any]],
    columns: Sequence[Column],
    field: str = "rows",
    *,
    strict: bool = False,
) -> RowsRead:
    """Rows by column name as a matrix; raises RequestError with every problem, up to 20.

    A level that training did not have is missing, with a note, as in Python; a problem if
    ``strict``.
    """
    problems: list[Problem] = []
    notes: list[list[str]] = [[] for _ in rows]
    matrix = np.empty((len(rows), len(columns)))
    names = [column.name for column in columns]
    codes = [
        None if column.levels is None else {name: code for code, name in enumerate(column.levels)}
        for column in columns
    ]
    known = set(names)
    for i, row in enumerate(rows):
        unknown = [] if row.keys() == known else (name for name in row if name not in known)
        for name in itertools.islice(unknown, MAX_PROBLEMS):
            problems.append(
                problem_at(field, i, name, f"is not a column of the model; {_list(names)}")
            )
        for j, column in enumerate(columns):
            if column.name not in row:
                problems.append(
                    problem_at(
                        field,
                        i,
                        column.name,
                        "is not given: write null if it is missing",
                    )
                )
                continue
            try:
                matrix[i, j] = read_value(row[column.name], column, codes[j])
            except UnseenLevelError as error:
                if strict:
                    problems.append(problem_at(field, i, column.name, str(error)))
                matrix[i, j] = math.nan
                notes[i].append(note_unseen(column.name, error))
            except ValueError as error:
                problems.append(problem_at(field, i, column.name, str(error)))
        if len(problems) >= MAX_PROBLEMS:
            break
    if problems:
        raise RequestError(*problems[:MAX_PROBLEMS])
    return RowsRead(matrix, notes)


def note_unseen(column: str, error: UnseenLevelError) -> str:
    """Note on a level that training did not have."""
    return f"column {shorten(column)!r} {error}: treated as missing."


def problem_at(field: str, row: int, column: str, message: str) -> Problem:
    """A problem with one value."""
    where = f"{field}[{row}], column {shorten(column)!r}"
    return Problem(f"{where}: {message}.", f"{field}[{row}]", row, column)


def read_value(value: Any, column: Column, codes: dict[str, int] | None = None) -> float:
    """Read a value of JSON as the forest has it."""
    if value is None:
        return math.nan
    if column.kind == CATEGORY:
        return _read_level(value, column, codes)
    if column.kind == DATE:
        return _read_date(value)
    if not isinstance(value, bool | int | float):
        raise ValueError(f"holds {describe(value)}; it must be a number, or null if it is missing")
    if not is_within(value, MAX_NUMBER):
        raise ValueError("must be a finite number, or null if it is missing")
    if column.kind != DURATION:
        return float(value)
    if not is_within(value, MAX_DAYS):
        raise ValueError(f"must be a number of days up to {MAX_DAYS:g}, or null if it is missing")
    return float(value) * SECONDS_PER_DAY


def write_value(number: float, column: Column) -> Value:
    """Write a number of the forest as JSON has it."""
    if not math.isfinite(number):
        return None
    if column.levels is not None:
        return column.levels[int(number)]
    if column.kind == DATE:
        return write_date(number)
    if column.kind == DURATION:
        number /= SECONDS_PER_DAY
    return int(number) if number.is_integer() and abs(number) < 2**53 else number


def write_date(seconds: float) -> str | None:
    """Write seconds since 1970 as a date, with the time of day unless it is midnight."""
    try:
        moment = EPOCH + datetime.timedelta(seconds=seconds)
    except OverflowError:
        return None
    if seconds % SECONDS_PER_DAY == 0:
        return moment.date().isoformat()
    return moment.replace(tzinfo=None).isoformat()


def is_within(value: float | int, limit: float) -> bool:
    """Whether a number is between -limit and limit; whole numbers of JSON have any size."""
    return abs(value) <= (int(Decimal(repr(limit))) if isinstance(value, int) else limit)


def describe(value: Any) -> str:
    """Type of a JSON value, for a message."""
    if isinstance(value, str):
        return f"the text {shorten(value)!r}"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return "a number"
    return "a list" if isinstance(value, list) else "an object"


def shorten(text: str) -> str:
    """Cut a text to MAX_SHOWN characters."""
    return text if len(text) <= MAX_SHOWN else text[: MAX_SHOWN - 1] + "…"


def _read_level(value: Any, column: Column, codes: dict[str, int] | None) -> float:
    levels = column.levels or ()
    if codes is None:
        codes = {name: code for code, name in enumerate(levels)}
    if not isinstance(value, str):
        found = describe(value)
        raise ValueError(f"holds {found}; it must be text, one of its levels: {_list(levels)}")
    if value not in codes:
        raise UnseenLevelError(f"has no level {shorten(value)!r}; {_list(levels)}")
    return float(codes[value])


def _read_date(value: Any) -> float:
    wanted = "a date such as 2024-01-31 or 2024-01-31T12:30:00"
    if not isinstance(value, str):
        raise ValueError(f"holds {describe(value)}; it must be {wanted}")
    try:
        moment = datetime.datetime.fromisoformat(value)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=datetime.UTC)
        return (moment - EPOCH).total_seconds()
    except (ValueError, OverflowError):
        raise ValueError(f"holds {describe(value)}; it must be {wanted}") from None


def _list(names: Sequence[str]) -> str:
    shown = ", ".join(repr(shorten(name)) for name in names[:8])
    return f"there are {shown}" + (f" and {len(names) - 8} more" if len(names) > 8 else "")
