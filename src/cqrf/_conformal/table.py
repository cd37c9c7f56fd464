"""The table of a conformal forest, and its split into training and calibration rows.

Rows of weight 0 are left out before the split, so that they have no influence on it. With groups,
whole clusters go to one part.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import GroupShuffleSplit, train_test_split
from sklearn.utils import _safe_indexing, check_consistent_length

from cqrf._input.frames import as_frame
from cqrf._input.intervals import refuse_intervals
from cqrf._input.sample_weight import read_sample_weight, relative_weight
from cqrf._input.target import Target, censored, read_target
from cqrf._input.units import list_by_appearance, read_groups
from cqrf._runtime.arguments import name_row, read_floats


class ConformalTable(NamedTuple):
    """Rows of positive weight.

    ``groups`` are numbers of clusters, ``censoring_time`` is C of every row; None if not given.
    """

    X: Any
    target: Target
    weight: NDArray[np.float64] | None
    groups: NDArray[np.intp] | None
    censoring_time: NDArray[np.float64] | None

    @property
    def y(self) -> NDArray[np.void]:
        """The target as ``fit`` of a forest takes it."""
        return censored(self.target.time, self.target.event, self.target.entry)

    @property
    def fit_arguments(self) -> dict[str, Any]:
        """Arguments of a forest's ``fit`` beside X and y."""
        return {"sample_weight": self.weight, "groups": self.groups}

    def take(self, rows: NDArray[Any]) -> ConformalTable:
        """Some of the rows, in the order given."""
        return ConformalTable(
            take_rows(self.X, rows),
            self.target.take(rows),
            *(None if each is None else each[rows] for each in self[2:]),
        )

    def split(self, calibration_share: float, seed: int) -> tuple[ConformalTable, ConformalTable]:
        """Training and calibration rows."""
        rows = np.arange(len(self.target.time))
        settings: dict[str, Any] = {"test_size": calibration_share, "random_state": seed}
        if self.groups is None:
            train, kept = train_test_split(rows, **settings)
        else:
            train, kept = next(GroupShuffleSplit(1, **settings).split(rows, groups=self.groups))
        return self.take(train), self.take(kept)

    def weigh_units(self) -> NDArray[np.float64]:
        """Weights of the rows relative to that of an average unit: a row, or a cluster."""
        n = len(self.target.time)
        relative = None if self.weight is None else relative_weight(self.weight, n)
        weight = np.ones(n) if relative is None else relative.astype(np.float64)
        if self.groups is None:
            return weight
        return weight * (len(np.unique(self.groups)) / weight.sum())


def read_table(
    X: Any,
    y: Any,
    censoring_time: ArrayLike | None,
    sample_weight: ArrayLike | None,
    groups: ArrayLike | None,
) -> ConformalTable:
    """Check what ``fit`` is given, and leave out rows of weight 0."""
    target = read_target(y)
    refuse_intervals(target.lower, "ConformalForest is")
    check_consistent_length(X, target.time)
    n = len(target.time)
    known = None if censoring_time is None else read_censoring_time(censoring_time, target)
    weight = None if sample_weight is None else read_sample_weight(sample_weight, n)
    labels = None if groups is None else read_groups(groups, n)
    table = ConformalTable(X, target, weight, labels, known)
    relative = None if weight is None else relative_weight(weight, n)
    if relative is not None and not relative.all():
        table = table.take(np.flatnonzero(relative))
    if table.groups is not None:
        _, numbers = list_by_appearance(table.groups)
        if numbers.max() == 0:
            raise ValueError(
                "groups has one group only: at least two are needed, one to fit the forest and "
                "one to calibrate it."
            )
        table = table._replace(groups=numbers)
    return table._replace(target=find_late_entries(table.target))


def find_late_entries(target: Target) -> Target:
    """The target with entry -inf where a row entered before every time; None if all did."""
    if target.entry is None:
        return target
    entry = np.where(target.entry < target.time.min(), -np.inf, target.entry)
    return target._replace(entry=None if np.isneginf(entry).all() else entry)


def read_censoring_time(censoring_time: ArrayLike, target: Target) -> NDArray[np.float64]:
    """C of every row, checked against the target."""
    times = read_floats("censoring_time", censoring_time)
    if times.shape != target.time.shape:
        raise ValueError(f"censoring_time has shape {times.shape}; expected {target.time.shape}.")
    is_bad = ~np.isfinite(times)
    if is_bad.any():
        row = int(np.flatnonzero(is_bad)[0])
        raise ValueError(
            f"censoring_time must be finite in every row; found {times[row]:g} in {name_row(row)}."
        )
    is_bad = (times < target.time) | (~target.event & (times != target.time))
    if is_bad.any():
        row = int(np.flatnonzero(is_bad)[0])
        raise ValueError(
            "censoring_time must equal the observed time where a row was censored, and not be "
            f"below it where it had its event; found {times[row]:g} and the time "
            f"{target.time[row]:g} in {name_row(row)}."
        )
    return times


def take_rows(X: Any, rows: NDArray[Any]) -> Any:
    """Some of the rows of an array or a frame; scikit-learn 1.6 takes none of an Arrow table."""
    frame = None if hasattr(X, "iloc") else as_frame(X)
    return _safe_indexing(X, rows) if frame is None else frame[rows].to_native()
