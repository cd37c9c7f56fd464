"""The section on evaluation: scores of the forest beside one Kaplan-Meier curve for all rows.

Metrics, their labels and their order are those of :mod:`cqrf.metrics.registry`.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cqrf._input.target import oriented
from cqrf._model.skill import compute_oob_skill, compute_skill, marginal_quantiles
from cqrf._survival.curves import step_curves
from cqrf._survival.interval_curves import survival_curves
from cqrf._survival.step_curves import StepCurves
from cqrf._views.curves import thin_curve
from cqrf._views.numbers import format_count, format_number, format_percent
from cqrf.evaluation import find_intervals, training_groups
from cqrf.metrics import FLOOR
from cqrf.metrics.ipcw import marginal_weights, read_evaluation_rows
from cqrf.metrics.metric import SCORE_QUANTILES, Metric, Predictions, describe_levels
from cqrf.metrics.registry import METRICS
from cqrf.report.predictions import TablePredictions

MAX_BASELINE_STEPS = 1000
CONFIDENCE = 0.95
NO_SCORES = (
    "Scores need times that are exact or censored on one side. Some of these rows are known only "
    "to an interval, so there are none."
)
ONLY_INTERVALS = "cannot be computed: some of these times are known only to an interval"
ADVICE = "Tune the forest (cqrf tune), or try honest=False."


def describe_evaluation(table: TablePredictions) -> dict[str, Any]:
    """Content of the section on evaluation."""
    if table.target.lower is not None:
        return {
            "text": [describe_test_rows(table), NO_SCORES],
            "scores": [],
            "out_of_bag": table.out_of_bag,
        }
    skill, reason = find_skill(table)
    text = [describe_test_rows(table)]
    if skill is not None:
        text.append(describe_skill(skill))
    horizon = find_horizon(table)
    if np.isfinite(horizon):
        beyond = "after" if table.censoring == "right" else "before"
        text.append(
            f"Scores are computed up to the horizon {table.words.format_time(horizon)}: {beyond} "
            f"it, the estimated probability of not being censored is below {format_percent(FLOOR)}."
        )
    levels = table.model.score_levels
    if levels != SCORE_QUANTILES:
        text.append(describe_levels(levels))
    if table.target.entry is not None:
        text.append("Scores of rows with an entry time ignore it.")
    intervals = describe_intervals(table)
    if intervals:
        drawn = "groups of rows" if has_groups(table) else "rows"
        text.append(
            f"Ranges below a score are {format_percent(CONFIDENCE)} confidence intervals, by the "
            f"bootstrap over {drawn}; the forest is not refitted."
        )
    scores = [
        {
            "name": "Skill",
            "forest": reason or format_number(skill or 0.0, 3),
            "interval": intervals.get("skill", ""),
            "baseline": "0",
            "note": "1 minus the ratio of the forest's quantile losses to those of Kaplan-Meier; "
            "1 is perfect.",
        }
    ]
    n_predicted = int(table.has_prediction.sum())
    if n_predicted:
        scores += compute_scores(table, intervals)
    n_evaluated = len(table.evaluated_rows)
    if n_evaluated < n_predicted:
        text.append(f"Scores of survival curves use {n_evaluated:,} rows, evenly spaced.")
    return {"text": text, "scores": scores, "out_of_bag": table.out_of_bag}


def describe_intervals(table: TablePredictions) -> dict[str, str]:
    """Confidence intervals by key of the score, as text; only those that can be computed."""
    rows = np.flatnonzero(table.has_prediction)
    if len(rows) == 0:
        return {}
    of_forest, _ = predict_both(table, rows, with_curves=False)
    groups = training_groups(table.model)[rows] if table.out_of_bag else None
    found = find_intervals(table.model, of_forest, groups, CONFIDENCE)
    return {
        name: f"{format_number(lower, 3)} to {format_number(upper, 3)}"
        for name, (_, lower, upper) in found.items()
        if np.isfinite(lower)
    }


def has_groups(table: TablePredictions) -> bool:
    """Whether rows are resampled in groups: out of bag, if the forest was fitted with groups."""
    model = table.model
    n_drawn = np.count_nonzero(model.training_weight)
    return table.out_of_bag and bool(model.sampling.n_units < n_drawn)


def describe_test_rows(table: TablePredictions) -> str:
    """Which rows are scored, and whether the forest was fitted to them."""
    n, n_training = len(table.target.time), table.n_training_rows
    if table.out_of_bag:
        n_left_out = n - int(table.has_prediction.sum())
        rest = (
            f" {format_count(n_left_out, 'row')} drawn by every tree cannot be scored."
            if n_left_out
            else ""
        )
        return (
            "This is the training table. Each row is scored out of bag: with the trees that did "
            f"not draw it.{rest}"
        )
    if n_training == 0:
        return "The training table has none of these rows: a fair test."
    share = "All of these rows are" if n_training == n else f"{n_training:,} of these {n:,} may be"
    return (
        f"{share} training rows, so the scores below are optimistic. Give the training table "
        "itself, with its rows in their order, to score it out of bag."
    )


def find_skill(table: TablePredictions) -> tuple[float | None, str | None]:
    """Skill over the Kaplan-Meier curve of the training rows, or why there is none."""
    if table.target.lower is not None:
        return None, ONLY_INTERVALS
    predicted, model = table.score_quantiles, table.model
    try:
        if table.out_of_bag:
            skill = compute_oob_skill(model, predicted)
        else:
            sample = table.censoring_sample
            skill = compute_skill(model, predicted, table.target, censored_as=sample)
    except ValueError as error:
        return None, describe_failure(error)
    if not np.isfinite(skill):
        return None, "not defined: the loss of the Kaplan-Meier curve is 0"
    return skill, None


def describe_skill(skill: float) -> str:
    """Skill as a sentence."""
    baseline = "that of one Kaplan-Meier curve for all rows"
    if abs(skill) < 0.005:
        return f"The forest's quantile loss is about {baseline}. {ADVICE}"
    share = format_percent(abs(skill))
    if skill > 0:
        return f"The forest's quantile loss is {share} below {baseline}."
    return f"The forest's quantile loss is {share} above {baseline}. {ADVICE}"


@dataclass(frozen=True, eq=False)
class ScoredPredictions(Predictions):
    """Predictions as metrics read them; ``curves`` is None unless the rows are evaluated."""

    score_quantiles: NDArray[np.float64]
    means: NDArray[np.float64]
    curves: StepCurves | None

    def quantiles(self, levels: Sequence[float] | NDArray[np.float64]) -> NDArray[np.float64]:
        """Quantiles of shape (n, n_levels), for levels among ``score_levels``."""
        columns = [self.score_levels.index(level) for level in levels]
        return np.ascontiguousarray(self.score_quantiles[:, columns])

    def survival(self, times: ArrayLike | None = None) -> StepCurves | NDArray[np.float64]:
        """Survival curves, or their values of shape (n, n_times)."""
        assert self.curves is not None
        return self.curves if times is None else self.curves(times, beyond="extend")

    def mean(self) -> NDArray[np.float64]:
        """Restricted means of shape (n,)."""
        return self.means

    def censoring_survival(self) -> StepCurves:
        """Not computed: scores use one Kaplan-Meier estimate of G."""
        raise NotImplementedError


def compute_scores(table: TablePredictions, intervals: dict[str, str]) -> list[dict[str, str]]:
    """Scores of the forest and of the Kaplan-Meier curve, in the order of the registry.

    Metrics of survival curves use the evaluated rows, other metrics all rows with a prediction.
    """
    predicted = np.flatnonzero(table.has_prediction)
    evaluated = table.evaluated_rows
    pair_of_values = predict_both(table, predicted, with_curves=False)
    pair_of_curves = predict_both(table, evaluated, with_curves=True)
    scores = []
    for metric in METRICS.values():
        pair = pair_of_curves if "survival" in metric.needs else pair_of_values
        of_forest, of_baseline = (format_scores(metric, each) for each in pair)
        better = "Higher" if metric.higher_is_better else "Lower"
        note = f"{metric.description} {better} is better."
        for key, label in metric.labels(table.model.score_levels).items():
            scores.append(
                {
                    "name": f"{label[0].upper()}{label[1:]}",
                    "forest": of_forest[key],
                    "interval": intervals.get(key, ""),
                    "baseline": of_baseline[key],
                    "note": note,
                }
            )
            note = ""  # the levels of a metric share the note of the first
    return scores


def predict_both(
    table: TablePredictions, rows: NDArray[np.intp], *, with_curves: bool
) -> tuple[ScoredPredictions, ScoredPredictions]:
    """Predictions of the forest and of the Kaplan-Meier curve for some rows."""
    n = len(rows)
    baseline_quantiles = marginal_quantiles(table.model, np.array(table.model.score_levels))
    of_forest = ScoredPredictions(
        y_train=table.censoring_sample,
        y_test=table.target.take(rows)._replace(entry=None),
        censoring=table.censoring,
        train_weight=table.weight,
        sample_weight=table.score_weight(rows),
        score_levels=table.model.score_levels,
        score_quantiles=table.score_quantiles[rows],
        means=table.means[rows],
        curves=table.curves(rows) if with_curves else None,
    )
    of_baseline = replace(
        of_forest,
        score_quantiles=np.repeat(baseline_quantiles, n, axis=0),
        means=np.zeros(n),  # all alike: rows are tied
        curves=repeat_marginal_curve(table, n) if with_curves else None,
    )
    return of_forest, of_baseline


def repeat_marginal_curve(table: TablePredictions, n: int) -> StepCurves:
    """The Kaplan-Meier curve of the training rows, once for each of n rows."""
    model = table.model
    weights = marginal_weights(model.rows.weight, len(model.order))
    if model.interval_ends is None:
        curve = step_curves(weights, model.ranked_target, censoring=table.censoring)[0]
    else:
        curve = survival_curves(weights, model.ranked_target, model.interval_ends)[0]
    curve = thin_curve(curve, MAX_BASELINE_STEPS)
    return StepCurves(
        np.arange(n + 1) * len(curve.times),
        np.tile(curve.times, n),
        np.tile(curve.values, n),
        np.full(n, curve.initial),
    )


def find_horizon(table: TablePredictions) -> float:
    """Time up to which scores are computed."""
    sample = table.censoring_sample
    rows = read_evaluation_rows(
        sample, sample, censoring=table.censoring, train_weight=table.weight
    )
    return float(oriented(rows.horizon, table.censoring))


def format_scores(metric: Metric, predictions: Predictions) -> dict[str, str]:
    """Values of a metric by key as text, or why they cannot be computed."""
    keys = list(metric.labels(predictions.score_levels))
    if not keys:
        return {}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            values = np.atleast_1d(metric.compute(predictions))
    except ValueError as error:
        return dict.fromkeys(keys, describe_failure(error))
    return {key: format_number(value, 3) for key, value in zip(keys, values, strict=True)}


def describe_failure(error: ValueError) -> str:
    """Why a number cannot be computed, without the advice of the error."""
    return f"cannot be computed: {str(error).split('. ')[0].rstrip('.')}"
