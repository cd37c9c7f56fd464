"""Competing risks: scores of each cause, and the incidence of all rows by cause."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cqrf._input.causes import Cause, name_cause
from cqrf._input.target import rank_target
from cqrf._readers.incidence import Incidence
from cqrf._readers.reader import read_one
from cqrf._survival.curves import RankedTarget
from cqrf._survival.incidence import IncidenceCurves, incidence_curves
from cqrf._survival.step_curve import StepCurve
from cqrf._survival.step_curves import StepCurves
from cqrf._views.curves import thin_curve
from cqrf._views.numbers import format_number, round_number, round_numbers
from cqrf.evaluation import ComputedPredictions
from cqrf.metrics.incidence_calibration import incidence_calibration
from cqrf.metrics.ipcw import marginal_weights
from cqrf.metrics.registry import METRICS
from cqrf.report.evaluation import MAX_BASELINE_STEPS, describe_failure
from cqrf.report.predictions import TablePredictions

MAX_STEPS = 200
DECIMALS = 6  # of scores: what is smaller is a rounding error


def describe_cause_scores(table: TablePredictions) -> dict[str, Any] | None:
    """Scores of each cause beside those of one Aalen-Johansen curve for all rows.

    None if forest or table have one kind of event.
    """
    causes, rows = table.model.causes, table.evaluated_rows
    if not causes or table.target.cause is None or len(rows) == 0:
        return None
    of_forest, of_baseline = predict_both(table, rows)
    horizon = float(np.median(of_forest.y_test.time[table.weight[rows] > 0]))
    return {
        "text": [
            "The scores above are about any event. In those of a cause, a row that had another "
            "event never has this one. Wolbers' C ranks rows by the predicted time lost to the "
            "cause, the Brier score is that of its incidence. The distance from calibration is the "
            "mean difference of predicted and observed incidence by the median time, "
            f"{table.words.format_time(horizon)}, in groups of rows with similar predictions."
        ],
        "causes": [
            {"cause": name_cause(cause), "scores": compare(of_forest, of_baseline, cause, horizon)}
            for cause in causes
        ],
    }


def compare(
    of_forest: ComputedPredictions, of_baseline: ComputedPredictions, cause: Cause, horizon: float
) -> list[dict[str, str]]:
    """Scores of a cause as text, in the order of the registry; then its calibration."""
    pair = (of_forest, of_baseline)
    scores = []
    for metric in METRICS.values():
        label = metric.label_of_cause
        if label is None:
            continue
        ours, theirs = (format_score(metric.compute, each, cause=cause) for each in pair)
        note = f"{'Higher' if metric.higher_is_better else 'Lower'} is better."
        name = f"{label[0].upper()}{label[1:]}"
        scores.append({"name": name, "forest": ours, "baseline": theirs, "note": note})
    ours, theirs = (format_score(calibrate, each, cause, horizon) for each in pair)
    name = "Distance from calibration"
    scores.append({"name": name, "forest": ours, "baseline": theirs, "note": "Lower is better."})
    return scores


def calibrate(predictions: ComputedPredictions, cause: Cause, horizon: float) -> float:
    """Distance from calibration of the incidence of a cause by the horizon."""
    return incidence_calibration(
        predictions.y_test,
        predictions.incidence(cause),
        horizon,
        cause=cause,
        sample_weight=predictions.sample_weight,
    ).distance


def format_score(compute: Any, *arguments: Any, **options: Any) -> str:
    """A score as text, or why it cannot be computed."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return format_number(round(compute(*arguments, **options), DECIMALS), 3)
    except ValueError as error:
        return describe_failure(error)


def predict_both(
    table: TablePredictions, rows: NDArray[np.intp]
) -> tuple[ComputedPredictions, ComputedPredictions]:
    """Incidences of the forest, and of the Aalen-Johansen curves of the training rows."""
    model, queries = table.model, table.queries.take(rows)
    of_forest = ComputedPredictions(
        y_train=table.censoring_sample,
        y_test=table.target.take(rows)._replace(entry=None),
        censoring=table.censoring,
        train_weight=table.weight,
        sample_weight=table.score_weight(rows),
        score_levels=model.score_levels,
        score_quantiles=table.score_quantiles[rows],
        curves=table.curves(rows),
        incidences=read_one(model, queries, Incidence(), table.forest.n_jobs),
        follow_up=model.follow_up,
    )
    weights, cause = marginal_weights(model.rows.weight, len(model.order)), model.rows.cause
    assert cause is not None
    marginal = incidence_curves(weights, model.ranked_target, cause, model.causes)
    survival, by_cause = thin_incidence(marginal, MAX_BASELINE_STEPS)
    repeated = IncidenceCurves(
        model.causes,
        tuple(repeat_curve(survival.times, values, 0.0, len(rows)) for values in by_cause),
        repeat_curve(survival.times, survival.values, 1.0, len(rows)),
    )
    return of_forest, replace(of_forest, incidences=repeated)


def repeat_curve(
    times: NDArray[np.float64], values: NDArray[np.float64], initial: float, n: int
) -> StepCurves:
    """The same curve for each of n rows."""
    offsets = np.arange(n + 1) * len(times)
    return StepCurves(offsets, np.tile(times, n), np.tile(values, n), np.full(n, initial))


def thin_incidence(
    curves: IncidenceCurves, max_steps: int
) -> tuple[StepCurve, list[NDArray[np.float64]]]:
    """The curve without any event of the first query with fewer steps, and each cause there."""
    survival = thin_curve(curves.survival[0], max_steps)
    return survival, [each[0](survival.times, "extend") for each in curves.by_cause]


def describe_incidence(table: TablePredictions) -> dict[str, Any] | None:
    """Aalen-Johansen curves of all rows by cause; None if the table has one kind of event.

    Causes of the forest come first, so that they have the same colours as in the rows.
    """
    target = table.target
    if target.cause is None:
        return None
    ranked, order = rank_target(target, table.censoring)
    assert ranked.cause is not None
    weights = marginal_weights(None, len(order))
    found = incidence_curves(weights, RankedTarget.of(ranked), ranked.cause, target.causes)
    survival, by_cause = thin_incidence(found, MAX_STEPS)
    of_cause = dict(zip(target.causes, by_cause, strict=True))
    causes = list(dict.fromkeys([*table.model.causes, *target.causes]))
    nothing = np.zeros(len(survival.times))
    return {
        "causes": [name_cause(cause) for cause in causes],
        "times": round_numbers(survival.times),
        "shares": [round_numbers(of_cause.get(cause, nothing)) for cause in causes],
        "end": round_number(survival.end),
    }
