"""The OpenAPI document of a treatment forest, with its columns."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI

from cqrf.serve.effect_view import EffectView
from cqrf.serve.openapi import row_schema, start_document
from cqrf.serve.schema import Limits
from cqrf.serve.values import MAX_NUMBER

DESCRIPTION = """Effects of a treatment on censored times, for rows of covariates.

Every effect is the treatment's value less the control's. No response holds NaN or infinity: an
effect that is not known is null, with the reason. Every error response has the form
`{"error": "...", "problems": [{"message": "...", "field": "...", "row": 0, "column": "..."}]}`.
"""


def write_effect_document(
    app: FastAPI, view: EffectView, limits: Limits, *, strict: bool
) -> dict[str, Any]:
    """The OpenAPI document of the app."""
    document = start_document(app, view.name, DESCRIPTION)
    schemas = document["components"]["schemas"]
    schemas["Row"] = row_schema(view, "A value for each column; null where it is missing.", strict)
    row = {"$ref": "#/components/schemas/Row"}
    fields = schemas["EffectsRequest"]["properties"]
    fields["rows"] |= {"items": row, "maxItems": limits.rows}
    (horizons,) = (kind for kind in fields["horizons"]["anyOf"] if kind["type"] == "array")
    horizons["items"] = {
        "type": "number",
        "exclusiveMinimum": view.model.grid.start,
        "maximum": MAX_NUMBER,
    }
    schemas["EffectsRequest"]["example"] = {
        "rows": [{summary.column.name: summary.typical for summary in view.summaries}],
        "times": view.shown_times,
        "curves": False,
    }
    return document
