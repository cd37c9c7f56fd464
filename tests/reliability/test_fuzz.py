"""Fuzzing: random tables, settings and questions against plain loops; random damage to files.

``make test`` runs a few hundred cases, ``make fuzz`` tens of thousands.
"""

import contextlib
import os
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings

from cqrf import (
    CensoredQuantileForest,
    ModelFileError,
    UnidentifiedQuantileWarning,
    censored,
    interval,
)
from cqrf._model.file_bytes import CONFORMAL_FILE, FOREST_FILE, TREATMENT_FILE
from cqrf.conformal import ConformalForest
from cqrf.effects import CensoredTreatmentForest
from oracles.forest import Walker, product_limit, quantile, survival_at
from support.fuzzing import (
    LEVELS,
    SETTINGS,
    change_header,
    damage,
    damage_section,
    raw_values,
    seal,
    tables,
    units_drawn,
)

CASES = int(os.environ.get("CQRF_FUZZ_CASES", "500"))
FILES = int(os.environ.get("CQRF_FUZZ_FILES", "2000"))
SHARDS = 4  # side by side in worker processes
# The first shard is a sample of the cases; the others are slow.
SHARD = pytest.mark.parametrize(
    "shard", [0, *(pytest.param(shard, marks=pytest.mark.slow) for shard in range(1, SHARDS))]
)


def check_forest(forest, X, asked, target, weight, levels):
    """Everything the forest says about rows, against plain loops."""
    walker, columns = Walker(forest.model_), forest.model_.columns
    time, event, entry = target
    mirrored = forest.censoring == "left"
    turned = [-t for t in time] if mirrored else list(time)
    entered = [-np.inf] * len(time) if entry is None else list(entry)

    drawn = units_drawn(forest)
    training = raw_values(X, columns)
    for tree, root in enumerate(walker.roots):
        for row, values in enumerate(training):
            leaf = walker.find_leaf(root, values)
            assert drawn[row, tree] or row not in walker.members(leaf)
    for leaf in range(len(walker.offsets) - 1):
        rows = walker.members(leaf)
        assert rows, "a leaf is empty"
        assert all(weight is None or weight[row] > 0 for row in rows)
    reached = {
        (root, walker.find_leaf(root, values)) for root in walker.roots for values in training
    }
    for root, leaf in reached:
        assert all(walker.find_leaf(root, training[row]) == leaf for row in walker.members(leaf))

    found_weights = forest.weights(asked).toarray()
    found = forest.predict(asked, levels)
    times = np.unique(time)
    survival = forest.predict_survival(asked, times, beyond="extend")
    for row, values in enumerate(raw_values(asked, columns)):
        expected = walker.weights(values)
        np.testing.assert_allclose(found_weights[row], expected, rtol=1e-12, atol=1e-15)
        steps = product_limit(expected, turned, event, entered)
        for j, t in enumerate(times):
            # P(T > t) = 1 - P(-T >= -t): the value just before -t.
            inside = (
                1 - survival_at(steps, np.nextafter(-t, -np.inf))
                if mirrored
                else (survival_at(steps, t))
            )
            assert abs(survival[row, j] - inside) < 1e-9
        for k, level in enumerate(levels):
            wanted = 1 - level if mirrored else level
            low, high = quantile(steps, wanted - 1e-9), quantile(steps, wanted + 1e-9)
            answer = -found[row, k] if mirrored else found[row, k]
            assert low <= answer <= high
    rising = found[:, np.argsort(levels)]
    assert (rising[:, :-1] <= rising[:, 1:]).all()

    out_of_bag = forest.weights_oob().toarray()
    for row, values in enumerate(training):
        trees = np.flatnonzero(~drawn[row]).tolist()
        expected = walker.weights(values, trees) if trees else np.zeros(len(time))
        np.testing.assert_allclose(out_of_bag[row], expected, rtol=1e-12, atol=1e-15)
        assert out_of_bag[row, row] == 0


def why_refused(target, weight, options):
    """Part of the message with which a fit must be refused, or None."""
    _, event, entry = target
    if weight is not None and not weight.any():
        return "zero in every row"
    counts = np.ones(len(event), bool) if weight is None else weight > 0
    if not event[counts].any():
        return "every row is censored"
    if entry is not None and options["censoring"] == "left":
        return "entry times go with right censoring"
    return None


@pytest.mark.filterwarnings("ignore::cqrf.NegativeTimeWarning")
@SHARD
def test_random_tables_settings_and_questions(shard, tmp_path_factory):
    path = tmp_path_factory.mktemp("fuzz") / "model.cqrf"
    counts = {"fitted": 0, "refused": 0}

    @settings(
        max_examples=CASES // SHARDS,
        suppress_health_check=list(HealthCheck),
        deadline=None,
        database=None,
        derandomize=False,
    )
    @given(tables(), SETTINGS, LEVELS)
    def check(table, options, levels):
        X, asked, target, weight, groups = table
        time, event, entry = target
        y = censored(time, event, entry)
        if shard == 0 and (weight is not None or entry is not None):
            options = options | {"criterion": "censored_quantile"}  # fewer kernels to compile
        forest = CensoredQuantileForest(**options)
        reason = why_refused(target, weight, options)
        if reason is not None:
            with pytest.raises(ValueError, match=reason):
                forest.fit(X, y, sample_weight=weight, groups=groups)
            assert not hasattr(forest, "model_")
            counts["refused"] += 1
            return
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnidentifiedQuantileWarning)
            warnings.filterwarnings("ignore", "levels that were not in the training table")
            forest.fit(X, y, sample_weight=weight, groups=groups)
            check_forest(forest, X, asked, target, weight, levels)
            forest.save(path)
            loaded = CensoredQuantileForest.load(path).set_params(n_jobs=2)
            assert np.array_equal(loaded.predict(asked, levels), forest.predict(asked, levels))
        counts["fitted"] += 1

    check()
    print(f"shard {shard}: {counts['fitted']} forests checked, {counts['refused']} rightly refused")
    assert counts["fitted"] > counts["refused"]


def check_both_kinds(forest, loaded, asked, levels, times):
    """What holds for every forest with a working model, and that files and threads keep it."""
    survival = forest.predict_survival(asked, times, beyond="extend")
    assert ((survival >= 0) & (survival <= 1)).all()
    assert (np.diff(survival, axis=1) <= 1e-12).all()
    weights = forest.weights(asked).toarray()
    assert (weights >= 0).all()
    np.testing.assert_allclose(weights.sum(axis=1), 1, rtol=1e-9)
    found = forest.predict(asked, levels)
    assert not np.isnan(found).any()
    rising = found[:, np.argsort(levels)]
    assert (rising[:, :-1] <= rising[:, 1:]).all()
    working, again = forest.model_.working, loaded.model_.working
    for name in ("knots", "hazards", "linear_predictor"):
        assert np.array_equal(getattr(working, name), getattr(again, name))
    assert working.root_share == again.root_share
    assert np.array_equal(loaded.predict(asked, levels), found)
    assert np.array_equal(loaded.predict_survival(asked, times, beyond="extend"), survival)
    assert np.array_equal(loaded.weights(asked).toarray(), weights)
    ask = {"quantiles": levels, "unidentified": "clip"}
    out_of_bag = forest.predict_oob(**ask)
    assert np.array_equal(loaded.predict_oob(**ask), out_of_bag, equal_nan=True)


@pytest.mark.filterwarnings("ignore::cqrf.NegativeTimeWarning")
@SHARD
def test_random_tables_with_a_working_model(shard, tmp_path_factory):
    path = tmp_path_factory.mktemp("fuzz") / "model.cqrf"
    counts = {"working": 0, "others": 0}

    @settings(
        max_examples=CASES // SHARDS,
        suppress_health_check=list(HealthCheck),
        deadline=None,
        database=None,
        derandomize=False,
    )
    @given(tables(50, 90), SETTINGS, LEVELS)
    def check(table, options, levels):
        X, asked, target, weight, groups = table
        time, event, entry = target
        options = options | {"working_model": "cox", "n_estimators": 1 + options["n_estimators"]}
        if shard == 0:
            options = options | {"criterion": "censored_quantile"}  # fewer kernels to compile
        if why_refused(target, weight, options) is not None:
            counts["others"] += 1
            return
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnidentifiedQuantileWarning)
            warnings.filterwarnings("ignore", "levels that were not in the training table")
            warnings.filterwarnings("ignore", ".*drawn by every tree.*")
            forest = CensoredQuantileForest(**options)
            forest.fit(X, censored(time, event, entry), sample_weight=weight, groups=groups)
            if forest.model_.working is None:
                counts["others"] += 1
                return
            forest.save(path)
            loaded = CensoredQuantileForest.load(path).set_params(n_jobs=2)
            check_both_kinds(forest, loaded, asked, levels, np.unique(time))
        counts["working"] += 1

    check()
    print(f"shard {shard}: {counts['working']} forests with a working model checked")
    assert counts["working"] > CASES // SHARDS // 3


def make_files(folder):
    """Small sound files of several kinds, as bytes."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(30, 3)).round(1), columns=["a", "b", "c"])
    frame["d"] = rng.choice(["x", "y", "z"], 30)
    y = censored(rng.exponential(2, 30).round(1) + 0.1, rng.random(30) < 0.7)
    entered = censored(y["time"], y["event"], y["time"] / 2)
    forest = CensoredQuantileForest(n_estimators=4, random_state=0, min_samples_leaf=1)
    paths = [folder / f"{i}.cqrf" for i in range(7)]
    forest.fit(frame, y).save(paths[0])
    forest.fit(frame, entered, sample_weight=rng.random(30), groups=np.arange(30) // 3).save(
        paths[1]
    )
    forest.set_params(bootstrap=True, honest=False, max_samples=None)
    forest.fit(frame[["a"]].to_numpy(), y).save(paths[2])
    forest.set_params(bootstrap=False, max_samples=0.5, bag_size=2).fit(frame, y).save(paths[3])
    model = forest.model_
    rows = model.rows._replace(codes=np.empty((4, 0), np.uint8))  # as one from Dask
    sampling = model.sampling._replace(unit_of_row=np.empty(0, np.int32))
    forest.model_ = replace(model, rows=rows, sampling=sampling)
    forest.save(paths[4])
    twice = pd.concat([frame, frame + frame], ignore_index=True)
    y = censored(rng.exponential(2, 60).round(1) + 0.1, rng.random(60) < 0.7)
    forest = CensoredQuantileForest(n_estimators=8, random_state=0, working_model="cox")
    forest.fit(twice, y).save(paths[5])
    forest.set_params(bag_size=2).fit(twice[["a"]].to_numpy(), y).save(paths[6])
    paths += make_files_of_other_outcomes(folder, twice, rng)
    forests = [(CensoredQuantileForest, FOREST_FILE, path.read_bytes()) for path in paths]
    return forests + make_files_of_several_forests(folder, twice, y), frame


def make_files_of_other_outcomes(folder, frame, rng):
    """Files of forests with competing risks, and of intervals with and without a working model."""
    n = len(frame)
    time, paths = rng.exponential(2, n).round(1) + 0.1, []
    y = censored(time, rng.integers(0, 3, n))
    few = {"n_estimators": 4, "random_state": 0, "min_samples_leaf": 2}
    CensoredQuantileForest(**few).fit(frame, y).save(folder / "causes.cqrf")
    late = censored(time, rng.integers(0, 3, n), time * rng.choice([0.0, 0.5], n))
    bags = CensoredQuantileForest(**few, bag_size=2)
    bags.fit(frame, late, sample_weight=rng.random(n)).save(folder / "bags.cqrf")
    lower = np.where(rng.random(n) < 0.3, time, time * rng.choice([0.2, 0.8], n))
    upper = np.where(rng.random(n) < 0.2, np.inf, time)
    y = interval(np.minimum(lower, upper), upper)
    for name in (None, "cox"):
        forest = CensoredQuantileForest(**few, working_model=name)
        forest.fit(frame, y, groups=np.arange(n) // 2).save(folder / f"{name}.cqrf")
        paths.append(folder / f"{name}.cqrf")
    return [folder / "causes.cqrf", folder / "bags.cqrf", *paths]


def make_files_of_several_forests(folder, frame, y):
    """Those of a conformal and of two treatment forests: class, kind of file, bytes."""
    few = {"n_estimators": 6, "random_state": 0, "n_jobs": 1}
    forest, files = CensoredQuantileForest(**few), []
    late = censored(y["time"], y["event"], y["time"] * np.where(np.arange(len(y)) < 30, 0.5, 0))
    known = np.where(y["event"], 2 * y["time"].max(), y["time"])
    for choices, target, censoring_time in (
        ({}, y, None),
        ({"censoring_forest": forest}, late, None),  # scores by threshold
        ({"method": "fixed", "cutoff": 1.0}, y, known),  # weights of queries
    ):
        conformal = ConformalForest(forest, random_state=0, **choices)
        conformal.fit(frame, target, censoring_time).save(folder / "conformal.cqrf")
        data = (folder / "conformal.cqrf").read_bytes()
        files.append((ConformalForest, CONFORMAL_FILE, data))
    nuisance = CensoredQuantileForest(n_estimators=12)
    for propensity in (None, 0.5):
        effects = CensoredTreatmentForest(
            **few | {"n_estimators": 8}, nuisance_forest=nuisance, min_samples_arm=2
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            effects.fit(frame, y, np.arange(len(frame)) % 2, propensity=propensity)
        effects.save(folder / "effects.cqrf")
        data = (folder / "effects.cqrf").read_bytes()
        files.append((CensoredTreatmentForest, TREATMENT_FILE, data))
    return files


@SHARD
def test_damaged_model_files(shard, tmp_path):
    sound, frame = make_files(tmp_path)
    rng = np.random.default_rng(
        [shard, *os.urandom(4)] if "CQRF_FUZZ_FILES" in os.environ else shard
    )
    path = tmp_path / "damaged.cqrf"
    counts = {"refused": 0, "loaded": 0}
    for _ in range(FILES // SHARDS):
        loader, file_kind, data = sound[rng.integers(0, len(sound))]
        kind = rng.random()
        if kind < 0.2:
            data = damage(data, rng)
        elif kind < 0.5:
            data = seal(damage(data, rng), file_kind)
        else:
            data = (damage_section if kind < 0.8 else change_header)(data, file_kind, rng)
        path.write_bytes(data)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                forest = loader.load(path)
        except ModelFileError:
            counts["refused"] += 1
            continue
        counts["loaded"] += 1
        use(forest, frame)
    print(f"shard {shard}: {counts['refused']} files refused, {counts['loaded']} loaded and used")
    assert counts["refused"] > counts["loaded"] > 0


def use(forest, frame):
    """A file that loads holds a forest: it answers, or says why it will not."""
    inner = forest.forest_ if isinstance(forest, ConformalForest) else forest
    X = frame.iloc[:5, : inner.n_features_in_]
    X = X.to_numpy() if inner.n_features_in_ == 1 else X
    if hasattr(inner, "feature_names_in_"):
        X = X.set_axis(inner.feature_names_in_, axis=1)
    if isinstance(forest, ConformalForest):
        asks = [lambda: forest.predict_lower(X), lambda: forest.predict_interval(X)]
    elif isinstance(forest, CensoredTreatmentForest):
        asks = [
            lambda: forest.effect(X),
            lambda: forest.effect_interval(X, "quantile"),
            lambda: forest.predict(X, arm=1),
            lambda: [forest.ate().estimate],
        ]
    else:
        asks = [
            lambda: forest.predict(X, [0.1, 0.5, 0.9]),
            lambda: forest.predict_survival(X, [1.0]),
            lambda: forest.predict_oob(0.5),
            lambda: forest.predict_incidence(X, [1.0]),
            lambda: forest.predict_quantile_bounds(X, [0.5]),
        ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for ask in asks:
            with contextlib.suppress(ValueError, TypeError):
                assert len(ask()) > 0
