"""Quantiles equal the authors' numbers, plain loops of the definition, and the mirrored problem."""

from __future__ import annotations

import warnings
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from cqrf import StepCurves, UnidentifiedQuantileWarning, solve_quantiles
from cqrf._forest.weights import Weights
from cqrf._input.target import oriented, time_order
from cqrf._survival.curves import RankedTarget
from cqrf._survival.quantiles import (
    QuantileSolver,
    count_neighbors,
    curve_quantiles,
    interval_levels,
    read_levels,
)
from oracles.survival import (
    CLOSE,
    argmin_by_loops,
    estimating_equation,
    inverse_kaplan_meier,
    kaplan_meier,
    root_by_loops,
)

GOLDEN = Path(__file__).parents[1] / "data" / "crf_km"
GOLDEN_LEVELS = [0.1, 0.3, 0.5, 0.7, 0.9]
LEVELS = [0.05, 0.1, 0.25, 0.3, 0.5, 0.6, 0.75, 0.9, 0.99]
METHODS = ["beran", "knn", "km"]


def solve(*args, **choices):
    """Quantiles, infinite ones without their warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnidentifiedQuantileWarning)
        return solve_quantiles(*args, **choices)


def random_sample(rng, n=None, n_times=9):
    """Times with many ties, some rows censored, whole weights of which many are 0."""
    n = int(rng.integers(2, 40)) if n is None else n
    time = rng.integers(-n_times // 2, n_times // 2 + 1, size=n).astype(float)
    event = rng.random(n) < rng.choice([0.2, 0.5, 0.9])
    event[rng.integers(n)] = True
    weight = rng.integers(0, 6, size=n) * (rng.random(n) < rng.choice([0.3, 1.0]))
    weight[rng.integers(n)] = 1 + rng.integers(5)
    return time.tolist(), event.tolist(), weight.tolist()


@st.composite
def samples(draw):
    rows = draw(
        st.lists(
            st.tuples(st.integers(-4, 4), st.booleans(), st.integers(0, 5)), min_size=1, max_size=25
        ).filter(
            lambda rows: any(event for _, event, _ in rows) and any(weight for _, _, weight in rows)
        )
    )
    time, event, weight = (list(column) for column in zip(*rows, strict=True))
    return [float(t) for t in time], event, weight


# The authors' numbers


class Golden:
    """Weights of grf on one data set, and the quantiles that the authors' routine makes of them."""

    def __init__(self, folder):
        train = np.genfromtxt(folder / "train.csv", delimiter=",", names=True)
        self.time, self.event = train["y"], train["status"] == 1
        self.weights = np.loadtxt(folder / "weights.csv", delimiter=",")
        predictions = np.genfromtxt(folder / "predictions.csv", delimiter=",", skip_header=1)
        self.beran, self.knn = predictions[:, :5], predictions[:, 5:]


@pytest.fixture(scope="module", params=["light", "heavy"])
def golden(request):
    return Golden(GOLDEN / request.param)


def test_the_golden_data_are_whole(golden):
    assert golden.weights.shape == (60, 200)
    assert_allclose(golden.weights.sum(axis=1), 1, atol=1e-12)
    assert golden.time.shape == golden.event.shape == (200,)
    assert 0 < golden.event.mean() < 1
    assert np.isfinite(golden.beran).all()
    assert np.isfinite(golden.knn).all()


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_argmin_with_beran_gives_the_authors_numbers(golden, form):
    solved = solve_quantiles(
        form(golden.weights), golden.time, golden.event, GOLDEN_LEVELS, solver="argmin"
    )
    assert_allclose(solved, golden.beran, rtol=0, atol=1e-12)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_argmin_with_neighbours_above_average_gives_the_authors_numbers(golden, form):
    solved = solve_quantiles(
        form(golden.weights), golden.time, golden.event, GOLDEN_LEVELS, "knn", solver="argmin"
    )
    assert_allclose(solved, golden.knn, rtol=0, atol=1e-12)


def test_argmin_with_as_many_neighbours_gives_the_authors_numbers(golden):
    n_train = len(golden.time)
    for row, expected in zip(golden.weights, golden.knn, strict=True):
        count = int((row > 1 / n_train).sum())
        for n_neighbors in (count, count / n_train):
            solved = solve_quantiles(
                row[np.newaxis],
                golden.time,
                golden.event,
                GOLDEN_LEVELS,
                "knn",
                n_neighbors,
                "argmin",
            )
            assert_allclose(solved[0], expected, rtol=0, atol=1e-12)


def test_another_number_of_neighbours_gives_other_numbers(golden):
    solved = solve(golden.weights, golden.time, golden.event, GOLDEN_LEVELS, "knn", 5, "argmin")
    assert not np.allclose(solved, golden.knn)


def test_the_scale_of_weights_does_not_matter(golden):
    scale = np.geomspace(1e-6, 1e6, 60)[:, np.newaxis]
    for method, expected in (("beran", golden.beran), ("knn", golden.knn)):
        solved = solve_quantiles(
            golden.weights * scale,
            golden.time,
            golden.event,
            GOLDEN_LEVELS,
            method,
            solver="argmin",
        )
        assert_allclose(solved, expected, rtol=0, atol=1e-12)


# Root


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_root_is_the_inverse_of_the_weighted_kaplan_meier_curve(form):
    rng = np.random.default_rng(20)
    infinite = 0
    for _ in range(1000):
        time, event, weight = random_sample(rng)
        solved = solve(form(np.array([weight], dtype=float)), time, event, LEVELS)
        steps = kaplan_meier(time, event, weight)
        for tau, q in zip(LEVELS, solved[0], strict=True):
            reached = [t for t in sorted(steps) if steps[t] <= 1 - tau + CLOSE]
            assert q == (reached[0] if reached else np.inf)
        infinite += np.isinf(solved).sum()
    assert 500 < infinite < 6000  # both outcomes were tried


@given(samples(), st.sampled_from(LEVELS))
def test_root_with_beran_solves_the_estimating_equation(sample, tau):
    expected = root_by_loops("beran", *sample, tau)
    assume(expected is not None)
    assert solve([sample[2]], *sample[:2], tau).tolist() == [expected]


@pytest.mark.parametrize("n_neighbors", [None, 1, 3, 8, 1.0, 0.3])
def test_root_with_neighbours_equals_loops(n_neighbors):
    rng = np.random.default_rng(21)
    for _ in range(150):
        time, event, weight = random_sample(rng, n=int(rng.integers(8, 30)))
        count = n_neighbors
        if isinstance(n_neighbors, float):
            count = round(n_neighbors * len(time))
        solved = solve([weight], time, event, LEVELS, "knn", n_neighbors)
        for tau, q in zip(LEVELS, solved[0], strict=True):
            assert root_by_loops("knn", time, event, weight, tau, count) == q


def test_root_with_one_marginal_curve_equals_loops():
    rng = np.random.default_rng(22)
    for _ in range(300):
        time, event, weight = random_sample(rng)
        solved = solve([weight], time, event, LEVELS, "km")
        for tau, q in zip(LEVELS, solved[0], strict=True):
            assert root_by_loops("km", time, event, weight, tau) == q


def test_km_looks_at_all_training_rows():
    time = [1.0, 2.0, 3.0, 4.0]
    weight = [[1, 0, 1, 1]]
    # The row at 2 has no weight. Seen: G stays 1. Censored: G falls to 2/3 there.
    assert solve(weight, time, [1, 1, 1, 1], 0.6, "km").tolist() == [3.0]
    assert solve(weight, time, [1, 0, 1, 1], 0.6, "km").tolist() == [4.0]
    assert solve(weight, time, [1, 0, 1, 1], 0.6, "beran").tolist() == [3.0]
    assert solve(weight, time, [1, 0, 1, 1], 0.6, "knn", 3).tolist() == [3.0]


def test_km_takes_ties_of_rows_without_weight_into_account():
    # At 2 an event has weight and a censoring has none: G(2) knows of both.
    time, event, weight = [1.0, 2.0, 2.0, 3.0], [1, 1, 0, 1], [1, 1, 0, 2]
    assert solve([weight], time, event, 0.45, "km").tolist() == [3.0]
    assert root_by_loops("km", time, event, weight, 0.45) == 3.0


def test_a_level_that_is_reached_exactly_is_reached():
    # 0.1 ten times is not 1 in binary; the k-th of ten is still the k / 10 quantile.
    time = np.arange(1.0, 11.0)
    levels = np.arange(1, 10) / 10
    solved = solve_quantiles(np.full((1, 10), 0.1), time, np.ones(10), levels)
    assert solved[0].tolist() == list(range(1, 10))


@pytest.mark.parametrize("method", METHODS)
def test_without_censoring_root_is_the_ordinary_weighted_quantile(method):
    rng = np.random.default_rng(23)
    for n in (1, 2, 10, 57):
        time = rng.normal(size=n).round(1)
        weights = rng.random((4, n)) * (rng.random((4, n)) < 0.7)
        weights[:, 0] += 0.01
        solved = solve_quantiles(weights, time, np.ones(n, dtype=bool), LEVELS, method)
        for row, q in zip(weights, solved, strict=True):
            expected = np.quantile(time, LEVELS, weights=row, method="inverted_cdf")
            assert_array_equal(q, expected)


@given(samples(), st.sampled_from([None, 1, 0.5]))
def test_quantiles_never_cross(sample, n_neighbors):
    time, event, weight = sample
    for method in METHODS:
        one_by_one = [solve([weight], time, event, tau, method, n_neighbors)[0] for tau in LEVELS]
        assert one_by_one == sorted(one_by_one)
        together = solve([weight], time, event, LEVELS, method, n_neighbors)
        assert together[0].tolist() == one_by_one


def test_levels_may_come_in_any_order():
    rng = np.random.default_rng(24)
    time, event, weight = random_sample(rng, n=30)
    shuffled = rng.permutation([*LEVELS, 0.5])
    for solver in ("root", "argmin"):
        for censoring in ("right", "left"):
            together = solve([weight], time, event, shuffled, solver=solver, censoring=censoring)
            alone = [
                solve([weight], time, event, tau, solver=solver, censoring=censoring)[0]
                for tau in shuffled
            ]
            assert together[0].tolist() == alone


def test_one_level_gives_one_dimension_and_several_give_two():
    weights, time, event = np.eye(3), [1.0, 2.0, 3.0], [1, 1, 1]
    assert solve_quantiles(weights, time, event, 0.5).tolist() == [1.0, 2.0, 3.0]
    assert solve_quantiles(weights, time, event, [0.5]).tolist() == [[1.0], [2.0], [3.0]]
    assert solve_quantiles(weights, time, event, np.float32(0.5)).shape == (3,)
    assert solve_quantiles(weights, time, event, (0.2, 0.8)).shape == (3, 2)


# Argmin


@pytest.mark.parametrize("method", METHODS)
def test_argmin_is_closest_to_zero_among_its_candidates(method):
    rng = np.random.default_rng(25)
    for _ in range(150):
        time, event, weight = random_sample(rng, n=int(rng.integers(5, 30)))
        solved = solve([weight], time, event, LEVELS, method, 4, "argmin")
        for tau, q in zip(LEVELS, solved[0], strict=True):
            distance = argmin_by_loops(method, time, event, weight, tau, 4)
            if distance:
                assert distance[q] <= min(distance.values()) + CLOSE
            else:
                assert q == np.inf


def test_argmin_takes_the_first_of_equals():
    # S_n is -1/8 at 1 and 1/8 at 2; in quarters and eighths nothing is rounded.
    weights = np.full((1, 4), 0.25)
    time, event = [1.0, 2.0, 3.0, 4.0], [1, 1, 1, 1]
    assert solve_quantiles(weights, time, event, 0.375, solver="argmin").tolist() == [1.0]
    assert solve_quantiles(weights, time, event, 0.375, solver="root").tolist() == [2.0]


def test_argmin_does_not_look_beyond_the_last_event():
    # At 3 both terms vanish, which is no reason to call it the quantile.
    weights, time, event = np.full((1, 3), 1 / 3), [1.0, 2.0, 3.0], [1, 1, 0]
    assert solve_quantiles(weights, time, event, 0.9, solver="argmin").tolist() == [2.0]


# What cannot be estimated


def by_rank(weights, time, event, censoring="right"):
    """Rows of weights and the target as the solver wants them."""
    time, event = oriented(np.array(time, float), censoring), np.array(event, bool)
    order = time_order(time, event)
    rows = sparse.csr_array(np.atleast_2d(np.array(weights, float))[:, order])
    rows.data = rows.data / np.repeat(rows.sum(axis=1), np.diff(rows.indptr))
    ranks = rows.indices.astype(np.int32)
    return (
        Weights(rows.indptr.astype(np.int64), ranks, rows.data),
        RankedTarget(time[order], event[order]),
        order,
    )


@given(samples(), st.sampled_from([None, 1, 0.5]))
def test_levels_up_to_the_largest_are_finite_and_above_it_infinite(sample, n_neighbors):
    time, event, weight = sample
    rows, target, _ = by_rank(weight, time, event)
    for method in METHODS:
        solver = QuantileSolver(censoring_survival=method, n_neighbors=n_neighbors)
        (largest,) = solver.max_level(rows, target)
        assert 0 <= largest <= 1
        below = [tau for tau in (*LEVELS, largest) if 0 < tau <= min(largest, 1 - 1e-9)]
        above = [tau for tau in (*LEVELS, largest + 1e-9) if largest + 1e-10 < tau < 1]
        for levels, finite in ((below, True), (above, False)):
            if levels:
                solved = solve([weight], time, event, levels, method, n_neighbors)
                assert (np.isfinite(solved) == finite).all()


@given(samples())
def test_the_largest_level_is_how_far_the_survival_curve_falls(sample):
    time, event, weight = sample
    rows, target, _ = by_rank(weight, time, event)
    (largest,) = QuantileSolver().max_level(rows, target)
    lowest = min(kaplan_meier(time, event, weight).values())
    assert_allclose(largest, float(1 - lowest), atol=1e-12)
    for method in ("knn", "km"):
        solver = QuantileSolver(censoring_survival=method, n_neighbors=1)
        (largest,) = solver.max_level(rows, target)
        expected = 0.0
        for _, s_n, g in estimating_equation(method, time, event, weight, 0.0, 1):
            assume(g > 0 or s_n < 0)
            if g > 0:
                expected = max(expected, float(s_n / g))  # 1 - H / G
        assert_allclose(largest, expected, atol=1e-12)


def test_under_left_censoring_the_smallest_level_is_told():
    time, event = [1.0, 2.0, 3.0, 4.0], [0, 1, 1, 1]
    rows, target, _ = by_rank([1, 1, 1, 1], time, event, "left")
    (smallest,) = QuantileSolver(censoring="left").max_level(rows, target)
    assert_allclose(smallest, 0.25)
    solved = solve([[1, 1, 1, 1]], time, event, [0.2, 0.3], censoring="left")
    assert solved.tolist() == [[-np.inf, 2.0]]


@pytest.mark.parametrize("method", METHODS)
def test_where_only_censored_rows_speak_no_level_can_be_estimated(method):
    weight, time, event = [0, 1, 2, 0], [1.0, 2.0, 3.0, 4.0], [1, 0, 0, 1]
    for solver in ("root", "argmin"):
        solved = solve([weight], time, event, [0.01, 0.5], method, 2, solver)
        assert solved.tolist() == [[np.inf, np.inf]]
    rows, target, _ = by_rank(weight, time, event)
    solver = QuantileSolver(censoring_survival=method, n_neighbors=2)
    assert solver.max_level(rows, target).tolist() == [0.0]


HIDDEN = {
    "weights": np.array([[1.0, 1, 1, 1, 0], [1, 1, 0, 0, 0], [0, 0, 0, 1, 1]]),
    "time": [1.0, 2.0, 3.0, 4.0, 5.0],
    "event": [1, 1, 0, 0, 1],
    "quantiles": [0.5, 0.75, 0.9],
}
SEEN = [[2.0, None, None], [1.0, 2.0, 2.0], [5.0, 5.0, 5.0]]


def fill(value):
    return [[value if q is None else q for q in row] for row in SEEN]


def test_what_is_hidden_is_infinite_with_one_warning():
    with pytest.warns(UnidentifiedQuantileWarning) as caught:
        solved = solve_quantiles(**HIDDEN)
    assert solved.tolist() == fill(np.inf)
    assert len(caught) == 1
    assert str(caught[0].message).startswith("some quantiles cannot be estimated")
    assert caught[0].filename == __file__  # it points at the call


def test_what_is_hidden_may_be_clipped_to_the_last_neighbour():
    assert solve_quantiles(**HIDDEN, unidentified="clip").tolist() == fill(4.0)


def test_what_is_hidden_may_be_nan():
    assert_array_equal(solve_quantiles(**HIDDEN, unidentified="nan"), fill(np.nan))


def test_nothing_hidden_means_no_warning():
    for unidentified in ("inf", "clip", "nan"):
        solved = solve_quantiles(**{**HIDDEN, "quantiles": 0.5}, unidentified=unidentified)
        assert solved.tolist() == [2.0, 1.0, 5.0]


def test_under_left_censoring_what_is_hidden_lies_below():
    weights, time, event = [[1, 1, 1, 1]], [1.0, 2.0, 3.0, 4.0], [0, 0, 1, 1]
    choices = {"quantiles": [0.3, 0.6], "censoring": "left"}
    with pytest.warns(UnidentifiedQuantileWarning, match="max_quantile") as caught:
        solved = solve_quantiles(weights, time, event, **choices)
    assert len(caught) == 1
    assert solved.tolist() == [[-np.inf, 3.0]]
    clipped = solve_quantiles(weights, time, event, **choices, unidentified="clip")
    assert clipped.tolist() == [[1.0, 3.0]]
    assert_array_equal(
        solve_quantiles(weights, time, event, **choices, unidentified="nan"), [[np.nan, 3.0]]
    )


def test_a_query_that_no_row_speaks_for_is_nan():
    # An out-of-bag row that every tree has drawn.
    rows = Weights(np.array([0, 0, 2]), np.array([0, 1], dtype=np.int32), np.array([0.5, 0.5]))
    target = RankedTarget(np.array([1.0, 2.0]), np.array([True, True]))
    for method in METHODS:
        solver = QuantileSolver(censoring_survival=method, n_neighbors=2)
        solution = solver.solve(rows, target, np.array([0.25, 0.75]))
        assert_array_equal(solution.values, [[np.nan, np.nan], [1.0, 2.0]])
        assert_array_equal(solver.max_level(rows, target), [np.nan, 1.0])


# Left censoring


@given(samples(), st.sampled_from(["root", "argmin"]), st.sampled_from(METHODS))
def test_left_censoring_is_minus_the_mirrored_problem(sample, solver, method):
    time, event, weight = sample
    levels = np.array(LEVELS)
    choices = {"censoring_survival": method, "n_neighbors": 1, "solver": solver}
    left = solve([weight], time, event, levels, **choices, censoring="left")
    mirrored = solve([weight], -np.array(time), event, 1 - levels, **choices)
    assert_array_equal(left, -mirrored)


def test_left_censored_quantiles_equal_loops_from_the_right_end():
    # F(t-) = P(T < t) from the largest time down: at risk at t is the weight of Y <= t.
    rng = np.random.default_rng(26)
    for _ in range(300):
        time, event, weight = random_sample(rng)
        solved = solve([weight], time, event, LEVELS, censoring="left")
        for tau, q in zip(LEVELS, solved[0], strict=True):
            expected, below = -np.inf, Fraction(1)
            for now in sorted({t for t, w in zip(time, weight, strict=True) if w}, reverse=True):
                at_risk = sum(w for t, w in zip(time, weight, strict=True) if t <= now)
                died = sum(w for t, e, w in zip(time, event, weight, strict=True) if t == now and e)
                below *= 1 - Fraction(died, at_risk)
                if below <= tau + CLOSE:
                    expected = now
                    break
            assert q == expected


# What must not matter


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("censoring", ["right", "left"])
def test_the_order_of_rows_does_not_matter(method, censoring):
    rng = np.random.default_rng(27)
    for _ in range(100):
        time, event, weight = (np.array(column) for column in random_sample(rng))
        order = rng.permutation(len(time))
        choices = {"censoring_survival": method, "n_neighbors": 0.4, "censoring": censoring}
        one = solve([weight], time, event, LEVELS, **choices)
        other = solve([weight[order]], time[order], event[order], LEVELS, **choices)
        assert_array_equal(one, other)


def test_a_whole_weight_is_as_many_equal_rows():
    rng = np.random.default_rng(28)
    for _ in range(200):
        time, event, weight = (np.array(column) for column in random_sample(rng))
        once = solve([weight], time, event, LEVELS)
        repeated = np.repeat(time, weight), np.repeat(event, weight)
        if repeated[1].any():
            ones = np.ones((1, weight.sum()))
            assert_array_equal(once, solve(ones, *repeated, LEVELS))
        else:
            assert np.isinf(once).all()


def test_each_query_is_solved_on_its_own():
    rng = np.random.default_rng(29)
    time, event, _ = random_sample(rng, n=40)
    weights = rng.integers(0, 4, size=(12, 40)) * (rng.random((12, 40)) < 0.5)
    weights[:, 0] += 1
    for method in METHODS:
        together = solve(weights, time, event, LEVELS, method, 5)
        alone = [solve(row[np.newaxis], time, event, LEVELS, method, 5)[0] for row in weights]
        assert_array_equal(together, alone)


@pytest.mark.parametrize(
    "form",
    [
        lambda w: w.tolist(),
        lambda w: w.astype(np.float32),
        np.asfortranarray,
        sparse.csr_matrix,
        sparse.csc_array,
        sparse.coo_array,
        sparse.lil_matrix,
    ],
    ids=["list", "single precision", "Fortran", "csr_matrix", "csc", "coo", "lil"],
)
def test_weights_may_come_in_any_form(form):
    rng = np.random.default_rng(30)
    time, event, _ = random_sample(rng, n=40)
    weights = (rng.integers(0, 4, size=(12, 40)) * (rng.random((12, 40)) < 0.5)).astype(float)
    weights[:, 0] += 1
    for method in METHODS:
        expected = solve(weights, time, event, LEVELS, method)
        assert_array_equal(solve(form(weights), time, event, LEVELS, method), expected)


def test_stored_zeros_are_no_candidates_and_what_was_passed_stays_as_it_was():
    weights = sparse.csr_array(
        (np.array([2.0, 0.0, 1.0, 1.0]), np.array([3, 1, 0, 2]), np.array([0, 4])), shape=(1, 4)
    )
    before = weights.copy()
    dense = weights.toarray()
    for method in METHODS:
        solved = solve(weights, [4.0, 1.0, 2.0, 3.0], [1, 1, 0, 1], LEVELS, method, 4)
        expected = solve(dense, [4.0, 1.0, 2.0, 3.0], [1, 1, 0, 1], LEVELS, method, 4)
        assert_array_equal(solved, expected)
    assert_array_equal(weights.data, before.data)
    assert_array_equal(weights.indices, before.indices)


# Delayed entry and sample weights


def test_with_delayed_entry_root_is_the_inverse_of_the_late_kaplan_meier_curve():
    rng = np.random.default_rng(31)
    for _ in range(200):
        time, event, weight = random_sample(rng, n=int(rng.integers(2, 30)))
        entry = [float(t - rng.integers(1, 6)) for t in time]
        solved = solve([weight], time, event, LEVELS, entry=entry)
        expected = [inverse_kaplan_meier(time, event, weight, tau, entry) for tau in LEVELS]
        assert solved[0].tolist() == expected


def test_delayed_entry_enters_the_marginal_curve_of_the_censoring():
    # Entering after 2, the row at 3 is not at risk when the row at 2 is lost: G falls further.
    weights, time, event = [[1, 0, 1, 1]], [1.0, 2.0, 3.0, 4.0], [1, 0, 1, 1]
    early, late = [0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 2.0, 0.0]
    assert solve(weights, time, event, 0.4, "km", entry=early).tolist() == [3.0]
    # S is 1/2 at 1 (two at risk), 1/4 at 3; G is 1/2 from 2 on.
    assert solve(weights, time, event, [0.4, 0.6], "km", entry=late).tolist() == [[1.0, 4.0]]


@pytest.mark.parametrize("method", METHODS)
def test_entry_before_every_time_changes_nothing(method):
    rng = np.random.default_rng(32)
    for _ in range(50):
        time, event, weight = random_sample(rng)
        plain = solve([weight], time, event, LEVELS, method, 0.4)
        for start in (-np.inf, np.nan, -99.0):
            entry = np.full(len(time), start)
            assert_array_equal(
                solve([weight], time, event, LEVELS, method, 0.4, entry=entry), plain
            )


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n_neighbors", [None, 5, 0.4])
@pytest.mark.parametrize("censoring", ["right", "left"])
def test_a_sample_weight_is_as_many_equal_rows(method, n_neighbors, censoring):
    rng = np.random.default_rng(33)
    choices = {"n_neighbors": n_neighbors, "censoring": censoring}
    for _ in range(40):
        time, event, weight = (np.array(c) for c in random_sample(rng, n=15))
        copies = rng.integers(1, 4, size=15)
        once = solve([weight], time, event, LEVELS, method, **choices, sample_weight=copies)
        rows = [np.repeat(column, copies) for column in (weight, time, event)]
        repeated = solve(rows[:1], *rows[1:], LEVELS, method, **choices)
        assert_array_equal(once, repeated)


@pytest.mark.parametrize("method", METHODS)
def test_a_row_with_sample_weight_zero_is_not_there(method):
    rng = np.random.default_rng(34)
    for _ in range(40):
        time, event, weight = (np.array(c) for c in random_sample(rng, n=15))
        there = rng.random(15) < 0.7
        there |= (weight > 0) & (np.cumsum(weight) == weight)  # the first row with weight
        if not event[there].any():
            continue
        choices = {"censoring_survival": method, "n_neighbors": 3}
        if there.sum() < 3:
            continue
        one = solve([weight], time, event, LEVELS, **choices, sample_weight=there)
        other = solve([weight[there]], time[there], event[there], LEVELS, **choices)
        assert_array_equal(one, other)


def test_the_scale_of_sample_weights_matters_to_nothing_but_counts():
    rng = np.random.default_rng(35)
    time, event, weight = random_sample(rng, n=30)
    copies = rng.random(30) + 0.5
    for method in METHODS:
        for n_neighbors in (None, 0.5):
            one, other = (
                solve([weight], time, event, LEVELS, method, n_neighbors, sample_weight=c)
                for c in (copies, 4 * copies)
            )
            assert_array_equal(one, other)


# Neighbours


@pytest.mark.parametrize(
    ("n_neighbors", "count"),
    [
        (1, 1),
        (200, 200),
        (np.int64(7), 7),
        (0.1, 20),
        (1.0, 200),
        (1e-9, 1),
        (np.float32(0.5), 100),
    ],
)
def test_neighbours_are_a_count_or_a_fraction(n_neighbors, count):
    assert count_neighbors(n_neighbors, 200, 200.0) == count


def test_rows_tied_with_the_last_neighbour_are_in():
    time, event = [1.0, 2.0, 3.0, 4.0, 5.0], [1, 0, 1, 0, 1]
    weight = [[3, 2, 2, 2, 1]]
    by_two, by_four = (solve(weight, time, event, LEVELS, "knn", k) for k in (2, 4))
    assert_array_equal(by_two, by_four)
    assert not np.array_equal(by_two, solve(weight, time, event, LEVELS, "knn", 1))


# Errors


def refuse(message, **changes):
    arguments = {
        "weights": np.full((2, 4), 0.25),
        "time": [1.0, 2.0, 3.0, 4.0],
        "event": [1, 0, 1, 1],
        "quantiles": 0.5,
    }
    with pytest.raises(ValueError, match=message):
        solve_quantiles(**{**arguments, **changes})


@pytest.mark.parametrize("bad", [-0.1, np.nan, np.inf, -np.inf])
def test_weights_are_finite_and_not_negative(bad):
    weights = np.full((2, 4), 0.25)
    weights[1, 2] = bad
    refuse("weights must be finite and not negative", weights=weights)
    refuse("weights must be finite and not negative", weights=sparse.csr_array(weights))


def test_the_first_row_of_zeros_is_named():
    weights = np.full((4, 4), 0.25)
    weights[2:] = 0
    refuse("row 2 of weights sums to 0", weights=weights)


@pytest.mark.parametrize("shape", [(2, 3), (2, 5), (4, 1), (4,)])
def test_weights_have_a_column_for_each_training_row(shape):
    message = r"weights has shape \(.*\); it needs one column for each of the 4 training rows"
    refuse(
        message.replace(r"\(.*\)", str(shape).replace("(", r"\(").replace(")", r"\)")),
        weights=np.ones(shape),
    )


@pytest.mark.parametrize("quantiles", [0, 1, 0.0, 1.0, -0.5, 1.5, [0.5, 1.0], [0.0, 0.5], np.nan])
def test_levels_lie_strictly_between_zero_and_one(quantiles):
    refuse("quantiles must lie strictly between 0 and 1; found", quantiles=quantiles)


@pytest.mark.parametrize("quantiles", [[], [[0.5]], np.empty((0, 2))])
def test_levels_are_a_number_or_a_list_with_something_in_it(quantiles):
    refuse("quantiles must be a number or a list of numbers", quantiles=quantiles)


@pytest.mark.parametrize("quantiles", ["median", ["low", "high"], [[0.1], [0.2, 0.3]], {0.5}])
def test_levels_are_numbers(quantiles):
    refuse("quantiles must be numbers in .*; found", quantiles=quantiles)


def three_curves():
    """One falls to 0, one is known up to 6, one is known nowhere."""
    return StepCurves(
        np.array([0, 3, 5, 5]),
        np.array([1.0, 2.0, 4.0, 1.0, 3.0]),
        np.array([0.7, 0.4, 0.0, 0.8, 0.5]),
        np.ones(3),
        end=np.array([np.inf, 6.0, -np.inf]),
    )


@pytest.mark.parametrize(
    ("censoring", "expected", "last"),
    [
        ("right", [[1, 2, 2], [3, 3, np.inf], [np.nan] * 3], [4, 6, np.nan]),
        ("left", [[-4, -2, -2], [-np.inf, -3, -3], [np.nan] * 3], [-4, -6, np.nan]),
    ],
)
def test_quantiles_of_curves_by_hand(censoring, expected, last):
    """The first time with S <= 1 - tau; under left censoring of the mirrored times."""
    found = curve_quantiles(three_curves(), np.array([0.3, 0.5, 0.6]), censoring)
    assert_array_equal(found.values, expected)
    assert_array_equal(found.last_neighbor, last)


def test_a_curve_has_reached_a_value_up_to_the_tolerance():
    levels = np.array([0.5])
    for above, reached in ((0.0, True), (0.5e-3, True), (2e-3, False)):
        curves = StepCurves(np.array([0, 1]), np.array([1.0]), np.array([0.5 + above]), np.ones(1))
        found = curve_quantiles(curves, levels, tolerance=1e-3).values
        assert found.tolist() == [[1.0 if reached else np.inf]]


def test_an_interval_leaves_the_same_share_out_on_each_side():
    assert interval_levels(0.9) == pytest.approx([0.05, 0.95])
    assert interval_levels(0.5) == [0.25, 0.75]
    for coverage in (-0.1, 1.5, np.nan, "0.9"):
        with pytest.raises(ValueError, match="must be a number from 0 to 1"):
            interval_levels(coverage)
    for coverage in (0.0, 1.0):
        with pytest.raises(ValueError, match="must lie strictly between 0 and 1"):
            interval_levels(coverage)


def test_levels_are_read_as_they_come():
    levels, is_scalar = read_levels([0.9, 0.1, 0.9])
    assert levels.tolist() == [0.9, 0.1, 0.9]
    assert not is_scalar
    levels, is_scalar = read_levels(0.25)
    assert levels.tolist() == [0.25]
    assert is_scalar


@pytest.mark.parametrize(
    ("name", "choices"),
    [
        ("censoring_survival", "beran, knn, km"),
        ("solver", "root, argmin"),
        ("censoring", "right, left"),
        ("unidentified", "inf, clip, nan"),
    ],
)
def test_an_unknown_name_is_told_the_known_ones(name, choices):
    refuse(f"{name}='Median' is unknown; choose one of {choices}", **{name: "Median"})
    refuse(f"{name}=None is unknown", **{name: None})


@pytest.mark.parametrize("n_neighbors", [0, -1, 5])
def test_a_count_of_neighbours_lies_between_one_and_all(n_neighbors):
    message = f"n_neighbors={n_neighbors} must lie between 1 and the 4 training rows"
    refuse(message, censoring_survival="knn", n_neighbors=n_neighbors)


@pytest.mark.parametrize("n_neighbors", [1.5, 0.0, -0.1, np.nan, True, "10%", [3]])
def test_neighbours_that_are_neither_count_nor_fraction_are_refused(n_neighbors):
    message = r"n_neighbors=.* must be a count of training rows or a fraction in \(0, 1\]"
    refuse(message, censoring_survival="knn", n_neighbors=n_neighbors)


def test_without_any_event_nothing_can_be_estimated():
    refuse("event is False in every row", event=[0, 0, 0, 0])


def test_times_and_events_are_checked():
    refuse("time is nan in row 1", time=[1.0, np.nan, 3.0, 4.0])
    refuse("found .*2.* in row 3", event=[1, 0, 1, 2])
    refuse("time has 3 rows but event has 4", time=[1.0, 2.0, 3.0])
    for name in ("time", "event"):
        refuse("give time and event, or lower and upper", **{name: None})


def test_an_event_and_a_censoring_tied_at_the_end_hide_what_lies_beyond():
    """There both terms of the equation vanish: 0 = 0 is no solution."""
    weight, time, event = np.full((1, 4), 0.25), [1, 2, 3, 3], [1, 1, 1, 0]
    levels = [0.1, 0.5, 0.75, 0.9]
    for method, count in (("beran", None), ("km", None), ("knn", 4), ("knn", None)):
        solved = solve_quantiles(weight, time, event, levels, method, count, unidentified="nan")
        np.testing.assert_array_equal(solved, [[1, 2, 3, np.nan]])
        closest = solve_quantiles(weight, time, event, levels, method, count, "argmin")
        assert (np.diff(closest) >= 0).all()


def test_duplicate_entries_of_a_sparse_matrix_add_up():
    entries = sparse.coo_array(([1.0] * 4, ([0] * 4, [0, 0, 1, 2])), shape=(1, 3))
    doubled = sparse.csr_array((entries.data, entries.col, [0, 4]), shape=(1, 3))
    arguments = ([1, 2, 3], [1, 0, 1], [0.4, 0.6], "knn", 1)
    np.testing.assert_array_equal(
        solve_quantiles(doubled, *arguments), solve_quantiles(entries.toarray(), *arguments)
    )
    assert doubled.nnz == 4


def test_only_the_root_rule_with_beran_reads_quantiles_off_curves():
    QuantileSolver().check_reads_curves()
    for choices in ({"censoring_survival": "km"}, {"solver": "argmin"}):
        solver = QuantileSolver(**choices)
        with pytest.raises(ValueError, match=r"with a working model reads .*_model=None\."):
            solver.check_reads_curves()
        with pytest.raises(ValueError, match=r'intervals reads .* and solver "root"\.$'):
            solver.check_reads_curves("a forest of intervals")
