"""Roles of columns: time, event, entry, weight, groups, treatment and features."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cqrf import CensoredQuantileForest
from cqrf._input.causes import Cause
from cqrf.cli.console import print_message
from cqrf.cli.notation import Notation
from cqrf.cli.tables import as_known, as_text, holds_labels, name_labels, read_whole
from cqrf.cli.target_columns import (
    Rows,
    TargetRoles,
    read_numbers,
    read_target_columns,
    refuse_infinite,
    take_valid,
)

NAMELESS = ("", "__index_level_0__")  # names that pandas gives to row labels without a name


class GivenRoles(NamedTuple):
    """Roles of a table as given on the command line; None: as the model file has them."""

    time: str | None = None
    event: str | None = None
    event_value: str | None = None
    entry: str | None = None
    encoding: str | None = None
    drop_invalid: bool | None = None
    """None: the command has no such option."""
    censored: str | None = None


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
    censoring_time: str | None = None
    treatment: str | None = None
    propensity: str | None = None
    lower: str | None = None
    """Left ends of intervals, whose right ends are in the column ``time``."""
    censored: str | None = None
    causes: tuple[Cause, ...] | None = None
    """Causes of the model that reads the table; None: it is for a model to be fitted."""

    @classmethod
    def from_notes(
        cls, notes: dict[str, str], given: GivenRoles, causes: tuple[Cause, ...] = ()
    ) -> Roles:
        """Roles as the model file has them, unless others are given.

        ``causes``: those of the model; the value of one kind of event is then refused.
        """
        event_value, censored = given.event_value, given.censored
        if causes and event_value is not None:
            raise ValueError(
                f"--event-value {event_value}: the model tells causes apart, so leave it out; "
                "--censored names the value of censored rows."
            )
        if given.event in (None, notes.get("event")):
            if event_value is None and censored is None:
                event_value = notes.get("event_value")
            if censored is None and event_value is None:
                censored = notes.get("censored")
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
            lower=notes.get("lower") if given.time in (None, notes.get("time")) else None,
            may_lack_events=given.event_value is None,
            censored=censored,
            causes=causes,
        )

    def as_notes(self) -> dict[str, str]:
        """Roles that a model file keeps, so that later commands need not repeat them."""
        kept = ("time", "event", "event_value", "entry", "treatment", "lower", "censored")
        return {name: value for name in kept if (value := getattr(self, name)) is not None}

    @property
    def target(self) -> TargetRoles:
        """Roles of the target alone."""
        return TargetRoles(
            self.time,
            self.event,
            self.event_value,
            self.entry,
            self.may_lack_events,
            self.treatment,
            self.lower,
            self.censored,
            self.causes,
        )


class TrainingTable(NamedTuple):
    """A table as ``fit`` takes it."""

    X: pa.Table
    y: NDArray[np.void]
    weight: NDArray[np.float64] | None
    groups: NDArray[Any] | None
    has_nameless: bool
    censoring_time: NDArray[np.float64] | None = None
    numbers: NDArray[np.intp] | None = None
    """Rows of the file that these are; None: all of them."""
    treatment: list[str] | None = None
    """Label of each row's arm."""
    propensity: NDArray[np.float64] | None = None
    n_read: int = 0
    """Rows of the file."""


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
    notation = Notation.from_notes(forest.notes_, given.encoding)
    table = read_whole(path, (*name_labels(names, columns), id_column), notation).table
    roles = Roles.from_notes(forest.notes_, given, forest.causes_).target
    rows, said = take_valid(Rows(table, path, notation, given.drop_invalid), roles)
    if said:
        print_message(said)
    X = as_known(rows.table, names, columns, path, notation)
    refuse_infinite(rows, X)
    ids = None if id_column is None else read_ids(rows, id_column)
    return LabelledTable(X, read_target_columns(rows, roles), ids)


def require_names(forest: CensoredQuantileForest, model: str) -> list[str]:
    """Names of the model's columns; raises an error if it has none."""
    names = getattr(forest, "feature_names_in_", None)
    if names is None:
        raise ValueError(
            f"{model} was fitted to an array without column names; fit it to a frame, or with "
            "cqrf fit."
        )
    return [str(name) for name in names]


def read_ids(rows: Rows, name: str) -> list[str | None]:
    """Labels of the rows from a column."""
    return as_text(rows.column(name)).to_pylist()


def split_table(rows: Rows, roles: Roles) -> TrainingTable:
    """Features, target, weights and groups of a table."""
    named = (roles.time, roles.event, roles.entry, roles.weight, roles.groups)
    others = (roles.censoring_time, roles.treatment, roles.propensity, roles.lower)
    taken = [name for name in (*named, *others) if name]
    for name in (*taken, *roles.ignore, *roles.categories):
        rows.column(name)
    left_out = (*taken, *roles.ignore, *NAMELESS)
    features = [name for name in rows.table.column_names if name not in left_out]
    if not features:
        raise ValueError(f"{rows.path} has no column left for features.")
    n_read = rows.table.num_rows
    rows, said = take_valid(rows, roles.target)
    if said:
        print_message(said)
    table = rows.table
    X = table.select(features)
    for at, name in enumerate(features):
        if name in roles.categories or holds_labels(table.column(name)):
            X = X.set_column(at, name, as_text(table.column(name)))
    refuse_infinite(rows, X)
    known, arm = roles.censoring_time, roles.treatment
    propensity = roles.propensity
    return TrainingTable(
        X=X,
        y=read_target_columns(rows, roles.target),
        weight=None if roles.weight is None else read_numbers(rows, roles.weight),
        groups=None if roles.groups is None else as_text(table.column(roles.groups)).to_numpy(),
        has_nameless=any(name in NAMELESS for name in table.column_names),
        censoring_time=None if known is None else read_numbers(rows, known),
        numbers=rows.numbers,
        treatment=None if arm is None else as_text(table.column(arm)).to_pylist(),
        propensity=None if propensity is None else read_numbers(rows, propensity),
        n_read=n_read,
    )
