"""Fitting: from a table to a :class:`~cqrf._model.fitted.Model`.

Features become one byte per value, rows are ranked by time, units are numbered, trees are grown.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_consistent_length

from cqrf._forest.binning import encode, find_edges, level_edges
from cqrf._forest.rows import Rows
from cqrf._forest.training import grow_forest
from cqrf._input.columns import Columns
from cqrf._input.risk_sets import first_at_risk
from cqrf._input.sample_weight import relative_weight
from cqrf._input.target import Target, rank_target, warn_of_negative_times
from cqrf._input.units import number_units
from cqrf._model.fitted import Model
from cqrf._model.settings import Settings
from cqrf._runtime.progress import show_progress


class TrainingTable(NamedTuple):
    """What a forest is fitted to; rows in the user's order."""

    matrix: NDArray[Any]
    """Shape (n, n_features): numbers, and codes of categories."""
    columns: Columns
    target: Target
    sample_weight: ArrayLike | None = None
    groups: ArrayLike | None = None


def fit_model(
    table: TrainingTable, settings: Settings, n_jobs: int | None = None, verbose: bool = False
) -> Model:
    """Grow the forest of a table."""
    matrix, columns, target = table.matrix, table.columns, table.target
    check_consistent_length(matrix, target.time)
    n = len(matrix)
    check_n_rows(n)
    settings.solver.check_neighbors(n)
    weight = None if table.sample_weight is None else relative_weight(table.sample_weight, n)
    has_weight = np.ones(n, dtype=bool) if weight is None else weight > 0
    check_events(bool(target.event[has_weight].any()))
    ranked, order = rank_target(target, settings.censoring)
    warn_of_negative_times(target, settings.censoring)
    edges = find_bins(matrix if has_weight.all() else matrix[has_weight], columns, settings, n_jobs)
    rows = Rows(
        codes=np.take(encode(matrix, edges, n_jobs), order, axis=1),
        categorical=columns.categorical,
        time=ranked.time,
        event=ranked.event,
        weight=None if weight is None else weight[order],
        first_at_risk=first_at_risk(ranked),
    )
    sampling = settings.sample(number_units(has_weight, table.groups).take(order))
    return Model(
        columns=columns,
        edges=edges,
        forest=grow_forest(
            rows,
            sampling,
            settings.growing,
            settings.n_trees,
            settings.seed,
            n_jobs,
            partial(show_progress, total=settings.n_trees) if verbose else None,
        ),
        rows=rows,
        entry=ranked.entry,
        order=order,
        sampling=sampling,
        seed=settings.seed,
        censoring=settings.censoring,
    )


def find_bins(
    matrix: NDArray[Any], columns: Columns, settings: Settings, n_jobs: int | None = None
) -> list[NDArray[np.float64]]:
    """Bin edges of every column, from rows with positive weight."""
    edges = find_edges(matrix, settings.max_bins, settings.seed, n_jobs)
    return [
        edge if levels is None else level_edges(len(levels))
        for edge, levels in zip(edges, columns.levels, strict=True)
    ]


def check_events(any_event: bool) -> None:
    """Raise unless some row of positive weight has an event."""
    if not any_event:
        raise ValueError(
            "every row is censored (event is never True): nothing can be learnt about the "
            "time of the event. Check which value of the status means that it was observed."
        )


def check_n_rows(n: int) -> None:
    """Raise if the rows of a table cannot be numbered in 32 bits."""
    most = np.iinfo(np.int32).max
    if n > most:
        raise ValueError(f"X has {n} rows; a forest takes at most {most} rows: fit on a sample.")
