"""The OpenAPI document, with the columns of this very model in it."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from cqrf._input.features import CATEGORY, DATE, DURATION
from cqrf.serve.columns import Column
from cqrf.serve.schema import Limits
from cqrf.serve.served import Served
from cqrf.serve.values import LARGEST, MOST_DAYS

ABOUT = """Quantiles, intervals and survival of times that are only partly seen.

No answer holds NaN or infinity. A time that censoring hides is
`{"value": null, "bound": 4500.0, "reason": "after_bound"}`: all that can be said is that it comes
after the bound (before it, under left censoring). Every refusal has the form
`{"error": "...", "problems": [{"message": "...", "field": "...", "row": 0, "column": "..."}]}`.
"""


def write_document(app: FastAPI, served: Served, limits: Limits) -> dict[str, Any]:
    """The document of the API."""
    made = get_openapi(
        title="cqrf", version=app.version, description=ABOUT, routes=app.routes, summary=served.name
    )
    schemas = made["components"]["schemas"]
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    typical = {column.kind.name: column.typical for column in served.columns}
    schemas["Row"] = {
        "type": "object",
        "title": "Row",
        "description": "A value for each column of the model; null where it is missing.",
        "properties": {column.kind.name: describe_value(column) for column in served.columns},
        "required": [column.kind.name for column in served.columns],
        "additionalProperties": False,
        "example": typical,
    }
    row = {"$ref": "#/components/schemas/Row"}
    schemas["Asked"]["properties"]["rows"] |= {"items": row, "maxItems": limits.rows}
    schemas["Asked"]["example"] = {"rows": [typical], "quantiles": [0.1, 0.5], "intervals": [0.8]}
    schemas["Compared"]["properties"]["subjects"]["items"] = row
    schemas["Compared"]["example"] = {"subjects": [typical]}
    schemas["Time"]["examples"] = [
        {"value": 1200.0, "bound": None, "reason": None},
        {"value": None, "bound": 4500.0, "reason": "after_bound"},
    ]
    return made


def describe_value(column: Column) -> dict[str, Any]:
    """Schema of a value of a column."""
    kind = column.kind
    if kind.kind == CATEGORY:
        return {"enum": [*(kind.levels or ()), None]}
    if kind.kind == DATE:
        days = {"type": "string", "format": "date"}
        moments = {"type": "string", "format": "date-time"}
        return {"anyOf": [days, moments, {"type": "null"}]}
    number = {"type": ["number", "boolean", "null"], "minimum": -LARGEST, "maximum": LARGEST}
    if kind.kind == DURATION:
        number |= {"description": "Days.", "minimum": -MOST_DAYS, "maximum": MOST_DAYS}
    return number
