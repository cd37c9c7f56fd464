"""Targets: what is compared between the arms.

``"rmst"`` and ``"survival"`` are linear in the survival curve: their effects are averages of
responses. ``"quantile"`` is read off the curves of both arms.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cqrf._effects.fitted import EffectModel
from cqrf._effects.nuisances import Nuisances
from cqrf._effects.response import Floats, Grid
from cqrf._runtime.arguments import exactly, is_number, read_choice, read_floats
from cqrf._survival.quantiles import read_levels

TARGETS = ("rmst", "survival", "quantile")
ARGUMENTS = {"rmst": "horizon", "survival": "times", "quantile": "quantiles"}


class RestrictedMeans(NamedTuple):
    """E[min(T, horizon)]."""

    horizon: float
    is_single: bool = True
    of_arm: tuple[float, float] | None = None  # up to which time Y* of each arm is integrated

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
        if self.of_arm is None:
            return nuisances.response.means(self.horizon)[:, np.newaxis]
        zero, one = (nuisances.response.means(horizon) for horizon in self.of_arm)
        return np.where(nuisances.arm, one, zero)[:, np.newaxis]

    def of_curves(self, nuisances: Nuisances, curves: Floats) -> Floats:
        """The target for survival curves on the grid, shape (n, n_outputs)."""
        return nuisances.grid.means(curves, self.horizon)[:, np.newaxis]

    def coefficients(self, grid: Grid) -> Floats:
        """Coefficients of the values of a curve on a grid, shape (n_times + 1, n_outputs)."""
        return grid.widths(self.horizon)[:, np.newaxis]

    def shortened(self, missing: Floats) -> RestrictedMeans:
        """The same without half of the time, (2, 1), by which the curve of each arm is too short.

        Y* of an arm stays as it is after the end of its curve.
        """
        zero, one = (self.horizon - missing[:, 0] / 2).tolist()
        return self._replace(of_arm=(zero, one)) if missing.any() else self

    def until(self, falls: Floats) -> RestrictedMeans:
        """The same where the curve of each arm is 0 from a time of ``falls``, (2,), on."""
        if self.horizon <= falls.min():
            return self
        given = (self.horizon, self.horizon) if self.of_arm is None else self.of_arm
        zero, one = np.minimum(given, falls).tolist()
        return self._replace(horizon=float(min(self.horizon, falls.max())), of_arm=(zero, one))


class SurvivalProbabilities(NamedTuple):
    """P(T > t) at some times."""

    times: Floats
    is_single: bool
    factor: Floats | None = None  # what Y* of each arm is multiplied by, (2, n_times)

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
        values = nuisances.response.at(self.times)
        return values if self.factor is None else values * self.factor[nuisances.arm.astype(int)]

    def of_curves(self, nuisances: Nuisances, curves: Floats) -> Floats:
        """The target for survival curves on the grid, shape (n, n_outputs)."""
        values: Floats = curves[:, nuisances.grid.columns(self.times)]
        return values if self.factor is None else values * self.is_above

    def coefficients(self, grid: Grid) -> Floats:
        """Coefficients of the values of a curve on a grid, shape (n_times + 1, n_outputs)."""
        is_used = np.arange(len(grid.begins))[:, np.newaxis] == grid.columns(self.times)
        return (is_used & self.is_above).astype(np.float64)

    def shortened(self, missing: Floats) -> SurvivalProbabilities:
        """The same with half of the probability where the curve of an arm is too short.

        missing : (2, n_times), by how much
        """
        return self._replace(factor=np.where(missing > 0, 0.5, 1.0)) if missing.any() else self

    def until(self, falls: Floats) -> SurvivalProbabilities:
        """The same where the curve of each arm is 0 from a time of ``falls``, (2,), on."""
        is_before = self.times < falls[:, np.newaxis]
        if is_before.all():
            return self
        given = np.ones((2, 1)) if self.factor is None else self.factor
        return self._replace(factor=np.where(is_before, given, 0.0))

    @property
    def is_above(self) -> NDArray[np.bool_]:
        """Times at which the curve of some arm may be above 0."""
        if self.factor is None:
            return np.full(len(self.times), True)
        return np.asarray((self.factor > 0).any(axis=0))


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
