"""Sample weights: checked, and relative to the mean of the positive ones.

The mean comes from an exact sum. Relative weights therefore do not depend on the order of the
rows, nor on the number of parts in which they arrive.
"""

from __future__ import annotations

from fractions import Fraction
from math import frexp
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cqrf._runtime.arguments import read_floats

LARGEST_EXPONENT = 200  # of two; products of three such weights are finite
MANTISSA_BITS = 53
HALF_BITS = 27  # of a mantissa: 2**31 halves add up to less than 2**63


def read_sample_weight(
    sample_weight: ArrayLike, n: int, name: str = "sample_weight"
) -> NDArray[np.float64]:
    """Weights of all rows, checked: finite, not negative, not all zero."""
    weight = read_part_of_weights(sample_weight, n, name)
    check_some_weight(bool(weight.any()), name)
    return scale_down(weight)


def scale_down(weight: NDArray[np.float64]) -> NDArray[np.float64]:
    """Very large or very small weights times a power of two, so that sums and products are finite.

    Only ratios of weights matter, and a power of two changes none of them.
    """
    exponent = frexp(float(weight.max(initial=0.0)))[1]
    return weight if abs(exponent) <= LARGEST_EXPONENT else np.ldexp(weight, -exponent)


def read_part_of_weights(
    sample_weight: ArrayLike, n: int, name: str = "sample_weight"
) -> NDArray[np.float64]:
    """Weights of some of the rows, checked: finite, not negative."""
    weight = read_floats(name, sample_weight)
    if weight.ndim == 0:
        weight = np.full(n, float(weight))
    if weight.shape != (n,):
        raise ValueError(f"{name} has shape {weight.shape}; expected ({n},).")
    bad = weight[~np.isfinite(weight) | (weight < 0)]
    if len(bad):
        raise ValueError(f"{name} must be finite and not negative; found {bad[0]:g}.")
    return weight


def check_some_weight(any_positive: bool, name: str = "sample_weight") -> None:
    """Raise unless some weight is positive."""
    if not any_positive:
        raise ValueError(f"{name} is zero in every row: nothing is left to learn from.")


class WeightSummary(NamedTuple):
    """What relative weights depend on; summaries of parts can be joined."""

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
        """Whether all weights are equal."""
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
    """Summary of at least one checked weight."""
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
    """Weights relative to the mean of the positive ones; None if all are equal."""
    weight = read_sample_weight(sample_weight, n)
    summary = summarise_weights(weight)
    return None if summary.are_alike else summary.make_relative(weight)
