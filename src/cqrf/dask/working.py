"""The working model of a table on a cluster: what a worker does for it.

One task fits it to the rows that the local forest would use. Each partition keeps the linear
predictors of its rows; residuals are computed from these where they are needed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cqrf._forest.binning import encode
from cqrf._input.columns import Columns
from cqrf._input.target import Target, join_targets, oriented
from cqrf._model.fit import count_levels
from cqrf._model.residual import rank_residuals
from cqrf._working_model.fit import CrossFit, WorkingRows, fit_working_model
from cqrf._working_model.transform import WorkingModel
from cqrf.dask.reading import BinnedPartition, TargetRows, WorkingSample


class ResidualSummary(NamedTuple):
    """Range of the residuals of a partition.

    ``largest`` is taken over the rows with positive weight, the others over all rows.
    """

    largest: float
    first: float
    last_entry: float


class ScoredRows(NamedTuple):
    """Bins, shape (n, n_features), and units of rows that choose the share of the root."""

    codes: NDArray[np.uint8]
    unit: NDArray[np.int32]


def fit_to_samples(
    samples: list[WorkingSample], edges: list[NDArray[np.float64]], columns: Columns, seed: int
) -> CrossFit:
    """Fit the working model to the samples of all partitions."""
    matrix = np.concatenate([sample.matrix for sample in samples])
    rows = WorkingRows(
        matrix=matrix,
        codes=encode(matrix, edges, n_jobs=1),
        target=join_targets([sample.target for sample in samples]),
        weight=np.concatenate([sample.weight for sample in samples]),
        unit=np.concatenate([sample.unit for sample in samples]),
    )
    return fit_working_model(rows, count_levels(columns), seed)


def rank_by_residual(
    rows: TargetRows, target: Target, working: WorkingModel
) -> tuple[Target, NDArray[np.int32]]:
    """Residuals of rows in time order, and the position of each residual rank.

    target : that of the rows, oriented to the right
    """
    assert rows.linear_predictor is not None
    return rank_residuals(target, working._replace(linear_predictor=rows.linear_predictor))


def summarise_residuals(
    partition: BinnedPartition, working: WorkingModel, censoring: str
) -> ResidualSummary:
    """Range of the residuals of a partition."""
    rows = partition.take(np.arange(len(partition.target.time)))
    target = rows.target._replace(time=oriented(rows.target.time, censoring))
    ranked, order = rank_by_residual(rows, target, working)
    weighted = ranked.time if rows.weight is None else ranked.time[rows.weight[order] > 0]
    return ResidualSummary(
        largest=float(np.abs(weighted).max(initial=0.0)),
        first=float(ranked.time[0]),
        last_entry=-np.inf if ranked.entry is None else float(ranked.entry.max()),
    )


def take_scored_rows(partition: BinnedPartition, positions: NDArray[np.intp]) -> ScoredRows:
    """The rows at these positions."""
    return ScoredRows(partition.codes[positions], partition.cluster[positions])


def concatenate_scored_rows(parts: list[ScoredRows]) -> ScoredRows:
    """Rows of several parts, in the order of the parts."""
    return ScoredRows(*map(np.concatenate, zip(*parts, strict=True)))
