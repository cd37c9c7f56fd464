"""Columns: range, quantiles, choices and typical value of each, as controls and programs need them.

A model file keeps edges of bins, not values. Edges lie in the middle between two values, so where
every value has a bin of its own they tell the values, up to one number, for which the likeliest is
taken; elsewhere a value is known as the middle of its bin. With the training table, ranges and
quantiles are exact.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cqrf._forest.spec import MISSING
from cqrf._input.features import CATEGORY, DATE, DURATION
from cqrf._model.fitted import Model
from cqrf.serve.values import DAY, Kind, Value, show_value

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
    the forest reads it. ``is_exact``: ranges and values are those of the training rows, and not
    guessed from bins.
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
    is_exact: bool = True


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
            values, may_choose = decode(model, j), is_regular(model.edges[j])
        else:
            values, may_choose = np.asarray(training[:, j], dtype=np.float64), True
        missing = float((list_codes(model, j) == MISSING).mean())
        column = describe_column(kind, values, float(importance[j]), missing, may_choose)
        if training is None:
            column = round_ends(column)._replace(is_exact=kind.kind == CATEGORY)
        columns.append(column)
    return columns


def describe_column(
    kind: Kind,
    values: NDArray[np.float64],
    importance: float,
    missing: float,
    may_choose: bool,
) -> Column:
    """One column from its values, NaN where they are missing or not known."""
    known = values[~np.isnan(values)]
    if len(known) == 0:
        # Of a single value that no edge tells, any number is in the bin.
        middle = 0.0 if 0 < missing < 1 else np.nan
        typical = None if np.isnan(middle) else show_value(middle, kind)
        return Column(kind, importance, missing, None, None, None, (), None, typical, middle)
    if kind.kind == CATEGORY:
        counts = np.bincount(known.astype(int), minlength=len(kind.levels or ()))
        choices = tuple(
            Choice(level, float(count / len(known)))
            for level, count in zip(kind.levels or (), counts, strict=True)
        )
        middle = float(counts.argmax())
        typical = show_value(middle, kind)
        return Column(kind, importance, missing, None, None, None, (), choices, typical, middle)
    return describe_scale(kind, known, importance, missing, may_choose)


def describe_scale(
    kind: Kind,
    known: NDArray[np.float64],
    importance: float,
    missing: float,
    may_choose: bool,
) -> Column:
    """A column of numbers, dates or durations."""
    unit = DAY if kind.kind in (DATE, DURATION) else 1.0
    step = find_step(known / unit, kind.kind)
    distinct, counts = np.unique(known, return_counts=True)
    choices = None
    if may_choose and len(distinct) <= MOST_CHOICES and kind.kind not in (DATE, DURATION):
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
        fine = unit * step * (1.0 if kind.kind == DATE else FINE)
        middle = tidy(np.round(middle / fine) * fine)
    low, high = (show_value(tidy(end), kind) for end in (distinct[0], distinct[-1]))
    typical = show_value(middle, kind)
    return Column(kind, importance, missing, low, high, step, marks, choices, typical, middle)


def round_ends(column: Column) -> Column:
    """The column with ends and marks that do not look more exact than bins are."""
    if column.step is None or column.kind.kind == DATE:
        return column
    fine = FINE * column.step

    def near(value: Value) -> Value:
        return value if not isinstance(value, float) else tidy(round(value / fine) * fine)

    marks = tuple(Mark(mark.level, near(mark.value)) for mark in column.marks)
    return column._replace(low=near(column.low), high=near(column.high), marks=marks)


def list_codes(model: Model, column: int) -> NDArray[np.uint8]:
    """Codes of the training rows, or each code once if the model does not keep them.

    The bins of a column of many values hold about as many rows each.
    """
    if model.keeps_features:
        return model.rows.codes[column]
    return np.arange(len(model.edges[column]) + 1, dtype=np.uint8)


def decode(model: Model, column: int) -> NDArray[np.float64]:
    """Values of a column of the training rows, as far as their bins tell."""
    codes, edges = list_codes(model, column), model.edges[column]
    if model.columns.levels[column] is not None:
        middles = np.arange(len(edges) + 1, dtype=np.float64)
    else:
        middles = find_middles(edges)
    inside = np.minimum(codes, len(middles) - 1)
    return np.where(codes == MISSING, np.nan, middles[inside])


def find_middles(edges: NDArray[np.float64]) -> NDArray[np.float64]:
    """A value for each bin: the one it stands for if edges tell it, else its middle."""
    if len(edges) == 0:
        return np.array([np.nan])  # one value only, which no edge tells
    if len(edges) == 1:
        return np.array([edges[0] - 0.5, edges[0] + 0.5])
    values = spread_evenly(edges) if is_regular(edges) else reflect(edges)
    if values is not None and are_in_bins(values, edges):
        return values
    between = edges[:-1] / 2 + edges[1:] / 2
    first, last = edges[1] - edges[0], edges[-1] - edges[-2]
    return np.concatenate([[edges[0] - first / 2], between, [edges[-1] + last / 2]])


def spread_evenly(edges: NDArray[np.float64]) -> NDArray[np.float64]:
    """Values halfway between edges that are evenly spaced."""
    width = (edges[-1] - edges[0]) / (len(edges) - 1)
    values = np.append(edges - width / 2, edges[-1] + width / 2)
    tidied = np.array([tidy(value) for value in values])
    return tidied if are_in_bins(tidied, edges) else values


def are_in_bins(values: NDArray[np.float64], edges: NDArray[np.float64]) -> bool:
    """Whether each value lies in the bin of its number."""
    return bool((values[:-1] <= edges).all() and (values[1:] > edges).all())


def reflect(edges: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """Values v with edges halfway between them, from v[i + 1] = 2 edges[i] - v[i].

    The first of them must keep each v[i] below edges[i]; it is the roundest number that does.
    None if there is no such number: then bins hold more than one value.
    """
    at_zero = np.zeros(len(edges) + 1)  # the values if the first were 0
    for i, edge in enumerate(edges):
        at_zero[i + 1] = 2 * edge - at_zero[i]
    room = edges - at_zero[:-1]
    most, least = room[::2].min(), -room[1::2].min()
    if not np.isfinite(at_zero).all() or least >= most:
        return None
    sign = np.where(np.arange(len(at_zero)) % 2, -1.0, 1.0)
    values = at_zero + sign * find_roundest(least, most)
    digits = 10 - int(np.ceil(np.log10(edges[-1] - edges[0])))
    for found in (np.round(values, min(digits, 300)), values):
        if are_in_bins(found, edges):
            return found
    return None


def find_roundest(low: float, high: float) -> float:
    """The number of fewest decimals strictly between two others, the one nearest their middle."""
    middle = low / 2 + high / 2
    for decimals in range(-int(np.log10(max(1.0, abs(middle)))) - 1, 15):
        unit = 10.0**-decimals
        number = float(np.round(middle / unit) * unit)
        if low < number < high:
            return number
    return middle


def is_regular(edges: NDArray[np.float64]) -> bool:
    """Whether edges look like those of evenly spaced values: 0, 1 or 1, 2 if there are two."""
    if len(edges) == 1:
        return bool(edges[0] in (0.5, 1.5))
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
