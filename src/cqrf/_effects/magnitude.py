"""The magnitude of numbers, by which they are divided before they are squared.

Squares of times of 1e200 are infinite, and those of times of 1e-200 are 0: standard errors would be
infinite or 0 as well, though they are of the size of the times. A power of two changes no digit.
"""

from __future__ import annotations

import numpy as np

from cqrf._effects.response import Floats


def magnitude(values: Floats) -> float:
    """The power of two below the largest absolute value; 1 if there is none to divide by."""
    largest = float(np.max(np.abs(values), initial=0.0))
    if largest == 0.0 or not np.isfinite(largest):
        return 1.0
    return float(np.ldexp(1.0, max(int(np.frexp(largest)[1]) - 1, -1022)))
