"""Memory that a fit will need, estimated before it begins."""

from __future__ import annotations

import math
from typing import NamedTuple

from joblib import effective_n_jobs

from cqrf._forest.binning import EDGE_SAMPLE
from cqrf._model.settings import Settings

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
FIXED_BYTES = 12_000_000
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
    limits, n_trees, honest = settings.growing.limits, settings.n_trees, settings.honest
    size = settings.sample_size(n)
    split_rows = size // 2 if honest else size
    leaf_rows = size - split_rows if honest else size
    leaf_size = LEAF_SHARE * max(limits.min_samples_split, 2 * limits.min_samples_leaf)
    leaves = max(1.0, split_rows / max(leaf_size, limits.min_samples_leaf))
    if honest:
        leaves *= 1.0 - math.exp(-FILLING_SHARE * leaf_rows / leaves)
    most_by_depth = 2.0 ** min(limits.max_depth, 60)
    most_by_bins = float(settings.max_bins) ** min(n_features, 8)
    leaves = max(1.0, min(leaves, most_by_depth, most_by_bins))
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
    return MemoryEstimate(round(peak), round(model))
