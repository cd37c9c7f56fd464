"""Fuzzing: random tables, settings and questions against plain loops; random damage to files.

``make test`` runs a few hundred cases, ``make fuzz`` tens of thousands.
"""

import contextlib
import hashlib
import json
import os
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cqrf import CensoredQuantileForest, ModelFileError, UnidentifiedQuantileWarning, censored
from cqrf._model.file_bytes import FORMAT, MARK, PREAMBLE
from cqrf._model.queries import training_queries
from oracles.forest import Walker, product_limit, quantile, survival_at

CASES = int(os.environ.get("CQRF_FUZZ_CASES", "500"))
FILES = int(os.environ.get("CQRF_FUZZ_FILES", "2000"))
SHARDS = 4  # side by side in worker processes
# The first shard is a sample of the cases; the others are slow.
SHARD = pytest.mark.parametrize(
    "shard", [0, *(pytest.param(shard, marks=pytest.mark.slow) for shard in range(1, SHARDS))]
)

NUMBERS = (0.0, 1.0, -1.0, 0.5, 1e-300, -1e300, 1e300, 3.0, 2.0**53, np.nan)
TIMES = (0.0, 1.0, 1.0 + 2**-52, 2.0, 3.5, 100.0, 1e-300, 1e200, -4.0)
LABELS = ("a", "b", "", "ä<b>", None)


@st.composite
def tables(draw, fewest=1, most=40):
    """A table as a frame, what is to be predicted, and how to fit."""
    rng = np.random.default_rng([draw(st.integers(0, 2**32 - 1)), draw(st.integers(0, 2**16))])
    n = draw(st.integers(fewest, most))
    rough = draw(st.booleans())

    def numbers(rows):
        return rng.choice(NUMBERS, rows) if rough else rng.normal(size=rows).round(1)

    def table(rows):
        columns = {f"x{j}": numbers(rows) for j in range(n_numbers)}
        columns |= {f"c{j}": rng.choice(np.array(LABELS, object), rows) for j in range(n_labels)}
        return pd.DataFrame(columns).astype(
            dict.fromkeys(columns.keys() - columns_of_numbers, "str")
        )

    n_numbers, n_labels = draw(st.integers(1, 3)), draw(st.integers(0, 2))
    columns_of_numbers = {f"x{j}" for j in range(n_numbers)}
    time = rng.choice(TIMES, n) if rough else rng.exponential(2, n).round(1)
    event = rng.random(n) < draw(st.sampled_from([0.1, 0.5, 0.9, 1.0]))
    entry = None
    if draw(st.integers(0, 4)) == 0:
        entry = np.where(rng.random(n) < 0.5, -np.inf, time - rng.choice([1e-3, 0.5, 5.0], n))
        entry = np.where(entry < time, entry, -np.inf)
    weight = rng.choice([0.0, 0.5, 1.0, 7.0], n) if draw(st.integers(0, 3)) == 0 else None
    groups = rng.integers(0, 5, n) if draw(st.integers(0, 3)) == 0 else None
    return table(n), table(8), (time, event, entry), weight, groups


SETTINGS = st.fixed_dictionaries(
    {
        "n_estimators": st.integers(1, 9),
        "criterion": st.sampled_from(["censored_quantile", "quantile", "variance", "logrank"]),
        "honest": st.booleans(),
        "bootstrap": st.booleans(),
        "max_samples": st.sampled_from([0.3, 0.5, 1, None]),
        "max_features": st.sampled_from([None, 1, "sqrt"]),
        "min_samples_leaf": st.integers(1, 4),
        "min_samples_split": st.integers(2, 9),
        "min_child_fraction": st.sampled_from([0.0, 0.05, 0.4]),
        "max_depth": st.sampled_from([None, 1, 4]),
        "max_bins": st.sampled_from([2, 5, 255]),
        "censoring": st.sampled_from(["right", "right", "left"]),
        "random_state": st.integers(0, 1000),
    }
)
LEVELS = st.lists(
    st.one_of(st.floats(0.001, 0.999), st.sampled_from([1e-9, 0.25, 0.5, 1 - 1e-9])),
    min_size=1,
    max_size=4,
)


def raw_values(frame, columns):
    """Rows as plain values: floats, and labels as text or None."""
    lists = [
        [None if pd.isna(x) else str(x) for x in frame[name]]
        if levels is not None
        else frame[name].tolist()
        for name, levels in zip(frame.columns, columns.levels, strict=True)
    ]
    return list(zip(*lists, strict=True))


def units_drawn(forest):
    """Which rows of the table each tree has drawn, as the forest tells it."""
    queries = training_queries(forest.model_)
    bits = np.unpackbits(queries.in_bag, axis=1, bitorder="little")
    return bits[:, : len(forest.model_.forest.roots)].astype(bool)


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
    return [path.read_bytes() for path in paths], frame


def damage(data, rng):
    """The bytes with one to three changes of all kinds."""
    data = bytearray(data)
    for _ in range(rng.integers(1, 4)):
        at, length = int(rng.integers(0, len(data))), int(rng.integers(1, 40))
        match rng.integers(0, 8):
            case 0:
                data[at] ^= 1 << int(rng.integers(0, 8))
            case 1:
                data[at : at + length] = rng.bytes(length)
            case 2:
                del data[at : at + length]
            case 3:
                data[at:at] = rng.bytes(length)
            case 4:
                other = int(rng.integers(0, len(data)))
                data[at : at + length] = data[other : other + length]
            case 5:
                number = int(rng.choice([0, 1, 2**7, 2**8 - 1, 2**31, 2**32 - 1]))
                data[at : at + 4] = number.to_bytes(4, "little")
            case 6:
                data[at : at + 8] = np.float64(rng.choice([np.nan, np.inf, -1, 1e308])).tobytes()
            case 7:
                data[at : at + length] = bytes([int(rng.choice([0, 1, 127, 128, 255]))]) * length
        if len(data) < 2:
            break
    return bytes(data)


def seal(data):
    """The bytes as a file whose mark, length and checksum are right."""
    body = data[PREAMBLE.size : -32]
    header_length = int.from_bytes(data[12:16], "little")
    start = PREAMBLE.pack(MARK, FORMAT, header_length, PREAMBLE.size + len(body) + 32)
    return start + body + hashlib.sha256(start + body).digest()


def change_header(data, rng):
    """The bytes with one value of the header changed."""
    length = int.from_bytes(data[12:16], "little")
    header = json.loads(data[PREAMBLE.size :][:length])
    place = header["sections"] if rng.random() < 0.4 else header
    name = str(rng.choice(list(place)))
    old = place[name]
    values = [0, -1, 1, 2**31, 2**63, 10**30, 0.5, "x", None, [], {}, True]
    if isinstance(old, int):
        values += [old + 1, old - 1, 2 * old, old + 8, old - 8]
    place[name] = values[rng.integers(0, len(values))]
    text = json.dumps(header).encode()
    rest = data[PREAMBLE.size + length + -length % 8 :]
    start = PREAMBLE.pack(MARK, FORMAT, len(text), 0)
    return start + text + bytes(-len(text) % 8) + rest


@SHARD
def test_damaged_model_files(shard, tmp_path):
    sound, frame = make_files(tmp_path)
    rng = np.random.default_rng(
        [shard, *os.urandom(4)] if "CQRF_FUZZ_FILES" in os.environ else shard
    )
    path = tmp_path / "damaged.cqrf"
    counts = {"refused": 0, "loaded": 0}
    for _ in range(FILES // SHARDS):
        data = sound[rng.integers(0, len(sound))]
        kind = rng.random()
        if kind < 0.3:
            data = damage(data, rng)
        elif kind < 0.7:
            data = seal(damage(data, rng))
        else:
            data = seal(change_header(data, rng))
        path.write_bytes(data)
        try:
            forest = CensoredQuantileForest.load(path)
        except ModelFileError:
            counts["refused"] += 1
            continue
        counts["loaded"] += 1
        use(forest, frame)
    print(f"shard {shard}: {counts['refused']} files refused, {counts['loaded']} loaded and used")
    assert counts["refused"] > counts["loaded"] > 0


def use(forest, frame):
    """A file that loads holds a forest: it answers, or says why it will not."""
    X = frame.iloc[:5, : forest.n_features_in_]
    X = X.to_numpy() if forest.n_features_in_ == 1 else X
    if hasattr(forest, "feature_names_in_"):
        X = X.set_axis(forest.feature_names_in_, axis=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for ask in (
            lambda: forest.predict(X, [0.1, 0.5, 0.9]),
            lambda: forest.predict_survival(X, [1.0]),
            lambda: forest.predict_oob(0.5),
        ):
            with contextlib.suppress(ValueError, TypeError):
                assert len(ask()) > 0
