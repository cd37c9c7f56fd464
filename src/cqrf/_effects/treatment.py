"""The treatment of each row, and known propensities."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cqrf._effects.response import Floats
from cqrf._input.target import Target
from cqrf._runtime.arguments import is_missing, name_row, read_floats

# An arm needs so many rows for forests of its own.
FEWEST_ROWS = 20
# Propensities outside of these limits mean that some rows have hardly a counterpart.
LOW, HIGH = 0.05, 0.95
# Known propensities are doubted if a sum differs from its mean by so many standard errors.
MOST_ERRORS = 5.0


class OverlapWarning(UserWarning):
    """Some rows have hardly a counterpart in the other arm."""


class Treatment(NamedTuple):
    """Which arm each row is in.

    Attributes
    ----------
    arm : (n,) bool
        Number of the arm: 0 is that of the first row.
    treated : int
        Number of the arm that is the treatment.
    levels : tuple
        How the control and the treatment are called.
    """

    arm: NDArray[np.bool_]
    treated: int
    levels: tuple[Any, Any]


def read_treatment(treatment: Any, control: Any, n: int) -> Treatment:
    """Arms of n rows, from two values of any kind; ``control`` names one of them, or None."""
    values = np.asarray(treatment)
    if values.shape != (n,):
        raise ValueError(
            f"treatment has shape {values.shape}; expected ({n},), one value for each row of X."
        )
    listed = values.tolist()
    missing = next((row for row, value in enumerate(listed) if is_missing(value)), None)
    if missing is not None:
        raise ValueError(f"treatment is missing in {name_row(missing)}: drop such rows.")
    stated = state_order(treatment)
    levels = sorted(
        set(listed), key=stated.index if stated else lambda level: (str(type(level)), level)
    )
    if len(levels) != 2:
        shown = ", ".join(repr(level) for level in levels[:5])
        more = " ..." if len(levels) > 5 else ""
        raise ValueError(
            f"treatment must have two values; found {len(levels)}: {shown}{more}. "
            + (
                "There is nothing to compare."
                if len(levels) == 1
                else "For several arms, fit one forest for each treatment, to its rows and those "
                "of the control."
            )
        )
    if control is None:
        control = levels[0]
    elif control not in levels:
        raise ValueError(f"control={control!r} must be one of {levels[0]!r} and {levels[1]!r}.")
    treated_level = levels[1] if control == levels[0] else levels[0]
    arm = np.array([value != listed[0] for value in listed])
    return Treatment(arm, 0 if listed[0] == treated_level else 1, (control, treated_level))


def state_order(treatment: Any) -> list[Any] | None:
    """Levels of an ordered categorical of pandas in their order; None for all others."""
    levels = getattr(treatment, "cat", treatment)
    return list(levels.categories) if getattr(levels, "ordered", False) is True else None


def check_arms(treatment: Treatment, target: Target, has_weight: NDArray[np.bool_]) -> None:
    """Raise unless each arm has enough rows, and events, of positive weight."""
    for is_treated in (False, True):
        number = treatment.treated if is_treated else 1 - treatment.treated
        rows = (treatment.arm == bool(number)) & has_weight
        name = repr(treatment.levels[int(is_treated)])
        if rows.sum() < FEWEST_ROWS:
            raise ValueError(
                f"treatment: the arm {name} has {rows.sum()} rows; each arm needs at least "
                f"{FEWEST_ROWS}."
            )
        if not target.event[rows].any():
            raise ValueError(
                f"treatment: no event was observed in the {rows.sum()} rows of the arm {name}, so "
                "that its survival cannot be told from any other."
            )


def read_propensity(propensity: Any, treatment: Treatment) -> Floats | None:
    """Known probability of arm 1 for each row, from that of the treatment."""
    if propensity is None:
        return None
    n = len(treatment.arm)
    values = read_floats("propensity", propensity)
    if values.shape not in ((), (n,)):
        raise ValueError(
            f"propensity has shape {values.shape}; expected one number, or one for each of the {n} "
            "rows."
        )
    if np.isnan(values).any():
        where = (
            "" if values.ndim == 0 else f" in {name_row(int(np.flatnonzero(np.isnan(values))[0]))}"
        )
        raise ValueError(
            f"propensity is missing{where}: give every row its probability of treatment, or leave "
            "propensity out, so that it is estimated."
        )
    if not ((values > 0) & (values < 1)).all():
        bad = np.atleast_1d(~((values > 0) & (values < 1)))
        where = "" if values.ndim == 0 else f" in {name_row(int(np.flatnonzero(bad)[0]))}"
        found = np.atleast_1d(values)[bad][0]
        raise ValueError(
            f"propensity is {found:g}{where}; it must lie strictly between 0 and 1, as a row that "
            "could be in one arm only says nothing about the difference."
        )
    of_treatment = np.broadcast_to(values, n)
    return np.array(of_treatment if treatment.treated == 1 else 1.0 - of_treatment)


def warn_of_other_arm(
    known: Floats, treatment: Treatment, unit: NDArray[np.int32], stacklevel: int = 3
) -> None:
    """Warn if known propensities of arm 1 are hardly those of the rows, but of the other arm.

    ``unit`` is the row or cluster, negative for rows without weight. Sums over rows are compared
    with their standard errors by units, so that clusters that were assigned as a whole do not look
    like a mistake.
    """
    has_weight = unit >= 0
    unit = unit[has_weight]
    control, treated = treatment.levels
    is_treated = (treatment.arm == bool(treatment.treated))[has_weight]
    of_treatment = (known if treatment.treated == 1 else 1.0 - known)[has_weight]
    centred = (is_treated - is_treated.mean()) * (of_treatment - of_treatment.mean())
    mean, share = of_treatment.mean(), is_treated.mean()
    if abs(_scaled_sum(is_treated - of_treatment, unit)) > MOST_ERRORS:
        found = f"propensity is {mean:.3g} on average, but {share:.1%} of the rows are in the arm"
        found += f" {treated!r}"
    elif _scaled_sum(centred, unit) < -MOST_ERRORS:
        own, other = of_treatment[is_treated].mean(), of_treatment[~is_treated].mean()
        found = (
            f"propensity is {own:.3g} on average in the arm {treated!r}, lower than in the arm "
            f"{control!r}, where it is {other:.3g}"
        )
    else:
        return
    warnings.warn(
        f"{found}: chance does not explain that. It must be the probability of the treatment, "
        f"which is {treated!r} here; control= says which arm is the control.",
        UserWarning,
        stacklevel=stacklevel,
    )


def _scaled_sum(values: Floats, unit: NDArray[np.int32]) -> float:
    """A sum over rows, divided by its standard error."""
    sums = np.bincount(unit, weights=values)
    error = float(np.sqrt((sums**2).sum()))
    # Rounding of equal values is no deviation.
    return float(sums.sum()) / error if error > 1e-9 * len(values) else 0.0


def warn_of_overlap(propensity: Floats, stacklevel: int = 3) -> None:
    """Warn if some rows could hardly be in the other arm."""
    outside = (propensity < LOW) | (propensity > HIGH)
    if outside.any():
        have = "has" if outside.sum() == 1 else "have"
        warnings.warn(
            f"{outside.sum()} of {len(outside)} rows {have} a propensity below {LOW} or above "
            f"{HIGH} (from {propensity.min():.3f} to {propensity.max():.3f}): they have hardly a "
            "counterpart in the other arm, and what is said about them rests on few rows. See "
            'overlap(); ate(population="overlap") leaves them little weight.',
            OverlapWarning,
            stacklevel=stacklevel,
        )
