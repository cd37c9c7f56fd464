"""The target: what a user brings as ``y``, as a time and an event per row.

Right censoring: we see Y = min(T, C), and ``event`` is True where T <= C.
Left censoring: Y = max(T, C), and ``event`` is True where T >= C.
Inside the library only right censoring exists: a left-censored time is negated on the
way in (:func:`oriented`) and every answer on the way out.
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

TARGET_DTYPE = np.dtype([("event", "?"), ("time", "<f8")])


class Target(NamedTuple):
    """Times and events of the same length, checked."""

    time: NDArray[np.float64]
    event: NDArray[np.bool_]


def censored(time: ArrayLike, event: ArrayLike) -> NDArray[np.void]:
    """Pair times with events into one structured array, the ``y`` of ``fit``.

    Parameters
    ----------
    time : array-like of shape (n,)
        Observed time: of the event where it was seen, of censoring elsewhere.
    event : array-like of shape (n,)
        True (or 1) where the event was seen, False (or 0) where it was censored.

    Returns
    -------
    ndarray of shape (n,)
        Structured array with the fields ``event`` (bool) and ``time`` (float).

    Examples
    --------
    >>> from cqrf import censored
    >>> y = censored([5.0, 8.0, 3.0], [True, False, True])
    >>> y["time"]
    array([5., 8., 3.])
    """
    target = pair(time, event)
    y = np.empty(len(target.time), dtype=TARGET_DTYPE)
    y["event"] = target.event
    y["time"] = target.time
    return y


def read_target(y: Any) -> Target:
    """Read ``y`` in any of its forms.

    A structured array with one boolean and one float field; two columns (time, event),
    as an array or a frame; or one column of times, all of them seen.
    """
    if y is None:
        raise ValueError(
            "requires y to be passed, but the target y is None: pass censored(time, event), "
            "or a 1-D array of times if nothing is censored."
        )
    names = getattr(y, "columns", None)
    if names is not None and {"time", "event"} <= set(names):
        return pair(np.asarray(y["time"]), np.asarray(y["event"]))
    y = np.asarray(y)
    if y.dtype.names is not None:
        return _read_structured(y)
    if y.ndim == 1:
        return pair(y, np.ones(len(y), dtype=bool))
    if y.ndim == 2 and y.shape[1] == 1:
        from sklearn.exceptions import DataConversionWarning

        warnings.warn(
            "A column-vector y was passed when a 1d array was expected; it is read as "
            "times that are all events.",
            DataConversionWarning,
            stacklevel=2,
        )
        return pair(y[:, 0], np.ones(len(y), dtype=bool))
    if y.ndim == 2 and y.shape[1] == 2:
        return pair(y[:, 0], y[:, 1])
    raise ValueError(
        f"y has shape {y.shape}; expected a structured array from censored(time, event), "
        "two columns (time, event), or a 1-D array of uncensored times."
    )


def pair(time: ArrayLike, event: ArrayLike) -> Target:
    """Check times and events and pair them up."""
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
    try:
        checked_time = raw_time.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"time must be numbers; found {raw_time.dtype} values.") from error
    bad = ~np.isfinite(checked_time)
    if bad.any():
        first = int(np.flatnonzero(bad)[0])
        raise ValueError(
            f"Input y contains NaN or infinity: time is {checked_time[first]} in row {first} "
            f"({int(bad.sum())} such rows). Drop these rows, or censor them at the last time seen."
        )
    return Target(checked_time, _read_event(raw_event))


def oriented(time: NDArray[np.float64], censoring: str) -> NDArray[np.float64]:
    """Turn times so that censoring is on the right; its own inverse."""
    return time if censoring == "right" else -time


def time_order(time: NDArray[np.float64], event: NDArray[np.bool_]) -> NDArray[np.int32]:
    """Row numbers by time; at a tied time events before censorings, then by row number."""
    return np.lexsort((~event, time)).astype(np.int32)


def _read_structured(y: NDArray[np.void]) -> Target:
    names = y.dtype.names or ()
    events = [name for name in names if y.dtype[name].kind == "b"]
    times = [name for name in names if y.dtype[name].kind in "fiu"]
    if len(names) != 2 or len(events) != 1 or len(times) != 1:
        fields = ", ".join(f"{name}: {y.dtype[name]}" for name in names)
        raise ValueError(
            "a structured y needs one boolean field (event) and one float field (time); "
            f"found {fields}. Build it with censored(time, event)."
        )
    return pair(y[times[0]], y[events[0]])


def _read_event(event: NDArray[Any]) -> NDArray[np.bool_]:
    if event.dtype.kind == "b":
        return event.astype(bool)
    try:
        numbers = event.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"event must be True/False or 1/0; found {event.dtype} values.") from error
    odd = ~((numbers == 0) | (numbers == 1))
    if odd.any():
        first = int(np.flatnonzero(odd)[0])
        raise ValueError(
            f"event must be True/False or 1/0; found {event[first]!r} in row {first}. "
            "With two columns the order is (time, event); with a status code, compare it "
            "first, as in event = (status == 2)."
        )
    return numbers == 1
