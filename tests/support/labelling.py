"""A call of the label kernel with work arrays full of NaN."""

from typing import NamedTuple

import numpy as np
from cqrf._forest.labels import read_labelling
from numba import njit

from cqrf._forest import labels as room
from oracles.criteria import LEVELS


@njit
def label_node(*arguments):
    return room.label_node(*arguments)


class Node(NamedTuple):
    """What label_node writes about the rows of one node, in their order."""

    mixed: bool
    mass: float
    labels: np.ndarray
    direction: np.ndarray


def write_labels(
    criterion, time, event, weight, rows=None, levels=LEVELS, entry=None, labelling=None, cuts=None
):
    """Call the kernel with scratch full of NaN: it must write all that it promises.

    Only the zero that fills up a row is the caller's. ``cuts`` may be those that another node
    has left behind.
    """
    first = None
    if entry is not None:
        first = np.array([(time <= since).sum() for since in entry], np.int32)
    rows = np.arange(len(time), dtype=np.uint32) if rows is None else rows
    labelling = labelling or read_labelling(criterion, levels)
    n, width = len(rows), 2 * len(labelling.pairs)
    n_labels = 1 if labelling.levels is None else len(levels)
    labels, direction = np.full((n, width), np.nan), np.full(width, np.nan)
    labels[:, n_labels + 1 :] = direction[n_labels + 1 :] = 0.0
    mixed, mass = label_node(
        time,
        event,
        weight,
        first,
        rows,
        *labelling[:-1],
        np.full(n, np.nan),
        np.full(n, np.nan),
        np.full(width, -1, np.int32),
        np.full((4, width), np.nan) if cuts is None else cuts,
        labels,
        direction,
    )
    return Node(mixed, mass, labels, direction)
