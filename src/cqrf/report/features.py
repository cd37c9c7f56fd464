"""The sections on features: importance, and partial dependence of the quantiles."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cqrf._input.features import CATEGORY, DATE, DURATION
from cqrf._views.curves import SHOWN_LEVELS
from cqrf._views.numbers import format_percent, round_number, round_numbers
from cqrf.report.predictions import TablePredictions

MAX_BARS = 15
N_PANELS = 4
SECOND = {DATE: np.timedelta64(1, "s"), DURATION: np.timedelta64(1, "s")}


def describe_importance(table: TablePredictions) -> dict[str, Any]:
    """Content of the section on feature importance."""
    shares = table.forest.feature_importances_
    order = np.argsort(-shares, kind="stable")
    if not shares.any():
        return {"text": ["No tree has a split, so no feature has an importance."], "bars": []}
    bars = [importance_bar(table.names[i], float(shares[i])) for i in order[:MAX_BARS]]
    rest = order[MAX_BARS:]
    if len(rest):
        name = "the one other" if len(rest) == 1 else f"the {len(rest):,} others together"
        bars.append(importance_bar(name, float(shares[rest].sum())) | {"rest": True})
    text = [
        "Share of each feature in the total gain of the splits of all trees. It shows what the "
        "forest splits on, not what causes the event. Features with many values or levels tend to "
        "get a larger share."
    ]
    return {"text": text, "bars": bars}


def importance_bar(name: str, share: float) -> dict[str, Any]:
    """One bar of the chart."""
    return {"name": name, "share": round_number(share), "label": format_percent(share)}


def describe_dependence(table: TablePredictions) -> dict[str, Any]:
    """Content of the section on partial dependence, for the features of most importance."""
    shares = table.forest.feature_importances_
    order = [int(i) for i in np.argsort(-shares, kind="stable")[:N_PANELS] if shares[i] > 0]
    panels = [panel for panel in (dependence_panel(table, i) for i in order) if panel]
    text = [
        "Partial dependence: the quantile of the mean survival curve if every row had the same "
        "value of one feature and kept its other values."
        if panels
        else "No feature has an importance, so there is no partial dependence to show."
    ]
    return {"text": text, "panels": panels}


def dependence_panel(table: TablePredictions, column: int) -> dict[str, Any] | None:
    """Partial dependence on one feature; None if it has no values in this table."""
    from cqrf.inspection import partial_dependence

    if np.isnan(np.asarray(table.matrix[:, column], dtype=np.float64)).all():
        return None
    with warnings.catch_warnings():  # reading the table has warned about unknown levels before
        warnings.simplefilter("ignore")
        found = partial_dependence(table.forest, table.X, column, SHOWN_LEVELS)
    kind = table.model.columns.kinds[column]
    return {
        "name": table.names[column],
        "kind": kind,
        "grid": grid_content(found.grid, kind),
        "values": [round_numbers(values) for values in found.values.T],
    }


def grid_content(grid: NDArray[Any], kind: str) -> list[Any]:
    """Values of a feature: labels, or numbers; dates and durations in seconds."""
    if kind == CATEGORY:
        return [str(label) for label in grid]
    if kind in SECOND:
        zero = np.datetime64(0, "s") if kind == DATE else np.timedelta64(0, "s")
        return round_numbers((grid - zero) / SECOND[kind], 10)
    return round_numbers(grid, 5)
