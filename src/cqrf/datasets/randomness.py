"""Random number generators from a ``random_state`` argument.

NumPy's ``Generator`` and ``RandomState`` both have the methods used here (``uniform``,
``normal``, ``standard_exponential``), so either can be passed.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Randomness: TypeAlias = int | np.random.Generator | np.random.RandomState | None


def open_randomness(random_state: Randomness) -> np.random.Generator | np.random.RandomState:
    """Return a random number generator; one that is passed in is used itself."""
    if isinstance(random_state, np.random.Generator | np.random.RandomState):
        return random_state
    return np.random.default_rng(random_state)


def draw_exponential(
    source: np.random.Generator | np.random.RandomState, rate: float, n_samples: int
) -> NDArray[np.float64]:
    """Draw exponential times of the given rate; infinite times if the rate is 0."""
    if not (np.isfinite(rate) and rate >= 0):
        raise ValueError(f"censoring_rate must be a finite number >= 0; found {rate}.")
    if rate == 0:
        return np.full(n_samples, np.inf)
    return source.standard_exponential(n_samples) / rate
