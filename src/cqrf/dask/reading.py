"""Reading: what a worker does with a partition.

It is read three times: for its target and what its columns are, for its share of the rows that
bins are found from, and to be turned into bytes. Only the target and the bytes stay.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cqrf._forest.binning import encode
from cqrf._input.features import ColumnPart, Columns, read_features, survey_part
from cqrf._input.sample_weight import WeightSummary, read_part_of_weights, summarise_weights
from cqrf._input.target import (
    Target,
    join_targets,
    oriented,
    read_target,
)
from cqrf._input.units import list_by_appearance, read_groups
from cqrf._model.fit import find_bins
from cqrf._model.settings import Settings


class Guide(NamedTuple):
    """What a worker reads a partition by.

    ``reader`` is an estimator that knows number and names of the features, ``names`` the names of
    a frame's columns. Columns and weights are known once every partition was read.
    """

    reader: Any
    names: list[Any] | None
    columns: Columns | None = None
    weights: WeightSummary | None = None


class PartSummary(NamedTuple):
    """What the client has to know of a partition that was read; of an empty one nothing else."""

    n_rows: int
    is_wrong: bool = False
    columns: list[ColumnPart] | None = None
    weights: WeightSummary | None = None
    has_entry: bool = False
    last_entry: float = -np.inf
    first_time: float = np.inf
    last_time: float = -np.inf


class Read(NamedTuple):
    """Target, weights and groups of a partition, as they were brought, and their summary."""

    target: Target | None
    weight: NDArray[np.float64] | None
    groups: NDArray[Any] | None
    summary: PartSummary


class Counted(NamedTuple):
    """Rows of a partition that count, whether one has an event, and groups as they appear."""

    n_rows: int
    has_event: bool
    first_time: float
    last_time: float
    labels: list[Any] | None


class Kept(NamedTuple):
    """Some rows, with their numbers in the whole table."""

    row: NDArray[np.int64]
    target: Target
    weight: NDArray[np.float32] | None

    def take(self, places: NDArray[Any]) -> Kept:
        """Some of the rows."""
        weight = None if self.weight is None else self.weight[places]
        return Kept(self.row[places], self.target.take(places), weight)


class Binned(NamedTuple):
    """A partition in bytes, ready to be drawn from; codes of shape (n, n_features).

    ``unit`` and ``row_of_unit`` list the rows that count by their unit.
    """

    first_row: int
    target: Target
    weight: NDArray[np.float32] | None
    codes: NDArray[np.uint8]
    unit: NDArray[np.int32]
    row_of_unit: NDArray[np.int32]

    def take(self, places: NDArray[Any]) -> Kept:
        """Some of the rows."""
        weight = None if self.weight is None else self.weight[places]
        return Kept(self.first_row + places.astype(np.int64), self.target.take(places), weight)


def read_part(
    number: int, guide: Guide, X: Any, y: Any, weight: Any, groups: Any, first_row: int = 0
) -> Read:
    """Check a partition; errors count rows from ``first_row``."""
    n = len(X)
    others = {"y": y, "sample_weight": weight, "groups": groups}
    for name, other in others.items():
        if other is not None and len(other) != n:
            raise ValueError(
                f"partition {number} of {name} has {len(other)} rows but that of X has {n}: they "
                "must be cut at the same rows."
            )
    _check_names(number, guide.names, X)
    try:
        target = read_target(y, first_row)
        checked = None if weight is None else read_part_of_weights(weight, n)
        labels = None if groups is None else read_groups(groups, n)
        columns = survey_part(X) if guide.names is not None and n else None
    except ValueError as error:
        raise ValueError(f"partition {number}: {error}") from error
    if n == 0:
        return Read(target, checked, labels, PartSummary(0))
    summary = PartSummary(
        n,
        columns=columns,
        weights=None if checked is None else summarise_weights(checked),
        has_entry=target.entry is not None,
        last_entry=-np.inf if target.entry is None else float(target.entry.max()),
        first_time=float(target.time.min()),
        last_time=float(target.time.max()),
    )
    return Read(target, checked, labels, summary)


def try_part(number: int, guide: Guide, X: Any, y: Any, weight: Any, groups: Any) -> Read:
    """As :func:`read_part`, but a wrong partition is only marked.

    To number its rows the partitions before it have to be counted first.
    """
    try:
        return read_part(number, guide, X, y, weight, groups)
    except ValueError:
        return Read(None, None, None, PartSummary(len(X), is_wrong=True))


def count_part(guide: Guide, read: Read) -> Counted:
    """Which rows count, once the weights of all partitions are known."""
    assert read.target is not None
    counts, _ = _weigh(guide, read)
    labels = None
    if read.groups is not None:
        first, _ = list_by_appearance(read.groups[counts])
        labels = read.groups[counts][first].tolist()
    counted = read.target.take(np.flatnonzero(counts))
    return Counted(
        len(counted.time),
        bool(counted.event.any()),
        float(counted.time.min(initial=np.inf)),
        float(counted.time.max(initial=-np.inf)),
        labels,
    )


def sample_part(
    number: int, guide: Guide, X: Any, read: Read, rows: NDArray[np.int64] | None
) -> NDArray[Any]:
    """Some of the rows that count, or all of them, as numbers."""
    counted = _read_matrix(number, guide, X)[_weigh(guide, read)[0]]
    return counted if rows is None else counted[rows]


def join_samples(
    samples: list[NDArray[Any]], guide: Guide, plan: Settings
) -> list[NDArray[np.float64]]:
    """Edges of the bins."""
    assert guide.columns is not None
    return find_bins(np.concatenate(samples), guide.columns, plan, n_jobs=1)


def bin_part(
    number: int,
    guide: Guide,
    X: Any,
    read: Read,
    edges: list[NDArray[np.float64]],
    first_row: int,
    units: int | NDArray[np.int32],
) -> Binned:
    """The partition in bytes. ``units`` is that of its first row, or those of its groups."""
    assert read.target is not None
    codes = encode(_read_matrix(number, guide, X), edges, n_jobs=1)
    counts, weight = _weigh(guide, read)
    rows = np.flatnonzero(counts)
    if read.groups is None:
        unit = np.arange(len(rows)) + units
    else:
        unit = np.asarray(units)[list_by_appearance(read.groups[counts])[1]]
    by_unit = np.argsort(unit, kind="stable")
    return Binned(
        first_row,
        read.target,
        weight,
        np.ascontiguousarray(codes.T),
        unit[by_unit].astype(np.int32),
        rows[by_unit].astype(np.int32),
    )


def keep_part(part: Binned, last_alone: bool, censoring: str) -> Kept:
    """The rows of a partition, or only that with the last time of those that count."""
    if last_alone:
        time = oriented(part.target.time, censoring)
        if part.weight is not None:
            time = np.where(part.weight > 0, time, -np.inf)
        return part.take(np.argmax(time, keepdims=True))
    return part.take(np.arange(len(part.target.time)))


def join_kept(parts: list[Kept]) -> Kept:
    """Rows of several parts, one behind the other."""
    weights = [part.weight for part in parts if part.weight is not None]
    return Kept(
        np.concatenate([part.row for part in parts]),
        join_targets([part.target for part in parts]),
        np.concatenate(weights) if weights else None,
    )


def _weigh(guide: Guide, read: Read) -> tuple[NDArray[np.bool_], NDArray[np.float32] | None]:
    """Which rows count, and how much, if they differ in that."""
    if read.weight is None or guide.weights is None or guide.weights.are_alike:
        return np.ones(read.summary.n_rows, dtype=bool), None
    relative = guide.weights.make_relative(read.weight)
    return relative > 0, relative


def _read_matrix(number: int, guide: Guide, X: Any) -> NDArray[Any]:
    try:
        return read_features(guide.reader, X, guide.columns)[0]
    except ValueError as error:
        raise ValueError(f"partition {number}: {error}") from error


def _check_names(number: int, names: list[Any] | None, X: Any) -> None:
    found = names if names is None else list(X.columns)
    if found is None or names is None or found == names:
        return
    missing = [name for name in names if name not in found]
    new = [name for name in found if name not in names]
    said = [f"lacks column {missing[0]!r}"] if missing else []
    said += [f"has a column {new[0]!r}"] if new else []
    raise ValueError(
        f"partition {number} of X {' and '.join(said) or 'has its columns in another order'}, "
        "unlike the DataFrame it is part of."
    )
