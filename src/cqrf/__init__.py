"""Forests that predict quantiles of censored times.

The names below are loaded on first use, so that ``import cqrf`` is fast.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cqrf._input.columns import TextColumnWarning
    from cqrf._input.features import UnseenLevelWarning
    from cqrf._input.intervals import interval
    from cqrf._input.target import NegativeTimeWarning, censored
    from cqrf._input.times import TimedeltaWarning
    from cqrf._model.file_sections import ModelFileError
    from cqrf._survival.incidence import IncidenceCurves
    from cqrf._survival.quantiles import UnidentifiedQuantileWarning, solve_quantiles
    from cqrf._survival.step_curve import StepCurve
    from cqrf._survival.step_curves import BeyondFollowUpWarning, StepCurves
    from cqrf.estimator import CensoredQuantileForest
    from cqrf.tuning import tune

_MODULE_OF = {
    "BeyondFollowUpWarning": "_survival.step_curves",
    "CensoredQuantileForest": "estimator",
    "IncidenceCurves": "_survival.incidence",
    "ModelFileError": "_model.file_sections",
    "NegativeTimeWarning": "_input.target",
    "TimedeltaWarning": "_input.times",
    "StepCurve": "_survival.step_curve",
    "StepCurves": "_survival.step_curves",
    "TextColumnWarning": "_input.columns",
    "UnidentifiedQuantileWarning": "_survival.quantiles",
    "UnseenLevelWarning": "_input.features",
    "censored": "_input.target",
    "interval": "_input.intervals",
    "solve_quantiles": "_survival.quantiles",
    "tune": "tuning",
}

_SUBMODULES = (
    "calibration",
    "conformal",
    "dask",
    "datasets",
    "effects",
    "evaluation",
    "inspection",
    "metrics",
    "plots",
    "report",
    "serve",
    "tuning",
)

__all__ = [
    "BeyondFollowUpWarning",
    "CensoredQuantileForest",
    "IncidenceCurves",
    "ModelFileError",
    "NegativeTimeWarning",
    "StepCurve",
    "StepCurves",
    "TextColumnWarning",
    "TimedeltaWarning",
    "UnidentifiedQuantileWarning",
    "UnseenLevelWarning",
    "censored",
    "interval",
    "solve_quantiles",
    "tune",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("cqrf")
    if name in _MODULE_OF:
        return getattr(import_module(f"cqrf.{_MODULE_OF[name]}"), name)
    if name in _SUBMODULES:
        return import_module(f"cqrf.{name}")
    # With name and obj Python adds the public name that is nearest.
    message = f"module 'cqrf' has no attribute {name!r}"
    raise AttributeError(message, name=name, obj=sys.modules[__name__])


def __dir__() -> list[str]:
    return sorted([*__all__, *_SUBMODULES, "__version__"])
