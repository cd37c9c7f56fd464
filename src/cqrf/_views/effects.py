"""What pages say about a treatment forest: the times they show, its arms, what is assumed."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cqrf._effects.fitted import EffectModel
from cqrf.effects import CensoredTreatmentForest

FEWEST_STEPS = 4  # a step of the shown times is at least this part of the horizon


class Arm(NamedTuple):
    """An arm of the training rows."""

    name: str
    rows: int
    events: int


def list_arms(forest: CensoredTreatmentForest) -> list[Arm]:
    """Control and treatment, called so if their names are numbers."""
    model = forest.model_
    event = model.effect.training_target.event
    names = [str(name) for name in forest.arms_]
    if all(isinstance(name, bool | int | float) for name in forest.arms_):
        names = ["control", "treatment"]
    arms = []
    for is_treated, name in zip((False, True), names, strict=True):
        inside = (model.arm == bool(model.treated)) == is_treated
        arms.append(Arm(name, int(inside.sum()), int(event[inside].sum())))
    return arms


def is_assigned_by_design(forest: CensoredTreatmentForest) -> bool:
    """Whether the probability of treatment was known, as in a trial."""
    return forest.model_.known_propensity is not None


def describe_assumptions(forest: CensoredTreatmentForest) -> str:
    """What must hold for a difference between the arms to be an effect of the treatment."""
    if is_assigned_by_design(forest):
        return (
            "Treatment was assigned by design, with known probability: a difference between the "
            "arms is an effect of the treatment."
        )
    return (
        "Treatment was not assigned by design: a difference between the arms is an effect of the "
        "treatment only if there is no unmeasured confounding, that is, if everything that "
        "influenced both the treatment and the time is among the covariates."
    )


def choose_times(model: EffectModel) -> list[float]:
    """Two to four round times up to the default horizon, at which survival is compared; or none."""
    start, horizon = model.grid.start, model.follow_up
    least = (horizon - start) / FEWEST_STEPS
    if least < np.finfo(np.float64).tiny:  # all events are at the start: there is no time between
        return []
    power = 10.0 ** np.floor(np.log10(least))
    step = power * next(factor for factor in (1, 2, 2.5, 5, 10) if factor * power >= least)
    multiples = np.arange(np.floor(start / step) + 1, np.floor(horizon / step + 1e-9) + 1)
    return [float(f"{time:.12g}") for time in multiples * step]
