"""Evaluation: every metric of the registry, the skill and the calibration of one forest."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cqrf._input.causes import Cause
from cqrf._input.features import read_features
from cqrf._input.target import read_target
from cqrf._input.units import find_clusters, read_groups
from cqrf._model.fitted import Model
from cqrf._model.queries import Queries, encode_queries, has_tree, training_queries
from cqrf._model.settings import read_solver
from cqrf._model.skill import compute_oob_skill, compute_skill, marginal_quantiles
from cqrf._readers.curves import SurvivalCurves
from cqrf._readers.incidence import Incidence
from cqrf._readers.quantiles import Quantiles
from cqrf._readers.reader import read_weights
from cqrf._survival.incidence import IncidenceCurves
from cqrf._survival.step_curves import StepCurves
from cqrf.calibration import calibrate_curves
from cqrf.estimator import CensoredQuantileForest
from cqrf.inspection.forests import check_forest
from cqrf.metrics.bootstrap import Interval, bootstrap_interval, read_confidence
from cqrf.metrics.causes import check_causes
from cqrf.metrics.concordance import concordance_index
from cqrf.metrics.incidence_calibration import incidence_calibration
from cqrf.metrics.metric import SCORE_QUANTILES, Predictions, key_of_cause
from cqrf.metrics.registry import METRICS
from cqrf.metrics.skill import quantile_skill

__all__ = ["evaluate"]

# Resamples of a confidence interval: fewer where there are more than 2000 rows.
MOST_RESAMPLES, FEWEST_RESAMPLES, RESAMPLED_ROWS = 1000, 200, 2_000_000
WITH_INTERVALS = ("skill", "concordance")
SKILL_LABEL = "skill over Kaplan-Meier (1 is perfect, 0 no better)"


@dataclass(frozen=True, eq=False)
class ComputedPredictions(Predictions):
    """Predictions computed beforehand: quantiles at ``score_levels``, and survival curves.

    ``incidences``: those of each cause, if the forest tells causes apart; ``follow_up``: horizon of
    the restricted mean and of the time lost to a cause.
    """

    score_quantiles: NDArray[np.float64]
    curves: StepCurves
    incidences: IncidenceCurves | None
    follow_up: float

    def quantiles(self, levels: Sequence[float] | NDArray[np.float64]) -> NDArray[np.float64]:
        """Quantiles of shape (n, n_levels), for levels among ``score_levels``."""
        columns = {level: k for k, level in enumerate(self.score_levels)}
        # In C order, as the order of the elements decides the rounding of their sums.
        return np.ascontiguousarray(self.score_quantiles[:, [columns[level] for level in levels]])

    def survival(self, times: ArrayLike | None = None) -> StepCurves | NDArray[np.float64]:
        """Survival curves, or their values of shape (n, n_times)."""
        return self.curves if times is None else self.curves(times, beyond="extend")

    def mean(self) -> NDArray[np.float64]:
        """Restricted means of shape (n,)."""
        return self.curves.restricted_mean(self.follow_up, self.censoring, "extend")

    @property
    def causes(self) -> tuple[Cause, ...]:
        """Causes that the forest tells apart."""
        return () if self.incidences is None else self.incidences.causes

    def incidence(
        self, cause: Cause, times: ArrayLike | None = None
    ) -> StepCurves | NDArray[np.float64]:
        """Cumulative incidences of a cause, or their values of shape (n, n_times)."""
        assert self.incidences is not None
        curves = self.incidences[cause]
        return curves if times is None else curves(times, beyond="extend")

    def time_lost(self, cause: Cause) -> NDArray[np.float64]:
        """Mean times lost to a cause, of shape (n,)."""
        assert self.incidences is not None
        return self.incidences.time_lost(cause, self.follow_up, "extend")

    def censoring_survival(self) -> StepCurves:
        """Not computed: metrics are evaluated with one Kaplan-Meier estimate of G."""
        raise NotImplementedError


def evaluate(
    forest: CensoredQuantileForest,
    X: Any = None,
    y: Any = None,
    *,
    confidence: float | None = None,
    groups: ArrayLike | None = None,
    random_state: Any = 0,
) -> dict[str, float]:
    """Skill, concordance, AUC, Brier score, CRPS, quantile losses and calibration of a forest.

    Parameters
    ----------
    forest : CensoredQuantileForest
        Fitted.
    X, y : table and target, optional
        Test rows. Their censoring survival is estimated from these rows themselves, as they
        need not be censored like the training rows. Without them the forest is evaluated out of
        bag, on the training rows that at least one tree has not drawn.
    confidence : float, optional
        Level of confidence intervals of the skill and the concordance, such as 0.95: see
        :func:`cqrf.metrics.bootstrap_interval`. There are 1000 resamples of up to 2000 rows, fewer
        of more rows and at least 200. The forest is not refitted. Default: no intervals.
    groups : array-like of shape (n,), optional
        Groups of the test rows, drawn as a whole for the intervals. Out of bag they are those
        that the forest was fitted with.
    random_state : int, RandomState or None, default=0
        Seed of the resamples.

    Returns
    -------
    dict of float
        ``rows``; ``skill`` over Kaplan-Meier; ``concordance`` (Harrell's, of the restricted
        mean); ``auc``, the mean of the time-dependent AUC, and ``integrated_brier_score``, both
        over their default range of times; ``crps``, in units of time; ``loss_0.25``, ``loss_0.5``
        and ``loss_0.75``, in units of time, or those of the levels ``forest.model_.score_levels``
        where censoring hides these;
        ``calibration_distance`` and ``calibration_p_value``. A value that these rows do not
        determine is NaN. With competing risks these are about any event, and
        ``concordance_cause_1``, ``integrated_brier_score_cause_1`` and, at the median time,
        ``calibration_distance_cause_1`` about cause 1, and so on. With ``confidence`` also
        ``skill_lower`` and ``_upper``, ``concordance_lower`` and ``_upper``. See ``list_labels``.

    Examples
    --------
    >>> from cqrf import CensoredQuantileForest
    >>> from cqrf.datasets import make_aft
    >>> from cqrf.evaluation import evaluate
    >>> X, y, _, _ = make_aft(300, random_state=0)
    >>> evaluate(CensoredQuantileForest(random_state=0).fit(X, y))["concordance"] > 0.7
    True
    """
    check_forest(forest)
    level = None if confidence is None else read_confidence(confidence)
    rows = _predict_rows(forest, X, y, groups)
    values = _compute_values(rows)
    if level is None:
        return values
    found = find_intervals(forest.model_, rows.predictions, rows.groups, level, random_state)
    return add_ends(values, found)


def find_intervals(
    model: Model,
    predictions: Predictions,
    groups: ArrayLike | None,
    confidence: float,
    random_state: Any = 0,
) -> dict[str, Interval]:
    """Bootstrap intervals of the skill and the concordance; NaN where there is none."""
    test = predictions.y_test._replace(entry=None)
    levels, weight = np.array(predictions.score_levels), predictions.sample_weight
    n = len(test.time) if weight is None else int(np.count_nonzero(np.asarray(weight)))
    options = {
        "censoring": predictions.censoring,
        "sample_weight": weight,
        "groups": groups,
        "confidence": confidence,
        "n_boot": int(np.clip(RESAMPLED_ROWS // max(n, 1), FEWEST_RESAMPLES, MOST_RESAMPLES)),
        "random_state": random_state,
    }
    quantiles = predictions.quantiles(predictions.score_levels)
    of_skill = {
        "baseline": marginal_quantiles(model, levels)[0],
        "train_weight": predictions.train_weight,
    }
    tasks: dict[str, tuple[Callable[..., float], tuple[Any, ...], dict[str, Any]]] = {
        "skill": (quantile_skill, (predictions.y_train, test, quantiles, levels), of_skill),
        "concordance": (concordance_index, (test, predictions.ranking()), {}),
    }
    found = {}
    for name in WITH_INTERVALS:
        metric, arguments, more = tasks[name]
        try:
            found[name] = bootstrap_interval(metric, *arguments, **options, **more)
        except ValueError:  # the rows do not determine the metric
            found[name] = Interval(np.nan, np.nan, np.nan)
    return found


def add_ends(values: dict[str, float], intervals: dict[str, Interval]) -> dict[str, float]:
    """Values with the ends of their intervals behind them."""
    longer = {}
    for name, value in values.items():
        longer[name] = value
        if name in intervals:
            longer[f"{name}_lower"] = float(intervals[name].lower)
            longer[f"{name}_upper"] = float(intervals[name].upper)
    return longer


def list_labels(
    levels: Sequence[float] = SCORE_QUANTILES,
    confidence: float | None = None,
    causes: Sequence[Cause] = (),
) -> dict[str, str]:
    """What each key of :func:`evaluate` means, in its order.

    ``levels``: those of the quantile losses, ``forest.model_.score_levels``; ``confidence``: as
    for ``evaluate``; ``causes``: ``forest.causes_``.
    """
    labels = {"rows": "rows evaluated", "skill": SKILL_LABEL}
    for metric in METRICS.values():
        labels |= metric.labels(levels, causes)
    if confidence is not None:
        share = f"{100 * confidence:g} % confidence interval"
        for name in WITH_INTERVALS:
            at = list(labels).index(name) + 1
            ends = {f"{name}_{end}": f"{end} end of its {share}" for end in ("lower", "upper")}
            items = list(labels.items())
            labels = dict([*items[:at], *ends.items(), *items[at:]])
    labels |= {
        "calibration_distance": "distance from calibration",
        "calibration_p_value": "p-value of calibration (small: not calibrated)",
    }
    for cause in causes:
        key = key_of_cause("calibration_distance", cause)
        labels[key] = f"distance from calibration, cause {cause}"
    return labels


class _Evaluated(NamedTuple):
    """Predictions for the rows evaluated, their skill, weights in the calibration and groups."""

    predictions: ComputedPredictions
    skill: float
    calibration_weight: NDArray[np.float64]
    groups: NDArray[Any] | None


def _compute_values(rows: _Evaluated) -> dict[str, float]:
    """Every value of :func:`evaluate` but the ends of intervals."""
    predictions = rows.predictions
    n_rows = np.count_nonzero(np.asarray(predictions.sample_weight))
    values = {"rows": float(n_rows), "skill": rows.skill}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # scores beyond the horizon are NaN
        for metric in METRICS.values():
            values |= metric.evaluate(predictions)
    calibration = calibrate_curves(
        predictions.curves,
        predictions.y_test,
        rows.calibration_weight,
        censoring=predictions.censoring,
    )
    values |= {
        "calibration_distance": calibration.distance,
        "calibration_p_value": calibration.p_value,
    }
    for cause in predictions.causes:
        distance = _calibrate_cause(predictions, rows.calibration_weight, cause)
        values[key_of_cause("calibration_distance", cause)] = distance
    return values


def _calibrate_cause(
    predictions: ComputedPredictions, weight: NDArray[np.float64], cause: Cause
) -> float:
    """Distance from calibration of the incidence of a cause by the median of the times."""
    test = predictions.y_test
    horizon = float(np.median(test.time[weight > 0]))
    incidence = predictions.incidence(cause)
    if cause not in test.causes:  # no row has had it
        test = test._replace(cause=np.zeros(len(test.time), np.uint8), causes=(cause,))
    return incidence_calibration(
        test, incidence, horizon, cause=cause, sample_weight=weight
    ).distance


def _predict_rows(
    forest: CensoredQuantileForest, X: Any, y: Any, groups: ArrayLike | None
) -> _Evaluated:
    """Predictions for test rows, all of weight 1; out of bag, if there are none."""
    if (X is None) != (y is None):
        raise ValueError("give both X and y, or neither for the training rows out of bag.")
    if X is None and groups is not None:
        raise ValueError("groups are those of X and y; out of bag they are those of the fit.")
    if X is None:
        return _predict_out_of_bag(forest)
    model, test = forest.model_, read_target(y)
    if model.causes:
        check_causes(test, model.causes, "the forest")
    labels = None if groups is None else read_groups(groups, len(test.time))
    matrix, _ = read_features(forest, X, model.columns)
    queries = encode_queries(model, matrix, forest.n_jobs)
    quantiles, curves, incidences = _read_once(forest, queries)
    weight = np.ones(len(test.time))
    predictions = ComputedPredictions(
        y_train=test,
        y_test=test,
        censoring=model.censoring,
        train_weight=None,
        sample_weight=weight,
        score_levels=model.score_levels,
        score_quantiles=quantiles,
        curves=curves,
        incidences=incidences,
        follow_up=model.follow_up,
    )
    skill = compute_skill(model, quantiles, test, censored_as=test)
    return _Evaluated(predictions, skill, weight, labels)


def _predict_out_of_bag(forest: CensoredQuantileForest) -> _Evaluated:
    """Out-of-bag predictions for the training rows; rows without one have weight 0."""
    model = forest.model_
    train, weight, queries = model.training_target, model.training_weight, training_queries(model)
    quantiles, curves, incidences = _read_once(forest, queries)
    predictions = ComputedPredictions(
        y_train=train,
        y_test=train,
        censoring=model.censoring,
        train_weight=weight,
        sample_weight=weight * ~np.isnan(quantiles).any(axis=1),
        score_levels=model.score_levels,
        score_quantiles=np.nan_to_num(quantiles),
        curves=curves,
        incidences=incidences,
        follow_up=model.follow_up,
    )
    skill = compute_oob_skill(model, quantiles)
    groups = training_groups(model)
    return _Evaluated(predictions, skill, weight * has_tree(model, queries), groups)


def training_groups(model: Model) -> NDArray[np.int32]:
    """Number of the group of each training row, or of the row itself without groups."""
    return find_clusters(model.sampling.unit_of_row[model.ranks])


def _read_once(
    forest: CensoredQuantileForest, queries: Queries
) -> tuple[NDArray[np.float64], StepCurves, IncidenceCurves | None]:
    """Quantiles at ``score_levels``, clipped, and curves, from the same weights.

    The last are the incidences of each cause, if the forest tells causes apart.
    """
    model = forest.model_
    quantiles = Quantiles(read_solver(forest, model.censoring), np.array(model.score_levels))
    readers: list[Any] = [quantiles, SurvivalCurves()]
    if model.causes:
        readers.append(Incidence())
    solution, curves, *incidences = read_weights(model, queries, readers, forest.n_jobs)
    return solution.fill("clip"), curves, incidences[0] if incidences else None
