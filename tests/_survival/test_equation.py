"""The estimating equation: its candidates, and each rule on its own, against plain loops."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from cqrf._forest.weights import Weights
from cqrf._input.risk_sets import TOLERANCE
from cqrf._input.target import time_order
from cqrf._survival.curves import RankedTarget
from cqrf._survival.equation import (
    BERAN,
    KM,
    KNN,
    Equation,
    argmin_rule,
    beran_roots,
    is_candidate,
    largest_levels,
    make_work,
    marginal_censoring_survival,
    mark_neighbors,
    root_rule,
    survival_after,
    write_terms,
)
from oracles.survival import (
    CLOSE,
    argmin_by_loops,
    censoring_steps,
    estimating_equation,
    find_neighbors,
    kaplan_meier,
    root_by_loops,
    value_at,
)

TAUS = np.array([0.1, 0.25, 0.5, 0.75, 0.9])
METHODS = {"beran": BERAN, "knn": KNN, "km": KM}
N_NEIGHBORS = 4

# Few distinct times, so that nearly every time is tied.
Rows = st.lists(
    st.tuples(st.integers(-4, 4), st.booleans(), st.integers(0, 5)), min_size=1, max_size=25
).filter(lambda rows: any(weight for _, _, weight in rows))


class Case:
    """One row of weights, as loops and as kernels read it."""

    def __init__(self, rows):
        self.time, self.event, self.weight = (list(column) for column in zip(*rows, strict=True))
        time, event = np.array(self.time, float), np.array(self.event, bool)
        order = time_order(time, event)
        self.target = RankedTarget(time[order], event[order])
        weight = np.array(self.weight, float)[order]
        ranks = np.flatnonzero(weight).astype(np.int32)
        values = weight[ranks] / weight.sum()
        # An empty row before and behind it.
        offsets = np.array([0, 0, len(ranks), len(ranks)])
        self.weights = Weights(offsets, ranks, values)
        self.work = make_work(len(ranks), len(TAUS))

    @property
    def sample(self):
        return self.time, self.event, self.weight

    def equation(self, method, neighbors_only=False):
        marginal = marginal_censoring_survival(self.target) if method == "km" else np.empty(0)
        n = float(len(self.time))
        n_neighbors = float(min(N_NEIGHBORS, len(self.time)))
        return Equation(METHODS[method], n_neighbors, n, marginal, neighbors_only)

    @property
    def n_neighbors(self):
        return min(N_NEIGHBORS, len(self.time))

    def candidates(self, method, neighbors_only=False):
        """Time, H, G and H / G of each candidate."""
        equation, work, ranks = self.equation(method, neighbors_only), self.work, self.weights.ranks
        end = write_terms(ranks, self.weights.values, self.target, equation, work)
        found = [
            i
            for i in range(end)
            if is_candidate(i, ranks, self.target.time, neighbors_only, work.copies)
        ]
        g = work.beran if method == "beran" else work.other
        return [
            (
                self.target.time[ranks[i]],
                work.survival[i] * work.beran[i],
                g[i],
                survival_after(i, equation.method, work.survival, work.beran, work.other),
            )
            for i in found
        ]

    def solve(self, rule, method):
        neighbors_only = method == "knn" and rule is argmin_rule
        solved = np.full((3, len(TAUS)), np.inf)
        equation = self.equation(method, neighbors_only)
        rule(self.weights, self.target, equation, TAUS, self.work, solved)
        assert np.isinf(solved[[0, 2]]).all()  # without weights nothing is written
        return solved[1]


@pytest.mark.parametrize("method", METHODS)
@given(Rows)
@example([(1, True, 1), (1, False, 1), (2, False, 1)])  # the only event is tied
@example([*[(1, True, 5)] * 3, (1, False, 5), (2, True, 1)])  # G of four neighbours is 0 at 1
def test_candidates_are_the_distinct_times_up_to_the_last_event(method, rows):
    case = Case(rows)
    found = case.candidates(method)
    expected = list(estimating_equation(method, *case.sample, 0.5, case.n_neighbors))
    assert [time for time, *_ in found] == [time for time, *_ in expected]
    for (time, remaining, g, survival), (_, s_n, true_g) in zip(found, expected, strict=True):
        true_remaining = true_g / 2 - s_n
        assert_allclose(remaining, float(true_remaining), atol=1e-12)
        assert_allclose(g, float(true_g), atol=1e-12)
        if true_g > 0:
            assert_allclose(survival, float(true_remaining / true_g), atol=1e-11)
        elif true_remaining > 0:
            assert survival == 1.0
        else:  # nothing is left to divide: the product-limit curve itself
            assert_allclose(survival, float(value_at(kaplan_meier(*case.sample), time)), atol=1e-12)


@given(Rows)
@example([(1, True, 5), (1, False, 1), (2, True, 5), (3, True, 5), (4, True, 5)])
def test_with_neighbours_only_the_other_times_are_no_candidates(rows):
    case = Case(rows)
    found = case.candidates("knn", neighbors_only=True)
    near = find_neighbors(case.weight, case.n_neighbors)
    times = {t for t, mark in zip(case.time, near, strict=True) if mark}
    seen = [t for t, e, mark in zip(case.time, case.event, near, strict=True) if e and mark]
    last = max(seen, default=-np.inf)
    assert [time for time, *_ in found] == sorted(t for t in times if t <= last)


@pytest.mark.parametrize("method", METHODS)
@given(Rows)
def test_the_root_rule_equals_loops(method, rows):
    case = Case(rows)
    found = case.solve(root_rule, method)
    for tau, q in zip(TAUS, found, strict=True):
        assert q == root_by_loops(method, *case.sample, tau, case.n_neighbors)


@pytest.mark.parametrize("method", METHODS)
@given(Rows)
def test_the_argmin_rule_equals_loops(method, rows):
    case = Case(rows)
    for tau, q in zip(TAUS, case.solve(argmin_rule, method), strict=True):
        distance = argmin_by_loops(method, *case.sample, tau, case.n_neighbors)
        if not distance:
            assert q == np.inf
        else:
            assert distance[q] <= min(distance.values()) + CLOSE


@given(Rows)
def test_the_fast_kernel_is_the_root_rule_with_beran(rows):
    case = Case(rows)
    fast = np.full((3, len(TAUS)), np.inf)
    target = case.target
    beran_roots(case.weights, target.time, target.event, TAUS, case.work.at_risk, fast)
    assert_array_equal(fast[1], case.solve(root_rule, "beran"))
    assert np.isinf(fast[[0, 2]]).all()


@pytest.mark.parametrize("method", METHODS)
@given(Rows)
def test_the_largest_level_is_one_minus_the_smallest_survival(method, rows):
    case = Case(rows)
    levels = np.full(3, np.nan)
    largest_levels(case.weights, case.target, case.equation(method), case.work, levels)
    assert levels[[0, 2]].tolist() == [0.0, 0.0]
    assert levels[1] == max([0.0, *(1.0 - survival for *_, survival in case.candidates(method))])


@given(Rows)
def test_the_marginal_estimate_is_kaplan_meier_after_all_tied_rows(rows):
    case = Case(rows)
    found = marginal_censoring_survival(case.target)
    steps = censoring_steps("km", *case.sample, None)
    expected = [float(value_at(steps, t)) for t in case.target.time]
    assert_allclose(found, expected, atol=1e-12)


def test_the_marginal_estimate_counts_sample_weights():
    time, event = np.array([1.0, 2.0, 3.0]), np.array([False, True, False])
    target = RankedTarget(time, event, weight=np.array([1.0, 2.0, 1.0], np.float32))
    assert_allclose(marginal_censoring_survival(target), [0.75, 0.75, 0.0])


def neighbors(weights, n_neighbors, sample_weight=None):
    n = len(weights)
    copies = np.full(n, np.nan)
    total = float(n if sample_weight is None else sample_weight.sum())
    equation = Equation(KNN, n_neighbors, total, np.empty(0), False)
    ranks = np.arange(n, dtype=np.int32)
    mark_neighbors(ranks, np.array(weights), sample_weight, equation, copies)
    return copies.tolist()


def test_neighbours_are_the_rows_of_largest_weight_with_ties():
    weights = [0.1, 0.3, 0.2, 0.2, 0.2]
    assert neighbors(weights, 1.0) == [0, 1, 0, 0, 0]
    assert neighbors(weights, 2.0) == [0, 1, 1, 1, 1]
    assert neighbors(weights, 5.0) == [1, 1, 1, 1, 1]


def test_without_a_number_neighbours_are_the_rows_above_average():
    assert neighbors([0.1, 0.3, 0.2, 0.25, 0.15], 0.0) == [0, 1, 0, 1, 0]
    assert neighbors([0.25, 0.25, 0.25, 0.25], 0.0) == [1, 1, 1, 1]  # all if there are none


def test_copies_of_a_row_share_its_weight():
    copies = np.array([4.0, 1.0, 1.0])
    # Each of the four copies has .1, less than the single rows.
    assert neighbors([0.4, 0.35, 0.25], 2.0, copies) == [0, 1, 1]
    assert neighbors([0.4, 0.35, 0.25], 3.0, copies) == [4, 1, 1]


def test_a_level_that_is_reached_but_for_the_tolerance_has_a_root():
    weights = Weights(np.array([0, 2]), np.array([0, 1], np.int32), np.array([0.5, 0.5]))
    time, event, found = np.array([1.0, 2.0]), np.array([True, True]), np.full((1, 1), np.inf)
    level = np.array([0.5 + TOLERANCE])
    beran_roots(weights, time, event, level, np.empty(3), found)
    assert found == 1.0


def test_without_levels_nothing_is_written():
    weights = Weights(np.array([0, 2]), np.array([0, 1], np.int32), np.array([0.5, 0.5]))
    time, event = np.array([1.0, 2.0]), np.array([True, True])
    memory = np.full(8, 7.0)  # a write to an array without columns would end up here
    beran_roots(weights, time, event, np.empty(0), np.empty(3), memory[:0].reshape(1, 0))
    assert (memory == 7.0).all()
