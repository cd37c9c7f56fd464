"""Interval-censored rows, and the curve that the library makes of them."""

import numpy as np
from hypothesis import strategies as st

from cqrf._forest.weights import Weights
from cqrf._input.target import Target, rank_target
from cqrf._survival.innermost import number_ends
from cqrf._survival.interval_curves import interval_steps

ENDS = st.one_of(st.integers(0, 8).map(float), st.floats(0, 8, allow_nan=False))


@st.composite
def interval_rows(draw, most=25):
    """Rows with ties, exact, left- and right-censored ones; and weights."""
    rows = []
    for _ in range(draw(st.integers(1, most))):
        kind = draw(st.sampled_from(["interval", "exact", "left", "right"]))
        ends = sorted((draw(ENDS), draw(ENDS)))
        rows.append(
            {
                "interval": tuple(ends),
                "exact": (ends[0], ends[0]),
                "left": (-np.inf, ends[1]),
                "right": (ends[0], np.inf),
            }[kind]
        )
    weights = draw(st.lists(st.integers(1, 5), min_size=len(rows), max_size=len(rows)))
    return rows, weights


def as_target(rows):
    """The rows as a target in time order, and the row at each rank."""
    lower, upper = np.array(rows, dtype=float).T
    event = np.isfinite(upper)
    return rank_target(Target(np.where(event, upper, lower), event, lower=lower), "right")


def solve(rows, weights):
    """Steps of the library's estimate."""
    target, order = as_target(rows)
    n = len(order)
    one_query = Weights(
        np.array([0, n]), np.arange(n, dtype=np.int32), np.asarray(weights, dtype=float)[order]
    )
    return interval_steps(one_query, number_ends(target))


def masses_of(steps, intervals):
    """Mass of each innermost interval; what the steps leave is beyond the last of them."""
    masses, before = dict.fromkeys(intervals, 0.0), 1.0
    for left, right, after in zip(steps.left, steps.right, steps.values, strict=True):
        assert (left, right) in masses
        masses[left, right] = before - after
        before = after
    if intervals[-1][1] == np.inf:
        masses[intervals[-1]] = before
    return np.array(list(masses.values()))


def visits(n, n_visits, seed, exact=0.0, horizon=5.0):
    """Rows seen at visits that are uniform up to the horizon: (lower, upper, latent time)."""
    rng = np.random.default_rng(seed)
    time = 2 * rng.weibull(1.5, n)
    at = np.sort(rng.uniform(0, horizon, (n, n_visits)), axis=1)
    at = np.column_stack([np.zeros(n), at, np.full(n, np.inf)])
    behind = (at < time[:, np.newaxis]).sum(axis=1)
    lower, upper = at[np.arange(n), behind - 1], at[np.arange(n), behind]
    is_exact = rng.random(n) < exact
    lower[is_exact] = upper[is_exact] = time[is_exact]
    return lower, upper, time
