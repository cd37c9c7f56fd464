"""Conformal bounds: what they promise, by simulation."""

import numpy as np
import pandas as pd
import pytest

from cqrf import CensoredQuantileForest, censored
from cqrf.conformal import ConformalForest, MissesByThreshold, WeightedScores
from cqrf.datasets import make_aft, make_heteroscedastic, make_sine

REPEATS = 16
N_TEST = 1000


def small(seed, **settings):
    return CensoredQuantileForest(n_estimators=60, random_state=seed, n_jobs=2, **settings)


def heavy(n, seed):
    """More than half censored, and most where times are long."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 2, (n, 5))
    latent = np.exp(X[:, 0] + 0.3 * rng.normal(size=n))
    c = 4.0 * np.exp(-1.5 * (X[:, 0] - 1)) * rng.exponential(size=n)
    return X, censored(np.minimum(latent, c), latent <= c), latent, c


def of_library(make, **settings):
    def generate(n, seed):
        data = make(n, random_state=seed, **settings)
        return data.X, data.y, data.latent, None

    return generate


GENERATORS = {
    "aft": of_library(make_aft, n_features=5),
    "heteroscedastic": of_library(make_heteroscedastic, n_features=5),
    "sine": of_library(make_sine),
    "heavy": heavy,
}


def coverages(generate, n=1000, know_c=False, **settings):
    """Share of fresh rows at or above the bound, and inside the interval, for each repeat."""
    lower, inside = [], []
    for seed in range(REPEATS):
        X, y, _, c = generate(n, seed)
        X_test, _, latent, _ = generate(N_TEST, 1000 + seed)
        model = ConformalForest(small(seed), random_state=seed, **settings)
        model.fit(X, y, censoring_time=c if know_c else None)
        lower.append((latent >= model.predict_lower(X_test)).mean())
        ends = model.predict_interval(X_test)
        inside.append(((ends[:, 0] <= latent) & (latent <= ends[:, 1])).mean())
    return np.array(lower), np.array(inside)


def within_error(found, coverage):
    """Mean of the repeats within three of its standard errors."""
    return abs(found.mean() - coverage) < 3 * found.std(ddof=1) / np.sqrt(len(found))


@pytest.mark.slow
@pytest.mark.parametrize("method", ["adaptive", "fixed"])
@pytest.mark.parametrize("name", GENERATORS)
def test_lower_bounds_hold_as_promised(name, method):
    lower, inside = coverages(GENERATORS[name], method=method)
    assert within_error(lower, 0.9), lower.mean()
    assert inside.mean() > 0.9 - 3 * inside.std(ddof=1) / np.sqrt(REPEATS)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["adaptive", "fixed"])
def test_known_censoring_times(method):
    lower, _ = coverages(heavy, method=method, know_c=True)
    assert within_error(lower, 0.9), lower.mean()


@pytest.mark.slow
def test_the_quantile_alone_is_off_where_the_bound_is_not():
    """A coarse forest where censoring is heavy and follows the covariate of T."""
    raw, bound = [], []
    for seed in range(REPEATS):
        X, y, _, _ = heavy(1000, seed)
        X_test, _, latent, _ = heavy(N_TEST, 1000 + seed)
        forest = small(seed, min_samples_leaf=40)
        model = ConformalForest(forest, random_state=seed).fit(X, y)
        bound.append((latent >= model.predict_lower(X_test)).mean())
        raw.append((latent >= forest.fit(X, y).predict(X_test, 0.1, unidentified="clip")).mean())
    assert not within_error(np.array(raw), 0.9)
    assert np.mean(raw) > 0.92
    assert within_error(np.array(bound), 0.9)


def test_without_censoring_the_bound_is_plain_split_conformal():
    """By loops: the largest score that leaves no more than the allowed misses below."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(300, 2))
    time = np.exp(X[:, 0] + 0.3 * rng.normal(size=300))
    model = ConformalForest(small(0), coverage=0.8, random_state=1).fit(X, time)
    assert model.censoring_forest_ is None
    kept = [i for i in range(300) if X[i].tolist() not in rows_of(model, X)]
    scores = sorted(
        (float(curve(time[i])) for i, curve in zip(kept, model.forest_.predict_survival(X[kept]))),
        reverse=True,
    )
    n_allowed = int(np.floor(0.2 * (len(kept) + 1))) - 1
    assert model.level_ == pytest.approx(1 - scores[n_allowed])
    missed = (time[kept] < model.predict_lower(X[kept])).mean()
    assert missed <= 0.2


def rows_of(model, X):
    """Rows that grew the forest."""
    order = model.forest_.model_.order
    from sklearn.model_selection import train_test_split

    seed = int(np.random.RandomState(1).randint(2**31 - 1))
    grown, _ = train_test_split(X, test_size=0.5, random_state=seed)
    assert len(grown) == len(order)
    return grown.tolist()


def test_more_coverage_means_lower_bounds_and_wider_intervals():
    data = make_aft(500, 3, random_state=0)
    bounds = [
        ConformalForest(small(0), coverage=c, random_state=0).fit(data.X, data.y)
        for c in (0.6, 0.8, 0.95)
    ]
    lows = [model.predict_lower(data.X) for model in bounds]
    assert (lows[0] >= lows[1]).all()
    assert (lows[1] >= lows[2]).all()
    assert lows[0].mean() > lows[2].mean() + 0.1
    assert bounds[0].level_ > bounds[2].level_


def test_too_few_rows_for_the_promise_give_the_trivial_bound():
    data = make_aft(40, 2, random_state=0)
    model = ConformalForest(small(0), coverage=0.99, random_state=0).fit(data.X, data.y)
    assert (model.predict_lower(data.X) == 0).all()
    assert np.isinf(model.predict_interval(data.X)[:, 1]).all()


def test_the_smallest_threshold_keeps_the_share_of_misses():
    """Weights 1, 2 and 3 of 10 at the scores .9, .5 and .2, and a query of weight 1."""
    scores = WeightedScores(np.array([0.9, 0.5, 0.2]), np.array([1.0, 3.0, 6.0]), 10.0)
    shares = [1 / 11, 2 / 11, 4 / 11, 7 / 11]  # of misses at v in [.9, 1), [.5, .9), ...
    for allowed, expected in zip(shares, (0.9, 0.5, 0.2, 0.0)):
        assert scores.find_threshold(allowed + 1e-9) == expected
    assert scores.find_threshold(shares[0] - 1e-9) == np.inf
    assert scores.find_threshold(0.3, [1.0, 4.0]).tolist() == [0.5, 0.9]
    by_threshold = MissesByThreshold(np.array([0.8, 0.4]), np.array([0.1, 0.3]))
    found = [float(by_threshold.find_threshold(allowed)) for allowed in (0.05, 0.1, 0.2, 0.3)]
    assert found == [np.inf, 0.8, 0.8, 0.4]


def test_a_threshold_of_one_gives_the_trivial_bound():
    """A calibration event before every step of its curve has the score 1."""
    data = make_aft(100, 2, random_state=0)
    model = ConformalForest(small(0), coverage=0.9, random_state=0).fit(data.X, data.y)
    model.lower_scores_ = WeightedScores(np.array([1.0]), np.array([20.0]), 50.0)
    assert (model.predict_lower(data.X) == 0).all()


def test_where_all_neighbours_are_censored_the_bound_is_trivial():
    """Whoever else is asked with them."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (400, 1)).astype(float)
    y = censored(rng.uniform(1, 4, 400) + 4 * (X[:, 0] == 0), X[:, 0] == 1)
    model = ConformalForest(small(0), random_state=0).fit(X, y)
    assert model.predict_lower([[0.0]]).tolist() == [0.0]
    for X_test in ([[0.0], [1.0]], [[1.0], [0.0]]):
        bounds = model.predict_lower(X_test)
        assert bounds[np.ravel(X_test) == 0].tolist() == [0.0]
        assert bounds[np.ravel(X_test) == 1] > 1
        assert model.predict_interval(X_test)[np.ravel(X_test) == 0].tolist() == [[0.0, np.inf]]


def test_a_fixed_cutoff_caps_the_bound():
    data = make_aft(500, 3, random_state=0)
    model = ConformalForest(small(0), method="fixed", cutoff=1.5, random_state=0)
    bounds = model.fit(data.X, data.y).predict_lower(data.X)
    assert bounds.max() == 1.5
    assert bounds.min() < 1.5


def test_frames_and_equal_seeds():
    data = make_aft(300, 3, random_state=0)
    frame = pd.DataFrame(data.X, columns=list("abc"))
    first, second = (
        ConformalForest(small(0), random_state=7).fit(X, data.y).predict_lower(X)
        for X in (data.X, frame)
    )
    np.testing.assert_array_equal(first, second)
    model = ConformalForest(random_state=0, coverage=0.9).fit(data.X[:100], data.y[:100])
    again = ConformalForest(random_state=0, coverage=0.9).fit(data.X[:100], data.y[:100])
    bounds = model.predict_lower(data.X)
    np.testing.assert_array_equal(again.predict_lower(data.X), bounds)
    model.set_params(coverage=0.5)  # counts from the next fit on
    np.testing.assert_array_equal(model.predict_lower(data.X), bounds)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"coverage": 1.0}, "coverage"),
        ({"method": "magic"}, "method"),
        ({"method": "fixed", "cutoff": np.inf}, "cutoff"),
        ({"cutoff": 1.0}, 'goes with method="fixed"'),
        ({"calibration_share": 1.0}, "calibration_share"),
        ({"forest": object()}, "forest must be a CensoredQuantileForest; found object"),
        ({"forest": CensoredQuantileForest(censoring="left")}, "right-censored"),
    ],
)
def test_mistakes_are_named(settings, said):
    data = make_aft(100, 2, random_state=0)
    with pytest.raises(ValueError, match=said):
        ConformalForest(**settings).fit(data.X, data.y)


def test_impossible_censoring_times_are_named():
    data = make_aft(100, 2, random_state=0)
    with pytest.raises(ValueError, match="must equal the observed time"):
        ConformalForest().fit(data.X, data.y, censoring_time=np.zeros(100))
    with pytest.raises(ValueError, match="must be finite"):
        ConformalForest().fit(data.X, data.y, censoring_time=np.full(100, np.inf))
    with pytest.raises(ValueError, match="inconsistent numbers"):
        ConformalForest().fit(data.X[:10], data.y)
    with pytest.raises(ValueError, match=r"shape \(3,\)"):
        ConformalForest().fit(data.X, data.y, censoring_time=np.ones(3))
    entering = censored([2.0, 3.0], [True, True], entry=[1.0, 1.0])
    with pytest.raises(ValueError, match="without delayed entry"):
        ConformalForest().fit([[0.0], [1.0]], entering)
