"""Roles of columns: which is the time, which says that the event was seen, which are features."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cqrf._input.target import censored
from cqrf.cli.tables import (
    as_text,
    has_commas,
    holds_labels,
    is_string,
    name_some,
    say_no_number,
)

# Roles that a model file keeps, so that later commands need not be told again.
KEPT = ("time", "event", "event_value", "entry")
MOST_STATUSES = 20  # different values of a column that says what became of a row
NAMELESS = ("", "__index_level_0__")  # what pandas writes before row labels without a name


class Roles(NamedTuple):
    """Names of the columns that are no features, and of features that are categories."""

    time: str
    event: str | None = None
    event_value: str | None = None
    entry: str | None = None
    weight: str | None = None
    groups: str | None = None
    ignore: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    may_lack_events: bool = False
    """Whether no row need have the event's value, which is known to be right."""

    @classmethod
    def from_notes(cls, notes: dict[str, str], **given: str | None) -> Roles:
        """Roles as a model was fitted with, unless others are given."""
        kept = dict(notes)
        if given.get("event") not in (None, notes.get("event")):
            kept.pop("event_value", None)  # is one of the other column
        time, event, event_value, entry = (given.get(name) or kept.get(name) for name in KEPT)
        if not time:
            raise ValueError(
                "the model does not tell which column is the time: say --time, and --event."
            )
        is_known = given.get("event_value") is None
        return cls(time, event, event_value, entry, may_lack_events=is_known)

    def as_notes(self) -> dict[str, str]:
        """What a model file keeps of them."""
        return {name: value for name in KEPT if (value := getattr(self, name))}


class Learning(NamedTuple):
    """A table as ``fit`` takes it."""

    X: pa.Table
    y: NDArray[np.void]
    weight: NDArray[np.float64] | None
    groups: NDArray[Any] | None
    has_nameless: bool


def split_table(table: pa.Table, roles: Roles, path: str) -> Learning:
    """Features, target, weights and groups of a table."""
    taken = [roles.time, roles.event, roles.entry, roles.weight, roles.groups]
    named = [*filter(None, taken), *roles.ignore, *roles.categories]
    for name in named:
        if name not in table.column_names:
            raise ValueError(
                f"{path} has no column {name!r}; it has {name_some(table.column_names)}."
            )
    others = (*filter(None, taken), *roles.ignore, *NAMELESS)
    features = [name for name in table.column_names if name not in others]
    if not features:
        raise ValueError(f"{path} has no column left to predict from.")
    X = table.select(features)
    for at, name in enumerate(features):
        if name in roles.categories or holds_labels(table.column(name)):
            X = X.set_column(at, name, as_text(table.column(name)))
    weight = None if roles.weight is None else _numbers(table, roles.weight, path)
    groups = None if roles.groups is None else as_text(table.column(roles.groups)).to_numpy()
    has_nameless = any(name in NAMELESS for name in table.column_names)
    return Learning(X, read_target_columns(table, roles, path), weight, groups, has_nameless)


def read_target_columns(table: pa.Table, roles: Roles, path: str) -> NDArray[np.void]:
    """The target; every row must have its time and status."""
    time = _numbers(table, roles.time, path)
    event = np.ones(len(time), bool) if roles.event is None else _events(table, roles, path)
    entry = None
    if roles.entry is not None:
        entry = _numbers(table, roles.entry, path, may_be_missing=True)
    return censored(time, event, entry)


def _events(table: pa.Table, roles: Roles, path: str) -> NDArray[np.bool_]:
    labels = as_text(_column(table, str(roles.event), path))
    _refuse_missing(labels, str(roles.event), path)
    values = sorted(pc.unique(labels).to_pylist())
    if roles.event_value is not None:
        wanted = _canonical(roles.event_value)
        matching = [value for value in values if _canonical(value) == wanted]
        if not matching and not roles.may_lack_events:
            raise ValueError(
                f"{path}: column {roles.event!r} never has the value {roles.event_value!r}; it "
                f"has {name_some(values)}."
            )
        return pc.is_in(labels, pa.array(matching, pa.string())).to_numpy().astype(bool)
    if len(values) > MOST_STATUSES and roles.event_value is None:
        raise ValueError(
            f"{path}: column {roles.event!r} has {len(values)} different values, such as "
            f"{name_some(values[:3])}: it does not look like a status."
        )
    if not {_canonical(value) for value in values} <= {0.0, 1.0}:
        raise ValueError(
            f"{path}: column {roles.event!r} has the values {name_some(values)}; say which one "
            f"means that the event was seen, as in --event-value {values[-1]}."
        )
    return np.array([_canonical(value) == 1.0 for value in labels.to_pylist()])


def _canonical(value: str) -> float | str:
    """A label by which 2, 2.0 and '2' are one, and true is 1."""
    text = value.strip()
    try:
        return float({"true": "1", "false": "0"}.get(text.lower(), text))
    except ValueError:
        return text


def _numbers(
    table: pa.Table, name: str, path: str, *, may_be_missing: bool = False
) -> NDArray[np.float64]:
    column = _column(table, name, path)
    if not may_be_missing:
        _refuse_missing(column, name, path)
    try:
        return column.cast(pa.float64()).to_numpy()
    except pa.ArrowException:
        said = f"is {column.type}"
        if is_string(column):
            said = say_no_number(column, has_commas(table))
        raise ValueError(f"{path}: column {name!r} {said}: it must hold numbers.") from None


def _column(table: pa.Table, name: str, path: str) -> pa.ChunkedArray:
    if name not in table.column_names:
        raise ValueError(f"{path} has no column {name!r}; it has {name_some(table.column_names)}.")
    return table.column(name)


def _refuse_missing(column: pa.ChunkedArray, name: str, path: str) -> None:
    if column.null_count:
        first = pc.index(column.is_null(), True).as_py()
        raise ValueError(
            f"{path}: column {name!r} is missing in {column.null_count} of {len(column)} rows "
            f"(the first is row {first + 1}): leave these rows out."
        )
