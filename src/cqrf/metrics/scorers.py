"""Scorers: every metric of the registry as scikit-learn's ``cross_val_score`` takes it.

A scorer is called with a fitted forest (or a pipeline that ends in one), X and y. Larger is
better, so losses are negated. The censoring survival G is estimated from the rows the forest was
fitted to. A score is NaN, with the metric's warning, where all test rows lie beyond the horizon.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from inspect import Parameter, signature
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import check_is_fitted

from cqrf._input.causes import Cause
from cqrf._input.target import Target, oriented
from cqrf._runtime.arguments import read_choice
from cqrf._survival.step_curves import StepCurves
from cqrf.metrics.ipcw import as_target
from cqrf.metrics.metric import Metric, Predictions
from cqrf.metrics.registry import METRICS


class Scorer(BaseEstimator):
    """What :func:`make_scorer` returns.

    It is an estimator only so that scikit-learn's metadata routing applies:
    ``set_score_request(sample_weight=True)`` requests weights.
    """

    __metadata_request__score: ClassVar = {"estimator": UNUSED}  # the forest is not metadata

    def __init__(self, metric: str, options: dict[str, Any]) -> None:
        self.metric = metric
        self.options = options

    def score(
        self, estimator: Any, X: Any, y: Any, sample_weight: ArrayLike | None = None
    ) -> float:
        """Score of a fitted forest on the rows of X."""
        return SCORERS[self.metric](estimator, X, y, sample_weight, **self.options)

    __call__ = score

    def _accept_sample_weight(self) -> bool:
        # scikit-learn asks this in a search by several scorers without metadata routing.
        return True


def make_scorer(metric: str, **options: Any) -> Scorer:
    """Scorer of the given name, to pass as ``scoring``.

    Parameters
    ----------
    metric : {"quantile_loss", "concordance", "uno_concordance", "auc", "brier", "crps"}
        Name of the metric. The concordances rank rows by their restricted mean
        (``predict_mean``), which is identifiable where the median is not. ``"auc"`` is the
        integrated time-dependent AUC of the survival probabilities, ``"brier"`` the integrated
        Brier score, both over their default range of times or over ``times``.
    **options
        ``quantiles`` for ``"quantile_loss"``, averaged (default: ``model_.score_levels`` of the
        forest, .25 .5 .75 or lower where censoring hides these); ``quantile`` for the
        concordances, to rank by this quantile instead of the mean; ``times`` for ``"auc"`` and
        ``"brier"``;
        ``forest_censoring=True`` for all but the concordances, to use the forest's
        own G(.|x) in the IPCW weights; with competing risks ``cause`` for ``"brier"`` and the
        concordances, to score the incidence of one cause instead of all events together.

    Returns
    -------
    Scorer
        Called with a fitted forest (or a pipeline that ends in one), X and y. It takes
        ``sample_weight``; with scikit-learn's metadata routing on, request it by
        ``set_score_request(sample_weight=True)``.

    Examples
    --------
    >>> from sklearn.model_selection import cross_val_score
    >>> from cqrf import CensoredQuantileForest
    >>> from cqrf.datasets import make_aft
    >>> from cqrf.metrics import make_scorer
    >>> X, y, _, _ = make_aft(200, 2, random_state=0)
    >>> forest = CensoredQuantileForest(n_estimators=20, random_state=0)
    >>> scores = cross_val_score(forest, X, y, cv=3, scoring=make_scorer("concordance"))
    >>> bool(scores.mean() > 0.7)
    True
    """
    read_choice("metric", metric, tuple(METRICS))
    parameters = signature(METRICS[metric].compute).parameters.values()
    allowed = [p.name for p in parameters if p.kind is Parameter.KEYWORD_ONLY]
    for name in options:
        if name not in allowed:
            raise ValueError(
                f"{metric!r} has no option {name!r}; it takes {', '.join(allowed) or 'none'}."
            )
    return Scorer(metric, options)


@dataclass(frozen=True, eq=False)
class ForestPredictions(Predictions):
    """Predictions of a fitted forest for the rows of X, made when a metric asks for them."""

    forest: Any
    X: Any

    def quantiles(self, levels: Sequence[float] | NDArray[np.float64]) -> NDArray[np.float64]:
        """Quantiles of shape (n, n_levels)."""
        # In C order also from a frame, as the order of the elements decides the rounding of sums.
        values = self.forest.predict(self.X, levels, unidentified="clip")
        return np.ascontiguousarray(values, np.float64)

    def survival(self, times: ArrayLike | None = None) -> StepCurves | NDArray[np.float64]:
        """Survival curves, or their values of shape (n, n_times)."""
        curves: StepCurves = self.forest.predict_survival(self.X)
        return curves if times is None else curves(times, beyond="extend")

    def mean(self) -> NDArray[np.float64]:
        """Restricted means of shape (n,)."""
        return np.asarray(self.forest.predict_mean(self.X, beyond="extend"), np.float64)

    @property
    def causes(self) -> tuple[Cause, ...]:
        """Causes that the forest tells apart."""
        causes: tuple[Cause, ...] = self.forest.model_.causes
        return causes

    def incidence(
        self, cause: Cause, times: ArrayLike | None = None
    ) -> StepCurves | NDArray[np.float64]:
        """Cumulative incidences of a cause, or their values of shape (n, n_times)."""
        curves: StepCurves = self.forest.predict_incidence(self.X, cause=cause)
        return curves if times is None else curves(times, beyond="extend")

    def time_lost(self, cause: Cause) -> NDArray[np.float64]:
        """Mean times lost to a cause, of shape (n,)."""
        lost = self.forest.predict_mean(self.X, cause=cause, beyond="extend")
        return np.asarray(lost, np.float64)

    def censoring_survival(self) -> StepCurves:
        """G(.|x) of each row."""
        curves: StepCurves = self.forest.predict_censoring(self.X)
        return curves


def score(
    metric: Metric,
    estimator: Any,
    X: Any,
    y: Any,
    sample_weight: ArrayLike | None = None,
    **options: Any,
) -> float:
    """Score of a fitted forest by a metric, larger is better; the mean over levels if several."""
    forest, X = _unwrap(estimator, X)
    model = forest.model_
    predictions = ForestPredictions(
        y_train=Target(
            oriented(model.rows.time, model.censoring),
            model.rows.event,
            model.entry,
            model.rows.cause,
            model.causes,
            model.lower,
        ),
        y_test=as_target(y),
        censoring=model.censoring,
        train_weight=model.rows.weight,
        sample_weight=sample_weight,
        score_levels=model.score_levels,
        forest=forest,
        X=X,
    )
    value = float(np.mean(metric.compute(predictions, **options)))
    return value if metric.higher_is_better else -value


class _Scorers(Mapping[str, Callable[..., float]]):
    """Scoring functions by metric: ``SCORERS[name](forest, X, y, sample_weight, **options)``."""

    def __getitem__(self, name: str) -> Callable[..., float]:
        return partial(score, METRICS[name])

    def __iter__(self) -> Iterator[str]:
        return iter(METRICS)

    def __len__(self) -> int:
        return len(METRICS)


SCORERS = _Scorers()


def _unwrap(estimator: Any, X: Any) -> tuple[Any, Any]:
    """Forest at the end of a pipeline or search, and X as it arrives there."""
    if hasattr(estimator, "best_estimator_"):
        return _unwrap(estimator.best_estimator_, X)
    if hasattr(estimator, "steps"):
        return _unwrap(estimator[-1], estimator[:-1].transform(X) if len(estimator) > 1 else X)
    check_is_fitted(estimator)
    if not hasattr(estimator, "model_"):
        raise ValueError(
            f"the scorers of cqrf need a CensoredQuantileForest; found {type(estimator).__name__}."
        )
    return estimator, X
