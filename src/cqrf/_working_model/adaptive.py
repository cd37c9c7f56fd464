"""The adaptive model: a second ridge model, with powers of the features, that leaves columns out.

A ridge penalty shrinks all columns alike. If few of many features have an effect, the noise of the
others stays in the linear predictor; if an effect is curved, a line misses the curve. So:

1. Numbers get columns of their squares and cubes, made orthogonal to lower powers, unless there are
   more than MOST_COLUMNS then. A design with more than these without powers has no adaptive model:
   to choose columns by the outcome of all rows would make the cross-validation too favourable.
2. From the coefficients of the first ridge, and 0 for the powers, one Newton step of the ridge of
   all these columns is taken, with the same penalty. The size of a column is the standard deviation
   of what it then adds to the linear predictor. All columns of a category have one size.
3. In the adaptive model the penalty of a column is divided by the square of its size, relative to
   the largest, as in the adaptive lasso (Zou 2006). Columns smaller than SMALLEST are left out.

Sizes are found for each fold from the rows outside of it, so that the cross-validated likelihood
tells whether the adaptive model is better. It is taken if it gains LEAST_GAIN: among many columns
of noise some gain a little.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cqrf._forest.spec import N_BINS
from cqrf._working_model.design import CLIP, MOST_COLUMNS, Design
from cqrf._working_model.ridge import FOLDS, Floats, Part, Ridge, fit_part, fit_ridge

HIGHEST_POWER = 3
SMALLEST = 0.1
LEAST_GAIN = 8.0


def fit_adaptive(
    design: Design, ridge: Ridge, parts: list[Part], codes: NDArray[np.uint8], n_levels: list[int]
) -> tuple[Design, Ridge]:
    """The adaptive model and its design, or the first ridge and its own if they are no worse.

    ridge : with the coefficients of the columns of ``design``
    codes : (n_features, n), bins in time order
    n_levels : number of levels of each feature, 0 for a number
    """
    if len(design.feature) > MOST_COLUMNS or not ridge.coefficients[FOLDS].any():
        return design, ridge
    shares = bin_shares(codes, parts[FOLDS].rows.weight)
    wider, source = add_powers(design, shares, n_levels)
    matrix = wider.matrix(codes)
    groups = number_groups(wider, n_levels)
    unscaled = np.ones(len(groups))
    scales = []
    for part, known in zip(parts, ridge.coefficients, strict=True):
        start = np.where(source >= 0, known[source], 0.0)
        found = fit_part(part, matrix, unscaled, ridge.multiple, start, most_steps=1)
        scales.append(relative_sizes(column_sizes(wider, found, shares, groups)))
    adaptive = fit_ridge(parts, matrix, np.array(scales), largest=ridge.multiple)
    if adaptive.log_likelihood < ridge.log_likelihood + LEAST_GAIN:
        return design, ridge
    return wider, adaptive


def bin_shares(codes: NDArray[np.uint8], weight: Floats) -> Floats:
    """Share of the weight in each bin of each feature, (n_features, N_BINS)."""
    mass = np.array([np.bincount(its_codes, weight, N_BINS) for its_codes in codes])
    return mass / weight.sum()


def column_sizes(
    design: Design, coefficients: Floats, shares: Floats, groups: NDArray[np.intp]
) -> Floats:
    """Standard deviation of what each column and all others of its group add to the predictor.

    shares : (n_features, N_BINS), see :func:`bin_shares`
    groups : (n_columns,), ascending numbers; columns of a group are of one feature
    """
    _, first, group = np.unique(groups, return_index=True, return_inverse=True)
    added = np.add.reduceat(coefficients[:, np.newaxis] * design.values, first, axis=0)
    share = shares[design.feature[first]]
    mean = np.sum(share * added, axis=1, keepdims=True)
    sizes = np.sqrt(np.sum(share * (added - mean) ** 2, axis=1))
    return np.asarray(sizes[group])


def relative_sizes(sizes: Floats) -> Floats:
    """Sizes relative to the largest; 0 for the smallest."""
    largest = sizes.max()
    if largest <= 0:
        return sizes
    relative = sizes / largest
    return np.where(relative < SMALLEST, 0.0, relative)


def number_groups(design: Design, n_levels: list[int]) -> NDArray[np.intp]:
    """A number for each column of a number, and one for all columns of a category."""
    is_first = np.ones(len(design.feature), np.bool_)
    is_category = np.array(n_levels)[design.feature[1:]] > 0
    is_first[1:] = ~is_category | (np.diff(design.feature) != 0)
    return np.cumsum(is_first) - 1


def add_powers(
    design: Design, shares: Floats, n_levels: list[int]
) -> tuple[Design, NDArray[np.intp]]:
    """The design with powers of the numbers behind their columns, if it is not too large then.

    The second array has the position of each column in the first design, -1 for powers.
    """
    features: list[int] = []
    columns: list[Floats] = []
    source: list[int] = []
    for feature in np.unique(design.feature).tolist():
        its_own = np.flatnonzero(design.feature == feature)
        is_number = n_levels[feature] == 0
        its_powers = powers(design.values[its_own[0]], shares[feature]) if is_number else []
        features += [feature] * (len(its_own) + len(its_powers))
        columns += [*design.values[its_own], *its_powers]
        source += [*its_own, *[-1] * len(its_powers)]
        if len(columns) > MOST_COLUMNS:
            return design, np.arange(len(design.feature))
    return Design(np.array(features, np.intp), np.array(columns)), np.array(source, np.intp)


def powers(column: Floats, share: Floats) -> list[Floats]:
    """Powers of a column by bin, orthogonal to lower ones, standardised and clipped.

    share : of the weight in each bin
    """
    lower = [np.ones(N_BINS), column - share @ column]
    for exponent in range(2, HIGHEST_POWER + 1):
        power = column**exponent
        for other in lower:
            power = power - (share @ (power * other)) / (share @ other**2) * other
        deviation = np.sqrt(share @ power**2)
        if deviation < 1e-6:  # a column of so many values has no other powers
            break
        lower.append(power / deviation)
    return [np.clip(power, -CLIP, CLIP) for power in lower[2:]]
