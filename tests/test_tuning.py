"""Tuning: never worse than where it started, and honest about what it tried."""

import re

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestRegressor
from sksurv.datasets import load_aids

import cqrf
from cqrf import CensoredQuantileForest, UnidentifiedQuantileWarning, censored
from cqrf.datasets import load_boston_housing, load_pbc, make_aft, make_sine
from cqrf.tuning import SPACE, plan_rounds


@pytest.fixture(scope="module")
def boston():
    return load_boston_housing(censored=True, random_state=0)


def start(**settings):
    return CensoredQuantileForest(**{"n_estimators": 120, "random_state": 0, **settings})


@pytest.fixture(scope="module")
def tuned(boston):
    given = start(working_model=None)
    return cqrf.tune(given, boston.X, boston.y, n_trials=12, random_state=0)


def test_it_finds_what_is_better(boston, tuned):
    """Without a working model Boston likes trees that are not honest: a good tenth of the loss."""
    forest, trials = tuned
    default = next(row for row in reversed(trials) if row["trial"] == 0)
    assert forest.score_oob() > default["skill"] + 0.03
    assert forest.n_estimators == 120
    assert max(row["skill"] for row in trials if row["n_estimators"] == 120) == pytest.approx(
        forest.score_oob()
    )


def test_the_gain_is_there_on_rows_held_out():
    data = load_boston_housing(censored=True, random_state=1)
    shuffled = np.random.default_rng(0).permutation(len(data.y))
    train, test = shuffled[:350], shuffled[350:]
    plain = start(working_model=None)
    forest, _ = cqrf.tune(plain, data.X[train], data.y[train], n_trials=12, random_state=0)
    plain.fit(data.X[train], data.y[train])
    assert forest.score(data.X[test], data.y[test]) > plain.score(data.X[test], data.y[test])


def test_it_is_printed_in_a_line(boston, tuned):
    forest, _ = tuned
    text = repr(tuned)
    assert "\n" not in text
    assert "honest=False" in text
    assert text.endswith(f"out-of-bag skill {forest.score_oob():.3f}, the best of 12 trials)")
    alone = cqrf.tune(start(), boston.X, boston.y, n_trials=1)
    skill = alone.forest.score_oob()
    assert (
        repr(alone) == f"Tuned(the forest given; out-of-bag skill {skill:.3f}, the best of 1 trial)"
    )


def test_the_losers_stop_early(tuned):
    table = pd.DataFrame(tuned.trials)
    node = {"min_samples_split", "min_samples_leaf"}
    assert set(table.columns) == {"trial", "n_estimators", "skill", "seconds", *SPACE} | node
    counts = table.groupby("n_estimators")["trial"].nunique()
    assert counts.to_dict() == {40: 12, 120: 4}
    assert (table.groupby("n_estimators")["trial"].min() == 0).all()
    first = table[table["n_estimators"] == 40].set_index("trial")["skill"]
    kept = set(table[table["n_estimators"] == 120]["trial"]) - {0}
    assert kept == set(first.drop(0).nlargest(3).index)


@pytest.mark.parametrize(
    ("n_trials", "n_trees", "rounds"),
    [
        (27, 500, [(27, 56), (9, 167), (3, 500)]),
        (1, 500, [(1, 500)]),
        (2, 500, [(2, 500)]),
        (9, 100, [(9, 34), (3, 100)]),
        (5, 20, [(5, 20)]),
        (4, 3000, [(4, 1000), (2, 3000)]),
    ],
)
def test_rounds(n_trials, n_trees, rounds):
    assert plan_rounds(n_trials, n_trees) == rounds


@pytest.mark.parametrize("seed", range(3))
def test_never_worse_than_the_start(seed):
    data = make_aft(200, 5, random_state=seed)
    forest, _ = cqrf.tune(start(), data.X, data.y, n_trials=5, random_state=seed)
    assert forest.random_state == 0
    assert forest.score_oob() >= start().fit(data.X, data.y).score_oob()


def test_the_same_seed_gives_the_same_forest(boston):
    first, second = (
        cqrf.tune(start(n_estimators=30), boston.X, boston.y, n_trials=4, random_state=5)
        for _ in range(2)
    )
    assert first.forest.get_params() == second.forest.get_params()
    assert [row["skill"] for row in first.trials] == [row["skill"] for row in second.trials]


def test_a_seed_for_the_search_is_enough(boston):
    skills = [
        cqrf.tune(
            start(n_estimators=20, random_state=None),
            boston.X,
            boston.y,
            n_trials=2,
            random_state=3,
        ).forest.score_oob()
        for _ in range(2)
    ]
    assert skills[0] == skills[1]


def test_a_space_of_one_s_own_and_what_it_leaves_alone():
    data = make_sine(150, random_state=0)
    given = start(n_estimators=20, min_samples_leaf=40, min_samples_split=90, max_depth=7)
    forest, trials = cqrf.tune(
        given,
        data.X,
        data.y,
        n_trials=6,
        space={"min_samples_leaf": [3, 5], "min_samples_split": [11]},
        random_state=0,
    )
    assert forest.min_samples_leaf in (3, 5)
    assert forest.max_depth == 7
    assert given.min_samples_leaf == 40
    assert not hasattr(given, "model_")
    assert trials[0]["min_samples_leaf"] == 40


def test_bags_keep_to_what_they_need():
    data = make_aft(150, 3, random_state=0)
    forest, trials = cqrf.tune(
        start(n_estimators=40, bag_size=2), data.X, data.y, n_trials=10, random_state=0
    )
    drawn = [row for row in trials if row["trial"] > 0]
    assert all(row["honest"] and row["max_samples"] <= 0.5 for row in drawn)
    assert trials[0]["max_samples"] == "auto"  # half, for bags
    assert np.isfinite(forest.survival_standard_error(data.X[:2], [1.0])).all()


def test_weights_groups_and_frames(boston):
    frame = pd.DataFrame(boston.X, columns=boston.feature_names)
    weight = np.where(np.arange(len(frame)) < 10, 0.0, 1.0)
    groups = np.arange(len(frame)) // 3
    forest, _ = cqrf.tune(
        start(n_estimators=20), frame, boston.y, n_trials=3, sample_weight=weight, groups=groups
    )
    assert forest.feature_names_in_.tolist() == list(boston.feature_names)
    assert forest.model_.sampling.n_units == len(np.unique(groups[10:]))


@pytest.fixture(scope="module")
def aids():
    """8 % events: not even the first quartile can be told."""
    X, y = load_aids()
    chosen = np.random.default_rng(0).permutation(len(y))[:700]
    return X.iloc[chosen], censored(y["time"], y["censor"])[chosen]


QUARTILES = [0.25, 0.5, 0.75]


def read_suggestion(message):
    return float(re.search(r"quantiles=\[([\d.]+)\],", message).group(1))


@pytest.mark.parametrize("solver", ["root", "argmin"])
def test_levels_that_censoring_hides_are_said(aids, solver):
    X, y = aids
    given = start(n_estimators=90, solver=solver)
    with pytest.warns(UnidentifiedQuantileWarning, match="Pass quantiles=") as said:
        cqrf.tune(given, X, y, n_trials=3, quantiles=QUARTILES, random_state=0)
    assert len(said) == 1
    assert said[0].filename == __file__
    message = str(said[0].message)
    # "argmin" reads no curves, so that there is no working model.
    default = start(n_estimators=90, working_model=None if solver == "argmin" else "auto").fit(X, y)
    hidden = np.isnan(default.predict_oob(QUARTILES, unidentified="nan")).mean()
    assert message.startswith(f"{hidden:.0%} of the out-of-bag quantiles")
    level = read_suggestion(message)
    told = ~np.isnan(default.predict_oob([level, level + 0.01], unidentified="nan"))
    assert told[:, 0].mean() >= 0.75 > told[:, 1].mean()
    cqrf.tune(given, X, y, n_trials=3, quantiles=[level], random_state=0)  # in silence


def test_hidden_levels_under_left_censoring(aids):
    """The mirror image: what is high is told, what is low is hidden."""
    X, y = aids
    mirrored = censored(-y["time"], y["event"])
    levels = []
    for censoring, target in (("right", y), ("left", mirrored)):
        given = start(n_estimators=60, censoring=censoring)
        with pytest.warns(UnidentifiedQuantileWarning) as said:
            cqrf.tune(given, X, target, n_trials=1, quantiles=QUARTILES)
        levels.append(read_suggestion(str(said[0].message)))
    assert levels[0] == pytest.approx(1 - levels[1])


def test_default_levels_are_those_that_can_be_told(aids):
    X, y = aids
    given = start(n_estimators=60)
    default = cqrf.tune(given, X, y, n_trials=2, random_state=0)  # in silence
    low = cqrf.tune(given, X, y, n_trials=2, quantiles=[0.025, 0.05, 0.075], random_state=0)
    assert [row["skill"] for row in default.trials] == [row["skill"] for row in low.trials]


def test_no_level_is_named_where_none_can_be_told():
    rng = np.random.default_rng(0)
    event = np.arange(400) == 7
    y = censored(rng.exponential(size=400), event)
    with pytest.warns(UnidentifiedQuantileWarning, match="more events are needed"):
        cqrf.tune(start(n_estimators=30), rng.normal(size=(400, 2)), y, n_trials=1)


def test_one_level_that_can_be_told_is_enough():
    """PBC: the third quartile is hidden for most, the first for hardly any."""
    data = load_pbc()
    cqrf.tune(start(), data.X, data.y, n_trials=2, random_state=0)
    with pytest.warns(UnidentifiedQuantileWarning, match=r"at quantiles=\[0.75\] are not"):
        cqrf.tune(start(), data.X, data.y, n_trials=2, quantiles=[0.75], random_state=0)


def test_a_trial_without_rows_out_of_bag_loses():
    data = make_aft(100, 3, random_state=0)
    clusters = np.arange(100) % 2
    space = {"max_samples": [0.8], "honest": [False]}
    given = start(n_estimators=20, max_samples=0.5)
    forest, trials = cqrf.tune(
        given, data.X, data.y, n_trials=3, space=space, groups=clusters, random_state=0
    )
    assert [row["skill"] for row in trials[1:]] == [-np.inf, -np.inf]
    assert np.isfinite(trials[0]["skill"])
    assert forest.max_samples == 0.5
    given.set_params(max_samples=0.8)
    with pytest.raises(ValueError, match=r"in the forest given, with max_samples=0.8"):
        cqrf.tune(given, data.X, data.y, n_trials=3, groups=clusters)


def test_arrays_in_a_space():
    data = make_sine(100, random_state=0)
    space = {
        "min_samples_leaf": np.array([3, 4]),
        "honest": np.array([True, False]),
        "criterion": np.array(["logrank", "variance"]),
    }
    draw = {"n_trials": 4, "random_state": 0}
    _, trials = cqrf.tune(start(n_estimators=10), data.X, data.y, space=space, **draw)
    lists = {name: values.tolist() for name, values in space.items()}
    _, same = cqrf.tune(start(n_estimators=10), data.X, data.y, space=lists, **draw)
    assert [row["skill"] for row in trials] == [row["skill"] for row in same]
    assert {type(row["min_samples_leaf"]) for row in trials} == {int}


def test_progress_and_defaults(capsys):
    data = make_aft(100, 2, random_state=0)
    forest, trials = cqrf.tune(None, data.X, data.y, n_trials=2, verbose=1)
    assert forest.n_estimators == 500
    assert len(trials) == 2
    assert "2/2 trials" in capsys.readouterr().err


def test_mistakes_are_named():
    data = make_aft(60, 2, random_state=0)
    with pytest.raises(ValueError, match="n_trials=0"):
        cqrf.tune(None, data.X, data.y, n_trials=0)
    with pytest.raises(ValueError, match="'depth', which is no setting"):
        cqrf.tune(None, data.X, data.y, space={"depth": [1]})
    with pytest.raises(ValueError, match="at least one value"):
        cqrf.tune(None, data.X, data.y, space={"max_depth": []})
    with pytest.raises(ValueError, match="'n_estimators', which is no setting"):
        cqrf.tune(None, data.X, data.y, space={"n_estimators": [5]})
    with pytest.raises(ValueError, match="must be a list"):
        cqrf.tune(None, data.X, data.y, space={"criterion": "logrank"})
    with pytest.raises(ValueError, match="strictly between 0 and 1"):
        cqrf.tune(None, data.X, data.y, quantiles=[0.0])
    with pytest.raises(ValueError, match="target y is None"):
        cqrf.tune(None, data.X, None)
    with pytest.raises(ValueError, match="or None for the defaults; found Random"):
        cqrf.tune(RandomForestRegressor(), data.X, data.y)
    with pytest.raises(ValueError, match=r"space=\['max_depth'\] must be a dict"):
        cqrf.tune(None, data.X, data.y, space=["max_depth"])
    with pytest.raises(ValueError, match="must be a list"):
        cqrf.tune(None, data.X, data.y, space={"max_depth": np.array(3)})
