"""What plots of effects share: the target that is drawn, and how effects are written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from cqrf._effects.targets import Quantiles, SurvivalProbabilities, Target, read_target
from cqrf.plots.style import show_text

if TYPE_CHECKING:
    from cqrf.effects import CensoredTreatmentForest

MINUS = "\N{MINUS SIGN}"
NO_EFFECT: Any = {"color": "0.45", "lw": 1, "ls": "--", "zorder": 1}
FEWEST_DIGITS = 2  # that an interval is written with


def read_single_target(forest: CensoredTreatmentForest, arguments: dict[str, Any]) -> Target:
    """The target of a picture: one horizon, time or level."""
    check_is_fitted(forest, "model_")
    unknown = arguments.keys() - {"target", "horizon", "times", "quantiles"}
    if unknown:
        raise TypeError(
            f"{min(unknown)} is no argument; a target has target, horizon, times and quantiles."
        )
    wanted = read_target(forest.model_, **{"target": "rmst", **arguments})
    if not wanted.is_single:
        name = "quantiles" if isinstance(wanted, Quantiles) else "times"
        raise ValueError(f"{name} must be one number here; found {arguments[name]!r}.")
    return wanted


def time_divisor(wanted: Target, scale: float) -> float:
    """What effects are divided by: the scale of times, unless they are probabilities."""
    return 1.0 if isinstance(wanted, SurvivalProbabilities) else scale


def arm_names(forest: CensoredTreatmentForest) -> list[str]:
    """Names of the control and of the treatment, as texts of Matplotlib."""
    if all(isinstance(name, bool | int | float) for name in forest.arms_):
        return ["control", "treatment"]
    return [show_text(name) for name in forest.arms_]


def effect_label(forest: CensoredTreatmentForest, wanted: Target, scale: float) -> str:
    """Label of an axis of effects, in two lines: what is compared, and the arms."""
    control, treatment = arm_names(forest)
    return f"{_target_label(forest, wanted, scale)}\n{treatment} {MINUS} {control}"


def _target_label(forest: CensoredTreatmentForest, wanted: Target, scale: float) -> str:
    if isinstance(wanted, SurvivalProbabilities):
        return f"survival probability at {write_number(wanted.times[0] / scale)}"
    unit = forest.time_unit
    in_units = ""
    if unit is not None:
        in_units = f" ({show_text(unit)})" if scale == 1 else f" ({show_text(unit)} / {scale:g})"
    if isinstance(wanted, Quantiles):
        level = wanted.levels[0]
        what = "median time" if level == 0.5 else f"{level:g} quantile of time"
        return f"{what}{in_units}"
    return f"mean time up to {write_number(wanted.horizon / scale)}{in_units}"


def write_number(value: float) -> str:
    """A number with four digits, without an exponent if it is large."""
    return f"{value:,.0f}" if abs(value) >= 1e4 else f"{value:.4g}"


def write_level(confidence: float) -> str:
    """A confidence level in percent."""
    return f"{100 * confidence:g} %"


def count_decimals(errors: NDArray[np.float64]) -> int:
    """Decimals that show two digits of the smallest of these standard errors."""
    known = errors[np.isfinite(errors) & (errors > 0)]
    if len(known) == 0:
        return FEWEST_DIGITS
    return max(0, FEWEST_DIGITS - 1 - int(np.floor(np.log10(known.min()))))


def write_interval(numbers: NDArray[np.float64], decimals: int) -> str:
    """An estimate and the ends of its interval, with a minus sign that is no dash."""
    if not np.isfinite(numbers).all():
        return "not identified"
    shown = [f"{value:.{decimals}f}" for value in numbers]
    # A number that is rounded to zero has no sign.
    shown = [text.lstrip("-") if float(text) == 0 else text.replace("-", MINUS) for text in shown]
    return f"{shown[0]} ({shown[1]} to {shown[2]})"
