"""Columns: range, quantiles, choices and typical value of each.

With the training table these are exact. Without it they are estimated from the bins of the model
(``_model/bin_values.py``).
"""

from __future__ import annotations

import math
import sys
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cqrf._forest.spec import MISSING
from cqrf._input.columns import CATEGORY, DATE, DURATION
from cqrf._model.bin_values import are_evenly_spaced, decode_column, list_codes, strip_noise
from cqrf._model.fitted import Model
from cqrf.serve.values import SECONDS_PER_DAY, Column, Value, write_value

LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
MAX_CHOICES = 6  # distinct numbers that are listed as choices
FINE = 0.1  # share of a step to which typical values are rounded
MIN_STEPS = 100  # of a slider


class ColumnQuantile(NamedTuple):
    """A quantile of a column."""

    level: float
    value: Value


class Choice(NamedTuple):
    """A value to choose, and the share of the training rows that have it."""

    value: Value
    share: float


class ColumnSummary(NamedTuple):
    """Summary of a column.

    ``low``, ``high`` and ``step`` are None for categories and for columns without values.
    ``typical`` is the median or the most frequent level, as JSON has it; ``typical_number`` is
    the same as the forest reads it. ``is_exact``: whether range and values are those of the
    training rows, not estimates from bins.
    """

    column: Column
    importance: float
    missing: float
    low: Value = None
    high: Value = None
    step: float | None = None
    quantiles: tuple[ColumnQuantile, ...] = ()
    choices: tuple[Choice, ...] | None = None
    typical: Value = None
    typical_number: float = np.nan
    is_exact: bool = True


def summarise_columns(
    model: Model,
    names: list[str],
    importance: NDArray[np.float64],
    training: NDArray[Any] | None = None,
) -> list[ColumnSummary]:
    """Summary of every column, from the training table if there is one."""
    summaries = []
    for j, name in enumerate(names):
        column = Column(name, model.columns.kinds[j], model.columns.levels[j])
        missing = float((list_codes(model, j) == MISSING).mean())
        empty = ColumnSummary(column, float(importance[j]), missing)
        if training is None:
            values, may_list = decode_column(model, j), are_evenly_spaced(model.edges[j])
            summary = round_to_steps(summarise_column(empty, values, may_list))
            summary = summary._replace(is_exact=column.kind == CATEGORY)
        else:
            values = np.asarray(training[:, j], dtype=np.float64)
            summary = summarise_column(empty, values, may_list=True)
        summaries.append(summary)
    return summaries


def summarise_column(
    empty: ColumnSummary, values: NDArray[np.float64], may_list: bool
) -> ColumnSummary:
    """Fill the summary of a column from its values, NaN if missing or unknown.

    ``may_list``: whether the values are exact enough to list them as choices.
    """
    known = values[~np.isnan(values)]
    column = empty.column
    if len(known) == 0:
        # If the column has one value only, no edge tells which; any number is in its bin.
        if not 0 < empty.missing < 1:
            return empty
        return empty._replace(typical=write_value(0.0, column), typical_number=0.0)
    if column.kind == CATEGORY:
        counts = np.bincount(known.astype(int), minlength=len(column.levels or ()))
        choices = tuple(
            Choice(level, float(count / len(known)))
            for level, count in zip(column.levels or (), counts, strict=True)
        )
        code = float(counts.argmax())
        return empty._replace(
            choices=choices, typical=write_value(code, column), typical_number=code
        )
    return summarise_numbers(empty, known, may_list)


def summarise_numbers(
    empty: ColumnSummary, known: NDArray[np.float64], may_list: bool
) -> ColumnSummary:
    """Fill the summary of a column of numbers, dates or durations."""
    column = empty.column
    unit = SECONDS_PER_DAY if column.kind in (DATE, DURATION) else 1.0
    step = find_step(known / unit, column.kind)
    distinct, counts = np.unique(known, return_counts=True)
    choices = None
    if may_list and len(distinct) <= MAX_CHOICES and column.kind not in (DATE, DURATION):
        choices = tuple(
            Choice(write_value(strip_noise(value), column), float(count / len(known)))
            for value, count in zip(distinct.tolist(), counts.tolist(), strict=True)
        )
    values = np.quantile(known, LEVELS, method="inverted_cdf").tolist()
    median = strip_noise(values[LEVELS.index(0.5)])
    if choices is None:  # a typical value needs few digits
        fine = unit * step * (1.0 if column.kind == DATE else FINE)
        median = strip_noise(np.round(median / fine) * fine)
    return empty._replace(
        low=write_value(strip_noise(distinct[0]), column),
        high=write_value(strip_noise(distinct[-1]), column),
        step=step,
        quantiles=tuple(
            ColumnQuantile(level, write_value(strip_noise(value), column))
            for level, value in zip(LEVELS, values, strict=True)
        ),
        choices=choices,
        typical=write_value(median, column),
        typical_number=median,
    )


def round_to_steps(summary: ColumnSummary) -> ColumnSummary:
    """Round range and quantiles, so that estimates from bins do not look exact."""
    if summary.step is None or summary.column.kind == DATE:
        return summary
    fine = FINE * summary.step

    def near(value: Value) -> Value:
        if not isinstance(value, float):
            return value
        rounded = strip_noise(round(value / fine) * fine)
        return rounded if math.isfinite(rounded) else value

    quantiles = tuple(ColumnQuantile(level, near(value)) for level, value in summary.quantiles)
    return summary._replace(low=near(summary.low), high=near(summary.high), quantiles=quantiles)


def find_step(values: NDArray[np.float64], kind: str) -> float:
    """A power of ten: at least 1 if all values are whole, else about a hundredth of the range."""
    low, high = float(values.min()), float(values.max())
    spread = min(high - low, sys.float_info.max)
    are_whole = bool(np.all(values == np.round(values)))
    if kind == DATE:
        return 1.0
    if spread / MIN_STEPS == 0:
        return 1.0
    step = 10.0 ** math.floor(math.log10(spread / MIN_STEPS))
    return max(1.0, step) if are_whole else step
