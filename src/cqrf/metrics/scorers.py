"""Scorers: every metric as scikit-learn wants it, for ``cross_val_score`` and ``GridSearchCV``.

A scorer is called with a fitted forest (or a pipeline that ends in one), X and y; larger is
better, so losses come negated. G is estimated from the rows the forest was fitted on.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from inspect import Parameter, signature
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from cqrf.metrics.concordance import concordance_index
from cqrf.metrics.quantile import censored_quantile_loss
from cqrf.metrics.survival import crps, integrated_brier_score
from cqrf.target import Target, oriented, read_target

QUANTILES = (0.25, 0.5, 0.75)
N_TIMES = 50


def make_scorer(metric: str, **options: Any) -> Callable[..., float]:
    """Scorer of the given name, to pass as ``scoring``.

    Parameters
    ----------
    metric : {"quantile_loss", "concordance", "uno_concordance", "brier", "crps"}
        What to score by. ``"brier"`` is the integrated Brier score, from the 10th to the 90th
        percentile of the test times, or over ``times``.
    **options
        ``quantiles`` for ``"quantile_loss"`` (default .25 .5 .75, averaged); ``quantile`` for
        the concordances (default .5); ``times`` for ``"brier"``; ``forest_censoring=True`` for
        all but the concordances, to weigh by the forest's own G at each row.

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
    if metric not in SCORERS:
        raise ValueError(f"metric={metric!r} must be one of {', '.join(map(repr, SCORERS))}.")
    known = signature(SCORERS[metric]).parameters.values()
    allowed = [p.name for p in known if p.kind is Parameter.KEYWORD_ONLY and p.name != "uno"]
    for name in options:
        if name not in allowed:
            raise ValueError(
                f"{metric!r} has no option {name!r}; it takes {', '.join(allowed) or 'none'}."
            )
    return partial(SCORERS[metric], **options)


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
    quantile: float = 0.5,
    uno: bool = False,
) -> float:
    """Harrell's or Uno's concordance of one predicted quantile."""
    forest, X = _unwrap(estimator, X)
    predicted = forest.predict(X, quantile, unidentified="clip")
    options = _options(forest, X, sample_weight, False)
    del options["censoring_survival"]
    return concordance_index(y, predicted, y_train=_training(forest) if uno else None, **options)


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
    if times is None:
        first, last = np.quantile(read_target(y).time, [0.1, 0.9])
        times = np.linspace(first, last, N_TIMES)
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
