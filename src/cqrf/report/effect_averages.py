"""Average effects of a treatment forest: for all rows, as curves of the arms, and in subgroups."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cqrf._effects.averages import (
    AverageEffect,
    clustered_error,
    curve_scores,
    population_parts,
    ratio_of_sums,
)
from cqrf._effects.predict import known_curves
from cqrf._effects.targets import RestrictedMeans
from cqrf._forest.spec import MISSING
from cqrf._input.columns import CATEGORY
from cqrf._input.features import feature_names
from cqrf._survival.little_bags import confidence_width
from cqrf._views.effects import Arm, choose_times
from cqrf._views.numbers import format_number, format_percent, round_number, round_numbers
from cqrf.effects import CensoredTreatmentForest
from cqrf.report.data import format_value
from cqrf.report.words import Words

CONFIDENCE = 0.95
N_FEATURES = 4  # features that subgroups are made of
MAX_LEVELS = 5  # levels of a category that are subgroups
FEWEST_ROWS = 10  # of each arm in a subgroup
MAX_COLUMNS = 200  # points of a curve
Floats = NDArray[np.float64]


class Interval(NamedTuple):
    """An effect and its confidence interval; NaN where it is not known."""

    value: float
    lower: float
    upper: float

    @staticmethod
    def of(found: AverageEffect) -> list[Interval]:
        """One for each output."""
        each = (np.atleast_1d(part) for part in (found.estimate, found.lower, found.upper))
        return [Interval(*map(float, ends)) for ends in zip(*each, strict=True)]

    def format(self, factor: float = 1.0) -> tuple[str, str]:
        """Effect and interval as text, to two digits of half the width of the interval."""
        if not math.isfinite(self.value):
            return "not known", ""
        if not math.isfinite(self.upper - self.lower) or self.upper <= self.lower:
            return format_number(factor * self.value, 3), "not known"
        half_width = factor * (self.upper - self.lower) / 2
        decimals = min(8, max(0, 1 - math.floor(math.log10(half_width))))
        value, lower, upper = (signed(factor * end, decimals) for end in self)
        return value, f"{lower} to {upper}"

    @property
    def includes_zero(self) -> bool:
        """Whether no effect is within the interval."""
        return self.lower <= 0 <= self.upper


def signed(value: float, decimals: int) -> str:
    """A number with its sign; none for 0."""
    text = f"{value:+,.{decimals}f}".replace("-", "\N{MINUS SIGN}")
    return text if any(digit in text for digit in "123456789") else text[1:]


def describe_averages(
    forest: CensoredTreatmentForest, arms: list[Arm], words: Words
) -> dict[str, Any]:
    """Content of the section on average effects."""
    model = forest.model_
    horizon, times = model.follow_up, choose_times(model)
    (gained,) = Interval.of(forest.ate(horizon=horizon))
    rows = [[f"Time gained up to {words.format_time(horizon)}", *gained.format()]]
    of_survival = Interval.of(forest.ate("survival", times=times)) if times else []
    for time, effect in zip(times, of_survival, strict=True):
        name = "Survival" if words.event_name is None else f"Without {words.event_name}"
        title = f"{name} at {words.format_time(time)}, %\u00a0points"
        rows.append([title, *effect.format(100.0)])
    (median,) = Interval.of(forest.ate("quantile"))
    rows.append(["Median time", *median.format()])
    if model.known_propensity is None:
        (overlap,) = Interval.of(forest.ate(horizon=horizon, population="overlap"))
        title = f"Time gained up to {words.format_time(horizon)}, overlap weights"
        rows.append([title, *overlap.format()])
    return {
        "summary": summarise_gain(gained, arms, words, horizon),
        "text": explain_averages(model.known_propensity is None),
        "heads": [f"{arms[1].name} less {arms[0].name}", "Difference", "95\u00a0% interval"],
        "rows": rows,
        "curves": average_curves(forest, arms),
    }


def explain_averages(is_estimated: bool) -> list[str]:
    """Sentences on the average effects, with estimated or known propensities."""
    text = [
        "Averages over all training rows, by doubly robust scores: they hold if either the "
        "survival curves or the propensities are estimated well. Intervals are not corrected for "
        "their number; the difference of medians is that of the average curves."
    ]
    if is_estimated:
        text.append(
            "Overlap weights give most weight to rows that could have been in either arm; if that "
            "average differs much from the first one, look at the propensities."
        )
    return text


def summarise_gain(gained: Interval, arms: list[Arm], words: Words, horizon: float) -> str:
    """The average time gained as a sentence."""
    control, treatment = (arm.name for arm in arms)
    until = words.format_time(horizon)
    if not math.isfinite(gained.value):
        return f"The average time gained up to {until} is not known."
    unit = "" if words.unit is None else f"\u00a0{words.unit}"
    value, interval = gained.format()
    size = value.lstrip("+\N{MINUS SIGN}")
    side = "shorter" if gained.value < 0 else "longer"
    text = (
        f"Up to {until}, the mean time is {size}{unit} {side} "
        f"with {treatment} than with {control} (95\u00a0% interval of the difference: {interval})"
    )
    return f"{text}; the interval includes no difference." if gained.includes_zero else f"{text}."


def average_curves(forest: CensoredTreatmentForest, arms: list[Arm]) -> list[dict[str, Any]]:
    """Average survival curves of control and treatment, with pointwise confidence bands."""
    model = forest.model_
    chosen = model.has_score
    scores, weight = curve_scores(model, forest.n_jobs)[:, chosen], model.weight[chosen]
    means = np.tensordot(scores, weight, axes=(1, 0)) / weight.sum()
    known = known_curves(model, means)
    width = confidence_width(CONFIDENCE)
    begins = model.grid.begins
    shown = np.unique(np.linspace(0, len(begins) - 1, MAX_COLUMNS).round().astype(np.intp))
    curves = []
    for arm, number in zip(arms, (1 - model.treated, model.treated), strict=True):
        columns = shown[begins[shown] <= model.ends[number]]
        influence = weight[:, np.newaxis] * (scores[number] - means[number]) / weight.sum()
        error = clustered_error(influence[:, columns], model.unit[chosen])
        values = known[number, columns]
        curves.append(
            {
                "name": arm.name,
                "times": round_numbers(begins[columns], 6),
                "values": round_numbers(values),
                "lower": round_numbers(np.clip(values - width * error, 0.0, 1.0)),
                "upper": round_numbers(np.clip(values + width * error, 0.0, 1.0)),
                "end": round_number(model.ends[number], 6),
            }
        )
    return curves


class Subgroup(NamedTuple):
    """Training rows, by rank, and what they have in common."""

    name: str
    rows: NDArray[np.bool_]


def describe_subgroups(forest: CensoredTreatmentForest, words: Words) -> dict[str, Any]:
    """Content of the section on subgroups: average time gained in each, and in all rows."""
    model = forest.model_
    shares = effect_importance(forest)
    chosen = [int(j) for j in np.argsort(-shares, kind="stable")[:N_FEATURES] if shares[j] > 0]
    names = feature_names(forest)
    target = RestrictedMeans(model.follow_up)
    parts = population_parts(model, target, "all", forest.n_jobs)
    width = confidence_width(CONFIDENCE)

    def line(name: str, inside: NDArray[np.bool_]) -> dict[str, Any]:
        rows = inside & model.has_score
        estimate, error = ratio_of_sums(parts, model.unit, rows)
        value, half = float(estimate[0]), width * float(error[0])
        effect = Interval(value, value - half, value + half)
        shown, interval = effect.format()
        return {
            "name": name,
            "rows": int(rows.sum()),
            "effect": round_numbers(effect),
            "label": f"{shown} ({interval})",
        }

    groups, n_left_out = [], 0
    for feature in chosen:
        found = split_feature(forest, feature)
        large = [group for group in found if has_both_arms(forest, group.rows)]
        n_left_out += len(found) - len(large)
        lines = [line(group.name, group.rows) for group in large]
        groups.append({"name": names[feature], "lines": lines})
    everyone = line("All rows", np.full(len(model.arm), True))
    return {
        "text": explain_subgroups(words, target.horizon, names, shares, chosen, n_left_out),
        "groups": [group for group in groups if group["lines"]],
        "all": everyone,
        "title": f"time gained up to {words.format_time(target.horizon)}",
    }


def explain_subgroups(
    words: Words,
    horizon: float,
    names: list[str],
    shares: Floats,
    chosen: list[int],
    n_left_out: int,
) -> list[str]:
    """Sentences on the subgroups."""
    if not chosen:
        return ["No tree of the effect forest has a split: there are no subgroups."]
    listed = ", ".join(f"{names[j]} ({format_percent(shares[j])})" for j in chosen)
    text = [
        f"Average time gained up to {words.format_time(horizon)} in subgroups by the features with "
        f"the largest shares in the splits of the effect forest: {listed}. Numbers are split near "
        "their median.",
        "These features were chosen by the same rows, and intervals are not corrected for the "
        "number of subgroups: some will exclude 0, or differ from the average, by chance.",
    ]
    if n_left_out:
        text.append(
            f"{n_left_out} subgroup{'' if n_left_out == 1 else 's'} with fewer than {FEWEST_ROWS} "
            "rows in an arm left out."
        )
    return text


def effect_importance(forest: CensoredTreatmentForest) -> Floats:
    """Share of each feature in the gain of the splits of the effect forest."""
    gain: Floats = forest.model_.effect.forest.importance
    return gain / max(gain.sum(), np.finfo(np.float64).tiny)


def has_both_arms(forest: CensoredTreatmentForest, rows: NDArray[np.bool_]) -> bool:
    """Whether each arm has FEWEST_ROWS of these rows, by rank, that have a score."""
    model = forest.model_
    arm = model.nuisances.arm[rows & model.has_score]
    return bool(min(arm.sum(), (~arm).sum()) >= FEWEST_ROWS)


def split_feature(forest: CensoredTreatmentForest, feature: int) -> list[Subgroup]:
    """Most frequent levels of a category, or both sides of a bin edge near the median."""
    model = forest.model_.effect
    codes, edges = model.rows.codes[feature], model.edges[feature]
    kind, levels = model.columns.kinds[feature], model.columns.levels[feature]
    is_missing = codes == MISSING
    groups = []
    if kind == CATEGORY and levels is not None:
        counts = np.bincount(codes[~is_missing], minlength=len(levels))
        for code in np.sort(np.argsort(-counts, kind="stable")[:MAX_LEVELS]):
            groups.append(Subgroup(levels[code], codes == code))
    elif len(edges):
        below = np.searchsorted(np.sort(codes[~is_missing]), np.arange(len(edges)), side="right")
        middle = int(np.argmin(np.abs(below - (~is_missing).sum() / 2)))
        shown = format_value(float(edges[middle]), kind)
        groups.append(Subgroup(f"up to {shown}", ~is_missing & (codes <= middle)))
        groups.append(Subgroup(f"above {shown}", ~is_missing & (codes > middle)))
    if is_missing.any():
        groups.append(Subgroup("missing", is_missing))
    return [group for group in groups if group.rows.any()]
