"""The design of the working model: standardised columns that depend on the bins of a row alone.

A numeric feature is one column: the mean of the training values in each bin, standardised and
clipped at CLIP standard deviations; a missing value counts as the median. A category has a column
that marks the rows of each level. A feature with missing values has one more that marks these.

Because a column is a function of the bin, so is the linear predictor: it is the sum of one score
for each feature, looked up by bin (:meth:`Design.scores`). Predictions, permutations and partial
dependence need no feature values beside the bins.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.extmath import randomized_svd

from cqrf._forest.spec import MISSING, N_BINS

CLIP = 4.0
# More columns are replaced by so many leading principal components: a ridge penalty leaves little
# of the others, and the cost of a step grows with the square of the number of columns.
MOST_COLUMNS = 256


class Design(NamedTuple):
    """Columns of the design.

    Attributes
    ----------
    feature : (n_columns,) intp
        Feature that each column is made of.
    values : (n_columns, N_BINS) float64
        Value of each column by the bin of its feature.
    """

    feature: NDArray[np.intp]
    values: NDArray[np.float64]

    def matrix(self, codes: NDArray[np.uint8]) -> NDArray[np.float64]:
        """Values of all columns for rows given by their bins, codes of (n_features, n)."""
        matrix = np.empty((codes.shape[1], len(self.feature)))
        for column, feature, values in zip(matrix.T, self.feature, self.values, strict=True):
            column[:] = values[codes[feature]]
        return matrix

    def scores(self, coefficients: NDArray[np.float64], n_features: int) -> NDArray[np.float64]:
        """Contribution of each bin to the linear predictor, shape (n_features, N_BINS)."""
        scores = np.zeros((n_features, N_BINS))
        for feature, its_values in zip(self.feature, coefficients[:, np.newaxis] * self.values):
            scores[feature] += its_values
        return scores


def make_design(
    matrix: NDArray[Any],
    codes: NDArray[np.uint8],
    n_levels: list[int],
    weight: NDArray[np.float64],
) -> Design:
    """Design of rows with positive weight.

    matrix : (n, n_features), values; codes : (n_features, n), their bins
    n_levels : number of levels of each feature, 0 for a number
    """
    features, columns = [], []
    for feature, (its_codes, levels) in enumerate(zip(codes, n_levels, strict=True)):
        mass = np.bincount(its_codes, weight, N_BINS).astype(np.float64)
        if levels:
            its_columns = _mark_levels(mass[:levels], mass.sum())
        else:
            its_columns = [_standardise(_bin_means(matrix[:, feature], its_codes, weight), mass)]
        its_columns += _mark_missing(mass)
        for column in its_columns:
            if column is not None:
                features.append(feature)
                columns.append(column)
    return Design(np.array(features, np.intp), np.array(columns).reshape(-1, N_BINS))


def principal_components(
    matrix: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
    """The matrix itself, or its leading components and their directions if it is wide.

    A ridge estimate depends on the matrix only through its products, so that a rotation changes
    nothing; directions are (n_components, n_columns).
    """
    if matrix.shape[1] <= MOST_COLUMNS:
        return matrix, None
    left, sizes, directions = randomized_svd(matrix, MOST_COLUMNS, random_state=0)
    return left * sizes, directions


def _bin_means(
    values: NDArray[Any], codes: NDArray[np.uint8], weight: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Mean of the values in each bin, between neighbours if it is empty; the median if missing."""
    is_known = codes != MISSING
    known = np.asarray(values[is_known], np.float64)
    if len(known) == 0:
        return np.zeros(N_BINS)
    scale = np.abs(known).max() or 1.0  # sums of huge values overflow
    mass = np.bincount(codes[is_known], weight[is_known], N_BINS)
    total = np.bincount(codes[is_known], weight[is_known] * (known / scale), N_BINS)
    bins = np.flatnonzero(mass)
    means = np.interp(np.arange(N_BINS), bins, total[bins] / mass[bins])
    half_way = np.searchsorted(np.cumsum(mass), mass.sum() / 2)
    means[MISSING] = means[half_way]
    return means


def _mark_levels(mass: NDArray[np.float64], total: float) -> list[NDArray[np.float64] | None]:
    """Centred indicators of the levels of a category, whose variances sum to 1.

    Levels of few rows have less variance than others: a ridge penalty then shrinks a level by the
    number of its rows, as a random effect would be.
    """
    share = mass / total
    variance = share @ (1.0 - share)
    if variance < 1e-12:
        return []
    marks = np.eye(len(mass), N_BINS) - share[:, np.newaxis]
    return [mark / np.sqrt(variance) for mark, its in zip(marks, share, strict=True) if its > 0]


def _mark_missing(mass: NDArray[np.float64]) -> list[NDArray[np.float64] | None]:
    """Twice the indicator of missing values, centred, if some are missing and some are not.

    Its standard deviation is 1 if half of the values are missing, and less otherwise.
    """
    share = mass[MISSING] / mass.sum()
    if not 0.0 < share < 1.0:
        return []
    return [2.0 * ((np.arange(N_BINS) == MISSING) - share)]


def _standardise(
    values: NDArray[np.float64], mass: NDArray[np.float64]
) -> NDArray[np.float64] | None:
    """Values with mean 0 and standard deviation 1 over the rows, clipped; None if constant."""
    share = mass / mass.sum()
    centred = values - share @ values
    deviation = np.sqrt(share @ centred**2)
    if deviation <= 1e-9 * max(1.0, np.abs(values[mass > 0]).max()):
        return None
    return np.clip(centred / deviation, -CLIP, CLIP)
