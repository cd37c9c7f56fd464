"""``cqrf predict``: predictions for the rows of a file of any length, piece by piece."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cqrf import UnidentifiedQuantileWarning
from cqrf._input.features import UnseenLevelWarning
from cqrf._model.fitted import Model
from cqrf._survival.curve_views import describe_range
from cqrf.cli.console import count, print_message
from cqrf.cli.models import LoadedModel, load_model
from cqrf.cli.notation import Notation
from cqrf.cli.outputs import (
    Outputs,
    Predicted,
    check_model,
    predict_bounds,
    predict_columns,
    resolve,
)
from cqrf.cli.roles import require_names
from cqrf.cli.tables import JSON_LINES, as_known, as_text, read_pieces, suffix_of
from cqrf.cli.target_columns import Rows, read_numbers, refuse_infinite
from cqrf.cli.text_files import list_names
from cqrf.cli.writers import open_writer

SHOWN_AS = {"inf": "shown as inf", "nan": "left empty", "clip": "clipped to the last neighbour"}


class PredictTask(NamedTuple):
    """Model and table, what to predict, and where to write it.

    ``given`` is a number or the name of a column: the time that rows have already survived.
    """

    model: str
    path: str
    out: Path | None
    outputs: Outputs
    given: str | None = None
    ids: Sequence[str] = ()
    encoding: str | None = None
    n_jobs: int = -1


@dataclass
class Notes:
    """What is said after the last row: counts over all pieces."""

    n_rows: int = 0
    n_unidentified: int = 0
    n_unknown: int = 0
    n_survived: int = 0
    n_without_mean: int = 0
    known: list[NDArray[np.float64]] = field(default_factory=list)
    """Ranges of times at which curves are known, where some value is not."""
    unseen: dict[str, set[str]] = field(default_factory=dict)
    warned: dict[str, None] = field(default_factory=dict)

    def add(self, predicted: Predicted, n_rows: int) -> None:
        """Count what a piece had."""
        self.n_rows += n_rows
        self.n_unidentified += predicted.n_unidentified
        self.n_unknown += predicted.n_unknown
        self.n_survived += predicted.n_survived
        self.n_without_mean += predicted.n_without_mean
        known = np.where(np.isfinite(predicted.known), predicted.known, np.nan)
        known = known[:, ~np.isnan(known).all(axis=0)] if len(known) else known[:, :0]
        if known.size:
            self.known.append(np.array([np.nanmin(known), np.nanmax(known)]))

    def add_warnings(self, caught: list[warnings.WarningMessage]) -> None:
        """Keep unseen levels by column, and each other warning once."""
        for warning in caught:
            message = warning.message
            if isinstance(message, UnseenLevelWarning):
                for name, levels in message.levels.items():
                    self.unseen.setdefault(name, set()).update(levels)
            elif not isinstance(message, UnidentifiedQuantileWarning):
                self.warned[str(message)] = None

    def list_messages(self, outputs: Outputs, censoring: str) -> list[str]:
        """One line for each kind of note."""
        lines = list(self.warned)
        if self.unseen:
            lines.append(str(UnseenLevelWarning(self.unseen)))
        if self.n_unidentified:
            are = "is" if self.n_unidentified == 1 else "are"
            why = "not identifiable because of censoring"
            if outputs.cause is not None:
                why = f"never reached by the incidence of cause {outputs.cause}, as far as known"
            lines.append(
                f"{count(self.n_unidentified, 'prediction')} {are} {why} "
                f"({SHOWN_AS[outputs.unidentified]}); --max-quantile gives the largest "
                f"{'identifiable ' if outputs.cause is None else ''}level of each row"
            )
        if self.n_survived:
            have = "has" if self.n_survived == 1 else "have"
            lines.append(
                f"{count(self.n_survived, 'row')} {have} survived longer than the training rows "
                "tell: what is not known of the time that remains is left empty"
            )
        if self.n_unknown:
            lines.append(self._describe_unknown(outputs, censoring))
        return [f"Note    {line}" for line in lines]

    def _describe_unknown(self, outputs: Outputs, censoring: str) -> str:
        lie = "lies" if self.n_unknown == 1 else "lie"
        side = "from" if censoring == "left" else "up to"
        reach = ""
        if self.known:
            reach = f", which for these rows are known {side} {describe_range(self.known)}"
        mean = "the mean" if outputs.cause is None else "the time lost"
        asked = {
            "survival": outputs.survival,
            "incidence": outputs.incidence,
            mean: outputs.mean,
        }
        what = " and ".join(name for name, is_asked in asked.items() if is_asked)
        return (
            f"{count(self.n_unknown, 'prediction')} of {what} {lie} beyond the end of the "
            f"survival curves{reach}: left empty; --beyond extend draws the curves on as flat "
            "lines, which is not an estimate"
        )


def predict_file(task: PredictTask) -> None:
    """Write the predictions for each row of a file, in its order."""
    loaded = load_model(task.model, task.n_jobs)
    forest = loaded.forest
    outputs = resolve(task.outputs, loaded, task.model)
    outputs.check()
    check_model(loaded, outputs, task.model, task.given)
    notes = Notes()
    names = require_names(forest, task.model)
    notation = Notation.from_notes(forest.notes_, task.encoding)
    with open_writer(task.out) as write, closing(read_pieces(task.path, notation)) as pieces:
        for piece in pieces:
            kept = _read_ids(piece, task.ids, task.path)
            X = as_known(piece, names, forest.model_.columns, task.path, notation)
            if X.num_rows == 0:
                continue
            numbers = np.arange(notes.n_rows, notes.n_rows + X.num_rows)
            rows = Rows(piece, task.path, notation, numbers=numbers)
            refuse_infinite(rows, X)
            given = None if task.given is None else _read_given(rows, task.given)
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                predicted = _predict(loaded, X, outputs, given)
            notes.add(predicted, X.num_rows)
            notes.add_warnings(caught)
            write(_join_columns(kept, predicted.columns))
        if notes.n_rows == 0:
            raise ValueError(f"{task.path} has no rows.")
    for line in notes.list_messages(outputs, forest.model_.censoring):
        print_message(line)
    if outputs.mean and outputs.horizon is None:
        what = "the mean" if outputs.cause is None else "the time lost"
        print_message(_describe_horizon(forest.model_, task.given, notes.n_without_mean, what))
    if task.out is not None:
        print_message(f"Wrote   {task.out}: {count(notes.n_rows, 'row')}")


def _describe_horizon(model: Model, given: str | None, n_without: int, what: str) -> str:
    """Up to which time the mean, or the time lost, counts if none is given."""
    which = "last" if model.censoring == "right" else "first"
    counts = "up to" if model.censoring == "right" else "down to"
    less = "" if given is None else ", less the time survived"
    empty = ""
    if n_without:
        have = "that has" if n_without == 1 else "that have"
        empty = f" and is left empty for {count(n_without, 'row')} {have} survived longer"
    return (
        f"Note    {what} counts {counts} {model.follow_up:g}{less}{empty} (the {which} time at "
        "which a tenth of the training rows is at risk); --horizon sets another end"
    )


def _predict(loaded: LoadedModel, X: pa.Table, outputs: Outputs, given: Any) -> Predicted:
    """Predictions of the forest, then the bounds of a conformal model."""
    if loaded.conformal is None:
        return predict_columns(loaded.forest, X, outputs, given)
    predicted = predict_columns(loaded.forest, X, outputs._replace(interval=None), given)
    bounds = predict_bounds(loaded.conformal, X, outputs)
    return predicted._replace(columns={**predicted.columns, **bounds})


def _read_given(rows: Rows, given: str) -> NDArray[np.float64] | float:
    """Times already survived: one for all rows, or a column."""
    try:
        return float(given)
    except ValueError:
        return read_numbers(rows, given)


def _join_columns(ids: dict[str, pa.ChunkedArray], predicted: dict[str, Any]) -> pa.Table:
    columns = dict(ids)
    for name, values in predicted.items():
        if name in columns:
            raise ValueError(f"--id {name}: a prediction has that name, so rename the column.")
        columns[name] = pa.array(values, from_pandas=True)
    return pa.table(columns)


def _read_ids(piece: pa.Table, ids: Sequence[str], path: str) -> dict[str, pa.ChunkedArray]:
    """Columns to copy; of JSON lines as text, as their type may change from piece to piece."""
    for name in ids:
        if name not in piece.column_names:
            raise ValueError(
                f"{path} has no column {name!r} to keep; it has {list_names(piece.column_names)}."
            )
    is_json = suffix_of(path) in JSON_LINES
    columns = {name: piece.column(name) for name in ids}
    return {name: as_text(column) if is_json else column for name, column in columns.items()}
