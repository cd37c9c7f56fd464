"""Rows of a table: subjects start from them, and training rows are listed as neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from numpy.typing import NDArray

from cqrf._input.features import feature_names, read_features
from cqrf._input.frames import as_frame, columns_of
from cqrf._input.target import Target, read_target
from cqrf._model.fitted import Model
from cqrf._model.queries import encode_all
from cqrf._views.causes import cause_of
from cqrf._views.intervals import find_left_ends, left_end_of
from cqrf._views.training_table import is_training_table
from cqrf.effects import CensoredTreatmentForest
from cqrf.estimator import CensoredQuantileForest
from cqrf.serve.values import (
    Column,
    Problem,
    RequestError,
    UnseenLevelError,
    Value,
    note_unseen,
    read_value,
    shorten,
    write_value,
)

MAX_FOUND = 50
AnyForest = CensoredQuantileForest | CensoredTreatmentForest
MAX_WRITTEN = 1000  # rows whose values are kept as JSON has them


class UnseenLevel(NamedTuple):
    """A level of a row that training did not have."""

    column: str
    error: UnseenLevelError


@dataclass(frozen=True, eq=False)
class DataRows:
    """Rows of a table.

    Attributes
    ----------
    matrix : ndarray of shape (n, n_features)
        The rows as the forest reads them.
    labels : list of str
        A label for each row.
    source : str
        Where they came from.
    training : Target or None
        Times and events, if these are the training rows.
    id_column : str or None
        Column that the labels come from; None if they are row numbers.
    unseen : dict of int to list of UnseenLevel
        Levels that training did not have, by the rows that have them.
    left_ends : list of float or None, or None
        Those of ``training``, with interval censoring.
    written : dict of int to dict
        What :func:`row_values` returned: the same rows are neighbours again and again.
    """

    matrix: NDArray[Any]
    labels: list[str]
    source: str
    training: Target | None
    id_column: str | None = None
    unseen: dict[int, list[UnseenLevel]] = field(default_factory=dict)
    left_ends: list[float | None] | None = None
    written: dict[int, dict[str, Value]] = field(default_factory=dict)


def rows_model(forest: AnyForest) -> Model:
    """The model that has all training rows of a forest."""
    if isinstance(forest, CensoredTreatmentForest):
        return forest.model_.effect
    return forest.model_


def read_data_rows(
    forest: AnyForest,
    X: Any,
    y: Any,
    labels: Sequence[str],
    source: str,
    id_column: str | None = None,
) -> DataRows:
    """Rows of a table; y is None if times and events are not known."""
    model = rows_model(forest)
    matrix, _ = read_features(forest, X, model.columns)
    training = None
    if y is not None:
        target = read_target(y)
        if is_training_table(model, target, encode_all(model, matrix)):
            training = target
    unseen = find_unseen_levels(forest, X)
    ends = None if training is None else find_left_ends(training)
    return DataRows(matrix, list(labels), source, training, id_column, unseen, ends)


def find_unseen_levels(forest: AnyForest, X: Any) -> dict[int, list[UnseenLevel]]:
    """Levels that training did not have, by the rows of X that have them."""
    frame, unseen = as_frame(X), dict[int, list[UnseenLevel]]()
    if frame is None:
        return unseen
    columns = rows_model(forest).columns
    known = zip(feature_names(forest), columns.kinds, columns.levels, strict=True)
    for read, (name, kind, levels) in zip(columns_of(frame), known, strict=True):
        if levels is None:
            continue
        column, codes = Column(name, kind, levels), {label: i for i, label in enumerate(levels)}
        for row, label in enumerate(read.list_labels()):
            try:
                read_value(label, column, codes)
            except UnseenLevelError as error:
                unseen.setdefault(row, []).append(UnseenLevel(name, error))
    return unseen


def row_values(data: DataRows, row: int, columns: Sequence[Column]) -> dict[str, Value]:
    """Values of a row by column name, as JSON has them; ``columns`` are those of the model."""
    found = data.written.get(row)
    if found is None:
        values = data.matrix[row].tolist()
        found = {
            column.name: write_value(float(value), column)
            for column, value in zip(columns, values, strict=True)
        }
        if len(data.written) >= MAX_WRITTEN:
            data.written.clear()
        data.written[row] = found
    return found


def find_row(
    data: DataRows | None, number: int, columns: Sequence[Column], *, strict: bool = False
) -> dict[str, Any]:
    """A row of the table, by its number from 1.

    A level that training did not have is missing, with a note; an error if ``strict``.
    """
    data = require_data(data)
    if not 1 <= number <= len(data.labels):
        raise RequestError(
            Problem(f"there is no row {number}: rows go from 1 to {len(data.labels):,}.", "row"),
            status=404,
        )
    row, target = number - 1, data.training
    unseen = data.unseen.get(row, [])
    if strict and unseen:
        where = f"row {number}, column"
        raise RequestError(
            *(
                Problem(f"{where} {shorten(name)!r} {error}.", "row", None, name)
                for name, error in unseen
            )
        )
    return {
        "row": number,
        "label": data.labels[row],
        "values": row_values(data, row, columns),
        "time": None if target is None else float(target.time[row]),
        "event": None if target is None else bool(target.event[row]),
        **left_end_of(data.left_ends, row),
        **({} if target is None else cause_of(target, row)),
        "notes": [note_unseen(name, error) for name, error in unseen],
    }


def search_rows(data: DataRows | None, text: str) -> dict[str, Any]:
    """Rows whose label equals the text, then those that start with it, then those that have it."""
    data = require_data(data)
    wanted = text.strip().casefold()
    found: dict[str, list[dict[str, Any]]] = {"equals": [], "starts": [], "contains": []}
    for number, label in enumerate(data.labels, start=1):
        folded = label.strip().casefold()
        place = folded.find(wanted)
        if place < 0:
            continue
        match = "equals" if folded == wanted else "contains" if place else "starts"
        if len(found[match]) < MAX_FOUND:
            found[match].append({"row": number, "label": label})
    rows = [*found["equals"], *found["starts"], *found["contains"]]
    return {"rows": rows[:MAX_FOUND], "total": len(data.labels)}


def require_data(data: DataRows | None) -> DataRows:
    """The table, or an error if the server has none."""
    if data is None:
        message = "the server has no table: start it with --data."
        raise RequestError(Problem(message), status=404)
    return data
