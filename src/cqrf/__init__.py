"""Forests that predict quantiles of censored times.

The names below are loaded on first use, so that ``import cqrf`` is fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cqrf._input.target import censored
    from cqrf._model.file_checks import ModelFileError
    from cqrf._survival.curves import StepCurve, StepCurves
    from cqrf._survival.quantiles import UnidentifiedQuantileWarning, solve_quantiles
    from cqrf.estimator import CensoredQuantileForest
    from cqrf.tuning import tune

_MODULE_OF = {
    "CensoredQuantileForest": "estimator",
    "ModelFileError": "_model.file_checks",
    "StepCurve": "_survival.curves",
    "StepCurves": "_survival.curves",
    "UnidentifiedQuantileWarning": "_survival.quantiles",
    "censored": "_input.target",
    "solve_quantiles": "_survival.quantiles",
    "tune": "tuning",
}

__all__ = [
    "CensoredQuantileForest",
    "ModelFileError",
    "StepCurve",
    "StepCurves",
    "UnidentifiedQuantileWarning",
    "censored",
    "solve_quantiles",
    "tune",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("cqrf")
    if name in _MODULE_OF:
        return getattr(import_module(f"cqrf.{_MODULE_OF[name]}"), name)
    raise AttributeError(f"module 'cqrf' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__, "__version__"])
