"""Competing risks: which of several events came first, as a number for each row.

Causes are numbered from 1 on, in ascending order of their names; 0 means censored. A table with a
single cause is an ordinary one: its cause is the event.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cqrf._runtime.arguments import is_missing, name_row

Cause = int | str

# More different values are taken for a mistake: a column of times, say.
MOST_CAUSES = 20


class Causes(NamedTuple):
    """The cause of each row."""

    number: NDArray[np.uint8]
    """0 if the row is censored, otherwise the place of its cause in ``names``, from 1 on."""
    names: tuple[Cause, ...]

    @property
    def values(self) -> NDArray[Any]:
        """The name of each row's cause; 0, or "" for texts, if the row is censored."""
        is_text = any(isinstance(name, str) for name in self.names)
        return np.array(["" if is_text else 0, *self.names])[self.number]


def is_binary(event: ArrayLike) -> bool:
    """Whether events are True or False, or numbers of which none is a cause beside 0 and 1.

    Values that cannot be read count as binary: the check of events says what is wrong with them.
    """
    values = np.asarray(event)
    if values.ndim != 1 or values.dtype.kind == "b":
        return True
    if values.dtype.kind in "iuf":
        return not _are_codes(values).all() or set(np.unique(values).tolist()) <= {0, 1}
    if values.dtype.kind != "O":
        return values.dtype.kind not in "US"
    found = [value for value in values.tolist() if not is_missing(value)]
    return all(isinstance(value, bool | int | float) and value in (0, 1) for value in found)


def number_causes(event: NDArray[Any], censored: Any = None) -> Causes:
    """Causes from a column of whole numbers or texts, one of whose values means censored.

    Raises if that value cannot be told: a text must be named, and so must a number other than 0.
    """
    if event.ndim != 1:
        raise ValueError(f"event must have one dimension; found shape {event.shape}.")
    codes = _read_codes(event)
    found = np.unique(codes).tolist()
    if censored is None and 0 not in found:
        zero = next((value for value in found if _means_the_same(value, 0)), None)
        or_none = ", or censored=0 if no row is censored" if zero is None else ""
        raise ValueError(
            f"event has the values {_listed(found)} and no {'number ' if zero else ''}0: which of "
            f"them means censored? Pass it as censored={zero or found[0]!r}, say{or_none}."
        )
    if codes.dtype.kind == "U" and censored is not None and not isinstance(censored, str):
        for text in found:
            if _means_the_same(text, censored):
                raise ValueError(
                    f"event has texts, {_listed(found)}, but censored={censored!r} is a number: "
                    f"pass censored={text!r}."
                )
    censored_code = 0 if censored is None else _read_codes(np.array([censored], object)).tolist()[0]
    if censored_code not in found and censored_code != 0:
        raise ValueError(f"censored={censored!r} is no value of event, which has {_listed(found)}.")
    if "" in found and censored_code != "":
        raise ValueError('event is an empty text in some rows: pass censored="" if it means that.')
    return _number(codes, censored_code)


def read_causes(cause: NDArray[Any], event: NDArray[np.bool_] | None, first_row: int = 0) -> Causes:
    """Causes from the field ``cause`` of y, or of a part of it that may lack some of them.

    ``event``, if there is one, must be True where the cause is not 0 or "".
    """
    codes = _read_codes(cause, "cause", first_row)
    kinds = _number(codes, "" if codes.dtype.kind == "U" else 0)
    if event is not None and not np.array_equal(kinds.number > 0, event):
        first = int(np.flatnonzero((kinds.number > 0) != event)[0])
        raise ValueError(
            f"y has event {bool(event[first])} but cause {codes[first].item()!r} in "
            f"{name_row(first_row + first)}. Build y with censored(time, cause)."
        )
    return kinds


def match_causes(parts: Sequence[Causes]) -> Causes:
    """The causes of all parts of a table, numbered alike; parts may lack some of them."""
    names = sorted({name for part in parts for name in part.names})
    number_of = {name: number for number, name in enumerate(names, start=1)}
    numbers = [
        np.array([0, *(number_of[name] for name in part.names)], np.uint8)[part.number]
        for part in parts
    ]
    return Causes(np.concatenate(numbers), tuple(names))


def find_cause(cause: Any, causes: Sequence[Cause], argument: str = "cause") -> int:
    """Place of a cause among those of a forest; an error names the argument."""
    if not causes:
        raise ValueError(
            f"{argument}={cause!r}: this forest knows one kind of event. To tell causes apart, fit "
            "with y = censored(time, cause)."
        )
    plain = cause.item() if isinstance(cause, np.generic) else cause
    is_one = isinstance(plain, str | int | float) and not isinstance(plain, bool)
    if not is_one or plain not in causes:
        raise ValueError(
            f"{argument}={cause!r} is no cause of this forest; choose one of "
            f"{_listed(list(causes))}."
        )
    return causes.index(plain)


def name_cause(cause: Cause) -> str:
    """A cause in words: in a picture or a sentence a number alone says too little."""
    return cause if isinstance(cause, str) else f"cause {cause}"


def are_causes(names: Any) -> bool:
    """Whether these can be the names of a table's causes: several, ascending, or none."""
    if not isinstance(names, list) or len(names) == 1 or len(names) > MOST_CAUSES:
        return False
    if {type(name) for name in names} not in (set(), {str}, {int}):
        return False
    return all(before < after for before, after in pairwise(names)) and "" not in names


def _number(codes: NDArray[Any], censored_code: Cause) -> Causes:
    values, place = np.unique(codes, return_inverse=True)
    names = tuple(value for value in values.tolist() if value != censored_code)
    if 0 in names and len(names) > 1:
        raise ValueError(
            f"event has 0 beside the value that means censored, {censored_code!r}: with several "
            "causes none can be 0. Give this one another code or name, such as "
            f"{max(values.tolist()) + 1}."
        )
    if len(names) > MOST_CAUSES:
        raise ValueError(
            f"event has {len(names)} different values: {_listed(list(names))}. A forest takes at "
            f"most {MOST_CAUSES} causes: join rare ones. Are these times?"
        )
    number = [0 if v == censored_code else names.index(v) + 1 for v in values.tolist()]
    return Causes(np.array(number, np.uint8)[place.ravel()], names)


def _means_the_same(text: str, number: Any) -> bool:
    """Whether a text is a way to write this number, or True or False."""
    plain = text.strip().lower() if isinstance(text, str) else ""
    try:
        return float({"true": "1", "false": "0"}.get(plain, plain)) == float(number)
    except (TypeError, ValueError):
        return False


def _read_codes(event: NDArray[Any], name: str = "event", first_row: int = 0) -> NDArray[Any]:
    """Causes as whole numbers or as texts; errors count rows from ``first_row``."""
    if event.dtype.kind in "US":
        return event.astype(str)
    if event.dtype.kind in "Of":
        is_number = event.dtype.kind == "f"
        missing = np.isnan(event) if is_number else [is_missing(each) for each in event.tolist()]
        if np.any(missing):
            place = name_row(first_row + int(np.flatnonzero(missing)[0]))
            raise ValueError(
                f"{name} is missing in {place}: if that means censored, fill it with a value and "
                "name this in censored(time, cause, censored=value); else drop such rows."
            )
    if event.dtype.kind == "O" and all(isinstance(value, str) for value in event.tolist()):
        return event.astype(str)
    values = event.tolist() if event.dtype.kind == "O" else []
    texts = [each for each in values if isinstance(each, str)]
    if texts:  # beside others, as they are not all texts
        number = next(each for each in values if not isinstance(each, str))
        raise ValueError(
            f"{name} has texts, such as {texts[0]!r}, beside other values, such as {number!r}: "
            "make all of them texts, or all of them whole numbers."
        )
    try:
        codes = event.astype(np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            f"{name} must be whole numbers or texts; found {event.dtype} values such as "
            f"{event[0]!r}."
        ) from None
    odd = np.flatnonzero(~_are_codes(codes))
    if len(odd):
        raise ValueError(
            f"{name} must be whole numbers or texts; found {codes[odd[0]]:g} in "
            f"{name_row(first_row + int(odd[0]))}."
        )
    return codes.astype(np.int64)


def _are_codes(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Which values are whole numbers that 64 bits can hold."""
    with np.errstate(invalid="ignore"):
        return np.asarray((np.floor(values) == values) & (np.abs(values) < 2**53))


def _listed(values: Sequence[Cause]) -> str:
    """Some values, for messages."""
    shown = ", ".join(repr(value) for value in values[:6])
    return shown if len(values) <= 6 else f"{shown}, ..."
