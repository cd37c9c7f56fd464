"""Conformal bounds: what they promise, by simulation."""

import numpy as np
import pandas as pd
import pytest

from cqrf import CensoredQuantileForest, censored
from cqrf._conformal.scores import SharesByThreshold, WeightedScores
from cqrf._conformal.settings import read_cutoff
from cqrf._conformal.table import read_table
from cqrf.conformal import ConformalForest
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


def truncated(n, seed, late):
    """Right-censored times of ``n`` rows that were seen after their entry, and fresh ones.

    Entry is later where times are long ("long"), where they are short ("short"), or anywhere.
    """
    rng = np.random.default_rng(seed)
    X, noise = rng.uniform(0, 2, (6 * n, 5)), rng.normal(size=6 * n)
    latent = np.exp(X[:, 0] + 0.3 * noise)
    scale = {"long": 1.2 * np.exp(X[:, 0]), "short": 2 * np.exp(1 - X[:, 0] / 2), "any": 2.5}[late]
    entry = rng.uniform(-1, 1, 6 * n) * scale
    c = np.maximum(entry, 0) + 4.0 * np.exp(-1.5 * (X[:, 0] - 1)) * rng.exponential(size=6 * n)
    entry[entry <= 0] = -np.inf
    time = np.minimum(latent, c)
    seen = np.flatnonzero(entry < time)[:n]
    y = censored(time[seen], (latent <= c)[seen], entry[seen])
    return X[seen], y, X[:n], latent[:n]


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
@pytest.mark.parametrize("leaf", [5, 40])
@pytest.mark.parametrize("late", ["any", "long", "short"])
def test_delayed_entry(late, leaf):
    """90 % of all subjects, those who would not have been seen included."""
    lower, inside, ignored = [], [], []
    for seed in range(REPEATS):
        X, y, _, _ = truncated(2000, seed, late)
        _, _, X_test, latent = truncated(N_TEST, 1000 + seed, late)
        model = ConformalForest(small(seed, min_samples_leaf=leaf), random_state=seed).fit(X, y)
        lower.append((latent >= model.predict_lower(X_test)).mean())
        ends = model.predict_interval(X_test)
        inside.append(((ends[:, 0] <= latent) & (latent <= ends[:, 1])).mean())
        model.fit(X, censored(y["time"], y["event"]))
        ignored.append((latent >= model.predict_lower(X_test)).mean())
    assert within_error(np.array(lower), 0.9), np.mean(lower)
    assert np.mean(inside) > 0.9 - 3 * np.std(inside, ddof=1) / np.sqrt(REPEATS)
    assert np.mean(ignored) < np.mean(lower) - 0.01


@pytest.mark.slow
def test_sample_weights_give_the_coverage_of_the_population():
    """Three of four late rows were left out of the table, and the others count four times."""
    weighted, plain = [], []
    for seed in range(REPEATS):
        X, y, _, _ = heavy(2500, seed)
        X_test, _, latent, _ = heavy(N_TEST, 1000 + seed)
        is_late = y["time"] > 1.5
        kept = ~is_late | (np.random.default_rng(seed).random(2500) < 0.25)
        weight = np.where(is_late, 4.0, 1.0)[kept]
        model = ConformalForest(small(seed), random_state=seed)
        bounds = model.fit(X[kept], y[kept], sample_weight=weight).predict_lower(X_test)
        weighted.append((latent >= bounds).mean())
        plain.append((latent >= model.fit(X[kept], y[kept]).predict_lower(X_test)).mean())
    assert within_error(np.array(weighted), 0.9), np.mean(weighted)
    assert np.mean(plain) > 0.92


@pytest.mark.slow
def test_the_quantile_alone_is_off_where_the_bound_is_not():
    """A coarse forest where censoring is heavy and follows the covariate of T."""
    raw, bound = [], []
    for seed in range(REPEATS):
        X, y, _, _ = heavy(1000, seed)
        X_test, _, latent, _ = heavy(N_TEST, 1000 + seed)
        forest = small(seed, min_samples_leaf=40, working_model=None)
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
    by_threshold = SharesByThreshold(np.array([0.8, 0.4]), np.array([0.1, 0.3]))
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
    # The curve of a working model falls everywhere, also where no event was seen.
    forest = small(0, working_model=None)
    model = ConformalForest(forest, random_state=0).fit(X, y)
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


def test_with_a_known_censoring_time_a_query_counts_by_its_own_weight():
    """Bounds by a plain loop: the smallest v with few enough misses, the query among them."""
    X, y, _, c = heavy(400, 0)
    model = ConformalForest(small(0), method="fixed", cutoff=2.0, random_state=0)
    model.fit(X, y, censoring_time=c)
    scores, cumulative, total = model.lower_scores_
    weights = np.diff(cumulative, prepend=0.0)
    queries = heavy(60, 1)[0]
    curves = model.forest_.predict_survival(queries)
    of_censoring = model.censoring_forest_.predict_survival(queries)
    expected, infinite = [], 0
    for curve, of_c in zip(curves, of_censoring, strict=True):
        before = of_c.values[of_c.times < 2.0]
        own = 1 / max(before[-1] if len(before) else 1.0, 0.1)
        candidates = [
            v
            for v in (*scores, 0.0)
            if weights[scores > v].sum() + own <= 0.1 * (total + own) + 1e-9
        ]
        if not candidates:
            expected.append(0.0)
            infinite += 1
            continue
        reached = curve.times[curve.values <= min(candidates) + 1e-12]
        expected.append(min(reached[0] if len(reached) else curve.times[-1], 2.0))
    assert infinite < 30
    assert len(set(expected)) > 10
    np.testing.assert_allclose(model.predict_lower(queries), expected)


@pytest.mark.filterwarnings("ignore::cqrf.NegativeTimeWarning")
@pytest.mark.parametrize(("first", "smallest"), [(0.0, 0.0), (-0.5, -np.inf)])
def test_the_trivial_bound_is_0_unless_a_time_is_negative(first, smallest):
    data = make_aft(40, 2, random_state=0)
    time = data.y["time"] - data.y["time"].min() + first
    model = ConformalForest(small(0), coverage=0.99, calibration_share=0.1, random_state=0)
    # The first time is in the part that the forest is fitted to.
    model.fit(np.tile(data.X, (4, 1)), censored(np.tile(time, 4), np.tile(data.y["event"], 4)))
    assert (model.predict_lower(data.X) == smallest).all()


def test_the_default_cutoff_is_the_first_time_after_which_most_are_censored():
    """Eight rows, the last an event: G is 7/8, 6/8, ... at 1, 2, ..., and 1/2 at 4."""
    time, event = np.arange(1.0, 9.0), np.arange(8) == 7
    table = read_table(np.zeros((8, 1)), censored(time, event), None, None, None)
    assert read_cutoff(ConformalForest(method="fixed"), table) == 5.0
    table = read_table(np.zeros((8, 1)), censored(time, ~event), None, None, None)
    assert read_cutoff(ConformalForest(method="fixed"), table) == 8.0


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
        ({"coverage": 1.0}, "coverage=1.0 must lie strictly between"),
        ({"coverage": 0.0}, "coverage=0.0 must lie strictly between"),
        ({"method": "magic"}, "method"),
        ({"method": "fixed", "cutoff": np.inf}, "cutoff"),
        ({"cutoff": 1.0}, 'goes with method="fixed"'),
        ({"calibration_share": 1.0}, "calibration_share"),
        ({"calibration_share": 0.0}, "calibration_share=0 must lie strictly between"),
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
    with pytest.raises(
        ValueError, match=r"must equal the observed time .* found 0 and the time \S+ in row 0"
    ):
        ConformalForest().fit(data.X, data.y, censoring_time=np.zeros(100))
    with pytest.raises(ValueError, match="must be finite in every row; found inf in row 0"):
        ConformalForest().fit(data.X, data.y, censoring_time=np.full(100, np.inf))
    with pytest.raises(ValueError, match="inconsistent numbers"):
        ConformalForest().fit(data.X[:10], data.y)
    with pytest.raises(ValueError, match=r"shape \(3,\)"):
        ConformalForest().fit(data.X, data.y, censoring_time=np.ones(3))


# Sample weights, groups and entry times.


@pytest.fixture(scope="module")
def data():
    return make_aft(400, 3, random_state=0)


def bounds_of(X, y, *, X_test=None, method="adaptive", **arguments):
    """Everything that a fit predicts, as one array."""
    model = ConformalForest(small(0), coverage=0.8, method=method, random_state=1)
    model.fit(X, y, **arguments)
    X_test = X if X_test is None else X_test
    return np.column_stack([model.predict_lower(X_test), model.predict_interval(X_test)])


def known_times(data):
    """C of every row, as if it were known."""
    late = np.random.default_rng(0).exponential(5.0, len(data.y))
    return data.y["time"] + np.where(data.y["event"], late, 0)


WAYS = {
    "adaptive": lambda data: {},
    "fixed": lambda data: {"method": "fixed"},
    "known C": lambda data: {"censoring_time": known_times(data)},
    "fixed, known C": lambda data: {"method": "fixed", "censoring_time": known_times(data)},
}


@pytest.mark.parametrize("way", WAYS)
def test_rows_without_weight_have_no_influence(data, way):
    arguments = WAYS[way](data)
    weight = np.random.default_rng(0).integers(0, 4, 400).astype(float)
    kept = weight > 0
    for groups in (None, np.random.default_rng(1).integers(0, 60, 400)):
        whole = arguments | {"sample_weight": weight, "groups": groups}
        part = {
            name: value if value is None or isinstance(value, str) else value[kept]
            for name, value in whole.items()
        }
        np.testing.assert_array_equal(
            bounds_of(data.X, data.y, X_test=data.X, **whole),
            bounds_of(data.X[kept], data.y[kept], X_test=data.X, **part),
        )


@pytest.mark.parametrize("way", WAYS)
def test_only_ratios_of_weights_matter(data, way):
    arguments = WAYS[way](data)
    weight = np.random.default_rng(0).uniform(0.5, 3, 400)
    found = bounds_of(data.X, data.y, sample_weight=weight, **arguments)
    scaled = bounds_of(data.X, data.y, sample_weight=weight * 1e-7, **arguments)
    np.testing.assert_array_equal(found, scaled)
    plain = bounds_of(data.X, data.y, **arguments)
    np.testing.assert_array_equal(
        plain, bounds_of(data.X, data.y, sample_weight=np.full(400, 0.3), **arguments)
    )
    assert not np.array_equal(found, plain)


def test_weights_count_in_forests_and_in_calibration(data):
    weight = np.random.default_rng(0).uniform(0.5, 3, 400)
    model = ConformalForest(small(0), random_state=1).fit(data.X, data.y, sample_weight=weight)
    plain = ConformalForest(small(0), random_state=1).fit(data.X, data.y)
    for name in ("forest_", "censoring_forest_"):
        rows = rows_in(getattr(model, name), data)
        found = getattr(model, name).model_.training_weight
        np.testing.assert_allclose(found, weight[rows] / weight[rows].mean(), rtol=1e-6)
    kept = np.setdiff1d(np.arange(400), rows_in(model.forest_, data))
    assert model.lower_scores_.total_weight == pytest.approx(len(kept))
    scores = model.lower_scores_
    assert scores.cumulative_weight[-1] != pytest.approx(plain.lower_scores_.cumulative_weight[-1])


def rows_in(forest, data):
    """Rows of the table that a forest was fitted to, in its order, by their times."""
    times = forest.model_.training_target.time
    order = np.argsort(data.y["time"])
    return order[np.searchsorted(data.y["time"][order], times * (1 + 1e-12), side="right") - 1]


def test_whole_clusters_are_held_out(data):
    groups = np.random.default_rng(0).integers(0, 30, 400)
    model = ConformalForest(small(0), random_state=1).fit(data.X, data.y, groups=groups)
    rows = rows_in(model.forest_, data)
    kept = np.setdiff1d(np.arange(400), rows)
    assert len(kept) > 100
    assert not set(groups[rows]) & set(groups[kept])
    assert model.forest_.model_.sampling.n_units == len(set(groups[rows])) == 15
    assert model.censoring_forest_.model_.sampling.n_units == 15
    assert model.lower_scores_.total_weight == pytest.approx(15)
    names = np.array([f"clinic {(7 * group) % 30}" for group in groups])
    np.testing.assert_array_equal(
        bounds_of(data.X, data.y, groups=groups), bounds_of(data.X, data.y, groups=names)
    )


def test_the_coverage_holds_for_new_clusters():
    """All rows of a cluster have the same time: eleven clusters calibrate, not 110 rows.

    The largest of their scores is the threshold, which a new cluster exceeds with probability
    1 / 12. Counted as 110 rows, it would be the second largest, and the probability 1 / 6.
    """
    marginal = CensoredQuantileForest(n_estimators=3, min_samples_split=10**6, n_jobs=1)
    covered = []
    for seed in range(150):
        rng = np.random.default_rng(seed)
        groups = np.arange(300).repeat(10)
        X, time = rng.normal(size=(3000, 1)), np.exp(rng.normal(size=300))[groups]
        model = ConformalForest(marginal, calibration_share=0.036, random_state=seed)
        bound = model.fit(X, time, groups=groups).predict_lower([[0.0]])
        covered.append((np.exp(rng.normal(size=500)) >= bound).mean())
    assert within_error(np.array(covered), 11 / 12), np.mean(covered)


def test_one_cluster_cannot_be_split(data):
    with pytest.raises(ValueError, match="groups has one group only"):
        ConformalForest().fit(data.X, data.y, groups=np.zeros(400))
    weight = np.arange(400) < 200
    with pytest.raises(ValueError, match="groups has one group only"):
        ConformalForest().fit(data.X, data.y, sample_weight=weight, groups=weight)
    with pytest.raises(ValueError, match=r"groups has shape \(3,\)"):
        ConformalForest().fit(data.X, data.y, groups=[1, 2, 3])
    with pytest.raises(ValueError, match="sample_weight must be finite"):
        ConformalForest().fit(data.X, data.y, sample_weight=np.full(400, -1.0))


@pytest.mark.parametrize("entry", [-np.inf, 0.0])
def test_entry_before_every_time_is_no_entry(data, entry):
    late = censored(data.y["time"], data.y["event"], np.full(400, entry))
    np.testing.assert_array_equal(bounds_of(data.X, late), bounds_of(data.X, data.y))
    known = known_times(data)
    np.testing.assert_array_equal(
        bounds_of(data.X, late, censoring_time=known, method="fixed"),
        bounds_of(data.X, data.y, censoring_time=known, method="fixed"),
    )


def test_entry_times_count_in_the_forest_and_in_calibration(data):
    entry = np.where(np.arange(400) % 2, -np.inf, data.y["time"] * 0.8)
    late = censored(data.y["time"], data.y["event"], entry)
    model = ConformalForest(small(0), random_state=1).fit(data.X, late)
    assert isinstance(model.lower_scores_, SharesByThreshold)
    rows = rows_in(model.forest_, data)
    np.testing.assert_array_equal(model.forest_.model_.training_target.entry, entry[rows])
    assert model.censoring_forest_.model_.entry is None
    bounds = model.predict_lower(data.X)
    ignored = ConformalForest(small(0), random_state=1).fit(data.X, data.y).predict_lower(data.X)
    assert bounds.mean() < ignored.mean() - 0.05
    everything = {"sample_weight": np.arange(400) % 3 + 1, "groups": np.arange(400) // 4}
    assert np.isfinite(model.fit(data.X, late, **everything).predict_lower(data.X)).all()


def test_what_does_not_go_with_entry_times_is_named(data):
    late = censored(data.y["time"], data.y["event"], data.y["time"] * 0.5)
    with pytest.raises(ValueError, match=r'method="fixed" cannot be used with entry times'):
        ConformalForest(method="fixed").fit(data.X, late)
    with pytest.raises(ValueError, match="censoring_time cannot be used with entry times"):
        ConformalForest().fit(data.X, late, censoring_time=known_times(data))
    for name in ("forest", "censoring_forest"):
        forest = CensoredQuantileForest(censoring="left")
        with pytest.raises(ValueError, match=f"{name} has censoring='left'"):
            ConformalForest(**{name: forest}).fit(data.X, late)


def test_a_fit_that_fails_changes_nothing(data):
    model = ConformalForest(small(0), random_state=1).fit(data.X, data.y)
    before = dict(vars(model))
    with pytest.raises(ValueError, match="every row is censored"):
        model.fit(data.X, censored(data.y["time"], np.zeros(400)))
    assert vars(model) == before
