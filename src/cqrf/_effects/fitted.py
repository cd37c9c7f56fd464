"""The fitted state of a treatment forest, and the training arrays that are computed from it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from cqrf._effects.forest import level_residuals
from cqrf._effects.linear import LinearEffects
from cqrf._effects.nuisances import Forests, Nuisances
from cqrf._effects.response import Floats, Grid
from cqrf._effects.smoothing import SmoothingLoss, measure_smoothing
from cqrf._input.units import find_clusters
from cqrf._model.fitted import Model
from cqrf._model.queries import has_tree, training_queries


@dataclass(frozen=True, eq=False)
class EffectModel:
    """Forests of a treatment forest, and nuisances of its training rows.

    Attributes
    ----------
    forests : Forests
    effect : Model
        The effect forest.
    nuisances : Nuisances
        By rank, as computed by :func:`~cqrf._effects.nuisances.estimate_nuisances`.
    arm : (n,) bool
        Number of each row's arm, by row of the table.
    known_propensity : (n,) float64 or None
        Known probability of arm 1, by row of the table.
    treated : int
        Number of the arm that is the treatment.
    """

    forests: Forests
    effect: Model
    nuisances: Nuisances
    arm: NDArray[np.bool_]
    known_propensity: Floats | None
    treated: int

    @property
    def sign(self) -> float:
        """Factor that turns effects of arm 1 into effects of the treatment."""
        return 1.0 if self.treated == 1 else -1.0

    @property
    def grid(self) -> Grid:
        """Times of the curves of training rows."""
        return self.nuisances.grid

    @cached_property
    def unit(self) -> NDArray[np.int32]:
        """Sampling unit of each row, by rank: the row or its cluster."""
        return find_clusters(self.effect.sampling.unit_of_row)

    @cached_property
    def weight(self) -> Floats:
        """Relative sample weights, by rank."""
        weight = self.effect.rows.weight
        return np.ones(len(self.arm)) if weight is None else weight.astype(np.float64)

    @cached_property
    def has_score(self) -> NDArray[np.bool_]:
        """Rows of positive weight that some tree did not draw, by rank: averages are over these."""
        is_unseen = has_tree(self.effect, training_queries(self.effect))
        return np.asarray(is_unseen[self.effect.order] & (self.weight > 0))

    @cached_property
    def linear(self) -> LinearEffects:
        """Linear models of effects."""
        nuisances = self.nuisances
        at_levels = level_residuals(nuisances, self.weight)
        return LinearEffects(self.effect, self.unit, nuisances.residual, at_levels)

    @cached_property
    def smoothing(self) -> SmoothingLoss:
        """What averaging over neighbours takes from effects."""
        return measure_smoothing(self.effect, self.nuisances, self.weight)

    @cached_property
    def ends(self) -> Floats:
        """Last time at which the curve of each arm is known, (2,); infinite if it falls to 0."""
        return np.where(self._ends_in_event, np.inf, self._last_times)

    @cached_property
    def falls(self) -> Floats:
        """Time at which the curve of each arm falls to 0, (2,); infinite if it does not."""
        return np.where(self._ends_in_event, self._last_times, np.inf)

    @cached_property
    def _last_times(self) -> Floats:
        return np.array([time[-1] for time, _ in self._rows_of_arms])

    @cached_property
    def _ends_in_event(self) -> NDArray[np.bool_]:
        # Events come first at a tied time: the curve falls to 0 if the last row is one.
        return np.array([event[-1] for _, event in self._rows_of_arms])

    @property
    def _rows_of_arms(self) -> list[tuple[Floats, NDArray[np.bool_]]]:
        """Times and events of the rows of each arm that have weight, in order."""
        found = []
        for model in self.forests.arms:
            rows = model.rows
            is_used = np.full(len(rows.time), True) if rows.weight is None else rows.weight > 0
            found.append((rows.time[is_used], rows.event[is_used]))
        return found

    @cached_property
    def mean_ends(self) -> Floats:
        """Last horizon up to which the mean of each arm is known, (2,).

        It needs the curve before the horizon. Where all times are whole numbers, a curve that is
        known at its end is known before the next whole number.
        """
        time = self.forests.pooled.rows.time
        is_whole = bool((time == np.floor(time)).all())
        return self.ends + 1.0 if is_whole else self.ends

    @property
    def follow_up(self) -> float:
        """Last time at which a tenth of the weight of either arm is at risk."""
        return min(model.follow_up for model in self.forests.arms)
