"""The section on the data: what the columns hold, and where censoring happens."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cqrf._input.columns import CATEGORY, DATE, DURATION
from cqrf._input.target import Target
from cqrf._survival.step_curve import StepCurve
from cqrf._views.causes import count_causes
from cqrf._views.curves import marginal_curve, marginal_lower_curve, thin_curve, time_range
from cqrf._views.intervals import count_kinds
from cqrf._views.numbers import (
    format_count,
    format_number,
    format_percent,
    round_number,
    round_numbers,
)
from cqrf.report.predictions import TablePredictions

MAX_COLUMNS = 200
MAX_CATEGORY_LEVELS = 6
MAX_STEPS = 200
N_BINS = 24
MAX_TICKS = 12  # of the axis of time on the page
SECONDS_PER_DAY = 86400.0


def describe_data(table: TablePredictions) -> dict[str, Any]:
    """Content of the section on the data."""
    target, censoring = table.target, table.censoring
    names = table.names[:MAX_COLUMNS]
    edges = histogram_edges(*time_range(target.time))
    time = target.time.clip(edges[0], edges[-1])  # an edge may be rounded past the last time
    events, censored = (
        np.histogram(time[rows], edges)[0].tolist() for rows in (target.event, ~target.event)
    )
    return {
        "text": describe_rows_and_entry(table),
        "columns": [describe_column(table, column) for column in range(len(names))],
        "histogram": {"edges": round_numbers(edges, 6), "events": events, "censored": censored},
        "at_risk": count_at_risk(table),
        "event_curve": curve_content(marginal_curve(target, censoring)),
        "lower_curve": curve_content(marginal_lower_curve(target)),
        "censoring_curve": curve_content(marginal_curve(target, censoring, of_censoring=True)),
    }


def count_at_risk(table: TablePredictions) -> dict[str, Any] | None:
    """Rows at risk at ``start``, ``start + step``, ...: at each time that the axis may label.

    None with intervals: whether a row is at risk is then not known at every time. The axis has at
    most MAX_TICKS labels, at multiples of 1, 2 or 5 times a power of 10.
    """
    target = table.target
    if target.lower is not None:
        return None
    low, high = time_range(np.concatenate([target.time, table.train.time]))
    step = 10.0 ** np.floor(np.log10((high - low) / MAX_TICKS))
    times = np.arange(np.ceil(low / step - 1e-9), np.floor(high / step + 1e-9) + 1) * step
    ordered = np.sort(target.time)
    if table.censoring == "left":
        counts = np.searchsorted(ordered, times, side="right")
    else:
        counts = len(ordered) - np.searchsorted(ordered, times, side="left")
    if target.entry is not None:
        counts = counts - (len(ordered) - np.searchsorted(np.sort(target.entry), times))
    return {
        "start": float(times[0]) if len(times) else 0.0,
        "step": float(step),
        "counts": counts.tolist(),
    }


def describe_rows_and_entry(table: TablePredictions) -> list[str]:
    """Sentences on rows, events, entry times and columns."""
    target = table.target
    n, n_events = len(target.time), int(target.event.sum())
    side = "before" if table.censoring == "left" else "after"
    name = f" ({table.words.event_name})" if table.words.event_name else ""
    if counts := count_causes(target):
        listed = (f"{each['events']:,} of cause {each['cause']}" for each in counts)
        name = f" ({', '.join(listed)})"
    if target.lower is None:
        text = [
            f"{format_count(n, 'row')}: {format_count(n_events, 'event')}{name}, "
            f"{n - n_events:,} censored ({format_percent(1 - n_events / n)}). If a time is "
            f"censored, the event happened at an unknown time {side} it.",
        ]
    else:
        text = [
            f"{describe_kinds(target)}{name}. In an interval, the event came after its left end "
            "and by its right end; if a row is left-censored, only its right end is known; if it "
            "is right-censored, only its left end.",
            "The curve is the maximum likelihood estimate, with its steps at right ends. Where a "
            "step lies between the ends of its interval is not determined: all curves in the "
            "shaded area fit these rows equally well.",
        ]
    if target.entry is not None and np.isfinite(target.entry).any():
        n_late = int(np.isfinite(target.entry).sum())
        text.append(
            f"{format_count(n_late, 'row')} entered observation late (left truncation): the curves "
            "below have them in the risk set only after their entry time."
        )
    if len(table.names) > MAX_COLUMNS:
        text.append(f"The first {MAX_COLUMNS} of {len(table.names):,} columns are listed.")
    return text


def describe_kinds(target: Target) -> str:
    """Rows of each kind of interval censoring, as text."""
    kinds = [f"{n:,} {kind}" for kind, n in count_kinds(target).items()]
    kinds = [kind.replace("interval", "known to an interval") for kind in kinds]
    return f"{format_count(len(target.time), 'row')}: {', '.join(kinds[:-1])} and {kinds[-1]}"


def describe_column(table: TablePredictions, column: int) -> list[str]:
    """Name, kind, share of missing values and values of a column, as text."""
    columns = table.model.columns
    kind, levels = columns.kinds[column], columns.levels[column]
    values = np.asarray(table.matrix[:, column], dtype=np.float64)
    known = values[~np.isnan(values)]
    missing = format_percent(1 - len(known) / len(values)) if len(known) < len(values) else "none"
    return [table.names[column], kind, missing, describe_values(known, kind, levels)]


def describe_values(known: NDArray[np.float64], kind: str, levels: tuple[str, ...] | None) -> str:
    """Range of a numeric column, or the most frequent levels of a category."""
    if len(known) == 0:
        return "no values"
    if kind == CATEGORY and levels is not None:
        counts = np.bincount(known.astype(int), minlength=len(levels))
        order = [int(code) for code in np.argsort(-counts, kind="stable") if counts[code]]
        shown = ", ".join(
            f"{levels[code]} ({format_percent(counts[code] / len(known))})"
            for code in order[:MAX_CATEGORY_LEVELS]
        )
        n_more = len(order) - MAX_CATEGORY_LEVELS
        return shown if n_more <= 0 else f"{shown} and {n_more} more"
    low, high = (format_value(value, kind) for value in (known.min(), known.max()))
    return low if low == high else f"{low} to {high}"


def format_value(value: float, kind: str) -> str:
    """Format a value of a column; the matrix holds dates and durations in seconds."""
    if kind == DATE:
        start = datetime.datetime(1970, 1, 1)
        try:
            return (start + datetime.timedelta(seconds=float(value))).date().isoformat()
        except OverflowError:
            return "a date out of range"
    if kind == DURATION:
        days = round_number(value / SECONDS_PER_DAY)
        return f"{format_number(value / SECONDS_PER_DAY)} day{'' if days == 1 else 's'}"
    return format_number(value)


def histogram_edges(low: float, high: float) -> NDArray[np.float64]:
    """Edges of about N_BINS bins, at round numbers."""
    min_step = (high - low) / N_BINS
    if min_step < np.finfo(np.float64).tiny:
        return np.array([low, high])
    power = 10.0 ** np.floor(np.log10(min_step))
    step = power * next(factor for factor in (1, 2, 2.5, 5, 10) if factor * power >= min_step)
    first, last = np.floor(low / step), np.ceil(high / step)
    return np.arange(first, last + 1) * step


def curve_content(curve: StepCurve | None) -> dict[str, Any] | None:
    """A curve as the page draws it, from where to where it is known; None if it has no step."""
    if curve is None or len(curve.times) == 0:
        return None
    thinned = thin_curve(curve, MAX_STEPS)
    return {
        "times": round_numbers(thinned.times),
        "values": round_numbers(thinned.values),
        "initial": round_number(thinned.initial),
        "start": round_number(curve.start),
        "end": round_number(curve.end),
    }
