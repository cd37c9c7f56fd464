"""The quantile loss is what its formula says, and censoring does not bend it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lifelines import KaplanMeierFitter
from numpy.testing import assert_allclose, assert_array_equal
from sksurv.metrics import concordance_index_censored
from sksurv.nonparametric import kaplan_meier_estimator

from cqrf._input.target import Target, pair, read_target
from cqrf.datasets import make_aft
from cqrf.metrics import FLOOR, censored_quantile_loss, concordance_index, quantile_loss
from cqrf.metrics.ipcw import estimate_censoring_survival, marginal_weights

LEVELS = np.array([0.1, 0.25, 0.5, 0.9])


def random_target(rng, n, censored_share=0.4, n_times=None):
    """Whole times with ties if their number is given, otherwise all different."""
    time = rng.exponential(size=n) if n_times is None else rng.integers(1, n_times + 1, size=n)
    event = rng.random(n) >= censored_share
    event[rng.integers(n)] = True
    return pair(time.astype(float), event)


def check_loss(time, predicted, tau):
    """The quantile loss of one prediction by its two branches."""
    return tau * (time - predicted) if time >= predicted else (1 - tau) * (predicted - time)


# Quantile loss


@given(
    st.floats(-1e6, 1e6),
    st.floats(-1e6, 1e6),
    st.floats(0.0, 1.0, exclude_min=True, exclude_max=True),
)
def test_quantile_loss_is_tau_above_and_one_minus_tau_below(time, predicted, tau):
    loss = quantile_loss(time, predicted, tau)
    assert_allclose(loss, check_loss(time, predicted, tau), rtol=1e-12, atol=1e-12)
    assert loss >= 0


def test_quantile_loss_is_elementwise_and_broadcasts_over_levels():
    time, predicted = np.array([3.0, 1.0, 2.0]), np.array([2.0, 2.0, 2.0])
    assert_allclose(quantile_loss(time, predicted, 0.9), [0.9, 0.1, 0.0])
    both = quantile_loss(time[:, np.newaxis], np.column_stack([predicted, predicted]), [0.1, 0.9])
    assert_allclose(both, [[0.1, 0.9], [0.9, 0.1], [0.0, 0.0]])


def test_times_run_along_the_rows_also_where_there_are_as_many_levels():
    time, levels = [1.0, 2.0], [0.1, 0.9]
    predicted = [[1.0, 4.0], [1.5, 2.0]]
    expected = [
        [check_loss(t, q, tau) for q, tau in zip(row, levels, strict=True)]
        for t, row in zip(time, predicted, strict=True)
    ]
    assert_allclose(quantile_loss(time, predicted, levels), expected)
    assert_allclose(quantile_loss(2.0, predicted[1], levels), expected[1])


@pytest.mark.parametrize(
    ("time", "predicted", "levels", "said"),
    [
        ([1.0], [2.0], 5, "strictly between 0 and 1; found 5"),
        ([1.0], [2.0], np.nan, "strictly between 0 and 1"),
        ([1.0, 2.0], [1.0, 2.0], [0.1, 0.9], "a column for each of the 2 levels"),
        ([1.0, 2.0], np.ones((2, 3)), [0.1, 0.9], r"predicted has shape \(2, 3\)"),
        ([[1.0], [2.0]], [1.0, 2.0], 0.5, r"time \(2, 1\)"),
    ],
)
def test_losses_of_levels_or_shapes_that_make_no_sense_are_refused(time, predicted, levels, said):
    with pytest.raises(ValueError, match=said):
        quantile_loss(time, predicted, levels)


@pytest.mark.parametrize("levels", [0.3, [0.1, 0.5, 0.9]])
def test_the_mean_of_weighted_quantile_losses_is_the_weighted_mean(levels):
    rng = np.random.default_rng(3)
    time, weight = rng.exponential(size=20), rng.integers(0, 4, 20)
    predicted = rng.exponential(size=20 if np.isscalar(levels) else (20, 3))
    time = time if np.isscalar(levels) else time[:, np.newaxis]
    # A weight counts a row that many times.
    expected = np.repeat(quantile_loss(time, predicted, levels), weight, axis=0).mean(axis=0)
    found = quantile_loss(time, predicted, levels, sample_weight=weight).mean(axis=0)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_half_the_absolute_error_is_the_loss_of_a_median():
    rng = np.random.default_rng(0)
    time, predicted = rng.normal(size=50), rng.normal(size=50)
    assert_allclose(quantile_loss(time, predicted, 0.5), np.abs(time - predicted) / 2)


@pytest.mark.parametrize("tau", LEVELS)
def test_the_quantile_has_the_smallest_mean_loss(tau):
    time = np.random.default_rng(1).exponential(size=501)
    candidates = np.sort(time)
    losses = [quantile_loss(time, q, tau).mean() for q in candidates]
    assert candidates[np.argmin(losses)] == np.quantile(time, tau, method="inverted_cdf")


# Survival of the censoring


def test_marginal_weights_are_one_row_that_sums_to_one():
    weights = marginal_weights(None, 4)
    assert weights.offsets.tolist() == [0, 4]
    assert weights.ranks.tolist() == [0, 1, 2, 3]
    assert weights.values.tolist() == [0.25] * 4
    weights = marginal_weights(np.array([1.0, 0.0, 3.0]), 3)
    assert weights.offsets.tolist() == [0, 2]
    assert weights.ranks.tolist() == [0, 2]
    assert weights.values.tolist() == [0.25, 0.75]


def censoring_survival_by_loops(train):
    """G after each time: events come first at a tie."""
    g, steps = 1.0, {}
    for now in sorted(set(train.time.tolist())):
        at_risk = sum(1 for t in train.time if t >= now)
        died = sum(1 for t, e in zip(train.time, train.event, strict=True) if t == now and e)
        lost = sum(1 for t, e in zip(train.time, train.event, strict=True) if t == now and not e)
        if lost:
            g *= 1 - lost / (at_risk - died)
        steps[now] = g
    return steps


@pytest.mark.parametrize("n_times", [None, 6], ids=["distinct", "tied"])
def test_the_survival_of_censoring_equals_loops(n_times):
    rng = np.random.default_rng(2)
    for _ in range(20):
        train = random_target(rng, 40, n_times=n_times)
        steps = censoring_survival_by_loops(train)
        curve = estimate_censoring_survival(train)
        assert_allclose(curve(list(steps)), list(steps.values()), rtol=1e-12, atol=1e-14)
        assert curve(train.time.min() - 1) == 1.0


@pytest.mark.parametrize("seed", range(3))
def test_the_survival_of_censoring_equals_lifelines_and_scikit_survival(seed):
    train = random_target(np.random.default_rng(seed), 200, n_times=30)
    # lifelines takes no account of what else happens at a tie: events go a little earlier.
    fitter = KaplanMeierFitter().fit(train.time - 0.25 * train.event, ~train.event)
    grid = np.arange(0.5, 32.0, 0.5)
    curve = estimate_censoring_survival(train)
    expected = fitter.survival_function_at_times(grid).to_numpy()
    assert_allclose(curve(grid), expected, rtol=1e-9, atol=1e-12)
    at, values = kaplan_meier_estimator(train.event, train.time, reverse=True)
    assert_allclose(curve(at), values, rtol=1e-9, atol=1e-12)


def test_the_survival_of_left_censoring_is_that_of_negated_times():
    train = random_target(np.random.default_rng(3), 50, n_times=6)
    left = estimate_censoring_survival(Target(-train.time, train.event), censoring="left")
    assert_array_equal(left.times, estimate_censoring_survival(train).times)
    assert_array_equal(left.values, estimate_censoring_survival(train).values)


def test_a_training_weight_is_as_many_training_rows():
    rng = np.random.default_rng(4)
    train = random_target(rng, 30, n_times=8)
    copies = rng.integers(0, 4, size=30)
    repeated = Target(np.repeat(train.time, copies), np.repeat(train.event, copies))
    weighted = estimate_censoring_survival(train, train_weight=copies.astype(float))
    grid = np.arange(0, 10, 0.5)
    assert_allclose(
        weighted(grid), estimate_censoring_survival(repeated)(grid), rtol=1e-12, atol=1e-14
    )


def test_rows_that_enter_late_count_from_the_start_for_the_censoring():
    late = pair([2.0, 3.0, 4.0], [0, 1, 1], [0.0, 2.0, 1.0])
    assert_allclose(estimate_censoring_survival(late)([1.0, 2.0, 4.0]), [1.0, 2 / 3, 2 / 3])


# Censored quantile loss


def censored_loss_by_loops(steps, test, predicted, tau, copies=None):
    """Loss of min(q, h) for min(T, h), rows weighted by 1 / G just before."""
    horizon = min((t for t, g in steps.items() if g < FLOOR), default=np.inf)
    total = weights = 0.0
    for i in range(len(test.time)):
        time = min(test.time[i], horizon)
        if test.event[i] or test.time[i] >= horizon:
            g = min([1.0, *(g for t, g in steps.items() if t < time)])
            weight = (1 if copies is None else copies[i]) / g
            total += weight * check_loss(time, min(predicted[i], horizon), tau)
            weights += weight
    return total / weights


def test_without_censoring_it_is_the_plain_mean():
    rng = np.random.default_rng(5)
    train, test = (random_target(rng, 60, censored_share=0.0) for _ in range(2))
    predicted = rng.exponential(size=(60, 4))
    expected = quantile_loss(test.time[:, np.newaxis], predicted, LEVELS).mean(axis=0)
    for censoring in ("right", "left"):
        loss = censored_quantile_loss(train, test, predicted, LEVELS, censoring=censoring)
        assert loss.shape == (4,)
        assert_allclose(loss, expected, rtol=1e-12)


@pytest.mark.parametrize("n_times", [None, 7], ids=["distinct", "tied"])
@pytest.mark.parametrize("censored_share", [0.2, 0.5, 0.9])
def test_it_equals_loops(censored_share, n_times):
    rng = np.random.default_rng(6)
    for _ in range(10):
        train, test = (random_target(rng, 50, censored_share, n_times) for _ in range(2))
        predicted = rng.uniform(0, test.time.max() * 1.2, size=(50, 4))
        steps = censoring_survival_by_loops(train)
        expected = [
            censored_loss_by_loops(steps, test, predicted[:, k], tau)
            for k, tau in enumerate(LEVELS)
        ]
        loss = censored_quantile_loss(train, test, predicted, LEVELS)
        assert_allclose(loss, expected, rtol=1e-10)


@pytest.mark.parametrize("seed", range(3))
def test_it_equals_loops_with_the_weights_of_lifelines(seed):
    rng = np.random.default_rng(seed)
    train = random_target(rng, 150, n_times=25)
    test = random_target(rng, 80, n_times=25)
    predicted = rng.uniform(0, 25, size=(80, 4))
    fitter = KaplanMeierFitter().fit(train.time - 0.25 * train.event, ~train.event)
    times = np.arange(1.0, 26.0)
    steps = dict(zip(times, fitter.survival_function_at_times(times), strict=True))
    expected = [
        censored_loss_by_loops(steps, test, predicted[:, k], tau) for k, tau in enumerate(LEVELS)
    ]
    loss = censored_quantile_loss(train, test, predicted, LEVELS)
    assert_allclose(loss, expected, rtol=1e-9)


def test_a_censored_row_counts_only_through_the_weights_of_others():
    train = pair([1.0, 2.0, 3.0], [1, 0, 1])
    wild = np.array([[1.0], [1e9], [2.0]])
    # G is 1 before 2 and 1/2 after: the event at 3 stands for two rows.
    assert_allclose(censored_quantile_loss(train, train, wild, [0.5]), [(0 * 1 + 0.5 * 2) / 3])


def test_a_censoring_at_the_same_time_does_not_make_an_event_less_likely_to_be_seen():
    train = pair([1.0, 2.0, 2.0, 3.0], [1, 1, 0, 1])
    # The events at 1 and 2 stand for themselves, the one at 3 for two rows.
    predicted = np.array([[1.0], [1.0], [1.0], [3.0]])
    assert_allclose(censored_quantile_loss(train, train, predicted, [0.5]), [0.5 / 4])


def late_censoring():
    """Ten rows at 1 to 10, where all but the first and the eighth are censored."""
    return pair(np.arange(1.0, 11.0), [1, 0, 0, 0, 0, 0, 0, 1, 0, 0])


def test_rows_that_reach_the_horizon_are_known_whether_censored_or_not():
    # G is 1, 8/9, ... 3/9 from 7 on, 3/18 from 9 on and 0 from 10 on, below the floor: h = 10.
    train = late_censoring()
    test = pair([8.0, 12.0, 15.0, 9.5], [1, 1, 0, 0])
    predicted = np.array([[6.0], [4.0], [11.0], [1.0]])
    weight = np.array([1 / (3 / 9), 1 / (3 / 18), 1 / (3 / 18), 0])
    loss = 0.5 * np.array([8 - 6, 10 - 4, 10 - 10, 0])
    assert_allclose(
        censored_quantile_loss(train, test, predicted, [0.5]), [weight @ loss / weight.sum()]
    )


@pytest.mark.parametrize("censoring", ["right", "left"])
def test_an_infinite_quantile_lies_at_the_horizon(censoring):
    sign = 1.0 if censoring == "right" else -1.0
    target = late_censoring()
    target = Target(sign * target.time, target.event)
    finite, infinite = (np.full((10, 2), sign * q) for q in (10.0, np.inf))
    losses = [
        censored_quantile_loss(target, target, q, [0.2, 0.9], censoring=censoring)
        for q in (finite, infinite)
    ]
    assert_array_equal(*losses)
    assert (losses[0] > 0).all()


def test_a_quantile_that_is_infinite_before_the_horizon_or_nan_is_refused():
    uncensored = pair([1.0, 2.0], [1, 1])
    message = "predicted quantiles must not be NaN, nor infinite before the horizon"
    for target, bad in (
        (uncensored, np.inf),
        (uncensored, np.nan),
        (late_censoring(), -np.inf),
        (late_censoring(), np.nan),
    ):
        predicted = np.full((len(target.time), 1), 1.5)
        predicted[1] = bad
        with pytest.raises(ValueError, match=message):
            censored_quantile_loss(target, target, predicted, [0.5])


@pytest.mark.parametrize("n_times", [None, 7], ids=["distinct", "tied"])
def test_left_censoring_is_the_mirrored_problem(n_times):
    rng = np.random.default_rng(7)
    train, test = (random_target(rng, 60, n_times=n_times) for _ in range(2))
    predicted = rng.uniform(0, 3, size=(60, 4))
    right = censored_quantile_loss(train, test, predicted, LEVELS)
    mirrored = [Target(-target.time, target.event) for target in (train, test)]
    left = censored_quantile_loss(*mirrored, -predicted, 1 - LEVELS, censoring="left")
    assert_allclose(left, right, rtol=1e-12)


def test_sample_weights_weigh_the_rows_of_the_test():
    rng = np.random.default_rng(8)
    train, test = (random_target(rng, 40, n_times=9) for _ in range(2))
    predicted = rng.uniform(0, 9, size=(40, 4))
    copies = rng.integers(0, 3, size=40)
    copies[np.flatnonzero(test.event)[0]] = 1
    repeated = Target(np.repeat(test.time, copies), np.repeat(test.event, copies))
    assert_allclose(
        censored_quantile_loss(train, test, predicted, LEVELS, sample_weight=copies),
        censored_quantile_loss(train, repeated, np.repeat(predicted, copies, axis=0), LEVELS),
        rtol=1e-12,
    )


def test_train_weights_weigh_the_rows_that_the_censoring_is_learnt_from():
    rng = np.random.default_rng(9)
    train, test = (random_target(rng, 40, n_times=9) for _ in range(2))
    predicted = rng.uniform(0, 9, size=(40, 4))
    copies = rng.integers(0, 3, size=40)
    repeated = Target(np.repeat(train.time, copies), np.repeat(train.event, copies))
    weighted = censored_quantile_loss(
        train, test, predicted, LEVELS, train_weight=copies.astype(float)
    )
    assert_allclose(weighted, censored_quantile_loss(repeated, test, predicted, LEVELS), rtol=1e-12)
    assert not np.allclose(weighted, censored_quantile_loss(train, test, predicted, LEVELS))


def test_where_no_row_is_known_there_is_no_loss():
    train = pair([1.0, 2.0], [0, 1])
    test = pair([1.0, 2.0], [0, 0])
    message = "no row of y has an event or reaches the horizon"
    with pytest.raises(ValueError, match=message):
        censored_quantile_loss(train, test, np.ones((2, 1)), [0.5])
    with pytest.raises(ValueError, match=message):
        censored_quantile_loss(train, train, np.ones((2, 1)), [0.5], sample_weight=[1, 0])


def simulate(rate, seed, censoring):
    """Many rows of one covariate, mirrored for left censoring: what is seen, and what is not."""
    simulation = make_aft(40_000, 1, censoring_rate=rate, random_state=seed)
    sign = 1.0 if censoring == "right" else -1.0
    seen = read_target(simulation.y)
    return Target(sign * seen.time, seen.event), sign * simulation.latent


@pytest.mark.parametrize("censoring", ["right", "left"])
def test_in_the_long_run_it_is_the_loss_on_the_latent_times(censoring):
    target, latent = simulate(0.12, 7, censoring)
    assert 0.25 < 1 - target.event.mean() < 0.4
    predicted = np.tile(np.quantile(latent, LEVELS), (len(latent), 1))
    truth = quantile_loss(latent[:, np.newaxis], predicted, LEVELS).mean(axis=0)
    loss = censored_quantile_loss(target, target, predicted, LEVELS, censoring=censoring)
    assert_allclose(loss, truth, rtol=0.02)
    # Leaving censored rows out, or taking them for events, is off by far more than that.
    by_row = quantile_loss(target.time[:, np.newaxis], predicted, LEVELS)
    for naive in (by_row[target.event].mean(axis=0), by_row.mean(axis=0)):
        assert np.abs(naive / truth - 1).max() > 0.1


@pytest.mark.parametrize("censoring", ["right", "left"])
def test_in_the_long_run_heavy_censoring_leaves_the_loss_up_to_the_horizon(censoring):
    rate = 0.4
    target, latent = simulate(rate, 8, censoring)
    assert 1 - target.event.mean() > 0.5
    horizon = -np.log(FLOOR) / rate  # where the true G = exp(-rate t) has fallen to the floor
    predicted = np.tile(np.quantile(latent, LEVELS), (len(latent), 1))
    latent, cut = (np.clip(times, -horizon, horizon) for times in (latent, predicted))
    assert 0.1 < (np.abs(latent) == horizon).mean() < 0.5
    truth = quantile_loss(latent[:, np.newaxis], cut, LEVELS).mean(axis=0)
    loss = censored_quantile_loss(target, target, predicted, LEVELS, censoring=censoring)
    assert_allclose(loss, truth, rtol=0.04)


def test_in_the_long_run_better_quantiles_have_the_smaller_loss():
    X, y, _, quantile = make_aft(20_000, 1, censoring_rate=0.15, random_state=9)
    target = read_target(y)
    good = quantile(X, LEVELS)
    best = censored_quantile_loss(target, target, good, LEVELS)
    for factor in (0.8, 1.25):
        worse = censored_quantile_loss(target, target, good * factor, LEVELS)
        assert (worse > best * 1.05).all()


def concordance_by_loops(target, predicted, weight):
    concordant = comparable = 0.0
    for i in np.flatnonzero(target.event):
        for j in range(len(target.time)):
            after = target.time[j] > target.time[i]
            if after or (target.time[j] == target.time[i] and not target.event[j]):
                pair_weight = weight[i] * weight[j]
                comparable += pair_weight
                concordant += pair_weight * (predicted[j] > predicted[i])
                concordant += pair_weight * 0.5 * (predicted[j] == predicted[i])
    return concordant / comparable


@pytest.mark.parametrize("n_times", [None, 6], ids=["distinct", "tied"])
@pytest.mark.parametrize("n_values", [None, 4], ids=["distinct", "tied"])
def test_concordance_equals_loops_and_scikit_survival(n_times, n_values):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        target = random_target(rng, 80, n_times=n_times)
        predicted = (
            rng.normal(size=80) if n_values is None else 1.0 * rng.integers(n_values, size=80)
        )
        weight = rng.integers(0, 4, size=80).astype(float)
        for weights in (None, weight):
            expected = concordance_by_loops(
                target, predicted, np.ones(80) if weights is None else weights
            )
            found = concordance_index(target, predicted, sample_weight=weights)
            assert found == pytest.approx(expected, abs=1e-12)
        theirs = concordance_index_censored(target.event, target.time, -predicted, tied_tol=0)[0]
        assert concordance_index(target, predicted) == pytest.approx(theirs, abs=1e-12)


def test_concordance_of_left_censored_times_is_the_mirrored_one():
    rng = np.random.default_rng(0)
    target = random_target(rng, 60)
    predicted = rng.normal(size=60)
    mirrored = Target(-target.time, target.event)
    assert concordance_index(mirrored, -predicted, censoring="left") == concordance_index(
        target, predicted
    )


def test_concordance_takes_infinite_predictions_and_refuses_nan():
    target = Target(np.array([1.0, 2.0, 3.0]), np.array([True, True, False]))
    assert concordance_index(target, [1.0, np.inf, np.inf]) == pytest.approx(2.5 / 3)
    with pytest.raises(ValueError, match="must not be NaN"):
        concordance_index(target, [1.0, np.nan, 2.0])
    with pytest.raises(ValueError, match=r"shape \(2,\)"):
        concordance_index(target, [1.0, 2.0])
    with pytest.raises(ValueError, match="no two rows"):
        concordance_index(Target(target.time, np.zeros(3, bool)), [1.0, 2.0, 3.0])
