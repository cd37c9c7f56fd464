"""Risk sets: positions of ranks, first ranks at risk, and weights at risk by plain loops."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from cqrf._input import risk_sets
from cqrf._input.risk_sets import first_at_risk, weigh_risk_sets
from cqrf._input.target import Target, pair, rank_target
from cqrf._runtime.compiling import kernel


@kernel
def first_position(rows, rank):
    return risk_sets.first_position(rows, rank)


@kernel
def subtract_not_entered(rows, weights, first, at_risk, absent):
    risk_sets.subtract_not_entered(rows, weights, first, at_risk, absent)


@given(st.lists(st.integers(0, 20)), st.integers(0, 22))
def test_the_position_of_a_rank_is_that_of_the_first_row_not_below_it(rows, rank):
    expected = sum(row < rank for row in rows)
    assert first_position(np.array(sorted(rows), np.uint32), rank) == expected


def test_a_row_is_at_risk_from_the_first_time_after_its_entry():
    target, _ = rank_target(pair([1, 2, 2, 3, 5], [1, 1, 0, 0, 1], [0, 1, 1.5, 2, 2.5]), "right")
    assert first_at_risk(target).tolist() == [0, 1, 1, 3, 3]
    assert first_at_risk(target).dtype == np.int32
    assert first_at_risk(target._replace(entry=None)) is None


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(-1, 9)), min_size=1, max_size=20))
def test_a_row_is_at_risk_from_the_first_rank_behind_its_entry(rows):
    time = np.array(sorted(t for t, _ in rows), float)
    entry = np.array([e for _, e in rows], float)
    found = first_at_risk(Target(time, np.ones(len(time), bool), entry))
    expected = [sum(t <= e for t in time) for e in entry]
    # None if every row is at risk from the first time on.
    assert (found is None and not any(expected)) or found.tolist() == expected
    assert first_at_risk(Target(time, np.ones(len(time), bool))) is None


@given(st.integers(1, 20), st.integers(0, 10**6))
def test_the_weight_at_risk_is_that_of_the_rows_that_have_entered_and_not_left(n, seed):
    rng = np.random.default_rng(seed)
    # Some rows of a larger table, some of them twice. Eighths have exact sums.
    rows = np.sort(rng.integers(0, 2 * n, n)).astype(np.uint32)
    first = np.array([rng.integers(0, rank + 1) for rank in range(2 * n)], np.int32)
    weights = rng.integers(1, 20, n) / 8
    at_risk = np.cumsum(weights[::-1])[::-1].copy()
    subtract_not_entered(rows, weights, first, at_risk, np.full(n + 1, np.nan))
    for i in range(n):
        entered = [weights[j] for j in range(i, n) if first[rows[j]] <= rows[i]]
        assert at_risk[i] == sum(entered) >= weights[i]


@given(st.integers(1, 20), st.booleans(), st.integers(0, 10**6))
def test_rows_in_any_order_are_at_risk_after_their_entry_up_to_their_time(n, is_late, seed):
    rng = np.random.default_rng(seed)
    time = rng.integers(1, 8, n).astype(float)
    entry = time - rng.integers(1, 8, n) if is_late else None
    weight = rng.integers(1, 20, n) / 8  # eighths have exact sums
    times = rng.permutation(np.arange(-1.0, 9.0))
    found = weigh_risk_sets(Target(time, rng.random(n) < 0.5, entry), weight, times)
    since = np.full(n, -np.inf) if entry is None else entry
    assert found.tolist() == [
        sum(w for w, e, y in zip(weight, since, time, strict=True) if e < t <= y) for t in times
    ]
