"""Which test rows had an event of one cause, where there are competing risks."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cqrf._input.target import Target


def rows_of_cause(target: Target, cause: Any, train: Target | None = None) -> NDArray[np.bool_]:
    """Rows of ``target`` with an event of this cause; with any event if the cause is None.

    No test row may have had it, but then the training rows must know it.
    """
    if cause is None:
        return target.event
    known = target.causes if train is None else (*target.causes, *train.causes)
    if not known:
        raise ValueError(
            f"cause={cause!r}: y does not tell causes apart. Build it with censored(time, cause), "
            "or leave cause out."
        )
    name = cause.item() if isinstance(cause, np.generic) else cause
    if isinstance(name, bool) or name not in known:
        names = ", ".join(repr(each) for each in sorted(set(known)))
        raise ValueError(f"cause={cause!r} is no cause of y, which has {names}.")
    if target.cause is None or name not in target.causes:
        return np.zeros(len(target.time), dtype=bool)
    return target.cause == target.causes.index(name) + 1
