"""Sample weights: how often each row counts, relative to the mean of those that count at all.

What the relative weights depend on is a sum without rounding, so that it does not matter in
which order, or in how many parts, the rows come.
"""

from __future__ import annotations

from fractions import Fraction
from math import frexp
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cqrf._input.target import read_sample_weight

MANTISSA_BITS = 53
HALF_BITS = 27  # of a mantissa: 2**31 halves add up to less than 2**63


class WeightSummary(NamedTuple):
    """What is to be known of all weights before one of them can be made relative."""

    smallest: float
    largest: float
    n_positive: int
    total: Fraction

    def join(self, other: WeightSummary) -> WeightSummary:
        """The summary of two parts together."""
        return WeightSummary(
            min(self.smallest, other.smallest),
            max(self.largest, other.largest),
            self.n_positive + other.n_positive,
            self.total + other.total,
        )

    @property
    def are_alike(self) -> bool:
        """Whether all rows weigh the same."""
        return self.smallest == self.largest

    def make_relative(self, weight: NDArray[np.float64]) -> NDArray[np.float32]:
        """Weights over the mean of the positive ones.

        Rounded to single precision, so that weights that differ by a factor alone give the
        same numbers. What rounds to 0 is 0.
        """
        exponent = frexp(self.largest)[1]  # a step that keeps the division clear of overflow
        mean = float(self.total / self.n_positive / Fraction(2) ** exponent)
        return (np.ldexp(weight, -exponent) / mean).astype(np.float32)


def summarise_weights(weight: NDArray[np.float64]) -> WeightSummary:
    """Summary of checked weights, of which there is at least one."""
    return WeightSummary(
        float(weight.min()), float(weight.max()), int((weight > 0).sum()), add_exactly(weight)
    )


def add_exactly(values: NDArray[np.float64]) -> Fraction:
    """The sum, without rounding."""
    mantissa, exponent = np.frexp(values)
    whole = np.ldexp(mantissa, MANTISSA_BITS).astype(np.int64)
    total = Fraction(0)
    for power in np.unique(exponent).tolist():
        of_power = whole[exponent == power]
        high = int((of_power >> HALF_BITS).sum())
        low = int((of_power & (2**HALF_BITS - 1)).sum())
        total += ((high << HALF_BITS) + low) * Fraction(2) ** (power - MANTISSA_BITS)
    return total


def relative_weight(sample_weight: ArrayLike, n: int) -> NDArray[np.float32] | None:
    """Weights relative to the mean of the positive ones; None if all are alike."""
    weight = read_sample_weight(sample_weight, n)
    summary = summarise_weights(weight)
    return None if summary.are_alike else summary.make_relative(weight)
