"""Facts: what the model is, and the rows of the table beside it."""

from __future__ import annotations

from typing import Any

import cqrf
from cqrf._model.settings import plain_settings
from cqrf.serve.answers import CONFIDENCE, show_row
from cqrf.serve.columns import Column
from cqrf.serve.schema import Limits
from cqrf.serve.served import Served
from cqrf.serve.values import Problem, RefusedError

MOST_FOUND = 50


def describe_model(served: Served, limits: Limits) -> dict[str, Any]:
    """Columns, ranges, settings and limits."""
    forest, model = served.forest, served.model
    train = model.training_target
    data = served.data
    settings = plain_settings(forest)
    return {
        "name": served.name,
        "version": cqrf.__version__,
        "fingerprint": served.fingerprint,
        "columns": [show_column(column) for column in served.columns],
        "rows": len(train.time),
        "events": int(train.event.sum()),
        "first_time": float(train.time.min()),
        "last_time": float(train.time.max()),
        "trees": len(model.forest.roots),
        "censoring": model.censoring,
        "settings": settings,
        "notes": dict(getattr(forest, "notes_", {})),
        "confidence": say_confidence(served, CONFIDENCE),
        "limits": limits.model_dump(),
        "data": None
        if data is None
        else {
            "source": data.source,
            "rows": len(data.labels),
            "training": data.training is not None,
        },
    }


def show_column(column: Column) -> dict[str, Any]:
    """A column as JSON has it."""
    choices = column.choices
    return {
        "name": column.kind.name,
        "kind": column.kind.kind,
        "importance": column.importance,
        "missing": column.missing,
        "low": column.low,
        "high": column.high,
        "step": column.step,
        "quantiles": [mark._asdict() for mark in column.marks],
        "choices": None if choices is None else [choice._asdict() for choice in choices],
        "typical": column.typical,
        "exact": column.is_exact,
    }


def say_confidence(served: Served, level: float | None) -> dict[str, Any]:
    """Level of confidence intervals, and why there are none."""
    return {"level": level, "reason": None if level is None else served.no_errors}


def find_row(served: Served, row: int) -> dict[str, Any]:
    """A row of the table, by its number from 1."""
    data = require_data(served)
    if not 1 <= row <= len(data.labels):
        raise RefusedError(
            Problem(f"there is no row {row}: rows go from 1 to {len(data.labels):,}.", "row"),
            status=404,
        )
    target = data.training
    return {
        "row": row,
        "label": data.labels[row - 1],
        "values": show_row(served, row - 1),
        "time": None if target is None else float(target.time[row - 1]),
        "event": None if target is None else bool(target.event[row - 1]),
    }


def search_rows(served: Served, text: str) -> dict[str, Any]:
    """Rows with this label, then the first whose label begins with it, then that contain it."""
    data = require_data(served)
    wanted = text.strip().casefold()
    found: dict[str, list[dict[str, Any]]] = {"is": [], "begins": [], "contains": []}
    for number, label in enumerate(data.labels, start=1):
        folded = label.strip().casefold()
        place = folded.find(wanted)
        if place < 0:
            continue
        how = "is" if folded == wanted else "contains" if place else "begins"
        if len(found[how]) < MOST_FOUND:
            found[how].append({"row": number, "label": label})
    rows = [*found["is"], *found["begins"], *found["contains"]]
    return {"rows": rows[:MOST_FOUND], "total": len(data.labels)}


def require_data(served: Served) -> Any:
    """The table, or a refusal if there is none."""
    if served.data is None:
        message = "no rows are served: start the server with --data to have some."
        raise RefusedError(Problem(message), status=404)
    return served.data
