"""Standard errors: the influence of a weight, the variance of bags, and coverage by simulation."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import norm, truncnorm

from cqrf import CensoredQuantileForest, censored
from cqrf._forest.sampling import in_bag_bits, subsample_units
from cqrf._forest.spec import Sampling
from cqrf._forest.traversal import find_leaves
from cqrf._forest.weights import forest_weights
from cqrf._model.queries import encode_queries
from cqrf._survival.little_bags import (
    MAX_BLOCK,
    confidence_width,
    follow_curve,
    follow_survival,
    log_log_interval,
    remove_noise,
    write_influence,
)
from cqrf.datasets import make_aft


def survival_by_loops(weights, event, n_before):
    """Product-limit curve after the first rows, rows in time order."""
    s = 1.0
    for i in range(n_before):
        if event[i]:
            s *= 1 - weights[i] / weights[i:].sum()
    return s


def influence_of(weights, event, at):
    """Influence on the curve at a time; row i has the time i."""
    n = len(weights)
    out = np.zeros((n, 1))
    ranks, time = np.arange(n, dtype=np.int32), np.arange(n, dtype=float)
    path = follow_survival(ranks, weights, event)
    write_influence(ranks, path, time, np.array([at]), out)
    return out[:, 0]


@pytest.mark.parametrize("behind", [0.0, 0.5], ids=["at a row", "between rows"])
@pytest.mark.parametrize("n_before", [0, 1, 7, 19])
def test_influence_is_the_derivative_of_the_curve(n_before, behind):
    rng = np.random.default_rng(n_before)
    weights, event = rng.dirichlet(np.ones(20)), rng.uniform(size=20) < 0.6
    found = influence_of(weights, event, n_before - 1 + behind)
    for i in range(20):
        step = np.zeros(20)
        step[i] = 1e-6
        up, down = (survival_by_loops(weights + sign * step, event, n_before) for sign in (1, -1))
        assert found[i] == pytest.approx((up - down) / 2e-6, abs=1e-6)
    assert weights @ found == pytest.approx(0, abs=1e-12)


def test_without_causes_the_path_is_that_of_the_survival_curve():
    rng = np.random.default_rng(0)
    weights, event = rng.dirichlet(np.ones(20)), rng.uniform(size=20) < 0.6
    ranks = np.arange(20, dtype=np.int32)
    found = follow_curve(ranks, weights, event, None, 0)
    for k in range(21):
        assert found.level[k] == pytest.approx(survival_by_loops(weights, event, k), abs=1e-14)


def test_the_width_of_an_interval_is_a_quantile_of_the_normal_distribution():
    for confidence in (0.5, 0.9, 0.95):
        assert confidence_width(confidence) == pytest.approx(norm.ppf(0.5 + confidence / 2))
    for confidence in (0.0, 1.0):
        with pytest.raises(ValueError, match="strictly between 0 and 1"):
            confidence_width(confidence)
    for confidence in (-0.1, 1.5):
        with pytest.raises(ValueError, match="a number from 0 to 1"):
            confidence_width(confidence)


def test_a_bag_shares_half_of_the_rows():
    n, n_trees, bag_size = 101, 12, 3
    sampling = Sampling(np.arange(n, dtype=np.int32), n, 40, False, True, bag_size)
    drawn = [np.isin(np.arange(n), subsample_units(sampling, 7, t)[0]) for t in range(n_trees)]
    bags = [np.logical_or.reduce(drawn[b : b + bag_size]) for b in range(0, n_trees, bag_size)]
    assert all(bag.sum() <= n // 2 for bag in bags)
    assert all(tree.sum() == 40 for tree in drawn)
    assert not any(np.array_equal(drawn[t], drawn[t + 1]) for t in range(n_trees - 1))
    for one, other in pairwise(bags):
        assert 10 < (one & other).sum() < 40


@pytest.mark.parametrize("weighted", [False, True])
def test_the_variance_of_bags_equals_loops(weighted):
    data = make_aft(80, 2, random_state=0)
    weight = np.random.default_rng(0).uniform(0.5, 2, 80) if weighted else None
    forest = CensoredQuantileForest(n_estimators=12, bag_size=3, random_state=0, working_model=None)
    model = forest.fit(data.X, data.y, sample_weight=weight).model_
    X, t = data.X[:4], 2.5
    codes, leaf_rows = encode_queries(model, X).codes, model.forest.leaf_rows
    whole = forest_weights(find_leaves(model.forest, codes), leaf_rows, 80, model.rows.weight)
    moves = np.empty((12, 4))
    for tree in range(12):
        left_out = np.full((4, 2), 255, np.uint8)
        left_out[:, tree >> 3] &= np.uint8(255 - (1 << (tree & 7)))
        leaves = find_leaves(model.forest, codes, left_out)
        own = forest_weights(leaves, leaf_rows, 80, model.rows.weight)
        for q in range(4):
            row = slice(whole.offsets[q], whole.offsets[q + 1])
            ranks, values = whole.ranks[row], whole.values[row]
            influence = np.zeros((80, 1))
            path = follow_survival(ranks, values, model.rows.event)
            write_influence(ranks, path, model.rows.time, np.array([t]), influence)
            part = slice(own.offsets[q], own.offsets[q + 1])
            moves[tree, q] = own.values[part] @ influence[own.ranks[part], 0]
    bags = moves.reshape(4, 3, 4)
    between = (bags.mean(axis=1) ** 2).mean(axis=0)
    within = (bags.var(axis=1, ddof=1) / 3).mean(axis=0)
    expected = np.sqrt(remove_noise(between, within, 4))
    found = forest.survival_standard_error(X, [t])[:, 0]
    np.testing.assert_allclose(found, expected, rtol=1e-10)
    assert (found > 0).all()


def test_errors_at_many_times_are_those_of_each_time():
    data = make_aft(80, 2, random_state=0)
    forest = CensoredQuantileForest(n_estimators=12, bag_size=3, random_state=0)
    forest.fit(data.X, data.y)
    times = np.linspace(0.1, 9.0, 2 * MAX_BLOCK + 3)  # blocks of which the last is not full
    together = forest.survival_standard_error(data.X[:4], times, beyond="extend")
    for k in (0, MAX_BLOCK, len(times) - 1):
        alone = forest.survival_standard_error(data.X[:4], times[[k]], beyond="extend")[:, 0]
        np.testing.assert_array_equal(together[:, k], alone)


def test_noise_is_taken_off_and_what_is_left_is_positive():
    assert remove_noise(np.array([1.0]), np.array([0.01]), 1000) == pytest.approx(0.99, rel=1e-6)
    small = remove_noise(np.array([1.0]), np.array([1.2]), 100)
    assert 0 < small < 0.1
    assert remove_noise(np.zeros(1), np.zeros(1), 100) == 0


def test_the_interval_is_that_of_log_minus_log():
    survival, width = np.array([0.0, 0.3, 0.9, 1.0]), np.array([0.1, 0.1, 0.05, 0.1])
    lower, upper = log_log_interval(survival, width)
    for s, w, low, high in zip(survival, width, lower, upper):
        if s in (0, 1):
            assert low == high == s
            continue
        middle, spread = np.log(-np.log(s)), w / abs(s * np.log(s))
        assert np.log(-np.log(low)) == pytest.approx(middle + spread)
        assert np.log(-np.log(high)) == pytest.approx(middle - spread)


@pytest.mark.slow
@pytest.mark.parametrize("working_model", [None, "auto"])
def test_intervals_cover_as_they_should(working_model):
    """True survival and quantiles at points inside the range, where the forest has little bias.

    From 120 tables the spread of the estimates is known up to about 5 %.
    """
    X = np.ones((3, 3))
    X[:, 0] = [0.7, 1.0, 1.3]
    times = np.exp(X[:, 0])[1] * np.array([0.8, 1.0, 1.3])
    truth = 1 - norm.cdf((np.log(times) - X[:, :1]) / 0.3)
    survival, quantile, errors, estimates = [], [], [], []
    for seed in range(120):
        data = make_aft(800, 3, random_state=seed)
        forest = CensoredQuantileForest(
            n_estimators=600, bag_size=4, random_state=seed, n_jobs=2, working_model=working_model
        ).fit(data.X, data.y)
        ends = forest.survival_confidence_interval(X, times, 0.9)
        survival.append((ends[..., 0] <= truth) & (truth <= ends[..., 1]))
        median = forest.quantile_confidence_interval(X, 0.5, 0.9)
        true_median = data.quantile(X, 0.5)
        quantile.append((median[:, 0] <= true_median) & (true_median <= median[:, 1]))
        errors.append(forest.survival_standard_error(X, times))
        estimates.append(forest.predict_survival(X, times))
    inside = (truth > 0.05) & (truth < 0.95)
    assert np.mean(survival, axis=0)[inside].mean() == pytest.approx(0.9, abs=0.05)
    assert np.mean(quantile) == pytest.approx(0.9, abs=0.06)
    ratio = np.mean(errors, axis=0) / np.std(estimates, axis=0, ddof=1)
    assert ratio[inside].mean() == pytest.approx(1, abs=0.1)


@pytest.fixture(scope="module")
def bagged():
    data = make_aft(200, 3, random_state=0)
    return CensoredQuantileForest(n_estimators=60, bag_size=2, random_state=0).fit(
        data.X, data.y
    ), data


def test_shapes_and_order(bagged):
    forest, data = bagged
    X = data.X[:5]
    ends = forest.quantile_confidence_interval(X, [0.25, 0.5, 0.99])
    assert ends.shape == (5, 3, 2)
    middle = forest.predict(X, [0.25, 0.5, 0.99], unidentified="clip")
    assert (ends[..., 0] <= middle).all()
    assert (middle <= ends[..., 1]).all()
    assert np.isinf(ends[:, 2, 1]).any()
    assert forest.quantile_confidence_interval(X, 0.5).shape == (5, 2)
    wide = forest.survival_confidence_interval(X, [1.0, 2.0], 0.99)
    narrow = forest.survival_confidence_interval(X, [1.0, 2.0], 0.5)
    assert (wide[..., 0] <= narrow[..., 0]).all()
    assert ((wide >= 0) & (wide <= 1)).all()


def test_a_quantile_at_a_large_step_may_lie_before_it():
    """S falls from .12 to 0 in one step: the .9 quantile may as well be the time before."""
    time = np.repeat([1.0, 2.0, 3.0], [88, 88, 24])
    y = censored(np.append(time, time), np.full(400, True))
    stump = CensoredQuantileForest(
        n_estimators=400, bag_size=2, min_samples_split=1000, random_state=0
    )
    one = np.ones((400, 1))
    forest = stump.fit(one, y)
    assert forest.predict_survival(one[:1], 2.0) == pytest.approx(0.12, abs=0.01)
    assert forest.quantile_confidence_interval(one[:1], 0.9).tolist() == [[2.0, 3.0]]
    left = stump.set_params(censoring="left").fit(one, censored(-y["time"], y["event"]))
    assert left.quantile_confidence_interval(one[:1], 0.1).tolist() == [[-3.0, -2.0]]


def test_left_censoring_is_the_mirrored_problem(bagged):
    forest, data = bagged
    left = CensoredQuantileForest(
        n_estimators=60, bag_size=2, random_state=0, censoring="left"
    ).fit(data.X, censored(-data.y["time"], data.y["event"]))
    X = data.X[:6]
    np.testing.assert_allclose(
        left.survival_standard_error(X, [-2.0]), forest.survival_standard_error(X, [2.0])
    )
    np.testing.assert_allclose(
        left.survival_confidence_interval(X, [-2.0])[:, 0],
        1 - forest.survival_confidence_interval(X, [2.0])[:, 0, ::-1],
    )
    found = left.quantile_confidence_interval(X, 0.4)
    expected = -forest.quantile_confidence_interval(X, 0.6)[:, ::-1]
    np.testing.assert_allclose(found, expected)


def test_chunks_and_threads_change_nothing(bagged, monkeypatch):
    forest, data = bagged
    expected = forest.survival_standard_error(data.X, [2.0])
    monkeypatch.setattr("cqrf._forest.weights.CHUNK_WEIGHTS", 1000)
    forest.set_params(n_jobs=2)
    np.testing.assert_array_equal(forest.survival_standard_error(data.X, [2.0]), expected)
    forest.set_params(n_jobs=None)


def test_out_of_bag_knows_of_bags(bagged):
    forest, _ = bagged
    model = forest.model_
    bits = in_bag_bits(model.sampling, range(60), model.seed)
    share = np.unpackbits(bits, axis=1, bitorder="little")[:, :60].mean()
    assert share == pytest.approx(0.5, abs=0.01)
    assert forest.score_oob() > 0.2


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"bag_size": 2, "max_samples": 0.8}, "max_samples of at most half of the 200 rows"),
        ({"bag_size": 0}, "bag_size"),
    ],
)
def test_mistakes_at_fit(bagged, settings, said):
    _, data = bagged
    with pytest.raises(ValueError, match=said):
        CensoredQuantileForest(**settings).fit(data.X, data.y)


def test_mistakes_at_predict(bagged):
    forest, data = bagged
    plain = CensoredQuantileForest(n_estimators=4).fit(data.X, data.y)
    with pytest.raises(ValueError, match="bag_size=2 or more"):
        plain.survival_standard_error(data.X, [1.0])
    # With a working model a bag holds two trees of either kind.
    for working_model, n_needed in ((None, 4), ("auto", 8)):
        one_bag = CensoredQuantileForest(
            n_estimators=n_needed - 1, bag_size=2, working_model=working_model
        ).fit(data.X, data.y)
        with pytest.raises(ValueError, match=f"at least two bags: .* n_estimators={n_needed} or"):
            one_bag.survival_standard_error(data.X, [1.0])
        one_bag.set_params(n_estimators=n_needed).fit(data.X, data.y)
        assert np.isfinite(one_bag.survival_standard_error(data.X, [1.0])).all()
    late = censored(data.y["time"], data.y["event"], entry=data.y["time"] / 2)
    entered = CensoredQuantileForest(n_estimators=8, bag_size=2).fit(data.X, late)
    with pytest.raises(ValueError, match="enter late"):
        entered.survival_standard_error(data.X, [1.0])
    with pytest.raises(ValueError, match="without NaN"):
        forest.survival_standard_error(data.X, [np.nan])
    with pytest.raises(ValueError, match="a number or a list"):
        forest.survival_standard_error(data.X, [[1.0]])
    dishonest = CensoredQuantileForest(n_estimators=4, bag_size=2, honest=False)
    with pytest.raises(ValueError, match="honest=True"):
        dishonest.fit(data.X, data.y).survival_standard_error(data.X, [1.0])
    repeated = CensoredQuantileForest(n_estimators=4, bag_size=2, bootstrap=True)
    with pytest.raises(ValueError, match="bootstrap=False"):
        repeated.fit(data.X, data.y).survival_standard_error(data.X, [1.0])
    two = CensoredQuantileForest(n_estimators=8, bag_size=2)
    with pytest.raises(ValueError, match="at least 20 rows or groups; found 2"):
        two.fit(data.X, data.y, groups=np.arange(200) % 2).survival_standard_error(data.X, [1.0])
    with pytest.raises(ValueError, match="confidence"):
        forest.quantile_confidence_interval(data.X, 0.5, 1.0)


def test_an_odd_number_of_rows_is_no_trouble():
    data = make_aft(101, 2, random_state=0)
    forest = CensoredQuantileForest(n_estimators=8, bag_size=2, random_state=0)
    assert forest.fit(data.X, data.y).model_.sampling.size == 50


@pytest.mark.parametrize(("between", "within"), [(1.0, 4.0), (4.0, 1.0), (2.0, 2.0), (0.1, 3.0)])
def test_what_is_left_is_the_mean_of_a_normal_distribution_cut_off_at_0(between, within):
    """By SciPy: mean between - within, error of the larger of the two."""
    spread = max(between, within) * np.sqrt(2 / 50)
    mean = between - within
    expected = truncnorm.mean(-mean / spread, np.inf, loc=mean, scale=spread)
    found = remove_noise(np.array([between]), np.array([within]), 50)
    assert found == pytest.approx(expected, rel=1e-6)
