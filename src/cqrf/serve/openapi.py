"""The OpenAPI document, with the columns of the model."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from cqrf._input.columns import CATEGORY, DATE, DURATION
from cqrf.serve.columns import ColumnSummary
from cqrf.serve.effect_view import EffectView
from cqrf.serve.model_view import ModelView
from cqrf.serve.schema import Limits
from cqrf.serve.values import MAX_DAYS, MAX_NUMBER

DESCRIPTION = """Quantiles, intervals and survival probabilities of censored times.

No response holds NaN or infinity. A time that is not identifiable because of censoring is
`{"value": null, "bound": 4500.0, "reason": "after_bound"}`: it is only known to come after the
bound (before it, under left censoring). Nor is anything made up beyond the end of a survival curve:
`{"time": 7300.0, "probability": null, "bound": 4500.0, "reason": "after_bound"}` means that no
training row like this one was followed for longer than the bound. The confidence interval is null
there, and so is a restricted mean with a horizon beyond the bound. Every error response has
the form
`{"error": "...", "problems": [{"message": "...", "field": "...", "row": 0, "column": "..."}]}`.
"""


def write_document(
    app: FastAPI, view: ModelView, limits: Limits, *, strict: bool
) -> dict[str, Any]:
    """The OpenAPI document of the app."""
    document = start_document(app, view.name, DESCRIPTION)
    schemas = document["components"]["schemas"]
    typical = {summary.column.name: summary.typical for summary in view.summaries}
    schemas["Row"] = row_schema(view, "A value for each column; null where it is missing.", strict)
    schemas["SubjectRow"] = row_schema(view, "A row of known levels.", strict=True)
    row = {"$ref": "#/components/schemas/Row"}
    schemas["PredictRequest"]["properties"]["rows"] |= {"items": row, "maxItems": limits.rows}
    schemas["PredictRequest"]["example"] = {
        "rows": [typical],
        "quantiles": [0.1, 0.5],
        "intervals": [0.8],
    }
    schemas["SubjectsRequest"]["properties"]["subjects"]["items"] = {
        "$ref": "#/components/schemas/SubjectRow"
    }
    schemas["SubjectsRequest"]["example"] = {"subjects": [typical]}
    schemas["Time"]["examples"] = [
        {"value": 1200.0, "bound": None, "reason": None},
        {"value": None, "bound": 4500.0, "reason": "after_bound"},
    ]
    schemas["CauseQuantile"]["examples"] = [
        {"level": 0.1, "value": 1200.0, "bound": None, "reason": None},
        {"level": 0.5, "value": None, "bound": 4500.0, "reason": "after_bound"},
        {"level": 0.9, "value": None, "bound": None, "reason": "never"},
    ]
    return document


def start_document(app: FastAPI, name: str, description: str) -> dict[str, Any]:
    """The document of the app's routes and types, without FastAPI's own errors."""
    document = get_openapi(
        title="cqrf",
        version=app.version,
        description=description,
        routes=app.routes,
        summary=name,
    )
    for unused in ("HTTPValidationError", "ValidationError"):
        document["components"]["schemas"].pop(unused, None)
    return document


def row_schema(view: ModelView | EffectView, description: str, strict: bool) -> dict[str, Any]:
    """Schema of a row."""
    return {
        "type": "object",
        "title": "Row",
        "description": description,
        "properties": {each.column.name: value_schema(each, strict) for each in view.summaries},
        "required": [column.name for column in view.columns],
        "additionalProperties": False,
        "example": {summary.column.name: summary.typical for summary in view.summaries},
    }


def value_schema(summary: ColumnSummary, strict: bool) -> dict[str, Any]:
    """Schema of a value of a column; if ``strict``, a category has its known levels only."""
    column = summary.column
    if column.kind == CATEGORY and strict:
        return {"enum": [*(column.levels or ()), None]}
    if column.kind == CATEGORY:
        return {
            "type": ["string", "null"],
            "examples": list(column.levels or ()),
            "description": "A level that training did not have is treated as missing.",
        }
    if column.kind == DATE:
        days = {"type": "string", "format": "date"}
        moments = {"type": "string", "format": "date-time"}
        return {"anyOf": [days, moments, {"type": "null"}]}
    number = {"type": ["number", "boolean", "null"], "minimum": -MAX_NUMBER, "maximum": MAX_NUMBER}
    if column.kind == DURATION:
        number |= {"description": "Days.", "minimum": -MAX_DAYS, "maximum": MAX_DAYS}
    return number
