"""Quality: how good the predictions are, beside one curve for all, and how calibrated."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cqrf._input.target import Target, censored, oriented
from cqrf._model.skill import compute_oob_skill, compute_skill, marginal_quantiles
from cqrf._survival.curves import StepCurves, step_curves
from cqrf.calibration import Calibration, assess_calibration, compare, transform
from cqrf.metrics import FLOOR, censored_quantile_loss, concordance_index, integrated_brier_score
from cqrf.metrics import crps as score_crps
from cqrf.metrics.ipcw import marginal_weights, read_evaluation_rows
from cqrf.report.numbers import count, evenly, plain_list, say, say_share, thin
from cqrf.report.subject import LEVELS, Subject

LOSS_LEVELS = (0.25, 0.5, 0.75)
LOSS_COLUMNS = [LEVELS.index(level) for level in LOSS_LEVELS]
MOST_JUDGED = 2000  # rows whose whole curves are judged
MOST_STEPS = 1000
CONFIDENT = 0.05


class Judged(NamedTuple):
    """Rows that are judged, with what is predicted for them and by one curve for all."""

    target: Target
    weight: NDArray[np.float64] | None
    curves: StepCurves
    baseline: StepCurves


def describe_quality(subject: Subject) -> dict[str, Any]:
    """Facts of the section on how good the predictions are."""
    skill, why = measure_skill(subject)
    rows = judged_rows(subject)
    text = [say_whose(subject)]
    if skill is not None:
        text.append(say_skill(skill))
    train, horizon = subject.censored_as, find_horizon(subject)
    if np.isfinite(horizon):
        bound = "after" if subject.censoring == "right" else "before"
        text.append(
            f"Nothing is asked {bound} the time {say(horizon)}, where fewer than "
            f"{say_share(FLOOR)} of the rows would still be uncensored."
        )
    if subject.target.entry is not None:
        text.append("Rows that enter late are judged by their whole time.")
    measures = [{"name": "Skill", "forest": why or say(skill or 0.0, 3), "baseline": "0"}]
    measures[0]["note"] = "Share of the quantile losses below that is saved; 1 is perfect."
    if len(rows):
        measures += measure_order(subject)
        measures += measure_losses(subject)
        measures += measure_curves(subject, train, rows)
    if len(rows) < int(subject.known.sum()):
        text.append(f"The two scores of whole curves come from {len(rows):,} rows, evenly spaced.")
    return {"text": text, "measures": measures, "out_of_bag": subject.out_of_bag}


def say_whose(subject: Subject) -> str:
    """Which rows are judged, and whether the forest knows them."""
    n, seen = len(subject.target.time), subject.n_seen
    if subject.out_of_bag:
        never = n - int(subject.known.sum())
        rest = (
            f" {count(never, 'row')} that every tree has drawn cannot be judged." if never else ""
        )
        return (
            "This is the table the forest was grown from. Each row is judged out of bag: only by "
            f"the trees that did not draw it.{rest}"
        )
    if seen == 0:
        return "The forest was not grown from any of these rows: a fair test."
    share = "All of these rows are" if seen == n else f"{seen:,} of these {n:,} rows may be"
    return (
        f"{share} among those the forest was grown from, so the numbers below flatter it. "
        "The training table itself, in its own order, would be judged out of bag."
    )


def measure_skill(subject: Subject) -> tuple[float | None, str | None]:
    """Skill over the Kaplan-Meier curve of the training rows, or why there is none."""
    predicted, levels = subject.clipped[:, LOSS_COLUMNS], np.array(LOSS_LEVELS)
    try:
        if subject.out_of_bag:
            skill = compute_oob_skill(subject.model, predicted, levels)
        else:
            skill = compute_skill(
                subject.model, predicted, subject.target, levels, censored_as=subject.censored_as
            )
    except ValueError as error:
        return None, say_why(error)
    if not np.isfinite(skill):
        return None, "not defined: one curve for all makes no error at all"
    return skill, None


def say_skill(skill: float) -> str:
    """Skill in words."""
    if abs(skill) < 0.005:
        return (
            "The forest's quantiles miss by about as much as those of one Kaplan-Meier curve for "
            "all: it has found little."
        )
    more, advice = ("less", "") if skill > 0 else ("more", ": better use that curve")
    return (
        f"The forest's quantiles miss by {say_share(abs(skill))} {more} than those of one "
        f"Kaplan-Meier curve for all{advice}."
    )


def measure_order(subject: Subject) -> list[dict[str, str]]:
    """Concordance of the predicted means: they differ where censoring hides the medians."""
    known = np.flatnonzero(subject.known)
    value = attempt(
        concordance_index,
        subject.target.take(known)._replace(entry=None),
        subject.restricted_mean(known),
        censoring=subject.censoring,
        sample_weight=row_weight(subject, known),
    )
    note = "Share of pairs of rows whose predicted means come in the right order (Harrell's)."
    return [{"name": "Concordance", "forest": value, "baseline": "0.5", "note": note}]


def measure_losses(subject: Subject) -> list[dict[str, str]]:
    """Quantile losses, of the forest and of the marginal quantiles."""
    model, known = subject.model, np.flatnonzero(subject.known)
    train, target = subject.censored_as, subject.target.take(known)
    marginal = np.repeat(marginal_quantiles(model, np.array(LOSS_LEVELS)), len(known), axis=0)
    found = []
    for k, level in enumerate(LOSS_LEVELS):
        forest, baseline = (
            attempt(
                censored_quantile_loss,
                train,
                target,
                predicted,
                level,
                censoring=model.censoring,
                train_weight=subject.weight,
                sample_weight=row_weight(subject, known),
            )
            for predicted in (subject.clipped[known, LOSS_COLUMNS[k]], marginal[:, k])
        )
        found.append(
            {
                "name": f"Loss of the {say_share(level)} quantile",
                "forest": forest,
                "baseline": baseline,
                "note": "In units of time; lower is better.",
            }
        )
    return found


def measure_curves(subject: Subject, train: Target, rows: NDArray[np.intp]) -> list[dict[str, str]]:
    """Integrated Brier score and CRPS, of the forest and of the marginal curve."""
    judged = judge(subject, rows)
    options: dict[str, Any] = {
        "censoring": subject.censoring,
        "train_weight": subject.weight,
        "sample_weight": judged.weight,
    }

    def brier(curves: StepCurves) -> float:
        return integrated_brier_score(train, judged.target, curves, **options)

    def ranked(curves: StepCurves) -> float:
        return score_crps(train, judged.target, curves, **options)

    both = (judged.curves, judged.baseline)
    brier_notes = "Squared error of survival over the middle of the times; lower is better."
    crps_notes = "The same over all times and summed, in units of time; lower is better."
    found = []
    for name, measure, note in (
        ("Integrated Brier score", brier, brier_notes),
        ("CRPS", ranked, crps_notes),
    ):
        forest, baseline = (attempt(measure, curves) for curves in both)
        found.append({"name": name, "forest": forest, "baseline": baseline, "note": note})
    return found


def judge(subject: Subject, rows: NDArray[np.intp]) -> Judged:
    """Curves of the rows that are judged, and the marginal one as often."""
    model = subject.model
    marginal = step_curves(
        marginal_weights(model.rows.weight, len(model.order)),
        model.ranked_target,
        censoring=model.censoring,
    )[0]
    marginal, n = thin(marginal, MOST_STEPS), len(rows)
    baseline = StepCurves(
        np.arange(n + 1) * len(marginal.times),
        np.tile(marginal.times, n),
        np.tile(marginal.values, n),
        np.full(n, marginal.initial),
    )
    target = subject.target.take(rows)
    return Judged(target, row_weight(subject, rows), subject.curves(rows), baseline)


def judged_rows(subject: Subject) -> NDArray[np.intp]:
    """Rows whose whole curves are judged."""
    known = np.flatnonzero(subject.known)
    return known[evenly(len(known), MOST_JUDGED)]


def row_weight(subject: Subject, rows: NDArray[np.intp]) -> NDArray[np.float64] | None:
    """Weights that the rows had in the fit; None if alike, or if these are other rows."""
    if not subject.out_of_bag:
        return None
    return subject.weight[rows]


def find_horizon(subject: Subject) -> float:
    """Time beyond which nothing is asked."""
    train = subject.censored_as
    rows = read_evaluation_rows(
        train, train, censoring=subject.censoring, train_weight=subject.weight
    )
    return float(oriented(rows.horizon, subject.censoring))


def attempt(measure: Callable[..., Any], *arguments: Any, **options: Any) -> str:
    """What a measure comes to, or why it cannot be had."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return say(float(measure(*arguments, **options)), 3)
    except ValueError as error:
        return say_why(error)


def say_why(error: ValueError) -> str:
    """Why a number cannot be had."""
    return f"cannot be computed: {str(error).split('. ')[0].rstrip('.')}"


def describe_calibration(subject: Subject) -> dict[str, Any]:
    """Facts of the section on calibration."""
    try:
        found = calibrate(subject)
    except ValueError as error:
        return {"text": [f"Calibration {say_why(error)}."], "levels": None}
    observed = found.observed
    seen = ~np.isnan(observed)
    text = [
        "Where the forest is right, 30\u00a0% of events come before the predicted 30\u00a0% "
        "quantile, and so on for each level: the curve lies on the diagonal."
    ]
    if not seen.any():
        return {"text": [*text, "Censoring hides all levels of these rows."], "levels": None}
    text.append(
        f"Here it is {say(100 * found.distance, 2)} percentage points off on average, over the "
        f"levels that can be seen ({say_share(found.levels[seen].min())} to "
        f"{say_share(found.levels[seen].max())}). The band is its 95\u00a0% confidence interval, "
        "level by level."
    )
    if np.isfinite(found.p_value):
        p = "p < 0.001" if found.p_value < 0.001 else f"p = {say(found.p_value, 2)}"
        verdict = (
            f"The test of D-calibration does not tell it from chance ({p}). The more is censored "
            "the less it can tell, and out of bag less still: look at the curve."
            if found.p_value >= CONFIDENT
            else f"The test of D-calibration says that this is more than chance ({p})."
        )
        text.append(verdict)
    if not subject.out_of_bag and subject.n_seen:
        text.append("Rows that the forest was grown from make it look too sure here.")
    return {
        "text": text,
        "levels": plain_list(found.levels),
        "observed": plain_list(observed),
        "lower": plain_list(found.lower),
        "upper": plain_list(found.upper),
    }


def calibrate(subject: Subject) -> Calibration:
    """Calibration of the rows that are judged."""
    rows = judged_rows(subject)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if subject.out_of_bag and len(rows) == int(subject.known.sum()):
            return assess_calibration(subject.forest)
        if len(rows) == len(subject.target.time):
            return assess_calibration(subject.forest, subject.X, censored(*subject.target))
    weight = row_weight(subject, rows)
    weight = np.ones(len(rows)) if weight is None else weight
    u = transform(subject.curves(rows), subject.target.take(rows), subject.censoring)
    kept = weight > 0
    if u.entry is not None:
        kept &= u.entry < u.time
    if not kept.any():
        raise ValueError("no row can be judged")
    return compare(
        u.take(np.flatnonzero(kept)),
        weight[kept] / weight[kept].mean(),
        from_left=subject.censoring == "left",
        confidence=1 - CONFIDENT,
        n_bins=10,
    )
