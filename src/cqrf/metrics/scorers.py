"""Scorers: every metric as scikit-learn wants it, for ``cross_val_score`` and ``GridSearchCV``.

A scorer is called with a fitted forest (or a pipeline that ends in one), X and y; larger is
better, so losses come negated. G is estimated from the rows the forest was fitted on. Where these
cannot judge the test rows, as all lie beyond the horizon, a score is NaN, with the metric's
warning.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from inspect import Parameter, signature
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import check_is_fitted

from cqrf._input.target import Target, oriented
from cqrf._runtime.arguments import read_choice
from cqrf.metrics.concordance import concordance_index
from cqrf.metrics.quantile import censored_quantile_loss
from cqrf.metrics.survival import crps, integrated_brier_score

QUANTILES = (0.25, 0.5, 0.75)


class Scorer(BaseEstimator):
    """What :func:`make_scorer` gives. An estimator only in that scikit-learn routes weights to it.

    ``set_score_request(sample_weight=True)`` asks for them, under metadata routing.
    """

    __metadata_request__score: ClassVar = {"estimator": UNUSED}  # what is scored is no metadata

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
        # A search by several scorers asks this of each where metadata routing is off.
        return True


def make_scorer(metric: str, **options: Any) -> Scorer:
    """Scorer of the given name, to pass as ``scoring``.

    Parameters
    ----------
    metric : {"quantile_loss", "concordance", "uno_concordance", "brier", "crps"}
        What to score by. The concordances rank rows by their restricted mean
        (``predict_mean``), which is there where censoring hides the median. ``"brier"`` is the
        integrated Brier score, over the range that it takes by itself or over ``times``.
    **options
        ``quantiles`` for ``"quantile_loss"`` (default .25 .5 .75, averaged); ``quantile`` for
        the concordances, to rank by that instead of the mean; ``times`` for ``"brier"``;
        ``forest_censoring=True`` for all but the concordances, to weigh by the forest's own G at
        each row.

    Returns
    -------
    Scorer
        Called with a fitted forest (or a pipeline that ends in one), X and y. It takes
        ``sample_weight``; with scikit-learn's metadata routing on, ask for it by
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
    read_choice("metric", metric, tuple(SCORERS))
    known = signature(SCORERS[metric]).parameters.values()
    allowed = [p.name for p in known if p.kind is Parameter.KEYWORD_ONLY and p.name != "uno"]
    for name in options:
        if name not in allowed:
            raise ValueError(
                f"{metric!r} has no option {name!r}; it takes {', '.join(allowed) or 'none'}."
            )
    return Scorer(metric, options)


def score_quantile_loss(
    estimator: Any,
    X: Any,
    y: Any,
    sample_weight: ArrayLike | None = None,
    *,
    quantiles: ArrayLike = QUANTILES,
    forest_censoring: bool = False,
) -> float:
    """Minus the censored quantile loss, mean over levels."""
    forest, X = _unwrap(estimator, X)
    levels = np.atleast_1d(np.asarray(quantiles, np.float64))
    predicted = forest.predict(X, levels, unidentified="clip")
    options = _options(forest, X, sample_weight, forest_censoring)
    return -float(censored_quantile_loss(_training(forest), y, predicted, levels, **options).mean())


def score_concordance(
    estimator: Any,
    X: Any,
    y: Any,
    sample_weight: ArrayLike | None = None,
    *,
    quantile: float | None = None,
    uno: bool = False,
) -> float:
    """Harrell's or Uno's concordance of the restricted mean, or of one predicted quantile."""
    forest, X = _unwrap(estimator, X)
    if quantile is None:
        predicted = forest.predict_mean(X)
    else:
        predicted = forest.predict(X, quantile, unidentified="clip")
    options = {"censoring": forest.model_.censoring, "sample_weight": sample_weight}
    if uno:
        options |= {"y_train": _training(forest), "train_weight": forest.model_.rows.weight}
    return concordance_index(y, predicted, **options)


def score_brier(
    estimator: Any,
    X: Any,
    y: Any,
    sample_weight: ArrayLike | None = None,
    *,
    times: ArrayLike | None = None,
    forest_censoring: bool = False,
) -> float:
    """Minus the integrated Brier score."""
    forest, X = _unwrap(estimator, X)
    survival = forest.predict_survival(X, times)
    options = _options(forest, X, sample_weight, forest_censoring)
    return -integrated_brier_score(_training(forest), y, survival, times, **options)


def score_crps(
    estimator: Any,
    X: Any,
    y: Any,
    sample_weight: ArrayLike | None = None,
    *,
    forest_censoring: bool = False,
) -> float:
    """Minus the continuous ranked probability score."""
    forest, X = _unwrap(estimator, X)
    options = _options(forest, X, sample_weight, forest_censoring)
    return -crps(_training(forest), y, forest.predict_survival(X), **options)


SCORERS: dict[str, Callable[..., float]] = {
    "quantile_loss": score_quantile_loss,
    "concordance": score_concordance,
    "uno_concordance": partial(score_concordance, uno=True),
    "brier": score_brier,
    "crps": score_crps,
}


def _unwrap(estimator: Any, X: Any) -> tuple[Any, Any]:
    """Forest at the end of a pipeline, and X as it arrives there."""
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


def _training(forest: Any) -> Target:
    model = forest.model_
    time = oriented(model.rows.time, model.censoring)
    return Target(time, model.rows.event, model.entry)


def _options(
    forest: Any, X: Any, sample_weight: ArrayLike | None, forest_censoring: bool
) -> dict[str, Any]:
    return {
        "censoring": forest.model_.censoring,
        "censoring_survival": forest.predict_censoring(X) if forest_censoring else None,
        "train_weight": forest.model_.rows.weight,
        "sample_weight": sample_weight,
    }
