"""The data: what the columns hold, and where censoring happens."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cqrf._input.features import CATEGORY, DATE, DURATION
from cqrf._input.target import Target, rank_target
from cqrf._survival.curves import RankedTarget, StepCurve, step_curves
from cqrf.metrics.ipcw import marginal_weights
from cqrf.report.numbers import count, plain, plain_list, say, say_share, thin
from cqrf.report.subject import Subject

MOST_COLUMNS = 200
MOST_LEVELS = 6
MOST_STEPS = 200
BINS = 24
DAY = 86400.0


def describe_data(subject: Subject) -> dict[str, Any]:
    """Facts of the section on the data."""
    target, censoring = subject.target, subject.censoring
    n, n_events = len(target.time), int(target.event.sum())
    side = "before" if censoring == "left" else "after"
    text = [
        f"{count(n, 'row')}: {count(n_events, 'event')} seen, {n - n_events:,} censored "
        f"({say_share(1 - n_events / n)}). Where a time is censored, the event came at some "
        f"unknown time {side} it.",
    ]
    entry = target.entry
    if entry is not None and np.isfinite(entry).any():
        late = int(np.isfinite(entry).sum())
        text.append(
            f"{count(late, 'row')} came under observation late: they are at risk only after their "
            "entry time, and the curves below count them from then on."
        )
    names = subject.names[:MOST_COLUMNS]
    if len(names) < len(subject.names):
        text.append(f"Of {len(subject.names):,} columns the first {len(names)} are listed.")
    low, high = time_range(target.time)
    edges = nice_edges(low, high)
    time = target.time.clip(edges[0], edges[-1])  # an edge may be rounded past the last time
    seen, unseen = (
        np.histogram(time[rows], edges)[0].tolist() for rows in (target.event, ~target.event)
    )
    return {
        "text": text,
        "columns": [describe_column(subject, column) for column in range(len(names))],
        "histogram": {"edges": plain_list(edges, 6), "events": seen, "censored": unseen},
        "events": show_curve(marginal_curve(target, censoring)),
        "censorings": show_curve(marginal_curve(target, censoring, of_censoring=True)),
    }


def describe_column(subject: Subject, column: int) -> list[str]:
    """Name, kind, missing share and values of a column, in words."""
    kind, levels = subject.model.columns.kinds[column], subject.model.columns.levels[column]
    values = np.asarray(subject.matrix[:, column], dtype=np.float64)
    known = values[~np.isnan(values)]
    missing = say_share(1 - len(known) / len(values)) if len(known) < len(values) else "none"
    return [subject.names[column], kind, missing, describe_values(known, kind, levels)]


def describe_values(known: NDArray[np.float64], kind: str, levels: tuple[str, ...] | None) -> str:
    """Range of numbers, or the most frequent levels of a category."""
    if len(known) == 0:
        return "no values"
    if kind == CATEGORY and levels is not None:
        counts = np.bincount(known.astype(int), minlength=len(levels))
        there = [int(code) for code in np.argsort(-counts, kind="stable") if counts[code]]
        shown = ", ".join(
            f"{levels[code]} ({say_share(counts[code] / len(known))})"
            for code in there[:MOST_LEVELS]
        )
        more = len(there) - MOST_LEVELS
        return shown if more <= 0 else f"{shown} and {more} more"
    low, high = (say_value(value, kind) for value in (known.min(), known.max()))
    return low if low == high else f"{low} to {high}"


def say_value(value: float, kind: str) -> str:
    """A value of a column in words; dates and durations are kept in seconds."""
    if kind == DATE:
        start = datetime.datetime(1970, 1, 1)
        try:
            return (start + datetime.timedelta(seconds=float(value))).date().isoformat()
        except OverflowError:
            return "a date out of range"
    if kind == DURATION:
        days = plain(value / DAY)
        return f"{say(value / DAY)} day{'' if days == 1 else 's'}"
    return say(value)


def time_range(time: NDArray[np.float64]) -> tuple[float, float]:
    """Ends of the axes of time: from 0 if times are not far from it."""
    low, high = float(time.min()), float(time.max())
    if 0 <= low <= 2 * (high - low):
        low = 0.0
    if low == high:
        pad = abs(low) / 2 or 1.0
        return low - pad, high + pad
    return low, high


def nice_edges(low: float, high: float) -> NDArray[np.float64]:
    """Edges of about two dozen bins at round numbers."""
    rough = (high - low) / BINS
    power = 10.0 ** np.floor(np.log10(rough))
    step = power * next(round_one for round_one in (1, 2, 2.5, 5, 10) if round_one * power >= rough)
    first, last = np.floor(low / step), np.ceil(high / step)
    return np.arange(first, last + 1) * step


def marginal_curve(target: Target, censoring: str, *, of_censoring: bool = False) -> StepCurve:
    """Kaplan-Meier curve of the events of a table, or of its censorings."""
    ranked, order = rank_target(target, censoring)
    return step_curves(
        marginal_weights(None, len(order)),
        RankedTarget.of(ranked),
        of_censoring=of_censoring,
        censoring=censoring,
    )[0]


def show_curve(curve: StepCurve) -> dict[str, Any] | None:
    """A curve as the page draws it; None if it has no step."""
    if len(curve.times) == 0:
        return None
    kept = thin(curve, MOST_STEPS)
    return {
        "times": plain_list(kept.times),
        "values": plain_list(kept.values),
        "initial": plain(kept.initial),
    }
