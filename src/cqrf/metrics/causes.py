"""Which test rows had an event of one cause, where there are competing risks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cqrf._input.causes import Cause
from cqrf._input.target import Target


def rows_of_cause(target: Target, cause: Any, train: Target | None = None) -> NDArray[np.bool_]:
    """Rows of ``target`` with an event of this cause; with any event if the cause is None.

    No test row may have had it, but then the training rows must know it, as all causes of the test.
    """
    if cause is None:
        return target.event
    known = target.causes if train is None else train.causes
    if train is not None:
        check_causes(target, train.causes, "y_train")
    if not known:
        raise ValueError(
            f"cause={cause!r}: y does not tell causes apart. Build it with censored(time, cause), "
            "or leave cause out; if all events have the same cause, pass a frame with the columns "
            "time and cause."
        )
    name = cause.item() if isinstance(cause, np.generic) else cause
    if isinstance(name, bool) or name not in known:
        raise ValueError(f"cause={cause!r} is no cause of y, which has {_list_names(known)}.")
    if target.cause is None or name not in target.causes:
        return np.zeros(len(target.time), dtype=bool)
    return target.cause == target.causes.index(name) + 1


def check_causes(test: Target, known: Sequence[Cause], of: str) -> None:
    """Raise unless the causes of the test rows are among those ``of`` something else."""
    if test.causes and not known:
        raise ValueError(
            f"the test rows have the causes {_list_names(test.causes)}, but {of} does not tell "
            "causes apart: build it with censored(time, cause), too."
        )
    if not set(test.causes) <= set(known):
        raise ValueError(
            f"the test rows have the causes {_list_names(test.causes)}, but {of} has "
            f"{_list_names(known)}: give the same cause the same name in both."
        )
    if known and test.cause is None and test.event.any():
        raise ValueError(
            f"the test rows have events without a cause, but {of} has the causes "
            f"{_list_names(known)}: build y with censored(time, cause); if all events have the "
            "same cause, pass a frame with the columns time and cause."
        )


def _list_names(causes: Sequence[Cause]) -> str:
    return ", ".join(repr(each) for each in causes)
