"""The section on rows: what is predicted for each row, and the thinned curves of some."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cqrf._input.causes import name_cause
from cqrf._readers.incidence import Incidence
from cqrf._readers.intervals import LowerCurves
from cqrf._readers.reader import read_one
from cqrf._runtime.arguments import is_missing
from cqrf._survival.step_curve import StepCurve
from cqrf._views.causes import cause_of
from cqrf._views.curves import SHOWN_LEVELS, thin_curve
from cqrf._views.intervals import find_left_ends, left_end_of
from cqrf._views.numbers import format_count, round_number, round_numbers
from cqrf.report.predictions import TablePredictions

MAX_STEPS = 60
MAX_SAFE_INTEGER = 2**53  # the largest whole number that every browser holds
SURVIVAL_UNIT = 10_000  # survival is written as a whole number of 1 / SURVIVAL_UNIT


def describe_rows(table: TablePredictions, ids: Sequence[Any] | None) -> dict[str, Any]:
    """Content of the list of rows.

    A row is a list: label, time, event, quantiles, largest identifiable level, last neighbour; if
    it has a curve, then survival before the first step, steps, survival after each step; with
    several causes, then the incidence of each after each step, the row's cause, and the quantiles
    of each cause. A step is the index of its time in ``times``. ``assets/rows.js`` names the same
    fields in the same order.
    """
    labels = read_labels(ids, len(table.target.time))
    drawn = table.drawn_rows.tolist()
    curves = thin_curves(table)
    # Curves may all step at times of their own: rounded, these have many in common.
    rounded = [np.array(round_numbers(curve.times), dtype=np.float64) for curve in curves]
    times = np.unique(np.concatenate(rounded))
    fields_of_curve = {
        row: [
            round(curve.initial * SURVIVAL_UNIT),
            np.searchsorted(times, its_times).tolist(),
            np.rint(curve.values * SURVIVAL_UNIT).astype(int).tolist(),
        ]
        for row, curve, its_times in zip(drawn, curves, rounded, strict=True)
    }
    max_levels = np.where(table.has_prediction, table.max_levels, np.nan)
    of_causes = list_incidences(table)
    rows = [
        [
            labels[row],
            round_number(table.target.time[row], 6),
            int(table.target.event[row]),
            round_numbers(table.quantiles[row]),
            round_number(max_levels[row]),
            round_number(table.last_neighbor[row]),
            *fields_of_curve.get(row, []),
            *of_causes.get(row, []),
        ]
        for row in table.listed_rows.tolist()
    ]
    return {
        "text": explain_list(table, ids is None),
        "unit": SURVIVAL_UNIT,
        "times": round_numbers(times),
        "rows": rows,
        "intervals": list_intervals(table),
    }


def thin_curves(table: TablePredictions) -> list[StepCurve]:
    """Survival curves of the rows that are drawn, with fewer steps."""
    return [thin_curve(curve, MAX_STEPS) for curve in table.curves(table.drawn_rows)]


def list_intervals(table: TablePredictions) -> list[dict[str, Any]] | None:
    """What interval censoring leaves open in each of the listed rows; None without it.

    ``lower`` is the left end of a row, if the table has intervals, and ``curve`` the smallest
    survival curve that fits as well, of a row that is drawn, if the forest has them.
    """
    ends, model, drawn = find_left_ends(table.target), table.model, table.drawn_rows
    if ends is None and model.lower is None:
        return None
    curves: dict[int, Any] = {}
    if model.lower is not None:
        lower = read_one(model, table.queries.take(drawn), LowerCurves(), table.forest.n_jobs)
        for row, curve in zip(drawn.tolist(), lower, strict=True):
            thinned = thin_curve(curve, MAX_STEPS)
            values = np.rint(thinned.values * SURVIVAL_UNIT).astype(int).tolist()
            curves[row] = {"curve": {"times": round_numbers(thinned.times), "values": values}}
    return [left_end_of(ends, row) | curves.get(row, {}) for row in table.listed_rows.tolist()]


def list_incidences(table: TablePredictions) -> dict[int, list[Any]]:
    """Incidence of each cause at the steps of a row's curve, its cause, quantiles of each; by row.

    Empty if there is one kind of event.
    """
    model, rows = table.model, table.drawn_rows
    if not model.causes:
        return {}
    found = read_one(model, table.queries.take(rows), Incidence(), table.forest.n_jobs)
    levels = np.array(SHOWN_LEVELS)
    reached = [found.quantiles(cause, levels).values for cause in model.causes]
    number = table.target.cause
    content = {}
    for i, (row, curve) in enumerate(zip(rows.tolist(), thin_curves(table), strict=True)):
        values = [found[cause][i](curve.times, "extend") for cause in model.causes]
        shares = [np.rint(each * SURVIVAL_UNIT).astype(int).tolist() for each in values]
        of_row = find_cause(table, row) if number is not None else None
        content[row] = [shares, of_row, [round_numbers(each[i]) for each in reached]]
    return content


def find_cause(table: TablePredictions, row: int) -> str | None:
    """The cause of a row's event, in words; None if it is censored."""
    cause = cause_of(table.target, row).get("cause")
    return None if cause is None else name_cause(cause)


def explain_list(table: TablePredictions, are_numbered: bool) -> list[str]:
    """Sentences on how to read the list."""
    text = [
        "Choose a row, by a click or with the arrow keys and Enter, to see its survival curve. "
        "The 80\u00a0% interval goes from its 10\u00a0% to its 90\u00a0% quantile."
    ]
    if table.model.causes:
        text[0] = text[0].replace("its survival curve.", "the incidence of each cause.")
        text[0] += (
            " Quantiles are those of the time to any event; that of a cause is the time at which "
            "its incidence reaches the level."
        )
    if table.out_of_bag:
        text[0] += " Predictions are out of bag: from the trees that did not draw the row."
    left = table.censoring == "left"
    written = (
        f"A censored time is written {'<12' if left else '12+'}: the event came "
        f"{'before' if left else 'after'} it."
        if table.target.lower is None
        else "The time of a row is written 10 to 12 if it is known to this interval, <12 if it is "
        "left-censored, 12+ if it is right-censored. The picture has a band where the event came."
    )
    if table.model.lower is not None:
        written += (
            " A quantile is the right end of its interval. All curves in the shaded area fit the "
            "training rows equally well."
        )
    text.append(
        f"{written} A quantile that is not identifiable because of "
        f"censoring is written {'<12' if left else '>12'}, with the time of the row's "
        f"{'first' if left else 'last'} neighbour. The {'min.' if left else 'max.'} level is the "
        f"{'smallest' if left else 'largest'} identifiable one."
    )
    if are_numbered:
        text[1] += " Rows are numbered from 1, in the order of the table."
    n, n_listed, n_drawn = (
        len(each) for each in (table.target.time, table.listed_rows, table.drawn_rows)
    )
    if n_listed < n:
        text.append(f"{n_listed:,} of {format_count(n, 'row')} are on this page, evenly spaced.")
    if n_drawn < n_listed:
        text.append(
            f"{n_drawn:,} of {format_count(n_listed, 'row')}, evenly spaced, have a curve and are "
            "listed at first; the search finds the others, with their quantiles only."
        )
    return text


def read_labels(ids: Sequence[Any] | None, n: int) -> list[str | int]:
    """A label for each row; whole numbers stay numbers, so that they sort as such."""
    if ids is None:
        return list(range(1, n + 1))
    values = np.asarray(ids, dtype=object)
    if values.shape != (n,):
        raise ValueError(f"ids has shape {values.shape}; expected one label for each of {n} rows.")
    return [read_label(value) for value in values]


def read_label(value: Any) -> str | int:
    """One label; a whole number that a browser can hold stays a number."""
    if is_missing(value):
        return "no id"
    if isinstance(value, float | np.floating) and float(value).is_integer():
        value = int(value)
    is_whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    return int(value) if is_whole and abs(int(value)) <= MAX_SAFE_INTEGER else str(value)
