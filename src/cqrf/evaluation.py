"""Evaluation: every metric of the registry, the skill and the calibration of one forest."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cqrf._input.features import read_features
from cqrf._input.target import read_target
from cqrf._model.predict import (
    Quantiles,
    Queries,
    SurvivalCurves,
    encode_queries,
    has_tree,
    read_weights,
    training_queries,
)
from cqrf._model.settings import read_solver
from cqrf._model.skill import compute_oob_skill, compute_skill
from cqrf._survival.curves import StepCurves
from cqrf.calibration import calibrate_curves
from cqrf.estimator import CensoredQuantileForest
from cqrf.inspection import check_forest
from cqrf.metrics.metric import SCORE_QUANTILES, Predictions
from cqrf.metrics.registry import METRICS

SKILL_LABEL = "skill over Kaplan-Meier (1 is perfect, 0 no better)"


@dataclass(frozen=True, eq=False)
class ComputedPredictions(Predictions):
    """Predictions computed beforehand: quantiles at SCORE_QUANTILES, and survival curves.

    ``last_time``: horizon of the restricted mean.
    """

    score_quantiles: NDArray[np.float64]
    curves: StepCurves
    last_time: float

    def quantiles(self, levels: Sequence[float] | NDArray[np.float64]) -> NDArray[np.float64]:
        """Quantiles of shape (n, n_levels), for levels among SCORE_QUANTILES."""
        columns = {level: k for k, level in enumerate(SCORE_QUANTILES)}
        # In C order, as the order of the elements decides the rounding of their sums.
        return np.ascontiguousarray(self.score_quantiles[:, [columns[level] for level in levels]])

    def survival(self, times: ArrayLike | None = None) -> StepCurves | NDArray[np.float64]:
        """Survival curves, or their values of shape (n, n_times)."""
        return self.curves if times is None else self.curves(times)

    def mean(self) -> NDArray[np.float64]:
        """Restricted means of shape (n,)."""
        return self.curves.restricted_mean(self.last_time, self.censoring)

    def censoring_survival(self) -> StepCurves:
        """Not computed: metrics are evaluated with one Kaplan-Meier estimate of G."""
        raise NotImplementedError


def evaluate(forest: CensoredQuantileForest, X: Any = None, y: Any = None) -> dict[str, float]:
    """Skill, concordance, Brier score, CRPS, quantile losses and calibration of a forest.

    Parameters
    ----------
    forest : CensoredQuantileForest
        Fitted.
    X, y : table and target, optional
        Test rows. Their censoring survival is estimated from these rows themselves, as they
        need not be censored like the training rows. Without them the forest is evaluated out of
        bag, on the training rows that at least one tree has not drawn.

    Returns
    -------
    dict of float
        ``rows``; ``skill`` over Kaplan-Meier; ``concordance`` (Harrell's, of the restricted
        mean); ``integrated_brier_score`` over its default range of times;
        ``crps`` and ``loss_0.25``, ``loss_0.5``, ``loss_0.75``, in units of time;
        ``calibration_distance`` and ``calibration_p_value``. A value that these rows do not
        determine is NaN. :func:`list_labels` says what each key means.
    """
    check_forest(forest)
    rows = _predict_out_of_bag(forest) if X is None else _predict_rows(forest, X, y)
    predictions, side = rows.predictions, forest.model_.censoring
    calibration = calibrate_curves(
        predictions.curves, predictions.y_test, rows.calibration_weight, censoring=side
    )
    n_rows = np.count_nonzero(np.asarray(predictions.sample_weight))
    values = {"rows": float(n_rows), "skill": rows.skill}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # scores beyond the horizon are NaN
        for metric in METRICS.values():
            values |= metric.evaluate(predictions)
    return values | {
        "calibration_distance": calibration.distance,
        "calibration_p_value": calibration.p_value,
    }


def list_labels() -> dict[str, str]:
    """What each key of :func:`evaluate` means, in its order."""
    labels = {"rows": "rows evaluated", "skill": SKILL_LABEL}
    for metric in METRICS.values():
        labels |= metric.labels()
    return labels | {
        "calibration_distance": "distance from calibration",
        "calibration_p_value": "p-value of calibration (small: not calibrated)",
    }


class _Evaluated(NamedTuple):
    """Predictions for the rows evaluated, their skill, and their weights in the calibration."""

    predictions: ComputedPredictions
    skill: float
    calibration_weight: NDArray[np.float64]


def _predict_rows(forest: CensoredQuantileForest, X: Any, y: Any) -> _Evaluated:
    """Predictions for test rows, all of weight 1."""
    model, test = forest.model_, read_target(y)
    matrix, _ = read_features(forest, X, model.columns)
    quantiles, curves = _read_once(forest, encode_queries(model, matrix, forest.n_jobs))
    weight = np.ones(len(test.time))
    predictions = ComputedPredictions(
        y_train=test,
        y_test=test,
        censoring=model.censoring,
        train_weight=None,
        sample_weight=weight,
        score_quantiles=quantiles,
        curves=curves,
        last_time=model.last_time,
    )
    skill = compute_skill(model, quantiles, test, censored_as=test)
    return _Evaluated(predictions, skill, weight)


def _predict_out_of_bag(forest: CensoredQuantileForest) -> _Evaluated:
    """Out-of-bag predictions for the training rows; rows without one have weight 0."""
    model = forest.model_
    train, weight, queries = model.training_target, model.training_weight, training_queries(model)
    quantiles, curves = _read_once(forest, queries)
    predictions = ComputedPredictions(
        y_train=train,
        y_test=train,
        censoring=model.censoring,
        train_weight=weight,
        sample_weight=weight * ~np.isnan(quantiles).any(axis=1),
        score_quantiles=np.nan_to_num(quantiles),
        curves=curves,
        last_time=model.last_time,
    )
    skill = compute_oob_skill(model, quantiles)
    return _Evaluated(predictions, skill, weight * has_tree(model, queries))


def _read_once(
    forest: CensoredQuantileForest, queries: Queries
) -> tuple[NDArray[np.float64], StepCurves]:
    """Quantiles at SCORE_QUANTILES, clipped, and survival curves, from the same weights."""
    model = forest.model_
    quantiles = Quantiles(read_solver(forest, model.censoring), np.array(SCORE_QUANTILES))
    solution, curves = read_weights(model, queries, [quantiles, SurvivalCurves()], forest.n_jobs)
    return solution.fill("clip"), curves
