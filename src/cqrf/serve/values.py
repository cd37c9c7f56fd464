"""Values: as JSON has them, and as the forest reads them.

Numbers are numbers (true and false are 1 and 0), categories are their labels, dates are ISO 8601
text, durations are numbers of days, and missing is null.
"""

from __future__ import annotations

import datetime
import math
import sys
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cqrf._input.features import CATEGORY, DATE, DURATION

DAY = 86400.0
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
LARGEST = sys.float_info.max
MOST_DAYS = 1e300
MOST_SHOWN = 60  # characters of a value in a message
MOST_PROBLEMS = 20

Value = float | int | str | None


class Kind(NamedTuple):
    """Name of a column, what it holds, and its levels if it is a category."""

    name: str
    kind: str
    levels: tuple[str, ...] | None = None


class Problem(NamedTuple):
    """What is wrong, and where."""

    message: str
    field: str | None = None
    row: int | None = None
    column: str | None = None


class RefusedError(Exception):
    """A question that cannot be answered, with all that is wrong about it."""

    def __init__(self, *problems: Problem, status: int = 422) -> None:
        super().__init__(problems[0].message)
        self.problems, self.status = problems, status


def read_rows(
    rows: Sequence[dict[str, Any]], columns: Sequence[Kind], field: str = "rows"
) -> NDArray[np.float64]:
    """Rows by column name as a matrix, or what is wrong with them."""
    problems: list[Problem] = []
    matrix = np.empty((len(rows), len(columns)))
    names = [column.name for column in columns]
    codes = [
        None if column.levels is None else {name: code for code, name in enumerate(column.levels)}
        for column in columns
    ]
    known = set(names)
    for i, row in enumerate(rows):
        for name in row.keys() - known if row.keys() != known else ():
            problems.append(blame(field, i, name, f"is not a column of the model; {_list(names)}"))
        for j, column in enumerate(columns):
            if column.name not in row:
                problems.append(
                    blame(field, i, column.name, "is not given: write null if it is missing")
                )
                continue
            try:
                matrix[i, j] = read_value(row[column.name], column, codes[j])
            except ValueError as error:
                problems.append(blame(field, i, column.name, str(error)))
        if len(problems) >= MOST_PROBLEMS:
            break
    if problems:
        raise RefusedError(*problems[:MOST_PROBLEMS])
    return matrix


def blame(field: str, row: int, column: str, message: str) -> Problem:
    """A problem with one value."""
    where = f"{field}[{row}], column {shorten(column)!r}"
    return Problem(f"{where}: {message}.", f"{field}[{row}]", row, column)


def read_value(value: Any, column: Kind, codes: dict[str, int] | None = None) -> float:
    """A value as the forest reads it."""
    if value is None:
        return math.nan
    if column.kind == CATEGORY:
        return _read_level(value, column, codes)
    if column.kind == DATE:
        return _read_date(value)
    if not isinstance(value, bool | int | float):
        raise ValueError(f"holds {describe(value)}; it must be a number, or null if it is missing")
    if not is_within(value, LARGEST):
        raise ValueError("must be a finite number, or null if it is missing")
    if column.kind != DURATION:
        return float(value)
    if not is_within(value, MOST_DAYS):
        raise ValueError(f"must be a number of days up to {MOST_DAYS:g}, or null if it is missing")
    return float(value) * DAY


def show_value(number: float, column: Kind) -> Value:
    """A number of the forest as JSON has it."""
    if not math.isfinite(number):
        return None
    if column.levels is not None:
        return column.levels[int(number)]
    if column.kind == DATE:
        return show_date(number)
    if column.kind == DURATION:
        number /= DAY
    return int(number) if number.is_integer() and abs(number) < 2**53 else number


def show_date(seconds: float) -> str | None:
    """Seconds since 1970 as a day, or as a time of a day."""
    try:
        moment = EPOCH + datetime.timedelta(seconds=seconds)
    except OverflowError:
        return None
    if seconds % DAY == 0:
        return moment.date().isoformat()
    return moment.replace(tzinfo=None).isoformat()


def is_within(value: float | int, limit: float) -> bool:
    """Whether a number lies between two limits, as the decimals of JSON have them."""
    return abs(value) <= (int(Decimal(repr(limit))) if isinstance(value, int) else limit)


def describe(value: Any) -> str:
    """What was found in place of a value, in few words."""
    if isinstance(value, str):
        return f"the text {shorten(value)!r}"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return "a number"
    return "a list" if isinstance(value, list) else "an object"


def shorten(text: str) -> str:
    """The beginning of a text."""
    return text if len(text) <= MOST_SHOWN else text[: MOST_SHOWN - 1] + "…"


def _read_level(value: Any, column: Kind, codes: dict[str, int] | None) -> float:
    levels = column.levels or ()
    if codes is None:
        codes = {name: code for code, name in enumerate(levels)}
    if not isinstance(value, str):
        found = describe(value)
        raise ValueError(f"holds {found}; it must be text, one of its levels: {_list(levels)}")
    if value not in codes:
        raise ValueError(f"has no level {shorten(value)!r}; {_list(levels)}")
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
