"""Innermost intervals: which end includes its value, and what each row covers."""

import numpy as np
import pytest
from hypothesis import given

from cqrf._runtime.compiling import kernel
from cqrf._survival.innermost import find_innermost, make_innermost_work, number_ends
from oracles.intervals import covers, innermost
from support.interval_rows import as_target, interval_rows

INF = np.inf


@kernel
def _find(ranks, weights, ends, work):
    return find_innermost(ranks, weights, ends, work)


def find(rows, weights=None):
    """Innermost intervals of rows, and for each row those that it covers."""
    target, order = as_target(rows)
    ends, n = number_ends(target), len(order)
    work = make_innermost_work(len(ends.value), n)
    weights = np.ones(n) if weights is None else np.asarray(weights, dtype=float)[order]
    n_rows, m = _find(np.arange(n, dtype=np.int32), weights, ends, work)
    found = [(ends.value[work.left[j]], ends.value[work.right[j]]) for j in range(m)]
    kept = order[weights > 0]
    assert n_rows == len(kept)
    ranges = {int(row): (int(work.first[i]), int(work.last[i])) for i, row in enumerate(kept)}
    assert not work.lefts.any()
    assert not work.rights.any()
    return found, [ranges.get(i) for i in range(len(rows))]


@pytest.mark.parametrize(
    ("rows", "intervals"),
    [
        ([(1, 2), (2, 3)], [(1, 2), (2, 3)]),  # (1, 2] and (2, 3] share no time
        ([(1, 2), (2, 2)], [(2, 2)]),  # the exact time lies in the first
        ([(2, 2), (2, INF)], [(2, 2), (2, INF)]),  # the censored row outlives the exact time
        ([(1, 3), (2, 4)], [(2, 3)]),
        ([(-INF, 2), (1, INF)], [(1, 2)]),
        ([(1, INF), (2, INF)], [(2, INF)]),
        ([(1, 4), (2, 3), (2, 3)], [(2, 3)]),
    ],
)
def test_known_cases(rows, intervals):
    assert find(rows)[0] == intervals


@given(interval_rows())
def test_every_row_covers_what_lies_in_it(drawn):
    rows, _ = drawn
    intervals, ranges = find(rows)
    assert intervals == innermost(rows)
    for row, (first, last) in zip(rows, ranges, strict=True):
        inside = [j for j, each in enumerate(intervals) if covers(row, each)]
        assert inside == list(range(first, last + 1))


def test_rows_without_weight_do_not_count():
    rows = [(1, 5), (2, 3), (4, 6)]
    assert find(rows, [1, 0, 1])[0] == find([rows[0], rows[2]])[0] == [(4, 5)]
    assert find(rows, [1, 0, 1])[1][1] is None
