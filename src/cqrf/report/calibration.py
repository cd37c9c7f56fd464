"""The section on calibration: observed shares of subjects with the event before a quantile."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from cqrf._views.numbers import format_number, format_percent, round_numbers
from cqrf.calibration import Calibration, calibrate_curves
from cqrf.report.evaluation import ONLY_INTERVALS, describe_failure
from cqrf.report.predictions import TablePredictions

SIGNIFICANCE = 0.05


def describe_calibration(table: TablePredictions) -> dict[str, Any]:
    """Content of the section on calibration."""
    if table.target.lower is not None:
        return {"text": [f"Calibration {ONLY_INTERVALS}."], "levels": None}
    try:
        found = calibrate(table)
    except ValueError as error:
        return {"text": [f"Calibration {describe_failure(error)}."], "levels": None}
    levels = found.levels[found.is_known]
    text = [
        "If the forest is calibrated, 30\u00a0% of the events come before the predicted 30\u00a0% "
        "quantile, and so on for each level: the curve lies on the diagonal."
    ]
    if len(levels) == 0:
        text.append("Too many of these rows are censored to judge any level.")
        return {"text": text, "levels": None}
    text.append(
        f"Here it is {format_number(100 * found.distance, 2)} percentage points off on average, "
        f"over the levels that the data can judge ({format_percent(levels[0])} to "
        f"{format_percent(levels[-1])}); beyond them too few rows are left, and the curve is pale. "
        "The band is its pointwise 95\u00a0% confidence interval."
    )
    if np.isfinite(found.p_value):
        text.append(describe_test(found.p_value))
    if not table.out_of_bag and table.n_training_rows:
        text.append("Training rows are among these rows, so this is not a fair test.")
    return {
        "text": text,
        "levels": round_numbers(found.levels),
        "observed": round_numbers(found.observed),
        "judged": round_numbers(np.where(found.is_known, found.observed, np.nan)),
        "lower": round_numbers(found.lower),
        "upper": round_numbers(found.upper),
    }


def describe_test(p_value: float) -> str:
    """Result of the test of calibration as a sentence."""
    p = "p < 0.001" if p_value < 0.001 else f"p = {format_number(p_value, 2)}"
    if p_value < SIGNIFICANCE:
        return f"A test of these levels rejects calibration ({p})."
    return (
        f"A test of these levels does not reject calibration ({p}). It has less power the fewer "
        "events there are, and less still out of bag: look at the curve."
    )


def calibrate(table: TablePredictions) -> Calibration:
    """Calibration on the evaluated rows."""
    rows = np.arange(len(table.target.time)) if table.scores_all_rows else table.evaluated_rows
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return calibrate_curves(
            table.curves(rows),
            table.target.take(rows),
            table.weight[rows] * table.has_prediction[rows],
            censoring=table.censoring,
            confidence=1 - SIGNIFICANCE,
        )
