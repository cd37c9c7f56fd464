"""What ``cqrf effects`` prints: arms, overlap, averages, whether effects differ, subgroups."""

from __future__ import annotations

import math
from typing import Any

from rich.console import Console
from rich.table import Table

from cqrf._runtime.arguments import exactly
from cqrf._runtime.progress import printable
from cqrf.cli.console import count, printable_all

# A column is named as the reason of propensities near 0 and 1 if it has this share of importance.
NAMED_IMPORTANCE = 0.5
# Times of more signs, such as that of a row after a change of units, are rounded to six digits.
LONGEST_TIME = 8


def print_results(results: dict[str, Any], unit: str | None) -> None:
    """Print what :func:`cqrf.cli.effects.describe_effects` gives."""
    console = Console(highlight=False, markup=False, soft_wrap=False)
    results, unit = printable_all(results), None if unit is None else printable(unit)
    control, treated = results["control"], results["treated"]
    console.print(f"Effects of {results['treatment']}: {treated} against {control}")
    facts = Table(box=None, pad_edge=False, show_header=False)
    for title, text in describe_facts(results).items():
        facts.add_row(title, text)
    console.print(facts)
    console.print()
    gained = name_gain(results["horizon"], unit)
    shown = start_table(f"Average effect, {treated} less {control}")
    for average in results["average_effects"]:
        shown.add_row(name_target(average, unit), *write_effect(average))
    console.print(shown)
    console.print()
    console.print(f"Does the {gained} differ between rows?")
    console.print(describe_rate(results["rate"]))
    console.print()
    shown = start_table(f"{gained[0].upper()}{gained[1:]}, by subgroup", "rows", "treated")
    for group in results["subgroups"]:
        counted = str(group["rows"]), str(group["treated"])
        shown.add_row(f"{group['column']}: {group['level']}", *counted, *write_effect(group))
    console.print(shown)
    console.print(describe_choice(results))


def start_table(title: str, *counts: str) -> Table:
    """A table of effects; its first column has the title."""
    table = Table(box=None, pad_edge=False, header_style="")
    table.add_column(title, overflow="fold")
    for name in (*counts, "effect"):
        table.add_column(name, justify="right")
    table.add_column("95% interval", justify="right", no_wrap=True)
    return table


def describe_facts(results: dict[str, Any]) -> dict[str, str]:
    """Arms, overlap and what is assumed."""
    arms = [
        f"{arm['name']}: {count(arm['rows'], 'row')}, {count(arm['events'], 'event')}"
        for arm in results["arms"]
    ]
    facts = {
        "Arms": "; ".join(arms),
        "Overlap": describe_overlap(results["propensity"], results["rows"]),
    }
    if results["censoring_floored"] > 0:
        facts["Limits"] = (
            f"{results['censoring_floored']:.1%} of rows were observed at times when fewer than "
            "5% were still uncensored; their weight is limited"
        )
    return facts | {"Assumed": results["assumes"]}


def describe_overlap(propensity: dict[str, Any], n_rows: int) -> str:
    """Range of the propensities, and what rows near 0 and 1 mean."""
    least, largest, outside = (propensity[name] for name in ("least", "largest", "rows_outside"))
    design = " by design" if propensity["known"] else ""
    span = f"{least:.3g}" if least == largest else f"from {least:.2f} to {largest:.2f}"
    is_or_are = "is" if outside == 1 else "are"
    where = "no row is" if outside == 0 else f"{outside} of {count(n_rows, 'row')} {is_or_are}"
    text = f"propensity {span}{design}; {where} below .05 or above .95"
    if outside == 0:
        return text
    text += (
        ". These have hardly a counterpart in the other arm: what is said about them, and averages "
        "over many of them, cannot be trusted"
    )
    shares = propensity["importance"]
    most = max(shares, key=lambda name: shares[name], default="")
    if shares.get(most, 0.0) < NAMED_IMPORTANCE:
        return text
    return text + (
        f". The propensity depends most on {most} (importance {shares[most]:.0%}): leave such a "
        "column out if it was made from the treatment or measured after it"
    )


def name_gain(horizon: float, unit: str | None) -> str:
    """The effect on the restricted mean, in words."""
    written = exactly(horizon)
    if len(written) > LONGEST_TIME:
        written = f"{horizon:.6g}"
    return f"time gained up to {written}{f' {unit}' if unit else ''}"


def name_target(average: dict[str, Any], unit: str | None) -> str:
    """What an average effect is about."""
    at, units = exactly(average["at"]), f" {unit}" if unit else ""
    if average["target"] == "survival":
        return f"survival beyond {at}{units}"
    if average["target"] == "quantile":
        return "median time" if average["at"] == 0.5 else f"quantile {at} of the time"
    named = name_gain(average["at"], unit)
    return named if average["population"] == "all" else f"{named}, overlap weights"


def write_effect(numbers: dict[str, Any]) -> tuple[str, str]:
    """An estimate and its interval, with two digits of the standard error."""
    values = [numbers[name] for name in ("estimate", "lower", "upper", "standard_error")]
    estimate, lower, upper, error = (math.nan if value is None else value for value in values)
    if math.isnan(estimate) or math.isinf(estimate):
        return "not known", ""
    if not (math.isfinite(error) and error > 0):
        return f"{estimate:.4g}", ""
    decimals = max(0, 1 - math.floor(math.log10(error)))
    return f"{estimate:.{decimals}f}", f"{lower:.{decimals}f} to {upper:.{decimals}f}"


def describe_rate(rate: dict[str, Any]) -> str:
    """What the rank-weighted average effect says, in plain words."""
    estimate, interval = write_effect(rate)
    if not interval:
        return "This cannot be told from these rows."
    how = (
        "Rows were ranked by the gain expected from their columns, each half by a forest of the "
        f"other half. RATE (AUTOC) {estimate} ({interval}) is how much more those ranked first "
        "gain than rows do on average. "
    )
    if rate["lower"] > 0:
        return how + "The interval lies above 0: effects differ with the columns."
    if rate["upper"] < 0:
        return how + (
            "The interval lies below 0: the ranking does not find those who gain most, so this is "
            "no evidence that effects differ."
        )
    return how + (
        "The interval holds 0: no evidence that effects differ between rows. That is not evidence "
        "that they are equal."
    )


def describe_choice(results: dict[str, Any]) -> str:
    """How the subgroups were chosen, and what their intervals mean."""
    if results["subgroups_named"]:
        return "Intervals are not corrected for the number of subgroups."
    shares = results["importance"]
    names = list(dict.fromkeys(group["column"] for group in results["subgroups"]))
    shown = ", ".join(f"{name} {shares[name]:.0%}" for name in names)
    return (
        f"These columns are the most important ones for the effect: {shown}; --subgroups names "
        "others. They were chosen by these rows, and intervals are not corrected for that."
    )
