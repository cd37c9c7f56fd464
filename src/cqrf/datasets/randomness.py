"""Random draws: one ``random_state`` argument in, numbers from NumPy out.

``Generator`` and ``RandomState`` share the names of the draws used here (``uniform``,
``normal``, ``standard_exponential``), so either serves as it is.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Randomness: TypeAlias = int | np.random.Generator | np.random.RandomState | None


def open_randomness(random_state: Randomness) -> np.random.Generator | np.random.RandomState:
    """Return a source of draws; one that is passed in is used, and moves on."""
    if isinstance(random_state, np.random.Generator | np.random.RandomState):
        return random_state
    return np.random.default_rng(random_state)


def draw_exponential(
    source: np.random.Generator | np.random.RandomState, rate: float, n_samples: int
) -> NDArray[np.float64]:
    """Draw exponential times of the given rate; rate 0 is an event that never comes."""
    if not (np.isfinite(rate) and rate >= 0):
        raise ValueError(f"censoring_rate must be a finite number >= 0; found {rate}.")
    if rate == 0:
        return np.full(n_samples, np.inf)
    return source.standard_exponential(n_samples) / rate
