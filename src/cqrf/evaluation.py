"""Evaluation: how good a forest is, by every measure at once."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from cqrf._input.target import read_target
from cqrf._model.skill import SCORE_QUANTILES, compute_skill
from cqrf._survival.curves import StepCurves
from cqrf.calibration import assess_calibration
from cqrf.estimator import CensoredQuantileForest
from cqrf.metrics import (
    censored_quantile_loss,
    concordance_index,
    crps,
    integrated_brier_score,
)


def evaluate(forest: CensoredQuantileForest, X: Any = None, y: Any = None) -> dict[str, float]:
    """Skill, concordance, Brier score, CRPS, quantile losses and calibration of a forest.

    Parameters
    ----------
    forest : CensoredQuantileForest
        Fitted.
    X, y : table and target, optional
        Rows the forest has not seen; what censoring hides of them is made up for by their own
        censoring, which need not be that of the training rows. Without them the forest is judged
        out of bag, on the rows it was fitted to, less those that every tree has drawn.

    Returns
    -------
    dict of float
        ``rows``; ``skill`` over Kaplan-Meier; ``concordance`` (Harrell's, of the restricted
        mean); ``integrated_brier_score`` over its usual range of times;
        ``crps`` and ``loss_0.25``, ``loss_0.5``, ``loss_0.75``, in units of time;
        ``calibration_distance`` and ``calibration_p_value``. A measure that these rows cannot
        give is NaN.
    """
    check_is_fitted(forest)
    model = forest.model_
    train, train_weight = model.training_target, model.training_weight
    options: dict[str, Any] = {"censoring": model.censoring}
    if X is None:
        test = train
        predicted = forest.predict_oob(SCORE_QUANTILES, unidentified="clip")
        curves = forest.predict_survival_oob()
        weight = train_weight * ~np.isnan(predicted).any(axis=1)
        predicted = np.nan_to_num(predicted)
        skill, calibration = forest.score_oob(), assess_calibration(forest)
        options["train_weight"] = train_weight
    else:
        test = read_target(y)
        predicted = forest.predict(X, SCORE_QUANTILES, unidentified="clip")
        curves = forest.predict_survival(X)
        weight = np.ones(len(test.time))
        skill = compute_skill(model, predicted, test, censored_as=test)
        calibration = assess_calibration(forest, X, y)
    assert isinstance(curves, StepCurves)
    side = model.censoring
    options["sample_weight"] = weight
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of what lies beyond the horizon
        measured = {
            "rows": float((weight > 0).sum()),
            "skill": skill,
            "concordance": _known(
                concordance_index,
                test,
                curves.restricted_mean(model.last_time, side),
                censoring=side,
                sample_weight=weight,
            ),
            "integrated_brier_score": _known(integrated_brier_score, test, test, curves, **options),
            "crps": _known(crps, test, test, curves, **options),
        }
        losses = censored_quantile_loss(test, test, predicted, SCORE_QUANTILES, **options)
    measured |= {
        f"loss_{level}": float(loss) for level, loss in zip(SCORE_QUANTILES, losses, strict=True)
    }
    return measured | {
        "calibration_distance": calibration.distance,
        "calibration_p_value": calibration.p_value,
    }


def _known(measure: Callable[..., float], *arguments: Any, **options: Any) -> float:
    """The measure, or NaN if these rows cannot give it: no pair of times, say, to compare."""
    try:
        return float(measure(*arguments, **options))
    except ValueError:
        return np.nan
