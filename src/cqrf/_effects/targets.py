"""Targets: what is compared between the arms.

``"rmst"`` and ``"survival"`` are linear in the survival curve: their effects are averages of
responses. ``"quantile"`` is read off the curves of both arms.
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np

from cqrf._effects.fitted import EffectModel
from cqrf._effects.nuisances import Nuisances
from cqrf._effects.response import Floats
from cqrf._runtime.arguments import exactly, is_number, read_choice, read_floats
from cqrf._survival.quantiles import read_levels
from cqrf._survival.step_curves import BeyondFollowUpWarning

TARGETS = ("rmst", "survival", "quantile")
ARGUMENTS = {"rmst": "horizon", "survival": "times", "quantile": "quantiles"}


class RestrictedMeans(NamedTuple):
    """E[min(T, horizon)]."""

    horizon: float
    is_single: bool = True

    @property
    def last_times(self) -> Floats:
        """Time up to which each output needs the curves."""
        return np.array([self.horizon])

    @property
    def names(self) -> list[str]:
        """Name of each output."""
        return [f"rmst{exactly(self.horizon)}"]

    def responses(self, nuisances: Nuisances) -> Floats:
        """Y* of the training rows, shape (n, n_outputs)."""
        return nuisances.response.means(self.horizon)[:, np.newaxis]

    def of_curves(self, nuisances: Nuisances, curves: Floats) -> Floats:
        """The target for survival curves on the grid, shape (n, n_outputs)."""
        return nuisances.grid.means(curves, self.horizon)[:, np.newaxis]


class SurvivalProbabilities(NamedTuple):
    """P(T > t) at some times."""

    times: Floats
    is_single: bool

    @property
    def last_times(self) -> Floats:
        """Time up to which each output needs the curves."""
        return self.times

    @property
    def names(self) -> list[str]:
        """Name of each output."""
        return [f"survival{exactly(time)}" for time in self.times]

    def responses(self, nuisances: Nuisances) -> Floats:
        """Y* of the training rows, shape (n, n_outputs)."""
        return nuisances.response.at(self.times)

    def of_curves(self, nuisances: Nuisances, curves: Floats) -> Floats:
        """The target for survival curves on the grid, shape (n, n_outputs)."""
        values: Floats = curves[:, nuisances.grid.columns(self.times)]
        return values


class Quantiles(NamedTuple):
    """Quantiles of T at some levels."""

    levels: Floats
    is_single: bool

    @property
    def names(self) -> list[str]:
        """Name of each output."""
        return [f"q{exactly(level)}" for level in self.levels]


LinearTarget = RestrictedMeans | SurvivalProbabilities
Target = LinearTarget | Quantiles


def read_target(
    model: EffectModel, target: Any, horizon: Any = None, times: Any = None, quantiles: Any = None
) -> Target:
    """The target with its argument; the others must be None."""
    read_choice("target", target, TARGETS)
    given = {"horizon": horizon, "times": times, "quantiles": quantiles}
    for name, value in given.items():
        if value is not None and name != ARGUMENTS[target]:
            goes_with = next(each for each in TARGETS if ARGUMENTS[each] == name)
            raise ValueError(
                f'{name} goes with target="{goes_with}"; found target="{target}", whose argument '
                f"is {ARGUMENTS[target]}."
            )
    if target == "quantile":
        return Quantiles(*read_levels(0.5 if quantiles is None else quantiles))
    if target == "survival":
        if times is None:
            raise ValueError('target="survival" needs times=, one or several.')
        read = read_floats("times", times)
        if read.ndim > 1 or read.size == 0 or not np.isfinite(read).all():
            raise ValueError(f"times must be finite numbers; found {times!r}.")
        return SurvivalProbabilities(np.atleast_1d(read), read.ndim == 0)
    if horizon is None:
        return RestrictedMeans(model.follow_up)
    if not is_number(horizon) or not np.isfinite(horizon):
        raise ValueError(f"horizon={horizon!r} must be a finite time.")
    if horizon <= model.grid.start:
        raise ValueError(f"horizon={horizon!r} must be after {exactly(model.grid.start)}.")
    return RestrictedMeans(float(horizon))


def blank_unknown(
    model: EffectModel, target: LinearTarget, values: Floats, stacklevel: int = 3
) -> Floats:
    """NaN, with a warning, for outputs that need times at which an arm is not known.

    ``stacklevel`` leads to the user's line: 3 if a method that users call calls this function.
    """
    end = model.ends.min()
    unknown = target.last_times > end
    if not unknown.any():
        return values
    warnings.warn(
        f"the survival of {'both arms' if len(set(model.ends)) == 1 else 'one arm'} is known up "
        f"to {exactly(float(end))} only, the last time of its training rows: the effect is NaN "
        f"for {', '.join(exactly(float(each)) for each in target.last_times[unknown])}. Ask for "
        "an earlier time.",
        BeyondFollowUpWarning,
        stacklevel=stacklevel,
    )
    return np.where(unknown, np.nan, values)
