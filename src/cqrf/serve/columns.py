"""Columns: range, quantiles, choices and typical value of each, as controls and programs need them.

A model file keeps bins, not values: without the training table a value is known as the middle of
its bin. With it, ranges and quantiles are exact.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cqrf.binning import MISSING
from cqrf.model import Model
from cqrf.serve.values import DAY, Kind, Value, show_value
from cqrf.table import CATEGORY, DATE, DURATION

MARKS = (0.05, 0.25, 0.5, 0.75, 0.95)
MOST_CHOICES = 6  # different numbers that are shown as a choice
FINE = 0.1  # of a step, to which a typical value is rounded
STOPS = 100  # places of a slider, at least


class Mark(NamedTuple):
    """A quantile of a column."""

    level: float
    value: Value


class Choice(NamedTuple):
    """A value to choose, and the share of the training rows that have it."""

    value: Value
    share: float


class Column(NamedTuple):
    """What is known of a column; ``low`` to ``step`` are None where it is no scale.

    ``typical`` is the median, or the most frequent level, as JSON has it; ``middle`` the same as
    the forest reads it.
    """

    kind: Kind
    importance: float
    missing: float
    low: Value
    high: Value
    step: float | None
    marks: tuple[Mark, ...]
    choices: tuple[Choice, ...] | None
    typical: Value
    middle: float


def describe_columns(
    model: Model,
    names: list[str],
    importance: NDArray[np.float64],
    training: NDArray[Any] | None = None,
) -> list[Column]:
    """Every column, by the training table if there is one."""
    columns = []
    for j, name in enumerate(names):
        kind = Kind(name, model.columns.kinds[j], model.columns.levels[j])
        if training is None:
            values = decode(model, j)
            are_exact = is_regular(model.edges[j])
        else:
            values = np.asarray(training[:, j], dtype=np.float64)
            are_exact = True
        columns.append(describe_column(kind, values, float(importance[j]), are_exact))
    return columns


def describe_column(
    kind: Kind, values: NDArray[np.float64], importance: float, are_exact: bool
) -> Column:
    """One column from its values, NaN where they are missing."""
    known = values[~np.isnan(values)]
    missing = float(1 - len(known) / max(1, len(values)))
    if len(known) == 0:
        return Column(kind, importance, missing, None, None, None, (), None, None, np.nan)
    if kind.kind == CATEGORY:
        counts = np.bincount(known.astype(int), minlength=len(kind.levels or ()))
        choices = tuple(
            Choice(level, float(count / len(known)))
            for level, count in zip(kind.levels or (), counts, strict=True)
        )
        middle = float(counts.argmax())
        typical = show_value(middle, kind)
        return Column(kind, importance, missing, None, None, None, (), choices, typical, middle)
    return describe_scale(kind, known, importance, missing, are_exact)


def describe_scale(
    kind: Kind,
    known: NDArray[np.float64],
    importance: float,
    missing: float,
    are_exact: bool,
) -> Column:
    """A column of numbers, dates or durations."""
    unit = DAY if kind.kind in (DATE, DURATION) else 1.0
    step = find_step(known / unit, kind.kind)
    if not are_exact:
        known = np.round(known / (unit * step)) * (unit * step)
    distinct, counts = np.unique(known, return_counts=True)
    choices = None
    if are_exact and len(distinct) <= MOST_CHOICES and kind.kind not in (DATE, DURATION):
        choices = tuple(
            Choice(show_value(tidy(value), kind), float(count / len(known)))
            for value, count in zip(distinct.tolist(), counts.tolist(), strict=True)
        )
    levels = np.quantile(known, MARKS, method="inverted_cdf").tolist()
    marks = tuple(
        Mark(level, show_value(tidy(value), kind))
        for level, value in zip(MARKS, levels, strict=True)
    )
    middle = tidy(levels[MARKS.index(0.5)])
    if choices is None:  # no more digits than a reader of a typical value wants
        middle = tidy(np.round(middle / (FINE * unit * step)) * (FINE * unit * step))
    low, high = (show_value(tidy(end), kind) for end in (distinct[0], distinct[-1]))
    typical = show_value(middle, kind)
    return Column(kind, importance, missing, low, high, step, marks, choices, typical, middle)


def decode(model: Model, column: int) -> NDArray[np.float64]:
    """Values of a column of the training rows, as far as their bins tell."""
    codes, edges = model.rows.codes[column], model.edges[column]
    if model.columns.levels[column] is not None:
        middles = np.arange(len(edges) + 1, dtype=np.float64)
    else:
        middles = find_middles(edges)
    inside = np.minimum(codes, len(middles) - 1)
    return np.where(codes == MISSING, np.nan, middles[inside])


def find_middles(edges: NDArray[np.float64]) -> NDArray[np.float64]:
    """A value for each bin: its middle; at the ends, as far out as the next bin is wide."""
    if len(edges) == 0:
        return np.array([np.nan])  # one value only, which no edge tells
    if len(edges) == 1:
        return np.array([edges[0] - 0.5, edges[0] + 0.5])
    between = edges[:-1] / 2 + edges[1:] / 2
    first, last = edges[1] - edges[0], edges[-1] - edges[-2]
    return np.concatenate([[edges[0] - first / 2], between, [edges[-1] + last / 2]])


def is_regular(edges: NDArray[np.float64]) -> bool:
    """Whether edges are evenly spaced, as between whole numbers: middles are then the values."""
    if len(edges) == 1:
        return bool(np.mod(2 * edges[0], 2) == 1)
    widths = np.diff(edges)
    return len(edges) > 1 and bool(np.allclose(widths, widths[0], rtol=1e-6))


def find_step(values: NDArray[np.float64], kind: str) -> float:
    """A round step: whole where all values are, else about a hundredth of the range."""
    spread = float(values.max() - values.min())
    are_whole = bool(np.all(values == np.round(values)))
    if kind == DATE:
        return 1.0
    if not np.isfinite(spread) or spread == 0:
        return 1.0
    step = 10.0 ** np.floor(np.log10(spread / STOPS))
    return max(1.0, step) if are_whole else step


def tidy(value: float) -> float:
    """A number without the last digits that rounding to a step leaves."""
    return float(f"{value:.12g}")
