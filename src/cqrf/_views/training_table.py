"""Whether a table is the one that a forest was fitted to."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cqrf._input.target import Target
from cqrf._model.fitted import Model
from cqrf._model.queries import training_codes


def is_training_target(model: Model, target: Target) -> bool:
    """Whether these are the times, events, entries and intervals of the training rows, in order."""
    train = model.training_target
    n = len(train.time)
    if len(target.time) != n:
        return False
    entry, train_entry = (
        np.full(n, -np.inf) if entry is None else entry for entry in (target.entry, train.entry)
    )
    lower, train_lower = (
        each.time if each.lower is None else each.lower for each in (target, train)
    )
    pairs = (
        (target.time, train.time),
        (target.event, train.event),
        (entry, train_entry),
        (lower, train_lower),
    )
    return all(np.array_equal(ours, theirs) for ours, theirs in pairs)


def is_training_table(model: Model, target: Target, codes: NDArray[np.uint8]) -> bool:
    """Whether target and binned features are those of the training rows, in their order.

    ``codes``: bins of all features, shape (n, n_features).
    """
    if not model.keeps_features or not is_training_target(model, target):
        return False
    return np.array_equal(codes, training_codes(model))


def count_training_rows(model: Model, target: Target, codes: NDArray[np.uint8]) -> int:
    """Rows that have the time, the event and the binned features of a training row.

    If the forest keeps no features, rows are compared by time and event only.
    """

    def keys(rows: Target, codes: NDArray[np.uint8]) -> list[tuple[float, bool, bytes]]:
        bits = [row.tobytes() for row in np.ascontiguousarray(codes)]
        return list(zip(rows.time.tolist(), rows.event.tolist(), bits, strict=True))

    train = model.training_target
    if model.keeps_features:
        known = set(keys(train, training_codes(model)))
        return sum(key in known for key in keys(target, codes))
    known = set(keys(train, np.empty((len(train.time), 0), np.uint8)))
    return sum(key in known for key in keys(target, codes[:, :0]))
