"""Settings: the estimator's arguments, checked and turned into the numbers the rooms need.

Every error names the argument, what was found, and what would do.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cqrf._forest.criteria import CRITERIA
from cqrf._forest.spec import MAX_BINS, Growing, Limits, Sampling
from cqrf._runtime.arguments import (
    is_count,
    is_number,
    read_choice,
    read_count,
    read_floats,
    read_fraction,
    read_share,
)

UNLIMITED = np.iinfo(np.int32).max
# What a tree draws by default: half of the rows, but of some hundred rows, of which a quarter is
# too little to find splits in, most. The theory of these forests, too, lets the share fall as rows
# become many. Below FEW_ROWS it is half again, so that tables of some thirty rows are not split at
# all: only then are weights and repeated rows the same forest, as scikit-learn's checks want.
SHARE, LARGE_SHARE, LARGE_SHARE_UP_TO, FEW_ROWS = 0.5, 0.8, 800, 50


class Plan(NamedTuple):
    """How a forest is to be grown: every setting of a fit, checked."""

    growing: Growing
    censoring: str
    n_trees: int
    max_bins: int
    max_samples: float | int | str | None
    bootstrap: bool
    honest: bool
    bag_size: int
    seed: int

    def sample(self, unit_of_row: NDArray[np.int32], n_units: int, unit: str) -> Sampling:
        """How each tree draws from so many units, which are called rows or groups."""
        size = read_sample_size(self.max_samples, n_units, self.bootstrap, unit, self.bag_size)
        return Sampling(unit_of_row, n_units, size, self.bootstrap, self.honest, self.bag_size)


def read_growing(
    *,
    criterion: Any,
    split_quantiles: Any,
    max_features: Any,
    max_depth: Any,
    min_samples_split: Any,
    min_samples_leaf: Any,
    min_child_fraction: Any,
    n_features: int,
) -> Growing:
    """How a tree of this table is grown."""
    parameters = CRITERIA[read_choice("criterion", criterion, tuple(CRITERIA))].parameters
    levels = _read_split_quantiles(parameters, split_quantiles)
    limits = Limits(
        n_candidates=_read_max_features(max_features, n_features),
        max_depth=_read_max_depth(max_depth),
        min_samples_split=read_count("min_samples_split", min_samples_split, 2),
        min_samples_leaf=read_count("min_samples_leaf", min_samples_leaf, 1),
        min_child_fraction=read_fraction("min_child_fraction", min_child_fraction, 0.0, 0.5),
    )
    return Growing(parameters.from_levels(levels), limits)


def read_sample_size(
    max_samples: Any, n_units: int, bootstrap: bool, unit: str = "rows", bag_size: int = 1
) -> int:
    """How many units a tree draws."""
    size = _read_sample_size(max_samples, n_units, bootstrap, unit, bag_size)
    if bag_size == 1:
        return size
    half = n_units // 2
    if half == 0 or size > (n_units + 1) // 2:
        raise ValueError(
            f"bag_size={bag_size} needs max_samples of at most half of the {n_units} {unit}: the "
            f"trees of a bag draw from one half; found max_samples={max_samples!r}."
        )
    return min(size, half)


def _read_sample_size(
    max_samples: Any, n_units: int, bootstrap: bool, unit: str, bag_size: int
) -> int:
    if max_samples is None:
        return n_units
    if isinstance(max_samples, str) and max_samples == "auto":
        size = max(1, round(SHARE * n_units))
        if bag_size > 1 or n_units < FEW_ROWS:
            return size
        return max(size, min(LARGE_SHARE_UP_TO, round(LARGE_SHARE * n_units)))
    if is_count(max_samples):
        size = read_count("max_samples", max_samples, 1)
        if size > n_units and not bootstrap:
            raise ValueError(
                f"max_samples={size} is more than the {n_units} training {unit}; without "
                "bootstrap a tree can draw each of them once."
            )
        return size
    if not is_number(max_samples) or not 0 < max_samples <= 1:
        raise ValueError(
            f"max_samples={max_samples!r} must be a number above 0 and at most 1, a count, None for"
            ' as many as there are, or "auto".'
        )
    return max(1, round(max_samples * n_units))


def read_bins(max_bins: Any) -> int:
    """Bins per feature."""
    n_bins = read_count("max_bins", max_bins, 2)
    if n_bins > MAX_BINS:
        raise ValueError(f"max_bins={n_bins} must be at most {MAX_BINS}: a code is one byte.")
    return n_bins


def _read_split_quantiles(parameters: Any, split_quantiles: Any) -> tuple[float, ...]:
    if split_quantiles is None:
        return parameters.default_levels or ()
    levels = np.unique(read_floats("split_quantiles", split_quantiles))
    if levels.size == 0 or not ((levels > 0) & (levels < 1)).all():
        raise ValueError(
            f"split_quantiles={split_quantiles!r} must be levels strictly between 0 and 1."
        )
    return tuple(float(level) for level in levels)


def _read_max_depth(max_depth: Any) -> int:
    return UNLIMITED if max_depth is None else min(UNLIMITED, read_count("max_depth", max_depth, 1))


def _read_max_features(max_features: Any, n_features: int) -> int:
    if max_features is None:
        return n_features
    if isinstance(max_features, str):
        choice = read_choice("max_features", max_features, ("sqrt", "log2"))
        share = math.sqrt(n_features) if choice == "sqrt" else math.log2(n_features)
        return max(1, int(share))
    if is_count(max_features):
        if not 1 <= max_features <= n_features:
            raise ValueError(
                f"max_features={max_features} must lie between 1 and the {n_features} features."
            )
        return int(max_features)
    return max(1, round(read_share("max_features", max_features) * n_features))
