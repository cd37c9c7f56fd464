"""Reading: what a worker does with one partition.

A partition of X is read three times: to check it and find the kinds of its columns, to sample
the rows that determine the bin edges and the working model, and to encode it in bins. Only the
target, the weights, the groups, the one-byte codes and the linear predictor of the working model
are held on the cluster.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cqrf._forest.binning import encode
from cqrf._input.causes import Cause
from cqrf._input.columns import ColumnPart, Columns
from cqrf._input.features import read_features, survey_part
from cqrf._input.intervals import refuse_intervals
from cqrf._input.sample_weight import WeightSummary, read_part_of_weights, summarise_weights
from cqrf._input.target import (
    Target,
    join_targets,
    oriented,
    read_target,
)
from cqrf._input.units import NO_UNIT, list_by_appearance, read_groups
from cqrf._model.fit import find_bins
from cqrf._model.settings import Settings
from cqrf._working_model.fit import CrossFit
from cqrf.dask.partitions import Partition


class ReadingContext(NamedTuple):
    """What a worker needs to know about the table to read a partition of it.

    ``estimator`` has ``n_features_in_`` and ``feature_names_in_``; ``names`` are the column names
    of a frame. ``columns`` and ``weights`` are None until every partition was read once.
    """

    estimator: Any
    names: list[Any] | None
    columns: Columns | None = None
    weights: WeightSummary | None = None


class PartitionSummary(NamedTuple):
    """What the client needs to know of a partition; an empty partition has only ``n_rows``."""

    n_rows: int
    is_invalid: bool = False
    columns: list[ColumnPart] | None = None
    weights: WeightSummary | None = None
    has_entry: bool = False
    last_entry: float = -np.inf
    first_time: float = np.inf
    last_time: float = -np.inf
    causes: tuple[Cause, ...] = ()


class PartitionTarget(NamedTuple):
    """Target, sample weights and groups of a partition, and its summary.

    ``target`` is None if the partition is invalid.
    """

    target: Target | None
    weight: NDArray[np.float64] | None
    groups: NDArray[Any] | None
    summary: PartitionSummary


class PositiveRows(NamedTuple):
    """Summary of the rows of a partition with positive weight.

    ``groups`` lists the distinct groups of the partition: first the ``n_groups`` of these rows in
    order of first appearance, then those that only rows of weight 0 are in.
    """

    n_rows: int
    n_events: int
    first_time: float
    last_time: float
    groups: list[Any] | None
    n_groups: int


class SampledRows(NamedTuple):
    """Rows of a partition to sample, numbered among those with positive weight.

    ``working`` is None without a working model.
    """

    edges: slice | NDArray[np.int64]
    working: slice | NDArray[np.int64] | None


class WorkingSample(NamedTuple):
    """Rows that the working model is fitted to: features, target oriented to the right, units."""

    matrix: NDArray[Any]
    target: Target
    weight: NDArray[np.float64]
    unit: NDArray[np.int32]


class PartitionSample(NamedTuple):
    """Features of the rows that determine the bin edges, and rows for the working model."""

    matrix: NDArray[Any]
    working: WorkingSample | None


class TargetRows(NamedTuple):
    """Some rows of the table: their row numbers in it, their target and relative weights.

    ``linear_predictor`` is that of the working model, cross-fitted; None without such a model.
    """

    row: NDArray[np.int64]
    target: Target
    weight: NDArray[np.float32] | None
    linear_predictor: NDArray[np.float64] | None

    def take(self, positions: NDArray[Any]) -> TargetRows:
        """The rows at these positions."""
        return TargetRows(
            self.row[positions],
            self.target.take(positions),
            None if self.weight is None else self.weight[positions],
            None if self.linear_predictor is None else self.linear_predictor[positions],
        )


class BinnedPartition(NamedTuple):
    """A partition with its features encoded in bins; codes of shape (n, n_features).

    ``unit`` and ``row_of_unit`` have one entry per row with positive weight, sorted by sampling
    unit (ascending): its unit, and its row in the partition. ``cluster`` has the unit that each
    row belongs to, drawn or not.
    """

    first_row: int
    target: Target
    weight: NDArray[np.float32] | None
    codes: NDArray[np.uint8]
    unit: NDArray[np.int32]
    row_of_unit: NDArray[np.int32]
    cluster: NDArray[np.int32]
    linear_predictor: NDArray[np.float64] | None

    def take(self, positions: NDArray[Any]) -> TargetRows:
        """The rows at these positions, numbered in the whole table."""
        return TargetRows(
            self.first_row + positions.astype(np.int64),
            self.target.take(positions),
            None if self.weight is None else self.weight[positions],
            None if self.linear_predictor is None else self.linear_predictor[positions],
        )


def read_partition(
    context: ReadingContext, partition: Partition, first_row: int = 0
) -> PartitionTarget:
    """Check a partition and read its target; error messages number rows from ``first_row``."""
    number, n = partition.number, len(partition.X)
    _check_lengths(partition)
    _check_names(number, context.names, partition.X)
    try:
        target = read_target(partition.y, first_row)
        refuse_intervals(target.lower, "a forest on Dask is")
        weight = None if partition.weight is None else read_part_of_weights(partition.weight, n)
        groups = None if partition.groups is None else read_groups(partition.groups, n)
        columns = survey_part(partition.X) if context.names is not None and n else None
    except ValueError as error:
        raise ValueError(f"partition {number}: {error}") from error
    if n == 0:
        return PartitionTarget(target, weight, groups, PartitionSummary(0))
    summary = PartitionSummary(
        n,
        columns=columns,
        weights=None if weight is None else summarise_weights(weight),
        has_entry=target.entry is not None,
        last_entry=-np.inf if target.entry is None else float(target.entry.max()),
        first_time=float(target.time.min()),
        last_time=float(target.time.max()),
        causes=target.causes,
    )
    return PartitionTarget(target, weight, groups, summary)


def try_read_partition(context: ReadingContext, partition: Partition) -> PartitionTarget:
    """As :func:`read_partition`, but flag an invalid partition instead of raising an error.

    The error message gives a row of the whole table, so it needs the lengths of all partitions.
    """
    try:
        return read_partition(context, partition)
    except ValueError:
        summary = PartitionSummary(len(partition.X), is_invalid=True)
        return PartitionTarget(None, None, None, summary)


def summarise_positive_rows(context: ReadingContext, read: PartitionTarget) -> PositiveRows:
    """Summary of the rows with positive weight; needs the weights of all partitions."""
    assert read.target is not None
    is_positive, _ = _relative_weights(context, read)
    groups, n_groups = None, 0
    if read.groups is not None:
        labels = read.groups[_positive_first(is_positive)]
        first, number = list_by_appearance(labels)
        groups = labels[first].tolist()
        n_groups = int(number[: is_positive.sum()].max(initial=-1)) + 1
    target = read.target.take(np.flatnonzero(is_positive))
    return PositiveRows(
        n_rows=len(target.time),
        n_events=int(target.event.sum()),
        first_time=float(target.time.min(initial=np.inf)),
        last_time=float(target.time.max(initial=-np.inf)),
        groups=groups,
        n_groups=n_groups,
    )


def sample_partition(
    number: int,
    context: ReadingContext,
    X: Any,
    read: PartitionTarget,
    rows: SampledRows,
    units: int | NDArray[np.int32],
    censoring: str,
) -> PartitionSample:
    """Rows of a partition for bin edges and working model; ``units`` as in bin_partition."""
    assert read.target is not None
    is_positive, weight = _relative_weights(context, read)
    matrix = _read_matrix(number, context, X)
    positive = np.flatnonzero(is_positive)
    working = None
    if rows.working is not None:
        chosen = positive[rows.working]
        target = read.target.take(chosen)
        working = WorkingSample(
            matrix=matrix[chosen],
            target=target._replace(time=oriented(target.time, censoring)),
            weight=np.ones(len(chosen)) if weight is None else weight[chosen].astype(np.float64),
            unit=_find_clusters(is_positive, read.groups, units)[chosen],
        )
    return PartitionSample(matrix[positive[rows.edges]], working)


def find_edges(
    samples: list[PartitionSample], context: ReadingContext, settings: Settings
) -> list[NDArray[np.float64]]:
    """Bin edges of every feature from the samples of all partitions."""
    assert context.columns is not None
    matrix = np.concatenate([sample.matrix for sample in samples])
    return find_bins(matrix, context.columns, settings, n_jobs=1)


def bin_partition(
    number: int,
    context: ReadingContext,
    X: Any,
    read: PartitionTarget,
    edges: list[NDArray[np.float64]],
    first_row: int,
    units: int | NDArray[np.int32],
    working: CrossFit | None,
) -> BinnedPartition:
    """Encode a partition in bins, and predict its rows with the working model.

    ``units`` is the sampling unit of its first row with positive weight, or, with groups, the
    unit of each of its groups in the order of ``PositiveRows``.
    """
    assert read.target is not None
    codes = np.ascontiguousarray(encode(_read_matrix(number, context, X), edges, n_jobs=1).T)
    is_positive, weight = _relative_weights(context, read)
    cluster = _find_clusters(is_positive, read.groups, units)
    rows = np.flatnonzero(is_positive)
    by_unit = rows[np.argsort(cluster[rows], kind="stable")]
    return BinnedPartition(
        first_row=first_row,
        target=read.target,
        weight=weight,
        codes=codes,
        unit=cluster[by_unit],
        row_of_unit=by_unit.astype(np.int32),
        cluster=cluster,
        linear_predictor=None if working is None else working.predict_training(codes, cluster),
    )


def take_all_rows(partition: BinnedPartition) -> TargetRows:
    """All rows of a partition."""
    return partition.take(np.arange(len(partition.target.time)))


def take_last_row(partition: BinnedPartition, censoring: str) -> TargetRows:
    """A row of a partition with its last time; the first time under left censoring."""
    last = np.argmax(oriented(partition.target.time, censoring))
    return partition.take(np.array([last]))


def concatenate_rows(parts: list[TargetRows]) -> TargetRows:
    """Rows of several parts, in the order of the parts."""
    weights = [part.weight for part in parts if part.weight is not None]
    predictors = [part.linear_predictor for part in parts if part.linear_predictor is not None]
    return TargetRows(
        np.concatenate([part.row for part in parts]),
        join_targets([part.target for part in parts]),
        np.concatenate(weights) if weights else None,
        np.concatenate(predictors) if predictors else None,
    )


def _positive_first(is_positive: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Rows of a partition, those with positive weight before the others."""
    return np.argsort(~is_positive, kind="stable")


def _find_clusters(
    is_positive: NDArray[np.bool_], groups: NDArray[Any] | None, units: int | NDArray[np.int32]
) -> NDArray[np.int32]:
    """Unit that each row of a partition belongs to; NO_UNIT for none."""
    cluster = np.full(len(is_positive), NO_UNIT, dtype=np.int32)
    if groups is None:
        cluster[is_positive] = np.arange(is_positive.sum()) + units
    else:
        rows = _positive_first(is_positive)
        cluster[rows] = np.asarray(units)[list_by_appearance(groups[rows])[1]]
    return cluster


def _relative_weights(
    context: ReadingContext, read: PartitionTarget
) -> tuple[NDArray[np.bool_], NDArray[np.float32] | None]:
    """Which rows have positive weight, and the relative weights; None if all are equal."""
    if read.weight is None or context.weights is None or context.weights.are_alike:
        return np.ones(read.summary.n_rows, dtype=bool), None
    relative = context.weights.make_relative(read.weight)
    return relative > 0, relative


def _read_matrix(number: int, context: ReadingContext, X: Any) -> NDArray[Any]:
    try:
        return read_features(context.estimator, X, context.columns)[0]
    except ValueError as error:
        raise ValueError(f"partition {number}: {error}") from error


def _check_lengths(partition: Partition) -> None:
    n = len(partition.X)
    others = {"y": partition.y, "sample_weight": partition.weight, "groups": partition.groups}
    for name, other in others.items():
        if other is not None and len(other) != n:
            raise ValueError(
                f"partition {partition.number} of {name} has {len(other)} rows but that of X has "
                f"{n}: they must be split at the same rows."
            )


def _check_names(number: int, names: list[Any] | None, X: Any) -> None:
    found = names if names is None else list(X.columns)
    if found is None or names is None or found == names:
        return
    missing = [name for name in names if name not in found]
    new = [name for name in found if name not in names]
    differences = [f"lacks column {missing[0]!r}"] if missing else []
    differences += [f"has a column {new[0]!r}"] if new else []
    raise ValueError(
        f"partition {number} of X "
        f"{' and '.join(differences) or 'has its columns in another order'}, "
        "unlike the DataFrame it is part of."
    )
