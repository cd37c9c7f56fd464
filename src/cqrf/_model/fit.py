"""Fitting: from a table to a :class:`~cqrf._model.fitted.Model`.

Features become one byte per value, rows are ranked by time, units are numbered, trees are grown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_consistent_length

from cqrf._forest.binning import encode, find_edges, level_edges
from cqrf._forest.layout import concatenate_trees, join_trees, renumber_leaf_rows
from cqrf._forest.rows import Rows
from cqrf._forest.sampling import derive_tree_keys, number_trees
from cqrf._forest.spec import NO_TREES
from cqrf._forest.training import Progress, TreeGroup, grow_groups
from cqrf._input.columns import Columns
from cqrf._input.risk_sets import first_at_risk
from cqrf._input.sample_weight import relative_weight
from cqrf._input.target import Target, oriented, rank_target, warn_of_negative_times
from cqrf._input.units import Units, find_clusters, number_units
from cqrf._model.fitted import Model
from cqrf._model.queries import Queries, training_queries
from cqrf._model.residual import count_direct, rank_residuals, residual_growing
from cqrf._model.settings import Settings
from cqrf._model.share import MOST_ROWS, can_have_root, choose_root_share
from cqrf._runtime.progress import show_progress
from cqrf._survival.interval_scale import impute_times, scale_intervals
from cqrf._working_model.fit import WorkingRows, fit_working_model, has_enough, sample_rows
from cqrf._working_model.transform import WorkingModel
from cqrf.metrics.ipcw import marginal_weights


class TrainingTable(NamedTuple):
    """What a forest is fitted to; rows in the user's order."""

    matrix: NDArray[Any]
    """Shape (n, n_features): numbers, and codes of categories."""
    columns: Columns
    target: Target
    sample_weight: ArrayLike | None = None
    groups: ArrayLike | None = None


def fit_model(
    table: TrainingTable,
    settings: Settings,
    n_jobs: int | None = None,
    verbose: bool = False,
    edges: Sequence[NDArray[np.float64]] | None = None,
) -> Model:
    """Grow the forest of a table; ``edges`` are those of its bins, found in it if None."""
    matrix, columns, target = table.matrix, table.columns, table.target.drop_single_cause()
    check_consistent_length(matrix, target.time)
    n = len(matrix)
    check_n_rows(n)
    settings.solver.check_neighbors(n)
    weight = None if table.sample_weight is None else relative_weight(table.sample_weight, n)
    has_weight = np.ones(n, dtype=bool) if weight is None else weight > 0
    check_events(bool(target.event[has_weight].any()))
    check_lower_ends(target, has_weight)
    ranked, order = rank_target(target, settings.censoring)
    warn_of_negative_times(target, settings.censoring)
    if edges is None:
        weighted = matrix if has_weight.all() else matrix[has_weight]
        edges = find_bins(weighted, columns, settings, n_jobs)
    codes, units = encode(matrix, edges, n_jobs), number_units(has_weight, table.groups)
    working = None
    if settings.working_model is not None:
        turned = target._replace(time=oriented(target.time, settings.censoring))
        if target.lower is not None:
            marginal = marginal_weights(None if weight is None else weight[order], n)
            turned = turned._replace(time=impute_times(ranked, marginal)[np.argsort(order)])
        working = fit_working(table, codes, turned, weight, units, settings.seed)
    model = Model(
        columns=columns,
        edges=edges,
        forest=NO_TREES,
        rows=Rows(
            codes=np.take(codes, order, axis=1),
            categorical=columns.categorical,
            time=ranked.time,
            event=ranked.event,
            weight=None if weight is None else weight[order],
            first_at_risk=first_at_risk(ranked),
            cause=ranked.cause,
        ),
        entry=ranked.entry,
        order=order,
        sampling=settings.sample(units.take(order), working is not None),
        seed=settings.seed,
        censoring=settings.censoring,
        working=None if working is None else working.take(order),
        causes=target.causes,
        lower=ranked.lower,
    )
    del codes
    progress = partial(show_progress, total=settings.n_trees) if verbose else None
    return grow_model(model, settings, n_jobs, progress)


def fit_working(
    table: TrainingTable,
    codes: NDArray[np.uint8],
    target: Target,
    weight: NDArray[np.float32] | None,
    units: Units,
    seed: int,
) -> WorkingModel | None:
    """Working model with the linear predictors of all rows; None if there are too few rows.

    codes : (n_features, n), bins; target : oriented to the right; weight : relative
    """
    has_weight = np.ones(len(target.time), dtype=bool) if weight is None else weight > 0
    rows = np.flatnonzero(has_weight)
    if not has_enough(len(rows), int(target.event[rows].sum())):
        return None
    sample = sample_rows(len(rows), seed)
    rows = rows if sample is None else rows[sample]
    unit = find_clusters(units.of_row)
    fitted = fit_working_model(
        WorkingRows(
            matrix=table.matrix[rows],
            codes=codes[:, rows],
            target=target.take(rows),
            weight=np.ones(len(rows)) if weight is None else weight[rows].astype(np.float64),
            unit=unit[rows],
        ),
        count_levels(table.columns),
        seed,
    )
    return fitted.model._replace(linear_predictor=fitted.predict_training(codes.T, unit))


def count_levels(columns: Columns) -> list[int]:
    """Number of levels of each feature, 0 for a number."""
    return [len(levels or ()) for levels in columns.levels]


def grow_model(
    model: Model, settings: Settings, n_jobs: int | None, progress: Progress | None
) -> Model:
    """The model with its trees: direct ones, and residual ones if it has a working model."""
    rows, sampling = model.rows, model.sampling
    numbers = number_trees(settings.n_trees, model.working is not None)
    keys = derive_tree_keys(sampling, model.seed, numbers)
    known = Target(rows.time, rows.event, model.entry, lower=model.lower)
    if model.working is None:
        group = add_cells(TreeGroup(rows, sampling, settings.growing, keys), known)
        ((trees, gains),) = grow_groups([group], n_jobs, progress)
        return replace(model, forest=join_trees(trees, rows.categorical, gains))
    ranked, order = rank_residuals(known, model.working)
    residual_rows = rows._replace(
        codes=np.take(rows.codes, order, axis=1),
        time=ranked.time,
        event=ranked.event,
        weight=None if rows.weight is None else rows.weight[order],
        first_at_risk=first_at_risk(ranked),
    )
    n_direct = count_direct(settings.n_trees)
    n_rows = int(np.count_nonzero(sampling.unit_of_row >= 0))
    direct_sampling, direct_growing = settings.grow_direct(sampling, n_rows, len(rows.codes))
    growing = residual_growing(settings.growing, sampling.n_units)
    residual_sampling = sampling._replace(unit_of_row=sampling.unit_of_row[order])
    direct_keys, residual_keys = keys.take(slice(0, n_direct)), keys.take(slice(n_direct, None))
    groups = [
        add_cells(TreeGroup(rows, direct_sampling, direct_growing, direct_keys), known),
        add_cells(TreeGroup(residual_rows, residual_sampling, growing, residual_keys), ranked),
    ]
    (direct, gains), (residual, _) = grow_groups(groups, n_jobs, progress)
    trees = concatenate_trees([direct, renumber_leaf_rows(residual, order)])
    forest = join_trees(trees, rows.categorical, gains)
    return add_root_share(replace(model, forest=forest), n_jobs)


def add_cells(group: TreeGroup, target: Target) -> TreeGroup:
    """The trees to grow from interval-censored rows, on the cells of their scale; others as is."""
    rows, growing = group.rows, group.growing
    if target.lower is None:
        return group
    scale = scale_intervals(target, marginal_weights(rows.weight, len(target.time)))
    criterion = growing.criterion.with_cells(scale.survival, scale.n_finite)
    return group._replace(
        rows=rows._replace(bounds=scale.bounds), growing=growing._replace(criterion=criterion)
    )


def add_root_share(model: Model, n_jobs: int | None) -> Model:
    """The model with the share of the root that its rows choose out of bag."""
    is_scored = model.working is not None and model.lower is None
    if not is_scored or not can_have_root(model.sampling):
        return model
    chosen = rows_to_score(model.training_weight)
    return set_root_share(model, chosen, training_queries(model, chosen, n_jobs), n_jobs)


def rows_to_score(weight: NDArray[np.floating[Any]]) -> NDArray[np.intp]:
    """At most MOST_ROWS rows of positive weight, evenly spaced, that choose the root's share."""
    weighted = np.flatnonzero(weight > 0)
    return weighted[np.unique(np.linspace(0, len(weighted) - 1, MOST_ROWS).astype(np.intp))]


def set_root_share(
    model: Model, rows: NDArray[np.intp], queries: Queries, n_jobs: int | None = None
) -> Model:
    """The model with the share that these rows of its training table choose as queries."""
    assert model.working is not None
    share = choose_root_share(model, queries, model.ranks[rows], n_jobs)
    shared = replace(model, working=model.working._replace(root_share=share))
    vars(shared)["residual_trees"] = model.residual_trees  # they do not depend on the share
    return shared


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
            "every row is censored (event is never True, or no upper end is finite): nothing can "
            "be learnt about the time of the event. Check which value of the status means that it "
            "was observed."
        )


def check_lower_ends(target: Target, has_weight: NDArray[np.bool_]) -> None:
    """Raise unless the interval of some row of positive weight has a finite lower end, if any."""
    if target.lower is not None and np.isneginf(target.lower[has_weight]).all():
        raise ValueError(
            "every row is left-censored (no lower end is finite): nothing can be learnt about how "
            "early the event is. If the times are durations, pass lower=0 for rows whose event "
            "came before the first visit."
        )


def check_n_rows(n: int) -> None:
    """Raise if the rows of a table cannot be numbered in 32 bits."""
    most = np.iinfo(np.int32).max
    if n > most:
        raise ValueError(f"X has {n} rows; a forest takes at most {most} rows: fit on a sample.")
