"""Description of the model for ``/model``: columns, training rows, settings, limits."""

from __future__ import annotations

from typing import Any

import cqrf
from cqrf._model.settings import plain_settings
from cqrf._views.causes import count_causes
from cqrf.serve.columns import ColumnSummary
from cqrf.serve.data_rows import DataRows
from cqrf.serve.model_view import ModelView
from cqrf.serve.predictions import CONFIDENCE
from cqrf.serve.schema import Limits


def describe_model(view: ModelView, limits: Limits) -> dict[str, Any]:
    """Columns, training rows, settings and limits."""
    forest, model = view.forest, view.model
    train = model.training_target
    return {
        "name": view.name,
        "version": cqrf.__version__,
        "fingerprint": view.fingerprint,
        "columns": [describe_column(summary) for summary in view.summaries],
        "rows": len(train.time),
        "events": int(train.event.sum()),
        "causes": count_causes(train),
        "first_time": float(view.round(train.time.min())),
        "last_time": float(view.round(train.time.max())),
        "trees": len(model.forest.roots),
        "censoring": model.censoring,
        "time_unit": getattr(forest, "time_unit", None),
        "event_name": getattr(forest, "event_name", None),
        "settings": plain_settings(forest),
        "notes": dict(getattr(forest, "notes_", {})),
        "confidence": describe_confidence(view, CONFIDENCE),
        "limits": limits.model_dump(),
        "data": describe_data(view.data),
    }


def describe_column(summary: ColumnSummary) -> dict[str, Any]:
    """A column as JSON has it."""
    choices = summary.choices
    return {
        "name": summary.column.name,
        "kind": summary.column.kind,
        "importance": summary.importance,
        "missing": summary.missing,
        "low": summary.low,
        "high": summary.high,
        "step": summary.step,
        "quantiles": [quantile._asdict() for quantile in summary.quantiles],
        "choices": None if choices is None else [choice._asdict() for choice in choices],
        "typical": summary.typical,
        "exact": summary.is_exact,
    }


def describe_data(data: DataRows | None) -> dict[str, Any] | None:
    """The table whose rows can be chosen, if there is one."""
    if data is None:
        return None
    return {
        "source": data.source,
        "rows": len(data.labels),
        "training": data.training is not None,
        "id": data.id_column,
    }


def describe_confidence(
    view: ModelView, level: float | None, *, is_given: bool = False
) -> dict[str, Any]:
    """Level of the confidence intervals, and why there are none."""
    return {"level": level, "reason": None if level is None else view.why_no_errors(is_given)}
