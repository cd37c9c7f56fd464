"""Calls of the label kernels, with work arrays full of NaN.

Only the zero that fills up a row of labels is the caller's: a kernel must write all else that it
promises.
"""

from typing import NamedTuple

import numpy as np

from cqrf._forest.criteria import CRITERIA, label_node
from cqrf._forest.rows import Rows
from cqrf._forest.spec import Limits
from cqrf._forest.workspace import LabelWork, make_workspace
from cqrf._runtime.compiling import kernel
from oracles.criteria import LEVELS

NO_LIMITS = Limits(1, np.iinfo(np.int32).max, 2, 1, 0.0)


@kernel
def call_label_node(criterion, rows, here, work):
    return label_node(criterion, rows, here, work)


class LabelledNode(NamedTuple):
    """What label_node returns and writes about the rows of one node, in their order."""

    can_be_split: bool
    mass: float
    labels: np.ndarray
    direction: np.ndarray
    work: LabelWork


def make_criterion(name, levels=LEVELS):
    """The parameters of a criterion that splits at these levels, if it splits at any.

    A record of parameters is returned as it is.
    """
    if not isinstance(name, str):
        return name
    return CRITERIA[name].parameters.from_levels(levels)


def make_rows(time, event, weight=None, entry=None, codes=None, categorical=None):
    """Rows in time order, in the dtypes that kernels are compiled for."""
    codes = np.zeros((1, len(time)), np.uint8) if codes is None else codes
    categorical = np.zeros(len(codes), bool) if categorical is None else categorical
    first = None
    if entry is not None:
        first = np.array([(time <= since).sum() for since in entry], np.int32)
    return Rows(codes, categorical, time, event, weight, first).for_kernels()


def make_label_work(n_rows, rows, n_labels):
    """Work arrays of a node of so many rows, full of NaN."""
    work = make_workspace(1, n_rows, rows, n_labels, NO_LIMITS).label
    for array in (work.labels, work.direction):
        array[..., : n_labels + 1] = np.nan
    for array in (work.at_risk, work.value, work.absent, work.cuts):
        if array is not None:
            array[:] = np.nan
    work.ends[:] = -1
    return work


def write_labels(criterion, rows, here=None, levels=LEVELS, work=None):
    """Label the node of some of the rows; ``criterion`` is a name or a record.

    ``work`` may be what another node has left behind.
    """
    criterion = make_criterion(criterion, levels)
    here = np.arange(len(rows.time), dtype=np.uint32) if here is None else here
    work = make_label_work(len(here), rows, criterion.n_labels) if work is None else work
    can_be_split, mass = call_label_node(criterion, rows, here, work)
    return LabelledNode(can_be_split, mass, work.labels[: len(here)], work.direction, work)
