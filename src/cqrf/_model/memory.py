"""Memory that a fit will need, estimated before it begins."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from joblib import effective_n_jobs

from cqrf._forest.binning import EDGE_SAMPLE
from cqrf._forest.spec import N_BINS, Limits, Sampling
from cqrf._input.units import Units
from cqrf._model.residual import residual_growing
from cqrf._model.settings import Settings
from cqrf._model.share import BLOCK_ROWS, MOST_UNITS
from cqrf._model.share import MOST_ROWS as SCORED_ROWS
from cqrf._working_model.adaptive import HIGHEST_POWER
from cqrf._working_model.design import MOST_COLUMNS
from cqrf._working_model.fit import MOST_ROWS
from cqrf._working_model.ridge import FOLDS

# Mean rows of a leaf, as a share of the smallest node that may be split: leaves have all sizes
# below it. Measured over criteria and node sizes.
LEAF_SHARE = 0.6
# Share of the mean rows of a leaf in the probability that it is empty: leaves differ in size.
FILLING_SHARE = 0.75

NODE_BYTES = 4 + 4 + 1 + 8  # feature, code, missing_left, left
GROWN_NODE_BYTES = 4 + 4 + 1  # the same before trees are joined
LEAF_BYTES, GROWN_LEAF_BYTES = 8, 4  # offset, size
ROW_BYTES = 8 + 1 + 4 + 4  # time, event, order, unit
READING_BYTES = 22  # a row's target as given, and in time order
SORTING_BYTES = 18  # a value while a column's edges are found
TREE_ROW_BYTES = 90  # a row of a tree while it grows, beside its codes
FIXED_BYTES = 14_000_000
# With a working model
RESIDUAL_ROW_BYTES = 8 + 8 + 8 + 1  # linear predictor, hazard, residual and event of a row
RESIDUAL_SORTING_BYTES = 34  # a row of a residual leaf while the rows of leaves are sorted by time
DESIGN_COPIES = 2.9  # of the columns of the design while a Newton step is computed
SHARE_BYTES = 8_000_000  # outcomes and curves at the times at which the share is scored
SHARE_WEIGHT_BYTES = 70  # a weight of a row that is scored, and its steps on both scales
JOINING_SHARE = 0.7  # of the trees' own arrays that are held while they are joined, field by field


class MemoryEstimate(NamedTuple):
    """Bytes that a fit needs."""

    fit: int
    """At its peak, beside the caller's own data."""
    model: int
    """Of the fitted model."""


def estimate_memory(
    settings: Settings, n: int, n_features: int, n_jobs: int | None
) -> MemoryEstimate:
    """Memory of a fit to n rows of so many features."""
    n_trees, size = settings.n_trees, settings.sample_size(n)
    most_by_bins = float(settings.max_bins) ** min(n_features, 8)
    sampling = settings.sample(Units(np.empty(0, np.int32), n, "rows"))
    if settings.working_model is None:
        kinds = [_count_tree(sampling, settings.growing.limits, most_by_bins)]
    else:
        residual = residual_growing(settings.growing, n).limits
        drawn, direct = settings.grow_direct(sampling, n, n_features)
        kinds = [
            _count_tree(drawn, direct.limits, most_by_bins),
            _count_tree(sampling, residual, most_by_bins),
        ]
    leaves, leaf_rows = (sum(each) / len(kinds) for each in zip(*kinds, strict=True))
    nodes = 2 * leaves - 1

    forest = n_trees * (NODE_BYTES * nodes + LEAF_BYTES * leaves + 4 * leaf_rows)
    grown = (
        JOINING_SHARE
        * n_trees
        * (GROWN_NODE_BYTES * nodes + GROWN_LEAF_BYTES * leaves + 4 * leaf_rows)
    )
    codes = n * n_features
    model = forest + codes + ROW_BYTES * n

    sampled = EDGE_SAMPLE * n_features * 8 if n > EDGE_SAMPLE else 0
    sorting = effective_n_jobs(n_jobs) * min(n, EDGE_SAMPLE) * SORTING_BYTES
    growing_now = effective_n_jobs(n_jobs) * (size * (n_features + TREE_ROW_BYTES) + 8 * n)
    peak_before = READING_BYTES * n + max(sampled + sorting, 2 * codes)
    # About half of the last trees' work arrays are freed before the trees are joined.
    peak_of_trees = model - forest + grown + max(growing_now, forest + growing_now / 2)
    peak = max(peak_before, peak_of_trees + FIXED_BYTES)
    if settings.working_model is None:
        return MemoryEstimate(round(peak), round(model))
    residual_leaf_rows = n_trees // 2 * kinds[1].leaf_rows
    working = 8 * N_BINS * n_features + RESIDUAL_ROW_BYTES * n
    sorting = grown / JOINING_SHARE + RESIDUAL_SORTING_BYTES * residual_leaf_rows
    scoring = 0.0
    if n <= MOST_UNITS:
        # Weights of a row out of bag, from half of the trees of a kind; a thread for each block.
        weights = min(n, n_trees / 4 * (1 - min(size, n) / n) * leaf_rows / leaves)
        scored = min(n, SCORED_ROWS)
        weights *= min(scored, BLOCK_ROWS * effective_n_jobs(n_jobs))
        scoring = SHARE_BYTES + weights * SHARE_WEIGHT_BYTES
        scoring += scored * (n_trees / 8 + n_features)
    # What sorting has freed is in pieces of other sizes: scoring does not use it again.
    after = max(growing_now, max(sorting, forest + 4 * residual_leaf_rows) + scoring)
    peak = max(
        READING_BYTES * n + 2 * codes + _working_fit(n, n_features) + FIXED_BYTES,
        peak + working + codes,
        model - forest + working + codes + after + FIXED_BYTES,
    )
    return MemoryEstimate(round(peak), round(model + working + 4 * residual_leaf_rows))


class TreeCount(NamedTuple):
    """Expected size of a tree."""

    leaves: float
    leaf_rows: int


def _count_tree(sampling: Sampling, limits: Limits, most_by_bins: float) -> TreeCount:
    """Leaves of a tree that is drawn and grown in this way, and rows in them."""
    size = sampling.size
    split_rows = size // 2 if sampling.honest else size
    leaf_rows = size - split_rows if sampling.honest else size
    filling = leaf_rows if sampling.honest else None
    return TreeCount(_count_leaves(limits, split_rows, filling, most_by_bins), leaf_rows)


def _count_leaves(
    limits: Limits, split_rows: int, filling_rows: int | None, most_by_bins: float
) -> float:
    """Leaves of a tree; without those that no row of the half that fills leaves reaches."""
    leaf_size = LEAF_SHARE * max(limits.min_samples_split, 2 * limits.min_samples_leaf)
    leaves = max(1.0, split_rows / max(leaf_size, limits.min_samples_leaf))
    if filling_rows is not None:
        leaves *= 1.0 - math.exp(-FILLING_SHARE * filling_rows / leaves)
    return max(1.0, min(leaves, 2.0 ** min(limits.max_depth, 60), most_by_bins))


def _working_fit(n: int, n_features: int) -> float:
    """Memory that the fit of the working model takes.

    Every feature counts as one column of the design: how many levels the categories have, and
    which features have missing values, is not known.
    """
    column = 8 * min(n, MOST_ROWS)
    with_powers = HIGHEST_POWER * n_features
    n_columns = with_powers if with_powers <= MOST_COLUMNS else min(n_features, MOST_COLUMNS)
    scores = (FOLDS + 3) * 8 * N_BINS * n_features
    # More columns are replaced by principal components, from a copy of them.
    replacing = 2 * column * n_features if n_features > MOST_COLUMNS else 0
    return column * n_features + max(replacing, DESIGN_COPIES * column * n_columns + scores)
