"""Competing risks as pages show them."""

from __future__ import annotations

from typing import Any

import numpy as np

from cqrf._input.target import Target

ANY_EVENT = "any event"  # the event of a forest that tells causes apart, if it has no name


def count_causes(target: Target) -> list[dict[str, Any]]:
    """Events of each cause; empty if there is one kind of event."""
    if target.cause is None:
        return []
    counts = np.bincount(target.cause, minlength=len(target.causes) + 1)[1:].tolist()
    return [{"cause": cause, "events": n} for cause, n in zip(target.causes, counts, strict=True)]


def cause_of(target: Target, row: int) -> dict[str, Any]:
    """The cause of a row, by the name of its field; empty if there is one kind of event."""
    if target.cause is None:
        return {}
    number = int(target.cause[row])
    return {"cause": target.causes[number - 1] if number else None}
