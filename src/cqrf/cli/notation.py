"""Notation of tables: which texts are missing, and how numbers and dates are written.

A column of text is plain numbers, or true and false; else dates; else durations as pandas writes
them (``3 days 04:05:06``); else numbers with currency signs, percent signs or separators of
thousands; else text. Where the notation is ambiguous (``1,234``,
``03/04/2024``) the column stays text, and a note says which option decides. What was found is
kept in the model file, so that later tables are read in the same way.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from cqrf._input.written_values import CURRENCIES, SPACES, TURNED_DATE

NULLS = ("", "NA", "N/A", "n/a", "NaN", "nan", "null", "NULL", "None", "#N/A")
TRUTHS = {"true": 1.0, "false": 0.0}
ORDERS = {"iso": "year-month-day", "dmy": "day/month/year", "mdy": "month/day/year"}
SIGNS = (".", ",")  # those of decimals; the other one then separates thousands
PLAIN_NUMBER = r"^[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$"
# Only the days have a sign: a quarter of a day less is -1 days +18:00:00.
DURATION = (
    r"^(?P<days>[+-]?\d+) days?"
    r"(?:,? \+?(?P<hours>\d{1,2}):(?P<minutes>\d{2}):(?P<seconds>\d{2}(?:\.\d+)?))?$"
)
SECONDS = {"days": 86_400.0, "hours": 3600.0, "minutes": 60.0, "seconds": 1.0}
NUMBER_WITH_COMMA = r"^([+-]?[0-9]*),([0-9]+(?:[eE][+-]?[0-9]+)?)$"


class Notation(NamedTuple):
    """How a table is written; what is not given is inferred."""

    encoding: str | None = None
    """Of a text file."""
    na: tuple[str, ...] | None = None
    """Texts that are missing, besides the empty one."""
    decimal: str | None = None
    """Sign of decimals of every number."""
    dates: Mapping[str, str] = {}
    """Order of day, month and year by column; ``""`` if it is to be inferred."""
    numbers: Mapping[str, str] = {}
    """Sign of decimals by column, for columns of written numbers."""

    @property
    def nulls(self) -> tuple[str, ...]:
        """Texts that are missing."""
        return NULLS if self.na is None else ("", *self.na)

    @property
    def missing_numbers(self) -> list[float]:
        """Numbers that are missing: -9 is also written -9.0."""
        numbers = []
        for text in self.na or ():
            try:
                numbers.append(float(text))
            except ValueError:
                continue
        return numbers

    def as_notes(self) -> dict[str, str]:
        """What a model file keeps. The encoding is that of one file alone."""
        kept = {name: getattr(self, name) for name in ("na", "decimal", "dates", "numbers")}
        return {name: _dump(value) for name, value in kept.items() if value not in (None, {})}

    @classmethod
    def from_notes(cls, notes: Mapping[str, str], encoding: str | None = None) -> Notation:
        """The notation that a model file keeps, for a file of this encoding."""
        try:
            na = tuple(json.loads(notes["na"])) if "na" in notes else None
            dates = dict(json.loads(notes.get("dates", "{}")))
            numbers = dict(json.loads(notes.get("numbers", "{}")))
        except (TypeError, ValueError):
            raise ValueError(
                "the notes na, dates and numbers of the model file are not as cqrf fit writes them."
            ) from None
        return cls(encoding, na, notes.get("decimal"), dates, numbers)


def parse_notation(
    encoding: str | None, na: list[str] | None, decimal: str | None, dates: list[str] | None
) -> Notation:
    """The notation that the options of a command give."""
    if decimal not in (None, *SIGNS):
        raise ValueError(f"--decimal {decimal}: the sign of decimals is . or a comma.")
    orders = {}
    for each in dates or ():
        name, equals, order = each.rpartition("=")
        if equals and order not in ORDERS:
            raise ValueError(f"--dates {each}: the order is one of {', '.join(ORDERS)}.")
        orders[name if equals else each] = order if equals else ""
    given = None if na is None else tuple(text.strip() for text in na if text.strip())
    return Notation(encoding, given, decimal, orders)


class Found(NamedTuple):
    """A column as it was read, and the notation that was inferred."""

    column: pa.ChunkedArray
    order: str | None = None
    decimal: str | None = None
    is_ambiguous: bool = False


def infer(column: pa.ChunkedArray, notation: Notation, commas: bool, plain: bool = True) -> Found:
    """Read a column of text as numbers or dates, if all of its values are.

    ``commas``: whether plain numbers may have a decimal comma. ``plain``: whether they are numbers
    at all; in a file with types they are labels.
    """
    if plain and (numbers := read_plain(column, notation, commas)) is not None:
        return Found(numbers)
    if column.null_count == len(column):
        return Found(column)
    orders = {order: read_dates(column, order, notation) for order in ORDERS}
    orders = {order: dates for order, dates in orders.items() if dates is not None}
    if orders:
        return _choose_order(column, orders)
    if (durations := read_durations(column, notation)) is not None:
        return Found(durations)
    if plain or not _are_plain(column, notation):
        signs = SIGNS if notation.decimal is None else (notation.decimal,)
        read = {sign: read_written(column, sign, notation) for sign in signs}
        read = {sign: numbers for sign, numbers in read.items() if numbers is not None}
        if read:
            return _choose_decimal(column, read)
    return Found(column)


def read_plain(column: pa.ChunkedArray, notation: Notation, commas: bool) -> pa.ChunkedArray | None:
    """Numbers, 1 and 0 for true and false; None if some value is neither.

    Also None if some numbers have a decimal point and some a comma: one of them may separate
    thousands.
    """
    trimmed = trim(column, notation)
    if notation.decimal == "," or (commas and notation.decimal is None):
        if pc.any(pc.match_substring_regex(trimmed, NUMBER_WITH_COMMA)).as_py():
            if pc.any(pc.match_substring(trimmed, ".")).as_py():
                return None
            trimmed = pc.replace_substring_regex(trimmed, NUMBER_WITH_COMMA, r"\1.\2")
        elif notation.decimal == "," and pc.any(pc.match_substring(trimmed, ".")).as_py():
            return None
    try:
        return _without(notation.missing_numbers, trimmed.cast(pa.float64()))
    except pa.ArrowInvalid:
        lowered = pc.utf8_lower(trimmed)
        is_truth = pc.is_in(lowered, pa.array(TRUTHS))
        if not pc.all(pc.or_(is_truth, pc.is_null(trimmed))).as_py():
            return None
        return pc.equal(lowered, "true").cast(pa.float64())


def read_written(
    column: pa.ChunkedArray, decimal: str, notation: Notation
) -> pa.ChunkedArray | None:
    """Numbers with a currency or percent sign or separators of thousands; None if some is not.

    All have one sign, or some none; but a percent sign is in all or in none.
    """
    trimmed = trim(column, notation)
    thousands = "".join(sign for sign in SIGNS if sign != decimal) + "'’" + SPACES
    pattern = (
        rf"^[-+]?[{CURRENCIES}]?[{SPACES}]?[-+]?"
        rf"(?:\d{{1,3}}(?:[{thousands}]\d{{3}})+|\d+)?(?:[{decimal}]\d+)?"
        rf"[{SPACES}]?[%{CURRENCIES}]?$"
    )
    if not pc.all(pc.match_substring_regex(trimmed, pattern)).as_py():
        return None
    only_signs = pc.replace_substring_regex(trimmed, rf"[^%{CURRENCIES}]", "")
    signs = set(pc.unique(only_signs).to_pylist()) - {None}
    if len(signs - {""}) > 1 or ("%" in signs and len(signs) > 1):
        return None
    digits = pc.replace_substring_regex(trimmed, rf"[%{CURRENCIES}{thousands}]", "")
    try:
        return pc.replace_substring(digits, decimal, ".").cast(pa.float64())
    except pa.ArrowInvalid:
        return None


def read_dates(column: pa.ChunkedArray, order: str, notation: Notation) -> pa.ChunkedArray | None:
    """Dates that are written in this order; None if some value is not."""
    trimmed = trim(column, notation)
    if order != "iso":
        if not pc.all(pc.match_substring_regex(trimmed, TURNED_DATE)).as_py():
            return None
        year_first = r"\3-0\2-0\1\4" if order == "dmy" else r"\3-0\1-0\2\4"
        trimmed = pc.replace_substring_regex(trimmed, TURNED_DATE, year_first)
        trimmed = pc.replace_substring_regex(trimmed, r"-0(\d\d)", r"-\1")
    for kind in (pa.timestamp("us"), pa.timestamp("us", "UTC")):
        try:
            return trimmed.cast(kind)
        except pa.ArrowInvalid:
            continue
    return None


def read_durations(column: pa.ChunkedArray, notation: Notation) -> pa.ChunkedArray | None:
    """Durations as pandas writes them; None if some value is not one."""
    trimmed = trim(column, notation)
    parts = pc.extract_regex(trimmed, DURATION)
    if parts.null_count > trimmed.null_count:
        return None
    total = pa.scalar(0.0)
    for name, seconds in SECONDS.items():
        part = pc.struct_field(parts, name)
        numbers = pc.if_else(pc.equal(part, ""), "0", part).cast(pa.float64())
        total = pc.add(total, pc.multiply(numbers, seconds))
    return pc.round(pc.multiply(total, 1e6)).cast(pa.int64()).cast(pa.duration("us"))


def trim(column: pa.ChunkedArray, notation: Notation) -> pa.ChunkedArray:
    """Values without the space around them, None where they then are missing."""
    trimmed = pc.utf8_trim_whitespace(column)
    return pc.if_else(pc.is_in(trimmed, pa.array(notation.nulls)), None, trimmed)


def readable(column: pa.ChunkedArray, notation: Notation, commas: bool) -> pa.ChunkedArray:
    """Plain numbers of a column of text, None where a value is not one."""
    trimmed = trim(column, notation)
    if notation.decimal == "," or (commas and notation.decimal is None):
        trimmed = pc.replace_substring_regex(trimmed, NUMBER_WITH_COMMA, r"\1.\2")
    is_number = pc.match_substring_regex(trimmed, PLAIN_NUMBER)
    return pc.if_else(is_number, trimmed, None).cast(pa.float64())


def describe_no_number(column: pa.ChunkedArray, notation: Notation, commas: bool) -> str:
    """Why a column of text does not hold numbers."""
    shown = _first_refused(column, partial(read_plain, notation=notation, commas=commas))
    if shown is not None:
        return f"holds {shown}, which is not a number"
    if commas and pc.any(pc.match_substring(column, ",")).as_py():
        return "has decimal points in some numbers and commas in others"
    return "mixes numbers with true and false"


def describe_no_date(column: pa.ChunkedArray, order: str, notation: Notation) -> str:
    """Why a column of text does not hold dates of this order."""
    shown = _first_refused(column, partial(read_dates, order=order, notation=notation))
    return f"holds {shown}, which is not a date as {ORDERS[order]}"


def describe_found(found: Mapping[str, Found]) -> list[str]:
    """One line about columns whose notation was inferred; none if there are none."""
    dates = [
        f"{name} ({ORDERS[each.order]})"
        for name, each in found.items()
        if each.order not in (None, "iso")
    ]
    numbers = [name for name, each in found.items() if each.decimal is not None]
    durations = [n for n, each in found.items() if pa.types.is_duration(each.column.type)]
    parts = [f"dates: {', '.join(dates)}"] if dates else []
    parts += [f"durations: {', '.join(durations)}"] if durations else []
    parts += [f"numbers: {', '.join(numbers)}"] if numbers else []
    return [f"Note    read as {'; as '.join(parts)}"] if parts else []


def _choose_order(column: pa.ChunkedArray, orders: dict[str, pa.ChunkedArray]) -> Found:
    """The order that reads all dates; with dots it is day first."""
    first = next(iter(orders))
    has_dots = pc.all(pc.match_substring(column, ".")).as_py()
    if len(orders) == 1 or has_dots or orders["dmy"].equals(orders["mdy"]):
        return Found(orders[first], order=first)
    return Found(column, is_ambiguous=True)


def _choose_decimal(column: pa.ChunkedArray, read: dict[str, pa.ChunkedArray]) -> Found:
    """The sign of decimals with which all numbers can be read."""
    first = next(iter(read))
    if len(read) == 1 or read["."].equals(read[","]):
        return Found(read[first], decimal=first)
    return Found(column, is_ambiguous=True)


def _are_plain(column: pa.ChunkedArray, notation: Notation) -> bool:
    return bool(pc.all(pc.match_substring_regex(trim(column, notation), PLAIN_NUMBER)).as_py())


def _first_refused(
    column: pa.ChunkedArray, read: Callable[[pa.ChunkedArray], pa.ChunkedArray | None]
) -> str | None:
    """The first value that cannot be read; None if each can, but not all together."""
    low, high = 0, len(column)  # the first ``low`` values can be read, the first ``high`` cannot
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if read(column[:middle]) is None else (middle, high)
    value = column[low:high]
    return None if read(value) is not None else repr(value[0].as_py())


def _without(missing: list[float], values: pa.ChunkedArray) -> pa.ChunkedArray:
    if not missing:
        return values
    return pc.if_else(pc.is_in(values, pa.array(missing, pa.float64())), None, values)


def _dump(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
