"""Content of the report on a treatment forest: everything that it says and draws."""

from __future__ import annotations

import datetime
import platform
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from cqrf._effects.treatment import HIGH, LOW
from cqrf._input.features import read_features
from cqrf._model.queries import encode_all, training_codes
from cqrf._views.effects import Arm, describe_assumptions, list_arms
from cqrf._views.numbers import (
    format_count,
    format_number,
    format_percent,
    round_number,
    round_numbers,
)
from cqrf.effects import CensoredTreatmentForest
from cqrf.report.content import PACKAGES, format_setting
from cqrf.report.data import histogram_edges
from cqrf.report.effect_averages import (
    CONFIDENCE,
    Interval,
    describe_averages,
    describe_subgroups,
)
from cqrf.report.words import Words

N_BINS = 20  # of the histogram of propensities
SHARES = np.arange(1, 21) / 20  # of rows, at which the targeting curve is drawn
WIDTH = 1.96


def build_effects_content(
    forest: CensoredTreatmentForest, X: Any = None, *, title: str, source: str | None = None
) -> dict[str, Any]:
    """Content of every section, without NaN or infinity."""
    if not isinstance(forest, CensoredTreatmentForest):
        raise ValueError(
            f"forest must be a CensoredTreatmentForest; found {type(forest).__name__}: for another "
            "forest there is write_report."
        )
    check_is_fitted(forest, "model_")
    arms, words = list_arms(forest), Words.of(forest)
    averages = describe_averages(forest, arms, words)
    return {
        "title": str(title),
        "source": None if source is None else str(source),
        "summary": f"{count_arms(arms)}. {averages['summary']}",
        "assumed": describe_assumptions(forest),
        "words": {"time": words.time_title, "survival": words.survival_title},
        "names": [arm.name for arm in arms],
        "arms": describe_arms(forest, arms),
        "averages": averages,
        "subgroups": describe_subgroups(forest, words),
        "ranking": describe_ranking(forest, words),
        "variation": describe_variation(forest, X, words),
        "assumptions": {"text": list_assumptions(forest, arms)},
        "about": describe_treatment_forest(forest),
    }


def count_arms(arms: list[Arm]) -> str:
    """Rows and events of both arms."""
    each = [
        f"{format_count(arm.rows, 'row')} with {arm.name} ({format_count(arm.events, 'event')})"
        for arm in reversed(arms)
    ]
    return " and ".join(each)


def describe_arms(forest: CensoredTreatmentForest, arms: list[Arm]) -> dict[str, Any]:
    """Content of the section on arms and overlap."""
    overlap = forest.overlap()
    propensity, treated = overlap.propensity, overlap.treated
    rows = [
        [
            arm.name,
            f"{arm.rows:,}",
            f"{arm.events:,}",
            format_percent(1 - arm.events / arm.rows),
        ]
        for arm in reversed(arms)
    ]
    edges = np.linspace(0.0, 1.0, N_BINS + 1)
    is_known = forest.model_.known_propensity is not None
    is_constant = bool(np.ptp(propensity) == 0)
    counts = [np.histogram(propensity[treated == side], edges)[0] for side in (False, True)]
    return {
        "text": describe_overlap(propensity, overlap.n_outside, is_known),
        "rows": rows,
        "histogram": None
        if is_constant
        else {"edges": round_numbers(edges), "counts": [each.tolist() for each in counts]},
        "limits": [LOW, HIGH],
    }


def describe_overlap(propensity: NDArray[np.float64], n_outside: int, is_known: bool) -> list[str]:
    """Sentences on the propensities."""
    low, high = (format_number(float(end), 2) for end in (propensity.min(), propensity.max()))
    span = f"is {low} for all rows" if low == high else f"goes from {low} to {high}"
    how = "known by design" if is_known else "estimated out of bag"
    text = [f"The propensity, the probability of treatment given the covariates, {span} ({how})."]
    if n_outside:
        text.append(
            f"{format_count(n_outside, 'row')} of {len(propensity):,} are below {LOW} or above "
            f"{HIGH}: they have hardly a counterpart in the other arm, and what is said about them "
            "rests on few rows."
        )
    else:
        text.append(f"No row is below {LOW} or above {HIGH}: every row has counterparts.")
    return text


def describe_ranking(forest: CensoredTreatmentForest, words: Words) -> dict[str, Any]:
    """Content of the section on whether effects differ: targeting curve and its area."""
    curve, rate = forest.toc(shares=SHARES), forest.rate(confidence=CONFIDENCE)
    value, interval = Interval(rate.estimate, rate.lower, rate.upper).format()
    if rate.lower > 0:
        verdict = "The interval lies above 0: effects differ with the covariates."
    elif rate.upper < 0:
        verdict = (
            "The interval lies below 0: the ranking does not find those who gain most, so this is "
            "no evidence that effects differ with the covariates."
        )
    else:
        verdict = (
            "The interval includes 0: there is no evidence that effects differ with the "
            "covariates. That is not evidence that they are equal."
        )
    text = [
        "Each half of the rows is ranked by the effect that a forest of the other half expects. "
        "The curve (TOC) shows how much more the rows ranked first gain, on average, than all "
        f"rows: time gained up to {words.format_time(forest.model_.follow_up)}.",
        f"Its mean height (AUTOC, a RATE) is {value} (95\u00a0% interval: {interval}). {verdict}",
    ]
    half = WIDTH * curve.standard_error
    return {
        "text": text,
        "shares": round_numbers(curve.share),
        "values": round_numbers(curve.estimate),
        "lower": round_numbers(curve.estimate - half),
        "upper": round_numbers(curve.estimate + half),
    }


def describe_variation(forest: CensoredTreatmentForest, X: Any, words: Words) -> dict[str, Any]:
    """Content of the section on effects of single rows: of X, or of the training rows."""
    model = forest.model_.effect
    out_of_bag = True
    if X is not None:
        matrix, _ = read_features(forest, X, model.columns)
        codes = encode_all(model, matrix, forest.n_jobs)
        out_of_bag = np.array_equal(codes, training_codes(model))
    effects = forest.effect_oob() if out_of_bag else forest.effect(X)
    effects = effects[np.isfinite(effects)]
    whose = "training rows, out of bag" if out_of_bag else "rows of the table"
    horizon = words.format_time(forest.model_.follow_up)
    if len(effects) == 0 or np.ptp(effects) == 0:
        return {"text": [f"All {whose} have the same estimate."], "histogram": None}
    edges = histogram_edges(float(effects.min()), float(effects.max()))
    counts = np.histogram(effects.clip(edges[0], edges[-1]), edges)[0]
    low, middle, high = (
        format_number(float(value), 3) for value in np.quantile(effects, [0.1, 0.5, 0.9])
    )
    text = [
        f"Estimated time gained up to {horizon} of {len(effects):,} {whose}: the median is "
        f"{middle}, and eight in ten lie between {low} and {high}. "
        f"{format_percent(float((effects > 0).mean()))} are above 0.",
        "Estimates of single rows vary by chance, too: that they differ is no evidence that the "
        "effects do. The ranking above tests that.",
    ]
    return {
        "text": text,
        "histogram": {"edges": round_numbers(edges, 6), "counts": counts.tolist()},
        "average": round_number(float(effects.mean())),
        "title": f"time gained up to {horizon}",
    }


def list_assumptions(forest: CensoredTreatmentForest, arms: list[Arm]) -> list[str]:
    """What must hold, and how far the rows tell."""
    floored = forest.overlap().censoring_floored
    text = [
        describe_assumptions(forest),
        "Overlap: every subject could have been in either arm. The propensities show whether that "
        "is so.",
        "Censoring: in each arm, and given the covariates, it is independent of the time of the "
        "event. "
        + (
            f"For {format_percent(floored)} of the rows the probability of not being censored "
            "before their own time is below 0.05 and was replaced by it."
            if floored > 0
            else "No row has a probability below 0.05 of not being censored before its own time."
        ),
        "The covariates were measured before treatment, and the treatment of a subject does not "
        "change the time of another.",
    ]
    last = forest.model_.ends
    if np.isfinite(last).any():
        until = format_number(float(last.min()))
        text.append(f"Nothing is said about times after {until}, the end of what is known.")
    return text


def describe_treatment_forest(forest: CensoredTreatmentForest) -> dict[str, Any]:
    """Content of the section on the forest and on the software."""
    model = forest.model_
    now = datetime.datetime.now(datetime.UTC)
    versions = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    effect = model.effect
    items = [
        ["Written", f"{now:%Y-%m-%d %H:%M} UTC"],
        ["Software", f"{versions}, Python {platform.python_version()}"],
        [
            "Effect forest",
            f"{format_count(len(effect.forest.roots), 'tree')}, grown from "
            f"{format_count(len(effect.order), 'row')} of "
            f"{format_count(len(effect.edges), 'column')}",
        ],
        [
            "Other forests",
            f"{format_count(len(model.forests.pooled.forest.roots), 'tree')} each, of the time of "
            "all rows and of each arm"
            + ("" if model.forests.propensity is None else ", and of the treatment"),
        ],
        ["Seed", f"{effect.seed} (random_state: {format_setting(forest.random_state)})"],
    ]
    settings = [
        [name, format_setting(value)]
        for name, value in forest.get_params().items()
        if name != "nuisance_forest" or value is None
    ]
    return {"items": items, "settings": settings}
