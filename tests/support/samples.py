"""Samples of right-censored times for Hypothesis, in time order."""

import numpy as np
from hypothesis import strategies as st

from oracles.criteria import LEVELS, in_order

# Numbers of levels with which a row of labels is filled up with a zero, and with which not.
MANY_LEVELS = (LEVELS, (0.5,), (0.25, 0.75), (0.05, 0.2, 0.5), (0.1, 0.4, 0.6, 0.95))

# Eighths are exact in single precision, and as fractions.
WEIGHTS = st.integers(1, 40).map(lambda eighths: eighths / 8)


@st.composite
def samples(draw, weighted, min_size=2, max_size=25):
    """Times, events, and weights or None."""
    n = draw(st.integers(min_size, max_size))
    n_times = draw(st.sampled_from([2, 4, 8, 1000]))
    time = draw(st.lists(st.integers(0, n_times), min_size=n, max_size=n))
    censored = draw(st.sampled_from([0, 3, 9]))
    event = [draw(st.integers(0, 10)) >= censored for _ in range(n)]
    weight = draw(st.lists(WEIGHTS, min_size=n, max_size=n)) if weighted else None
    return in_order(time, event, weight)


def weights_of(weight, n):
    """The weights as numbers, 1 where there are none."""
    return np.ones(n) if weight is None else weight.astype(np.float64)
