"""The quantile loss is what its formula says, and censoring does not bend it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lifelines import KaplanMeierFitter
from numpy.testing import assert_allclose, assert_array_equal
from sksurv.nonparametric import kaplan_meier_estimator

from cqrf.datasets import make_aft
from cqrf.metrics import (
    FLOOR,
    censored_quantile_loss,
    marginal_weights,
    quantile_loss,
    seen_probability,
)
from cqrf.target import Target, pair, read_target

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


# Probability of having been seen


def test_marginal_weights_are_one_row_that_sums_to_one():
    weights = marginal_weights(None, 4)
    assert weights.offsets.tolist() == [0, 4]
    assert weights.ranks.tolist() == [0, 1, 2, 3]
    assert weights.values.tolist() == [0.25] * 4
    weights = marginal_weights(np.array([1.0, 0.0, 3.0]), 3)
    assert weights.offsets.tolist() == [0, 2]
    assert weights.ranks.tolist() == [0, 2]
    assert weights.values.tolist() == [0.25, 0.75]


def seen_by_loops(train, time):
    """G just before a time: product over the censorings before it, events first at ties."""
    g = 1.0
    for now in sorted(set(train.time.tolist())):
        if now >= time:
            break
        at_risk = sum(1 for t in train.time if t >= now)
        died = sum(1 for t, e in zip(train.time, train.event, strict=True) if t == now and e)
        lost = sum(1 for t, e in zip(train.time, train.event, strict=True) if t == now and not e)
        if lost:
            g *= 1 - lost / (at_risk - died)
    return g


@pytest.mark.parametrize("n_times", [None, 6], ids=["distinct", "tied"])
def test_seen_probability_equals_loops(n_times):
    rng = np.random.default_rng(2)
    for _ in range(20):
        train, test = (random_target(rng, 40, n_times=n_times) for _ in range(2))
        expected = [max(FLOOR, seen_by_loops(train, t)) for t in test.time]
        assert_allclose(seen_probability(train, test), expected, rtol=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_seen_probability_equals_lifelines_and_scikit_survival_just_before_each_time(seed):
    rng = np.random.default_rng(seed)
    train = random_target(rng, 200, n_times=30)
    test = random_target(rng, 100, n_times=30)
    # lifelines takes no account of what else happens at a tie: events go a little earlier.
    fitter = KaplanMeierFitter().fit(train.time - 0.25 * train.event, ~train.event)
    by_lifelines = fitter.survival_function_at_times(test.time - 0.5).to_numpy()
    at, values = kaplan_meier_estimator(train.event, train.time, reverse=True)
    before = np.searchsorted(at, test.time, side="left")
    by_sksurv = np.concatenate([[1.0], values])[before]
    found = seen_probability(train, test)
    assert_allclose(found, np.maximum(by_lifelines, FLOOR), rtol=1e-9)
    assert_allclose(found, np.maximum(by_sksurv, FLOOR), rtol=1e-9)


def test_a_censoring_at_the_same_time_does_not_make_an_event_less_likely_to_be_seen():
    train = pair([1.0, 2.0, 2.0, 3.0], [1, 1, 0, 1])
    assert_allclose(seen_probability(train, train), [1, 1, 1, 1 / 2])


def test_no_event_counts_for_more_than_the_floor_allows():
    time = np.arange(1.0, 101.0)
    event = np.zeros(100, dtype=bool)
    event[-1] = True
    target = Target(time, event)
    assert_allclose(seen_probability(target, target)[-1], FLOOR)
    assert_allclose(seen_probability(target, target)[50], 0.5)


def test_under_left_censoring_a_time_is_seen_unless_something_above_hid_it():
    rng = np.random.default_rng(3)
    for n_times in (None, 6):
        train, test = (random_target(rng, 50, n_times=n_times) for _ in range(2))
        mirrored = [Target(-target.time, target.event) for target in (train, test)]
        assert_array_equal(
            seen_probability(*mirrored, censoring="left"), seen_probability(train, test)
        )


def test_a_training_weight_is_as_many_training_rows():
    rng = np.random.default_rng(4)
    train, test = (random_target(rng, 30, n_times=8) for _ in range(2))
    copies = rng.integers(0, 4, size=30)
    repeated = Target(np.repeat(train.time, copies), np.repeat(train.event, copies))
    weighted = seen_probability(train, test, train_weight=copies.astype(float))
    assert_allclose(weighted, seen_probability(repeated, test), rtol=1e-12)


def test_rows_that_enter_late_are_at_risk_of_censoring_after_their_entry_only():
    train = pair([2.0, 3.0, 4.0], [0, 1, 1], [0.0, 2.0, 1.0])
    test = pair([2.0, 4.0], [1, 1])
    # When the first is lost at 2, only it and the last are there: the second enters after 2.
    assert_allclose(seen_probability(train, test), [1.0, 0.5])


# Censored quantile loss


def test_without_censoring_it_is_the_plain_mean():
    rng = np.random.default_rng(5)
    train, test = (random_target(rng, 60, censored_share=0.0) for _ in range(2))
    predicted = rng.exponential(size=(60, 4))
    expected = quantile_loss(test.time[:, np.newaxis], predicted, LEVELS).mean(axis=0)
    for censoring in ("right", "left"):
        loss = censored_quantile_loss(train, test, predicted, LEVELS, censoring=censoring)
        assert loss.shape == (4,)
        assert_allclose(loss, expected, rtol=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_it_equals_loops_with_the_weights_of_lifelines(seed):
    rng = np.random.default_rng(seed)
    train = random_target(rng, 150, n_times=25)
    test = random_target(rng, 80, n_times=25)
    predicted = rng.uniform(0, 25, size=(80, 4))
    fitter = KaplanMeierFitter().fit(train.time - 0.25 * train.event, ~train.event)
    expected = []
    for k, tau in enumerate(LEVELS):
        total = weights = 0.0
        for i in range(80):
            if test.event[i]:
                seen = fitter.survival_function_at_times([test.time[i] - 0.5]).iloc[0]
                weight = 1 / max(seen, FLOOR)
                total += weight * check_loss(test.time[i], predicted[i, k], tau)
                weights += weight
        expected.append(total / weights)
    loss = censored_quantile_loss(train, test, predicted, LEVELS)
    assert_allclose(loss, expected, rtol=1e-9)


def test_a_censored_row_counts_only_through_the_weights_of_others():
    train = pair([1.0, 2.0, 3.0], [1, 0, 1])
    wild = np.array([[1.0], [1e9], [2.0]])
    # G is 1 before 2 and 1/2 after: the event at 3 stands for two rows.
    assert_allclose(censored_quantile_loss(train, train, wild, [0.5]), [(0 * 1 + 0.5 * 2) / 3])


def test_sample_weights_weigh_the_rows_of_the_test():
    rng = np.random.default_rng(6)
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


def test_without_any_event_there_is_no_loss():
    train = pair([1.0, 2.0], [1, 0])
    test = pair([1.0, 2.0], [0, 0])
    with pytest.raises(ValueError, match="y has no event: a quantile loss needs at least one"):
        censored_quantile_loss(train, test, np.ones((2, 1)), [0.5])
    with pytest.raises(ValueError, match="y has no event"):
        censored_quantile_loss(train, train, np.ones((2, 1)), [0.5], sample_weight=[0, 1])


@pytest.mark.parametrize("censoring", ["right", "left"])
def test_in_the_long_run_it_is_the_loss_on_the_latent_times(censoring):
    simulation = make_aft(40_000, 1, censoring_rate=0.12, random_state=7)
    sign = 1.0 if censoring == "right" else -1.0
    seen = read_target(simulation.y)
    target = Target(sign * seen.time, seen.event)
    latent = sign * simulation.latent
    assert 0.25 < 1 - target.event.mean() < 0.4
    predicted = np.tile(np.quantile(latent, LEVELS), (len(latent), 1))
    truth = quantile_loss(latent[:, np.newaxis], predicted, LEVELS).mean(axis=0)
    loss = censored_quantile_loss(target, target, predicted, LEVELS, censoring=censoring)
    assert_allclose(loss, truth, rtol=0.02)
    # Leaving censored rows out, or taking them for events, is off by far more than that.
    by_row = quantile_loss(target.time[:, np.newaxis], predicted, LEVELS)
    for naive in (by_row[target.event].mean(axis=0), by_row.mean(axis=0)):
        assert np.abs(naive / truth - 1).max() > 0.1


def test_in_the_long_run_better_quantiles_have_the_smaller_loss():
    X, y, _, quantile = make_aft(20_000, 1, censoring_rate=0.15, random_state=8)
    target = read_target(y)
    good = quantile(X, LEVELS)
    best = censored_quantile_loss(target, target, good, LEVELS)
    for factor in (0.8, 1.25):
        worse = censored_quantile_loss(target, target, good * factor, LEVELS)
        assert (worse > best * 1.05).all()
