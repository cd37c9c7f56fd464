"""The target: reads ``y`` into a time and an event per row, orients and ranks them.

Right censoring: Y = min(T, C) is observed, and ``event`` is True where T <= C.
Left censoring: Y = max(T, C) is observed, and ``event`` is True where T >= C.
Inside the library only right censoring exists: left-censored times are negated when they are
read (:func:`oriented`), and every result is negated back.

Delayed entry (left truncation): a row with an entry time is at risk only after it; a subject
whose event came before its entry is not in the table at all.

Competing risks: ``cause`` says which of several events came first (see ``_input/causes.py``);
``event`` is True for any of them. Interval censoring: T lies in (lower, time], or is ``time`` where
both are equal (see ``_input/intervals.py``); a row without an upper end is censored at ``time``.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cqrf._input.causes import Cause, Causes, is_binary, match_causes, number_causes, read_causes
from cqrf._input.intervals import read_ends
from cqrf._input.times import count_others, read_times
from cqrf._runtime.arguments import name_row, read_floats

Times = TypeVar("Times", NDArray[np.float64], float)

SIDES = ("right", "left")  # on which times are censored
TARGET_FIELDS = [("event", "?"), ("time", "<f8")]


class NegativeTimeWarning(UserWarning):
    """Some right-censored times are below 0, which no duration is."""


class Target(NamedTuple):
    """Times and events, checked; what is absent is None."""

    time: NDArray[np.float64]
    event: NDArray[np.bool_]
    entry: NDArray[np.float64] | None = None
    cause: NDArray[np.uint8] | None = None
    """With several causes: the number of each row's cause, from 1 on; 0 if it is censored."""
    causes: tuple[Cause, ...] = ()
    """Name of each cause; empty if the table does not tell causes apart."""
    lower: NDArray[np.float64] | None = None
    """With interval censoring: T is known to be after it, or equal to it if it is the time."""

    def take(self, rows: NDArray[Any]) -> Target:
        """Some of the rows, in the order given."""
        entry, cause, lower = (
            None if each is None else each[rows] for each in (self.entry, self.cause, self.lower)
        )
        return Target(self.time[rows], self.event[rows], entry, cause, self.causes, lower)

    def drop_single_cause(self) -> Target:
        """The same without causes if all events have the same: it is an ordinary event then."""
        return self if len(self.causes) > 1 else self._replace(cause=None, causes=())


def censored(
    time: ArrayLike,
    event: ArrayLike,
    entry: ArrayLike | None = None,
    *,
    censored: Any = None,
) -> NDArray[np.void]:
    """Pair times with events into one structured array, the ``y`` of ``fit``.

    Parameters
    ----------
    time : array-like of shape (n,)
        Observed time: of the event, or of censoring where the event was not observed. Numbers in
        any unit, in which all predictions are then; or timedeltas, which are read in days.
    event : array-like of shape (n,)
        True (or 1) where the event was observed, False (or 0) where it was censored. With
        competing risks: the cause of each row's event, as a whole number or a text.
    entry : array-like of shape (n,), optional
        Time from which a row was under observation, before its ``time``; -inf or NaN for a row
        that was observed from the start.
    censored : optional
        Value of ``event`` that means censored. Default: False or 0.

    Returns
    -------
    ndarray of shape (n,)
        Structured array with the fields ``event`` (bool) and ``time`` (float), ``entry`` (float)
        if given, and ``cause`` if there are several causes; it is 0 or "" in censored rows.

    Examples
    --------
    >>> from cqrf import censored
    >>> y = censored([5.0, 8.0, 3.0], [True, False, True])
    >>> y["time"]
    array([5., 8., 3.])
    >>> y = censored([5.0, 8.0, 3.0], ["death", "alive", "transplant"], censored="alive")
    >>> y["cause"].tolist()
    ['death', '', 'transplant']
    """
    kinds = None
    if censored is not None or not is_binary(event):
        kinds = number_causes(np.asarray(event), censored)
        event = kinds.number > 0
    target = pair(time, event, entry)
    fields: list[tuple[str, Any]] = [*TARGET_FIELDS]
    if target.entry is not None:
        fields.append(("entry", "<f8"))
    if kinds is not None and len(kinds.names) > 1:
        fields.append(("cause", kinds.values.dtype))
    y = np.empty(len(target.time), dtype=fields)
    y["event"] = target.event
    y["time"] = target.time
    if target.entry is not None:
        y["entry"] = target.entry
    if kinds is not None and len(kinds.names) > 1:
        y["cause"] = kinds.values
    return y


def read_target(y: Any, first_row: int = 0) -> Target:
    """Read ``y`` in any of its forms.

    A structured array with one boolean and one float field, and perhaps ``entry`` and ``cause``, or
    with the fields ``lower`` and ``upper``; a frame with the columns time and cause, or lower and
    upper; two columns (time, event), as an array or a frame; or one column of times that are all
    events.
    Errors count rows from ``first_row``, the first row of this part of a larger table.
    """
    if y is None:
        raise ValueError(
            "requires y to be passed, but the target y is None: pass censored(time, event), "
            "or a 1-D array of times if nothing is censored."
        )
    names = getattr(y, "columns", None)
    if names is not None and {"time", "cause"} <= set(names):
        return _read_cause_columns(y, first_row)
    if names is not None and {"lower", "upper"} <= set(names):
        if "entry" in set(names):
            raise ValueError(
                "y has the column entry beside lower and upper: entry times do not go with "
                "intervals. Drop this column."
            )
        return between(np.asarray(y["lower"]), np.asarray(y["upper"]), first_row)
    if names is not None and {"time", "event"} <= set(names):
        entry = np.asarray(y["entry"]) if "entry" in set(names) else None
        return pair(np.asarray(y["time"]), np.asarray(y["event"]), entry, first_row)
    y = np.asarray(y)
    if y.dtype.names is not None:
        return _read_structured(y, first_row)
    if y.ndim == 1:
        if y.dtype.kind == "b":
            raise ValueError(
                "y is True or False in every row, which are events without times; pass "
                "censored(time, event)."
            )
        return pair(y, np.ones(len(y), dtype=bool), first_row=first_row)
    if y.ndim == 2 and y.shape[1] == 1:
        from sklearn.exceptions import DataConversionWarning

        warnings.warn(
            "A column-vector y was passed when a 1d array was expected; it is read as "
            "times that are all events.",
            DataConversionWarning,
            stacklevel=2,
        )
        return pair(y[:, 0], np.ones(len(y), dtype=bool), first_row=first_row)
    if y.ndim == 2 and y.shape[1] == 2:
        return pair(y[:, 0], y[:, 1], first_row=first_row)
    raise ValueError(
        f"y has shape {y.shape}; expected a structured array from censored(time, event), "
        "two columns (time, event), or a 1-D array of uncensored times."
    )


def pair(
    time: ArrayLike, event: ArrayLike, entry: ArrayLike | None = None, first_row: int = 0
) -> Target:
    """Check times, events and, if given, entries; join them into a target."""
    raw_time, raw_event = np.asarray(time), np.asarray(event)
    for name, values in (("time", raw_time), ("event", raw_event)):
        if values.ndim != 1:
            raise ValueError(f"{name} must have one dimension; found shape {values.shape}.")
    if len(raw_time) != len(raw_event):
        raise ValueError(
            f"time has {len(raw_time)} rows but event has {len(raw_event)}; they must pair up."
        )
    if np.iscomplexobj(raw_time):
        raise ValueError("Complex data not supported: time must be real numbers.")
    checked_time = read_times("time", raw_time)
    bad = ~np.isfinite(checked_time)
    if bad.any():
        first = int(np.flatnonzero(bad)[0])
        raise ValueError(
            f"Input y contains NaN or infinity: time is {checked_time[first]} in "
            f"{name_row(first_row + first)}{count_others(bad)}. Drop such rows, or censor them at "
            "the last time of observation."
        )
    checked_entry = None if entry is None else _read_entry(entry, checked_time, first_row)
    return Target(checked_time, _read_event(raw_event, first_row), checked_entry)


def between(lower: ArrayLike, upper: ArrayLike, first_row: int = 0) -> Target:
    """Check the ends of intervals; join them into a target.

    It has no ``lower`` if all rows are exact or right-censored: it is an ordinary one then.
    """
    ends = read_ends(lower, upper, first_row)
    event = np.isfinite(ends.upper)
    time = np.where(event, ends.upper, ends.lower)
    is_ordinary = bool((ends.lower == time).all())
    return Target(time, event, lower=None if is_ordinary else ends.lower)


def oriented(time: Times, censoring: str) -> Times:
    """Times with censoring on the right: negated for ``"left"``. Its own inverse."""
    return time if censoring == "right" else -time


def time_order(time: NDArray[np.float64], event: NDArray[np.bool_]) -> NDArray[np.int32]:
    """Row numbers by time; at a tied time events before censorings, then by row number."""
    order = np.argsort(time)  # much faster than a stable sort
    if not (np.diff(time[order]) > 0).all():
        order = np.lexsort((~event, time))
    return order.astype(np.int32)


def rank_target(target: Target, censoring: str) -> tuple[Target, NDArray[np.int32]]:
    """The target in time order, oriented to the right, and the row number of each rank."""
    check_side_of_entry(target.entry is not None, censoring)
    if target.causes and censoring == "left":
        raise ValueError(
            "several causes go with right censoring only: with censoring='left' fit one cause, as "
            "in censored(time, cause == 1)."
        )
    if target.lower is not None and censoring == "left":
        raise ValueError(
            "y has intervals, which say themselves on which side a row is censored: leave "
            "censoring='right', and pass lower=-inf for a left-censored row."
        )
    turned = target._replace(time=oriented(target.time, censoring))
    order = time_order(turned.time, turned.event)
    return turned.take(order), order


def check_side_of_entry(has_entry: bool, censoring: str) -> None:
    """Raise if entry times come with left censoring."""
    if has_entry and censoring == "left":
        raise ValueError(
            "entry times go with right censoring only: with censoring='left' a row would have "
            "to leave early, not enter late."
        )


def find_negative_times(target: Target) -> NDArray[np.bool_]:
    """Rows whose time, or a finite end of their interval, is below 0, which no duration is.

    Without censoring times are the values of an ordinary regression, which have any sign; so have
    times with entry.
    """
    if target.lower is not None:
        return (target.time < 0) | ((target.lower < 0) & np.isfinite(target.lower))
    if target.entry is not None or target.event.all():
        return np.zeros(len(target.time), dtype=bool)
    return target.time < 0


def warn_of_negative_times(target: Target, censoring: str) -> None:
    """Warn if right-censored times are below 0, as if some ended before they began."""
    below = find_negative_times(target)
    if censoring == "left" or not below.any():
        return
    first = int(np.flatnonzero(below)[0])
    name, value = "time", target.time[first]
    if target.lower is not None:
        is_lower = np.isfinite(target.lower[first])
        name = "lower" if is_lower else "upper"
        value = target.lower[first] if is_lower else value
    warnings.warn(
        f"{name} is {value:g} in {name_row(first)}{count_others(below)}. Does its end "
        "lie before its start? If these are no durations, such as logarithms of times, ignore "
        "cqrf.NegativeTimeWarning.",
        NegativeTimeWarning,
        stacklevel=4,
    )


def join_targets(targets: Sequence[Target]) -> Target:
    """Concatenate the targets of parts of a table; all have entries, or causes, or none has."""
    if any(target.lower is not None for target in targets):
        raise ValueError("intervals are not supported in parts: fit the whole table at once.")
    entries = [target.entry for target in targets if target.entry is not None]
    parts = [Causes(each.cause, each.causes) for each in targets if each.cause is not None]
    kinds = match_causes(parts) if parts else None
    return Target(
        np.concatenate([target.time for target in targets]),
        np.concatenate([target.event for target in targets]),
        np.concatenate(entries) if entries else None,
        None if kinds is None else kinds.number,
        () if kinds is None else kinds.names,
    )


def _read_structured(y: NDArray[np.void], first_row: int) -> Target:
    if set(y.dtype.names or ()) == {"lower", "upper"}:
        return between(y["lower"], y["upper"], first_row)
    names = [name for name in y.dtype.names or () if name not in ("entry", "cause")]
    events = [name for name in names if y.dtype[name].kind == "b"]
    times = [name for name in names if y.dtype[name].kind in "fium"]
    if len(names) != 2 or len(events) != 1 or len(times) != 1:
        fields = ", ".join(f"{name}: {y.dtype[name]}" for name in y.dtype.names or ())
        raise ValueError(
            "a structured y needs one boolean field (event) and one float field (time); "
            f"found {fields}. Build it with censored(time, event), or, with competing risks, "
            "censored(time, cause)."
        )
    entry = y["entry"] if "entry" in (y.dtype.names or ()) else None
    target = pair(y[times[0]], y[events[0]], entry, first_row)
    if "cause" not in (y.dtype.names or ()):
        return target
    kinds = read_causes(y["cause"], target.event, first_row)
    return target._replace(cause=kinds.number, causes=kinds.names)


def _read_cause_columns(y: Any, first_row: int) -> Target:
    """The target of a frame with the columns time and cause; a cause of 0 or "" is censored."""
    cause = np.asarray(y["cause"])
    entry = np.asarray(y["entry"]) if "entry" in set(y.columns) else None
    kinds = read_causes(cause, None, first_row)
    target = pair(np.asarray(y["time"]), kinds.number > 0, entry, first_row)
    return target._replace(cause=kinds.number, causes=kinds.names)


def _read_entry(entry: ArrayLike, time: NDArray[np.float64], first_row: int) -> NDArray[np.float64]:
    entries = read_times("entry", np.asarray(entry))
    if entries.shape != time.shape:
        raise ValueError(f"entry has shape {entries.shape} but time has {time.shape}.")
    entries = np.where(np.isnan(entries), -np.inf, entries)
    late = entries >= time
    if late.any():
        first = int(np.flatnonzero(late)[0])
        raise ValueError(
            f"entry must be before time: entry is {entries[first]:g} and time {time[first]:g} in "
            f"{name_row(first_row + first)}{count_others(late)}. A row that was never at risk "
            "cannot be used."
        )
    return entries


def _read_event(event: NDArray[Any], first_row: int) -> NDArray[np.bool_]:
    if event.dtype.kind == "b":
        return event.astype(bool)
    try:
        numbers = read_floats("event", event)
    except ValueError as error:
        raise ValueError(
            f"event must be True/False or 1/0; found {event.dtype} values such as {event[0]!r}. "
            "Compare the status first, as in event = (status == 'dead')."
        ) from error
    if np.isnan(numbers).any():
        first = int(np.flatnonzero(np.isnan(numbers))[0])
        raise ValueError(
            f"event is missing in {name_row(first_row + first)}: if that means censored, fill it "
            "with 0; else drop such rows."
        )
    broken = np.flatnonzero(np.floor(numbers) != numbers)
    if len(broken):
        raise ValueError(
            f"event must be True/False or 1/0; found {event[broken[0]]} in "
            f"{name_row(first_row + int(broken[0]))}, which is not a whole number, as codes of "
            "causes are. With two columns the order is (time, event)."
        )
    odd = ~((numbers == 0) | (numbers == 1))
    if odd.any():
        first = int(np.flatnonzero(odd)[0])
        raise ValueError(
            f"event must be True/False or 1/0; found {event[first]} in "
            f"{name_row(first_row + first)}. With two columns the order is (time, event); with a "
            "status code, compare it first, as in event = (status == 2), or tell several causes "
            "apart with y = censored(time, status)."
        )
    return numbers == 1
