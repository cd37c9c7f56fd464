"""A column of several causes: the cause of each row, and what means censored."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cqrf._input.causes import MOST_CAUSES, Cause
from cqrf._input.target import censored
from cqrf.cli.text_files import list_names

CENSORED = 0.0  # the code that means censored unless another value is named


def canonical(value: str) -> float | str:
    """A key under which 2, 2.0 and '2' are equal, and true is 1."""
    text = value.strip()
    try:
        return float({"true": "1", "false": "0"}.get(text.lower(), text))
    except ValueError:
        return text


def are_codes(values: Sequence[str]) -> bool:
    """Whether all values are whole numbers, and one of them is 0: the code of censored rows."""
    keys = [canonical(value) for value in values]
    return CENSORED in keys and all(isinstance(key, float) and key.is_integer() for key in keys)


def name_causes(values: Sequence[str], censored_value: str | None) -> dict[str, Cause | None]:
    """The cause that each value of a column means; None for the value that means censored.

    Causes are whole numbers if all of them are, else texts. The value that means censored must be
    among the values, unless it is 0: a table may have no censored row.
    """
    is_censored = CENSORED if censored_value is None else canonical(censored_value)
    keys = {value: canonical(value) for value in values}
    if is_censored not in (*keys.values(), CENSORED):
        raise ValueError(
            f"never has the value {censored_value!r}; it has {list_names(list(values))}."
        )
    found = [key for key in keys.values() if key != is_censored]
    are_numbers = all(isinstance(key, float) and key.is_integer() for key in found)
    if are_numbers and CENSORED in found and len(set(found)) > 1:
        raise ValueError(
            f"has 0 beside {censored_value!r}, which --censored names: with several causes none "
            "can be 0. Give it another code, or words to all causes."
        )
    return {
        value: None if key == is_censored else int(key) if are_numbers else value.strip()
        for value, key in keys.items()
    }


def match_causes(
    values: Sequence[str], censored_value: str | None, causes: Sequence[Cause]
) -> dict[str, Cause | None]:
    """As :func:`name_causes`, for a model that knows its causes: a table may lack some of them."""
    is_censored = CENSORED if censored_value is None else canonical(censored_value)
    known: dict[float | str, Cause | None] = {canonical(str(cause)): cause for cause in causes}
    known[is_censored] = None
    for value in values:
        if canonical(value) not in known:
            raise ValueError(
                f"holds {value!r}, which is no cause of the model; it has "
                f"{list_names([str(cause) for cause in causes])}. Leave such rows out; --censored "
                "names the value of censored rows."
            )
    found: dict[str, Cause | None] = {value: known[canonical(value)] for value in values}
    return {str(cause): cause for cause in causes} | found


def refuse_several(meaning: Mapping[str, Cause | None]) -> None:
    """Raise if several values mean an event, for a model that knows one kind of event."""
    events = [value for value, cause in meaning.items() if cause is not None]
    if len(events) > 1:
        raise ValueError(
            f"has several events ({list_names(events)}), and the model knows one kind of event: "
            f"say which one it is, as in --event-value {shlex.quote(events[0])}."
        )


def join_causes(
    time: NDArray[np.float64],
    labels: Sequence[str],
    entry: NDArray[np.float64] | None,
    meaning: dict[str, Cause | None],
) -> NDArray[np.void]:
    """The target, with the field ``cause`` if there are several values that mean one."""
    causes = [meaning[label] for label in labels]
    y = censored(time, [cause is not None for cause in causes], entry)
    if len(set(meaning.values()) - {None}) < 2:
        return y
    is_text = any(isinstance(cause, str) for cause in meaning.values())
    values = np.array([("" if is_text else 0) if each is None else each for each in causes])
    joined = np.empty(len(y), dtype=[*y.dtype.descr, ("cause", values.dtype)])
    for name in y.dtype.names or ():
        joined[name] = y[name]
    joined["cause"] = values
    return joined


def find_cause(text: str, causes: Sequence[Cause], option: str, model: str) -> Cause:
    """The cause that is named on the command line."""
    if not causes:
        raise ValueError(
            f"{option} {text}: {model} knows one kind of event. To tell causes apart, fit it with "
            "an --event column of several causes."
        )
    for cause in causes:
        if canonical(str(cause)) == canonical(text):
            return cause
    listed = list_names([str(cause) for cause in causes])
    raise ValueError(f"{option} {text}: {model} has no such cause; it has {listed}.")


def count_causes(y: NDArray[Any]) -> dict[Cause, int]:
    """Events of each cause of a target; empty if it does not tell causes apart."""
    if "cause" not in (y.dtype.names or ()):
        return {}
    names, counts = np.unique(y["cause"][y["event"]], return_counts=True)
    return dict(zip(names.tolist(), counts.tolist(), strict=True))


def name_counts(counts: dict[Cause, int]) -> list[dict[str, Any]]:
    """Causes and their events as JSON has them."""
    return [{"cause": cause, "events": n} for cause, n in counts.items()]


def check_number(values: Sequence[str], column: str) -> None:
    """Raise if a column has too many values to be a status."""
    if len(values) > MOST_CAUSES + 1:
        raise ValueError(
            f"column {column!r} has {len(values)} different values, such as "
            f"{list_names(list(values[:3]))}: it does not look like a status."
        )
