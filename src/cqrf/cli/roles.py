"""Roles of columns: time, event, entry, weight, groups and features."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cqrf import CensoredQuantileForest
from cqrf._input.target import censored
from cqrf.cli.tables import (
    as_known,
    as_text,
    describe_no_number,
    has_commas,
    holds_labels,
    is_string,
    list_names,
    name_labels,
    read_whole,
)

MAX_STATUSES = 20  # distinct values of an event column
NAMELESS = ("", "__index_level_0__")  # names that pandas gives to row labels without a name


class GivenRoles(NamedTuple):
    """Roles as given on the command line; None: as the model file has them."""

    time: str | None = None
    event: str | None = None
    event_value: str | None = None
    entry: str | None = None


class Roles(NamedTuple):
    """Names of the columns that are not features, and of features that are categories."""

    time: str
    event: str | None = None
    event_value: str | None = None
    entry: str | None = None
    weight: str | None = None
    groups: str | None = None
    ignore: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    may_lack_events: bool = False
    """Whether a table without any event is allowed: the event's value is from the model file."""

    @classmethod
    def from_notes(cls, notes: dict[str, str], given: GivenRoles) -> Roles:
        """Roles as the model file has them, unless others are given."""
        event_value = given.event_value
        if event_value is None and given.event in (None, notes.get("event")):
            event_value = notes.get("event_value")
        time = given.time or notes.get("time")
        if not time:
            raise ValueError(
                "the model file does not name the column of the time: give --time, and --event."
            )
        return cls(
            time=time,
            event=given.event or notes.get("event"),
            event_value=event_value,
            entry=given.entry or notes.get("entry"),
            may_lack_events=given.event_value is None,
        )

    def as_notes(self) -> dict[str, str]:
        """Roles that a model file keeps, so that later commands need not repeat them."""
        return {name: value for name in GivenRoles._fields if (value := getattr(self, name))}


class TrainingTable(NamedTuple):
    """A table as ``fit`` takes it."""

    X: pa.Table
    y: NDArray[np.void]
    weight: NDArray[np.float64] | None
    groups: NDArray[Any] | None
    has_nameless: bool


class LabelledTable(NamedTuple):
    """Features that a model needs, the target, and ids if an id column was given."""

    X: pa.Table
    y: NDArray[np.void]
    ids: list[str | None] | None


def read_labelled_table(
    forest: CensoredQuantileForest,
    model: str,
    path: str,
    given: GivenRoles,
    id_column: str | None = None,
) -> LabelledTable:
    """Read the features, the target and the ids of a file, as a model needs them."""
    names, columns = require_names(forest, model), forest.model_.columns
    table = read_whole(path, (*name_labels(names, columns), id_column))
    X = as_known(table, names, columns, path)
    ids = None if id_column is None else read_ids(table, id_column, path)
    roles = Roles.from_notes(forest.notes_, given)
    return LabelledTable(X, read_target_columns(table, roles, path), ids)


def require_names(forest: CensoredQuantileForest, model: str) -> list[str]:
    """Names of the model's columns; raises an error if it has none."""
    names = getattr(forest, "feature_names_in_", None)
    if names is None:
        raise ValueError(
            f"{model} was fitted to an array without column names; fit it to a frame, or with "
            "cqrf fit."
        )
    return [str(name) for name in names]


def read_ids(table: pa.Table, name: str, path: str) -> list[str | None]:
    """Labels of the rows from a column."""
    return as_text(_column(table, name, path)).to_pylist()


def split_table(table: pa.Table, roles: Roles, path: str) -> TrainingTable:
    """Features, target, weights and groups of a table."""
    taken = [roles.time, roles.event, roles.entry, roles.weight, roles.groups]
    named = [*filter(None, taken), *roles.ignore, *roles.categories]
    for name in named:
        _column(table, name, path)
    others = (*filter(None, taken), *roles.ignore, *NAMELESS)
    features = [name for name in table.column_names if name not in others]
    if not features:
        raise ValueError(f"{path} has no column left for features.")
    X = table.select(features)
    for at, name in enumerate(features):
        if name in roles.categories or holds_labels(table.column(name)):
            X = X.set_column(at, name, as_text(table.column(name)))
    weight = None if roles.weight is None else _numbers(table, roles.weight, path)
    groups = None if roles.groups is None else as_text(table.column(roles.groups)).to_numpy()
    has_nameless = any(name in NAMELESS for name in table.column_names)
    return TrainingTable(X, read_target_columns(table, roles, path), weight, groups, has_nameless)


def read_target_columns(table: pa.Table, roles: Roles, path: str) -> NDArray[np.void]:
    """The target; every row must have a time and a status."""
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
                f"has {list_names(values)}."
            )
        return pc.is_in(labels, pa.array(matching, pa.string())).to_numpy().astype(bool)
    if len(values) > MAX_STATUSES and roles.event_value is None:
        raise ValueError(
            f"{path}: column {roles.event!r} has {len(values)} different values, such as "
            f"{list_names(values[:3])}: it does not look like a status."
        )
    if not {_canonical(value) for value in values} <= {0.0, 1.0}:
        raise ValueError(
            f"{path}: column {roles.event!r} has the values {list_names(values)}; say which one "
            f"means an observed event, as in --event-value {values[-1]}."
        )
    return np.array([_canonical(value) == 1.0 for value in labels.to_pylist()])


def _canonical(value: str) -> float | str:
    """A key under which 2, 2.0 and '2' are equal, and true is 1."""
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
        problem = f"is {column.type}"
        if is_string(column):
            problem = describe_no_number(column, has_commas(table))
        raise ValueError(f"{path}: column {name!r} {problem}: it must hold numbers.") from None


def _column(table: pa.Table, name: str, path: str) -> pa.ChunkedArray:
    if name not in table.column_names:
        raise ValueError(f"{path} has no column {name!r}; it has {list_names(table.column_names)}.")
    return table.column(name)


def _refuse_missing(column: pa.ChunkedArray, name: str, path: str) -> None:
    if column.null_count:
        first = pc.index(column.is_null(), True).as_py()
        raise ValueError(
            f"{path}: column {name!r} is missing in {column.null_count} of {len(column)} rows "
            f"(the first is row {first + 1}): leave these rows out."
        )
