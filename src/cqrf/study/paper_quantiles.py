"""Quantiles of a survival curve by the rule of the paper's own comparison."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def last_above(
    times: NDArray[np.float64], survival: NDArray[np.float64], levels: Sequence[float]
) -> NDArray[np.float64]:
    """Quantiles of a survival curve as in the paper: the last time with S >= 1 - tau."""
    n_above = np.searchsorted(-survival, np.asarray(levels) - 1.0, side="right")
    return times[np.maximum(n_above - 1, 0)]
