"""Interval censoring: times that are known only to lie between two others.

A row says that T lies in (lower, upper]: open on the left, closed on the right, as between a visit
at which the event had not come and the next, at which it had. If both ends are equal the time is
exact; without an upper end the row is right-censored, without a lower end left-censored.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cqrf._input.times import count_others, read_times
from cqrf._runtime.arguments import name_row


class Ends(NamedTuple):
    """Both ends of each row, checked."""

    lower: NDArray[np.float64]
    upper: NDArray[np.float64]


def interval(lower: ArrayLike, upper: ArrayLike) -> NDArray[np.void]:
    """Pair the ends of intervals into one structured array, the ``y`` of ``fit``.

    Parameters
    ----------
    lower : array-like of shape (n,)
        Last time at which the event had not come: T > lower. -inf, or 0 for durations, in a row
        that is left-censored.
    upper : array-like of shape (n,)
        First time at which it had come: T <= upper. inf in a row that is right-censored; equal to
        ``lower`` in a row whose time is exact.

    Returns
    -------
    ndarray of shape (n,)
        Structured array with the fields ``lower`` and ``upper`` (float). A forest reads a table
        with exact and right-censored rows only as it reads ``censored(time, event)``.

    Examples
    --------
    >>> from cqrf import interval
    >>> y = interval([2.0, 5.0, 3.0, 0.0], [4.0, float("inf"), 3.0, 1.0])
    >>> y["upper"].tolist()
    [4.0, inf, 3.0, 1.0]
    """
    ends = read_ends(lower, upper)
    y = np.empty(len(ends.lower), dtype=[("lower", "<f8"), ("upper", "<f8")])
    y["lower"], y["upper"] = ends
    return y


def read_ends(lower: ArrayLike, upper: ArrayLike, first_row: int = 0) -> Ends:
    """The ends as floats; an error names the first row whose interval is none.

    Rows are counted from ``first_row``, the first row of this part of a larger table.
    """
    raw = {"lower": np.asarray(lower), "upper": np.asarray(upper)}
    for name, values in raw.items():
        if values.ndim != 1:
            raise ValueError(f"{name} must have one dimension; found shape {values.shape}.")
    if len(raw["lower"]) != len(raw["upper"]):
        raise ValueError(
            f"lower has {len(raw['lower'])} rows but upper has {len(raw['upper'])}; they must pair "
            "up."
        )
    ends = Ends(*(read_times(name, values) for name, values in raw.items()))
    for name, values in zip(("lower", "upper"), ends, strict=True):
        free = "-inf or 0 for a left-censored" if name == "lower" else "inf for a right-censored"
        _check(np.isnan(values), f"{name} is missing", f"Pass {free} row", first_row)
    low, high = ends
    _check(low > high, "lower is above upper", "Are the columns exchanged?", first_row, ends)
    _check(
        np.isinf(low) & (low == high),
        "lower and upper are the same infinity",
        "An exact time is finite",
        first_row,
    )
    _check(
        np.isneginf(low) & np.isposinf(high),
        "lower is -inf and upper inf",
        "Such a row says nothing about the time: drop it",
        first_row,
    )
    return ends


def refuse_intervals(lower: NDArray[np.float64] | None, what: str) -> None:
    """Raise if rows are interval-censored, where something is made for other rows only."""
    if lower is not None:
        raise ValueError(
            f"{what} not available for intervals: it needs times that are exact or censored on one "
            "side, as in censored(time, event)."
        )


def _check(
    bad: NDArray[np.bool_], found: str, advice: str, first_row: int, ends: Ends | None = None
) -> None:
    """Raise if some row is bad."""
    if not bad.any():
        return
    first = int(np.flatnonzero(bad)[0])
    values = "" if ends is None else f" ({ends.lower[first]:g} > {ends.upper[first]:g})"
    end = "" if advice.endswith("?") else "."
    raise ValueError(
        f"{found}{values} in {name_row(first_row + first)}{count_others(bad)}. {advice}{end}"
    )
