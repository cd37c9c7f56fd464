"""The sections on features: importance, and partial dependence of the quantiles."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cqrf._input.columns import CATEGORY, DATE, DURATION
from cqrf._views.curves import SHOWN_LEVELS
from cqrf._views.numbers import (
    format_count,
    format_number,
    format_percent,
    round_number,
    round_numbers,
)
from cqrf.report.data import format_value
from cqrf.report.evaluation import describe_failure
from cqrf.report.predictions import TablePredictions

MAX_BARS = 15
MAX_PERMUTED_ROWS = 1000  # training rows that are scored with permuted features
WIDTH = 2.0  # standard errors on each side of a permutation importance
N_PANELS = 4
MAX_POINTS = 5  # a column of numbers with at most so many values is drawn as points
TICKS = (0.0, 0.25, 0.5, 0.75, 1.0)  # quantiles of a column that label its axis
SECOND = {DATE: np.timedelta64(1, "s"), DURATION: np.timedelta64(1, "s")}


def describe_importance(table: TablePredictions) -> dict[str, Any]:
    """Content of the section on feature importance."""
    shares = table.forest.feature_importances_
    order = np.argsort(-shares, kind="stable")
    if not shares.any():
        return {"text": ["No tree has a split, so no feature has an importance."], "bars": []}
    shown = [int(i) for i in order[:MAX_BARS]]
    permuted, sentence = describe_permutation(table, shown)
    bars = [importance_bar(table.names[i], float(shares[i])) | permuted[i] for i in shown]
    rest = order[MAX_BARS:]
    if len(rest):
        name = format_count(len(rest), "other")
        bars.append(importance_bar(name, float(shares[rest].sum())) | {"rest": True})
    trees = "all trees" if table.model.working is None else "the trees that are grown on times"
    text = [
        f"Gain: share of each feature in the total gain of the splits of {trees}. It shows what "
        "the forest splits on, not what causes the event. Features with many values or levels tend "
        "to get a larger share.",
        sentence,
    ]
    return {"text": text, "bars": bars}


def importance_bar(name: str, share: float) -> dict[str, Any]:
    """One bar of the chart."""
    return {"name": name, "share": round_number(share), "label": format_percent(share)}


def describe_permutation(
    table: TablePredictions, features: list[int]
) -> tuple[dict[int, dict[str, Any]], str]:
    """Permutation importance of some features, by their index, and a sentence about it."""
    from cqrf.inspection import permutation_importance_oob

    nothing: dict[int, dict[str, Any]] = {i: {} for i in features}
    if not table.model.keeps_features:
        return nothing, (
            "The skill lost if a feature is permuted is left out: a forest grown on Dask does not "
            "keep the features of its training rows."
        )
    if table.model.lower is not None:
        return nothing, (
            "The skill lost if a feature is permuted cannot be computed: some times of the "
            "training rows are known only to an interval."
        )
    try:
        found = permutation_importance_oob(
            table.forest, features=features, n_rows=MAX_PERMUTED_ROWS, random_state=0
        )
    except ValueError as error:
        return nothing, f"The skill lost if a feature is permuted {describe_failure(error)}."
    bars = {}
    triples = zip(features, found.importances, found.standard_errors, strict=True)
    for feature, value, standard_error in triples:
        spread = WIDTH * float(np.nan_to_num(standard_error))
        bars[feature] = {
            "lost": round_number(value),
            "ends": round_numbers((value - spread, value + spread)),
            "lost_label": format_number(round(float(value), 3), 3),
        }
    return bars, describe_cost(table, found.n_rows, len(features))


def describe_cost(table: TablePredictions, n_rows: int, n_features: int) -> str:
    """What the permutation importance is, and from which rows and features."""
    n, p = len(table.train.time), len(table.names)
    rows = "all training rows" if n_rows == n else f"{n_rows:,} of the {n:,} training rows"
    text = (
        "Permutation: how much of the skill is lost out of bag if the values of the feature are "
        f"permuted among the training rows; scored on {rows}, with whiskers of two standard "
        "errors. A feature without effect is at about 0."
    )
    if n_features < p:
        text += f" It is computed for the {n_features} features with the largest gain."
    return text


def describe_dependence(table: TablePredictions) -> dict[str, Any]:
    """Content of the section on partial dependence, for the features of most importance."""
    shares = table.forest.feature_importances_
    order = [int(i) for i in np.argsort(-shares, kind="stable")[:N_PANELS] if shares[i] > 0]
    panels = [panel for panel in (dependence_panel(table, i) for i in order) if panel]
    text = [
        "Partial dependence: the quantile of the mean survival curve if every row had the same "
        "value of one feature and kept its other values. Numbers are spaced by their rank: about a "
        "quarter of the rows lies between two labels of the axis."
        if panels
        else "No feature has an importance, so there is no partial dependence to show."
    ]
    return {"text": text, "panels": panels}


def dependence_panel(table: TablePredictions, column: int) -> dict[str, Any] | None:
    """Partial dependence on one feature; None if it has no values in this table.

    ``labels`` names the points of a category, or of numbers with few values. Other panels have
    ``places``, the ranks of the grid between 0 and 1, and ``ticks``, pairs of a place and a value.
    """
    from cqrf.inspection import partial_dependence

    values = np.asarray(table.matrix[:, column], dtype=np.float64)
    known = np.sort(values[~np.isnan(values)])
    if len(known) == 0:
        return None
    with warnings.catch_warnings():  # reading the table has warned about unknown levels before
        warnings.simplefilter("ignore")
        found = partial_dependence(table.forest, table.X, column, SHOWN_LEVELS)
    kind = table.model.columns.kinds[column]
    panel: dict[str, Any] = {
        "name": table.names[column],
        "kind": kind,
        "values": [round_numbers(values) for values in found.values.T],
    }
    if kind == CATEGORY:
        labels = [str(label) for label in found.grid]
        return panel | {"grid": labels, "labels": labels}
    grid = as_numbers(found.grid, kind)
    panel["grid"] = round_numbers(grid, 10 if kind in SECOND else 5)
    if len(grid) <= MAX_POINTS:
        return panel | {"labels": [format_value(value, kind) for value in grid]}
    ticks = np.unique(np.quantile(known, TICKS, method="nearest"))
    return panel | {
        "places": place_values(grid, known),
        "ticks": [
            [place, round_number(value, 10)]
            for place, value in zip(place_values(ticks, known), ticks, strict=True)
        ],
    }


def place_values(values: NDArray[np.float64], ordered: NDArray[np.float64]) -> list[Any]:
    """Rank of values in a sample, between 0 and 1; ties have the middle of their ranks."""
    tolerance = 1e-12 * np.abs(values)  # a date of the grid is rounded to microseconds
    below = np.searchsorted(ordered, values - tolerance, side="left")
    until = np.searchsorted(ordered, values + tolerance, side="right")
    return round_numbers((below + until) / (2 * len(ordered)))


def as_numbers(grid: NDArray[Any], kind: str) -> NDArray[np.float64]:
    """Values of a feature as the matrix has them: dates and durations in seconds."""
    if kind not in SECOND:
        return grid
    zero = np.datetime64(0, "s") if kind == DATE else np.timedelta64(0, "s")
    return np.asarray((grid - zero) / SECOND[kind])
