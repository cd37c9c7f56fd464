"""What is known after the follow-up of an arm has ended.

The curve of an arm is known up to the last time of its rows, and for all times if that is an event,
as it falls to 0 there. A mean up to a horizon needs the curve before the horizon only: where all
times are whole numbers, a curve stays as it is until the next whole number.

After its end a curve lies between 0 and its last value s. So a part of the mean up to h that lies
between 0 and s (h - end) is not known, and P(T > t) lies between 0 and s. If these ranges of both
arms together are at most NEGLIGIBLE, as a share of the horizon or as a probability, effects are
estimated from the middle of each range, and intervals are extended by half of the ranges. Otherwise
``beyond`` says what becomes of an effect: ``"nan"``; ``"restrict"``, for means only, shortens the
horizon to what is known; ``"extend"`` draws the curves on as flat lines, which is not an estimate.
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cqrf._effects.fitted import EffectModel
from cqrf._effects.response import Floats
from cqrf._effects.targets import LinearTarget, Quantiles, RestrictedMeans, Target
from cqrf._model.queries import Queries, training_codes
from cqrf._readers.curves import SurvivalAt
from cqrf._readers.reader import read_one
from cqrf._runtime.arguments import exactly, read_choice
from cqrf._survival.step_curve import BEYOND
from cqrf._survival.step_curves import BEYOND_MEAN, BeyondFollowUpWarning

NEGLIGIBLE = 0.01


class Known(NamedTuple):
    """A target, as far as it is known.

    Attributes
    ----------
    target : LinearTarget
        What is estimated.
    is_known : (n_outputs,) bool
    rest : (2, n_outputs) float64
        Half of the range that is not known in each arm, over the survival at the end of the arm.
    """

    target: LinearTarget
    is_known: NDArray[np.bool_]
    rest: Floats

    @property
    def has_rest(self) -> bool:
        """Whether something negligible is not known."""
        return bool((self.rest > 0).any())

    def blank(self, values: Floats) -> Floats:
        """Values of (..., n_outputs), NaN where they are not known."""
        return values if self.is_known.all() else np.where(self.is_known, values, np.nan)


def refuse_beyond(target: Target, beyond: Any) -> None:
    """Raise unless ``beyond`` is a choice for this target."""
    if isinstance(target, Quantiles):
        if beyond != "nan":
            raise ValueError(
                f'beyond={beyond!r} does not go with target="quantile": quantiles that are not '
                "identifiable stay infinite or NaN."
            )
    elif isinstance(target, RestrictedMeans):
        read_choice("beyond", beyond, BEYOND_MEAN)
    else:
        read_choice("beyond", beyond, BEYOND)


def follow(model: EffectModel, target: LinearTarget, beyond: str, stacklevel: int = 3) -> Known:
    """The target as far as it is known, with a warning if not all of it is.

    ``stacklevel`` leads to the user's line: 3 if a method that users call calls this function.
    """
    refuse_beyond(target, beyond)
    of_mean = isinstance(target, RestrictedMeans)
    ends = model.mean_ends if of_mean else model.ends
    missing = np.maximum(target.last_times - ends[:, np.newaxis], 0.0)
    nothing = np.zeros(missing.shape)
    everything = np.full(missing.shape[1], True)
    if beyond == "restrict" and missing.any():
        return Known(RestrictedMeans(float(ends.min())), everything, nothing)
    if beyond != "nan" or not missing.any():
        return Known(target, everything, nothing)
    left = survival_at_ends(model, None, None)
    shares = np.average(left, axis=1, weights=model.weight[model.effect.ranks])
    ranges = missing if of_mean else (missing > 0).astype(np.float64)
    unknown = shares @ ranges
    size = target.last_times - model.grid.start if of_mean else 1.0
    is_known = unknown <= NEGLIGIBLE * size
    rest = np.where(is_known, ranges / 2, 0.0)
    at = target.last_times
    if not is_known.all():
        _warn_of_unknown(model, ends, at[~is_known], of_mean, stacklevel + 1)
    if rest.any():
        has_rest = is_known & (unknown > 0)
        _warn_of_rest(ends, shares, at[has_rest], unknown[has_rest].max() / 2, stacklevel + 1)
    return Known(target.shortened(missing * is_known), is_known, rest)


def half_ranges(model: EffectModel, known: Known, queries: Queries, n_jobs: int | None) -> Floats:
    """Half of what is not known of the effect at some queries, (n, n_outputs)."""
    return survival_at_ends(model, queries, n_jobs).T @ known.rest


def average_half_range(model: EffectModel, known: Known, share: Floats) -> Floats:
    """Half of what is not known of an average with these shares of rows, by rank; (n_outputs,)."""
    left = survival_at_ends(model, None, None)[:, model.effect.order]
    half: Floats = (left @ share / share.sum()) @ known.rest
    return half


def survival_at_ends(model: EffectModel, queries: Queries | None, n_jobs: int | None) -> Floats:
    """P(T > end | x) of each arm at its own end, (2, n); None: of the training rows.

    0 for an arm whose curve falls to 0.
    """
    if queries is None:
        queries = Queries(training_codes(model.effect))
    left = np.zeros((2, len(queries.codes)))
    for number, (end, arm) in enumerate(zip(model.ends, model.forests.arms, strict=True)):
        if np.isfinite(end):
            left[number] = read_one(arm, queries, SurvivalAt(end), n_jobs)[:, 0]
    return left


def _warn_of_unknown(
    model: EffectModel, ends: Floats, unknown: Floats, of_mean: bool, stacklevel: int
) -> None:
    both = "both arms" if len(set(model.ends)) == 1 else "one arm"
    restrict = "beyond='restrict' gives the mean up to this time, " if of_mean else ""
    # Whole numbers: a mean is known up to the one after the last time.
    place = "" if ends.min() == model.ends.min() else "whole number after the "
    warnings.warn(
        f"the survival of {both} is known up to {exactly(float(ends.min()))} only, the {place}last "
        f"time of its training rows: the effect is NaN for {_list(unknown)}. Ask for an earlier "
        f"time; {restrict}beyond='extend' draws the curve on as a flat line, which is not an "
        "estimate.",
        BeyondFollowUpWarning,
        stacklevel=stacklevel,
    )


def _warn_of_rest(ends: Floats, shares: Floats, at: Floats, half: float, stacklevel: int) -> None:
    first = int(np.argmin(ends))
    warnings.warn(
        f"the survival of {'both arms' if np.isfinite(ends).all() else 'one arm'} is not known "
        f"after {exactly(float(ends[first]))}, where {shares[first]:.2%} are left. Whatever "
        f"becomes of them, the average effect for {_list(at)} changes by at most {half:.2g} in "
        "either direction: the middle is given, and the intervals of effect_interval and ate "
        "are extended by what is not known.",
        BeyondFollowUpWarning,
        stacklevel=stacklevel,
    )


def _list(times: Floats) -> str:
    return ", ".join(exactly(float(each)) for each in times)
