"""Columns of time, event and entry: the target of a table, and the rows that have none."""

from __future__ import annotations

import shlex
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cqrf._input.causes import Cause
from cqrf._input.intervals import interval
from cqrf._input.target import censored
from cqrf._input.times import SECONDS_PER_DAY
from cqrf.cli.cause_columns import (
    CENSORED,
    are_codes,
    canonical,
    check_number,
    join_causes,
    match_causes,
    name_causes,
    refuse_several,
)
from cqrf.cli.console import count
from cqrf.cli.notation import (
    Notation,
    describe_no_number,
    read_durations,
    read_plain,
    read_written,
    readable,
    trim,
)
from cqrf.cli.tables import as_text, has_commas, is_string, name_place
from cqrf.cli.text_files import list_names


class TargetRoles(NamedTuple):
    """Names of the columns of the target."""

    time: str
    event: str | None = None
    event_value: str | None = None
    entry: str | None = None
    may_lack_events: bool = False
    """Whether a table without any event is allowed: the event's value is from the model file."""
    treatment: str | None = None
    lower: str | None = None
    """Left ends of intervals, whose right ends are in the column ``time``."""
    censored: str | None = None
    """Value of the event column that means censored, "" for a missing one; others are causes."""
    causes: tuple[Cause, ...] | None = None
    """Causes of the model that reads the table, which may lack some; none: it knows one kind."""


class Rows(NamedTuple):
    """A table that is to have a target in every row."""

    table: pa.Table
    path: str
    notation: Notation
    drops: bool | None = None
    """Whether rows without a valid target are left out; None: the command has no such option."""
    numbers: NDArray[np.intp] | None = None
    """Rows of the file that these are; None: all of them."""

    def column(self, name: str) -> pa.ChunkedArray:
        """The column of this name."""
        if name not in self.table.column_names:
            raise ValueError(
                f"{self.path} has no column {name!r}; it has {list_names(self.table.column_names)}."
            )
        return self.table.column(name)

    def place(self, row: int) -> str:
        """Where a row is in the file, for messages."""
        number = row if self.numbers is None else int(self.numbers[row])
        return name_place(self.path, number, self.notation)


class Invalid(NamedTuple):
    """Rows that cannot be used, and why."""

    rows: NDArray[np.bool_]
    problem: str
    advice: str = ""
    """What may be done but leave them out."""


def take_valid(rows: Rows, roles: TargetRoles) -> tuple[Rows, str | None]:
    """The rows with a valid target, and what was left out; an error unless that is wanted."""
    found = [invalid for invalid in _find_invalid(rows, roles) if invalid.rows.any()]
    if not found:
        return rows, None
    n = rows.table.num_rows
    if not rows.drops:
        raise ValueError(f"{rows.path}: {_describe(found[0], rows)}")
    gone = np.logical_or.reduce([invalid.rows for invalid in found])
    if gone.all():
        raise ValueError(f"{rows.path}: no row has a valid time and event; {found[0].problem}.")
    reasons = "; ".join(f"{invalid.problem} ({invalid.rows.sum()})" for invalid in found)
    kept = rows._replace(table=rows.table.filter(pa.array(~gone)), numbers=np.flatnonzero(~gone))
    are = "is" if gone.sum() == 1 else "are"
    return kept, f"Note    {gone.sum()} of {count(n, 'row')} {are} left out: {reasons}"


def read_target_columns(rows: Rows, roles: TargetRoles) -> NDArray[np.void]:
    """The target of rows that are valid."""
    if roles.lower is not None:
        return interval(*_read_ends(rows, roles.lower, roles.time))
    time = _times(rows, roles.time).to_numpy()
    entry = None
    if roles.entry is not None:
        entry = _times(rows, roles.entry).to_numpy()
    if roles.event is None:
        if roles.censored is not None:
            raise ValueError("--censored is a value of the column of --event: give both.")
        return censored(time, np.ones(len(time), bool), entry)
    meaning = _find_causes(rows, roles)
    if meaning is not None:
        labels = read_event_values(rows, roles).to_pylist()
        return join_causes(time, labels, entry, meaning)
    return censored(time, _events(rows, roles), entry)


def read_numbers(rows: Rows, name: str) -> NDArray[np.float64]:
    """A column of finite numbers without gaps."""
    values = _times(rows, name).to_numpy()
    found = _unreadable(rows, name, may_be_missing=False)
    found.append(Invalid(np.isinf(values), f"column {name!r} is infinite"))
    for invalid in found:
        if invalid.rows.any():
            # --drop-invalid is about times and events alone.
            described = _describe(invalid, rows._replace(drops=None))
            raise ValueError(f"{rows.path}: {described}")
    return values


def refuse_infinite(rows: Rows, X: pa.Table) -> None:
    """Raise if a feature is infinite, with its place in the file."""
    for name, column in zip(X.column_names, X.columns, strict=True):
        if pa.types.is_floating(column.type):
            infinite = Invalid(_mask(pc.fill_null(pc.is_inf(column), False)), "")
            if infinite.rows.any():
                problem = infinite._replace(problem=f"column {name!r} is infinite")
                raise ValueError(f"{rows.path}: {_describe(problem, rows._replace(drops=None))}")


def _read_ends(
    rows: Rows, lower: str, upper: str
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Both ends of intervals; an empty cell is an end that is not there."""
    low, high = (_times(rows, name).to_numpy() for name in (lower, upper))
    return np.where(np.isnan(low), -np.inf, low), np.where(np.isnan(high), np.inf, high)


def _find_invalid_intervals(rows: Rows, lower: str, upper: str) -> list[Invalid]:
    found = _unreadable(rows, lower, may_be_missing=True)
    found += _unreadable(rows, upper, may_be_missing=True)
    low, high = _read_ends(rows, lower, upper)
    both = np.isinf(low) & np.isinf(high)
    found.append(Invalid((low > high) & ~both, f"column {lower!r} is above {upper!r}"))
    found.append(Invalid(both, f"columns {lower!r} and {upper!r} have no finite end"))
    return found


def _find_invalid(rows: Rows, roles: TargetRoles) -> list[Invalid]:
    if roles.lower is not None:
        return _find_invalid_intervals(rows, roles.lower, roles.time)
    found = _unreadable(rows, roles.time, may_be_missing=False)
    if roles.event is not None:
        found += _unreadable_events(rows, roles)
    time = _times(rows, roles.time).to_numpy()
    found.append(Invalid(np.isinf(time), f"column {roles.time!r} is infinite"))
    if roles.entry is not None:
        found += _unreadable(rows, roles.entry, may_be_missing=True)
        entry = _times(rows, roles.entry).to_numpy()
        found.append(Invalid(entry >= time, f"column {roles.entry!r} is not before {roles.time!r}"))
    if roles.treatment is not None:
        labels = as_text(rows.column(roles.treatment))
        found.append(Invalid(_mask(labels.is_null()), _is_missing(roles.treatment)))
    return found


def _unreadable(rows: Rows, name: str, may_be_missing: bool) -> list[Invalid]:
    column = rows.column(name)
    missing = column.is_null()
    unreadable = None
    if is_string(column):
        missing = trim(column, rows.notation).is_null()
        unreadable = pc.and_not(_times(rows, name).is_null(), missing)
    found = [] if may_be_missing else [Invalid(_mask(missing), _is_missing(name))]
    if unreadable is not None:
        shown = column.filter(unreadable)[:1].to_pylist()
        text = f"column {name!r} holds {', '.join(map(repr, shown))}, which is not a number"
        found.append(Invalid(_mask(unreadable), text))
    return found


def _times(rows: Rows, name: str) -> pa.ChunkedArray:
    """Numbers of a column, null where there is none; an error if there is no number at all.

    Durations are read in days.
    """
    column = rows.column(name)
    if is_string(column):  # in a file that is read piece by piece
        column = _read_written(column, name, rows.notation)
    if pa.types.is_duration(column.type):
        seconds = column.cast(pa.duration("us"), safe=False).cast(pa.int64()).cast(pa.float64())
        return pc.divide(seconds, 1e6 * SECONDS_PER_DAY)
    if not is_string(column):
        try:
            return column.cast(pa.float64())
        except pa.ArrowException:
            raise ValueError(
                f"{rows.path}: column {name!r} is {_describe_type(column)}: it must hold numbers, "
                "such as the days since the start."
            ) from None
    commas = has_commas(rows.table)
    if (numbers := read_plain(column, rows.notation, commas)) is not None:
        return numbers  # of a table whose other rows have been left out
    values = readable(column, rows.notation, commas)
    problem = describe_no_number(column, rows.notation, commas)
    if not problem.startswith("holds") or values.null_count == len(values):
        raise ValueError(f"{rows.path}: column {name!r} {problem}: it must hold numbers.")
    return values


def _read_written(column: pa.ChunkedArray, name: str, notation: Notation) -> pa.ChunkedArray:
    """Durations, or numbers in the notation of the model file; the column itself if it has none."""
    if name in notation.numbers:
        found = read_written(column, notation.numbers[name], notation)
    else:
        found = read_durations(column, notation)
    return column if found is None else found


def read_event_values(rows: Rows, roles: TargetRoles) -> pa.ChunkedArray:
    """Values of the event column; a missing one is "" if that means censored."""
    labels = as_text(rows.column(str(roles.event)))
    return pc.fill_null(labels, "") if roles.censored == "" else labels


def _unreadable_events(rows: Rows, roles: TargetRoles) -> list[Invalid]:
    name = str(roles.event)
    labels = read_event_values(rows, roles)
    can_name_censored = roles.event_value is None and roles.treatment is None
    advice = "; if a missing value means censored, give --censored ''" if can_name_censored else ""
    found = [Invalid(_mask(labels.is_null()), _is_missing(name), advice)]
    reads_causes = roles.censored is not None or bool(roles.causes)
    if roles.event_value is None and not reads_causes and rows.drops:
        values = [value for value in pc.unique(labels).to_pylist() if value is not None]
        words = [value for value in values if isinstance(canonical(value), str)]
        if words and len(words) < len(values):
            unknown = pc.is_in(labels, pa.array(words, pa.string()))
            text = f"column {name!r} holds {words[0]!r}, which is not a whole number"
            found.append(Invalid(_mask(unknown), text))
    return found


def _find_causes(rows: Rows, roles: TargetRoles) -> dict[str, Cause | None] | None:
    """The cause that each value of the event column means; None if there is one kind of event."""
    name = str(roles.event)
    if roles.event_value is not None:
        if roles.censored is not None:
            raise ValueError(
                "--event-value and --censored do not go together: give the value of the one kind "
                "of event, or the value of censored rows, when every other value is a cause."
            )
        return None
    values = sorted(pc.unique(read_event_values(rows, roles)).to_pylist())
    try:
        if roles.causes:
            return match_causes(values, roles.censored, roles.causes)
        if roles.censored is None and not are_codes(values):
            return None
        check_number(values, name)
        meaning = name_causes(values, roles.censored)
        if roles.causes is not None:
            refuse_several(meaning)
    except ValueError as error:
        text = str(error)
        place = "" if text.startswith("column") else f"column {name!r} "
        raise ValueError(f"{rows.path}: {place}{text}") from None
    causes = set(meaning.values()) - {None}
    return meaning if roles.censored is not None or not causes <= {1} else None


def _events(rows: Rows, roles: TargetRoles) -> NDArray[np.bool_]:
    """Whether each row has the one kind of event."""
    path, labels = rows.path, as_text(rows.column(str(roles.event)))
    values = sorted(pc.unique(labels).to_pylist())
    if roles.event_value is not None:
        wanted = canonical(roles.event_value)
        matching = [value for value in values if canonical(value) == wanted]
        if not matching and not roles.may_lack_events:
            raise ValueError(
                f"{path}: column {roles.event!r} never has the value {roles.event_value!r}; it "
                f"has {list_names(values)}."
            )
        return _mask(pc.is_in(labels, pa.array(matching, pa.string())))
    try:
        check_number(values, str(roles.event))
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    if not {canonical(value) for value in values} <= {0.0, 1.0}:
        zero = next((value for value in values if canonical(value) == CENSORED), None)
        or_none = "" if zero is not None else " (--censored 0: no row is censored)"
        raise ValueError(
            f"{path}: column {roles.event!r} has the values {list_names(values)}; say which one "
            f"means an observed event, as in --event-value {shlex.quote(values[-1])}; or, if "
            "several do, which one means censored, as in --censored "
            f"{shlex.quote(zero or values[0])}{or_none}."
        )
    return np.array([canonical(value) == 1.0 for value in labels.to_pylist()])


def _describe(invalid: Invalid, rows: Rows) -> str:
    first = int(np.flatnonzero(invalid.rows)[0])
    n = int(invalid.rows.sum())
    counted = f"in {n} of {count(len(invalid.rows), 'row')} (the first is {rows.place(first)})"
    if rows.numbers is not None:  # other rows have been left out, or are yet to be read
        counted = f"in {count(n, 'row')} (the first is {rows.place(first)})"
    option = "" if rows.drops is None else ", or give --drop-invalid"
    comma = "," if ", " in invalid.problem else ""
    return f"{invalid.problem}{comma} {counted}: leave these rows out{option}{invalid.advice}."


def _is_missing(name: str) -> str:
    return f"column {name!r} is missing"


def _describe_type(column: pa.ChunkedArray) -> str:
    return "dates" if pa.types.is_temporal(column.type) else str(column.type)


def _mask(flags: pa.ChunkedArray) -> NDArray[np.bool_]:
    return flags.to_numpy().astype(bool)
