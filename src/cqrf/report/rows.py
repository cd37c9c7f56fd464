"""Rows: what is predicted for each one, with a curve of few steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cqrf._runtime.arguments import is_missing
from cqrf.report.numbers import count, evenly, plain, plain_list, thin
from cqrf.report.subject import Subject

MOST_STEPS = 60
MOST_EXACT = 2**53  # the largest whole number that every browser holds
UNIT = 10_000  # survival is kept as whole numbers of this part


def describe_rows(subject: Subject, ids: Sequence[Any] | None, max_rows: int) -> dict[str, Any]:
    """Facts of the list of rows.

    A row is a list: label, time, event, quantiles, largest level, last neighbour, survival
    before the first step, steps. A step is the number of its time in ``times`` and the
    survival after it.
    """
    n = len(subject.target.time)
    labels = read_labels(ids, n)
    chosen = evenly(n, max_rows)
    curves = [thin(curve, MOST_STEPS) for curve in subject.curves(chosen)]
    times = np.unique(np.concatenate([curve.times for curve in curves]))
    limits = np.where(subject.known[chosen], subject.max_level(chosen), np.nan)
    rows = [
        [
            labels[row],
            plain(subject.target.time[row], 6),
            int(subject.target.event[row]),
            plain_list(subject.values[row]),
            plain(limit),
            plain(subject.last[row]),
            round(curve.initial * UNIT),
            np.searchsorted(times, curve.times).tolist(),
            np.rint(curve.values * UNIT).astype(int).tolist(),
        ]
        for row, limit, curve in zip(chosen.tolist(), limits, curves, strict=True)
    ]
    text = [
        "Choose a row, by a click or with the arrow keys and Enter, to see its survival curve. "
        "The 80\u00a0% interval lies between its 10\u00a0% and 90\u00a0% quantiles."
    ]
    if subject.out_of_bag:
        text[0] += " What is predicted for a row is out of bag, from trees that did not draw it."
    left = subject.censoring == "left"
    text.append(
        f"A censored time is written {'<12' if left else '12+'}: the event came "
        f"{'before' if left else 'after'} it. A quantile that censoring hides is written "
        f"{'<12' if left else '>12'}, with the {'first' if left else 'last'} time seen of rows "
        "like it."
    )
    if ids is None:
        text[1] += " Rows are numbered from 1, in the order of the table."
    if len(chosen) < n:
        text.append(f"Of {count(n, 'row')}, {len(chosen):,} are listed, evenly spaced.")
    return {"text": text, "unit": UNIT, "times": plain_list(times), "rows": rows}


def read_labels(ids: Sequence[Any] | None, n: int) -> list[str | int]:
    """A label for each row; whole numbers stay numbers, so that they sort as such."""
    if ids is None:
        return list(range(1, n + 1))
    values = np.asarray(ids, dtype=object)
    if values.shape != (n,):
        raise ValueError(f"ids has shape {values.shape}; expected one label for each of {n} rows.")
    return [read_label(value) for value in values]


def read_label(value: Any) -> str | int:
    """One label; a whole number that a browser can hold stays one."""
    if is_missing(value):
        return "no id"
    if isinstance(value, float | np.floating) and float(value).is_integer():
        value = int(value)
    is_whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    return int(value) if is_whole and abs(int(value)) <= MOST_EXACT else str(value)
