"""The model file: the same forest after it, and one typed error for whatever is no such file."""

import hashlib
import json
import os
import pickle
import re
import signal
import stat
import struct
import subprocess
import sys
import time
from dataclasses import fields, replace

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from cqrf import CensoredQuantileForest, ModelFileError, censored
from cqrf._forest.spec import Forest
from cqrf._model import file_checks
from cqrf._model.file import read_model_file
from cqrf._model.file_bytes import FORMAT, MARK, PREAMBLE
from cqrf._model.file_checks import LARGEST_ROOT_SHARE
from cqrf._model.file_sections import SECTIONS, WORKING_SECTIONS
from cqrf._model.share import MOST_SHARE
from cqrf.datasets import make_aft

LEVELS = [0.05, 0.5, 0.95]


def make_table(n=120, seed=0, n_features=5):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, n_features)).round(2)
    X[rng.random(X.shape) < 0.05] = np.nan
    time = rng.exponential(np.exp(np.nan_to_num(X[:, 0]))).round(1) + 0.1
    return X, censored(time, rng.random(n) < 0.7)


def make_frame(n=120):
    X, y = make_table(n)
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(X, columns=["a", "ü <b>", "c", "d", "e"])
    frame["colour"] = pd.Categorical(rng.choice(["red", "grün", "", "\U0001f600"], n))
    frame["when"] = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 999, n), "D")
    frame["gone"] = pd.Series([None] * n, dtype="string")
    frame["text"] = rng.choice(["x", "y", None], n)
    return frame, y


def fit(X, y, *, fit_settings=None, **settings):
    settings = {"n_estimators": 12, "random_state": 3, "working_model": None, **settings}
    return CensoredQuantileForest(**settings).fit(X, y, **(fit_settings or {}))


def without_features(forest):
    """The forest as it comes from Dask: without the codes of its training rows."""
    model = forest.model_
    forest.model_ = replace(
        model,
        rows=model.rows._replace(codes=np.empty((len(model.edges), 0), np.uint8)),
        sampling=model.sampling._replace(unit_of_row=np.empty(0, np.int32)),
    )
    return forest


def make_forests():
    return {**make_forests_of_one_kind_of_trees(), **make_forests_with_a_working_model()}


def make_forests_with_a_working_model():
    X, y = make_table()
    frame, _ = make_frame()
    rng = np.random.default_rng(2)
    wide = rng.normal(size=(60, 300))
    entry = np.where(rng.random(120) < 0.5, -np.inf, y["time"] / 2)
    weighted = {"sample_weight": np.arange(120) % 3 / 2, "groups": np.arange(120) // 2}

    def fit_both(X, y, **settings):
        forest = fit(X, y, working_model="cox", **settings)
        assert forest.model_.working is not None
        return forest

    return {
        "working model": lambda: (fit_both(X, y), X),
        "working model, frame": lambda: (fit_both(frame, y), frame),
        "working model, two trees": lambda: (fit_both(X, y, n_estimators=2), X),
        "working model, odd number of trees": lambda: (fit_both(X, y, n_estimators=13), X),
        "working model, bags": lambda: (fit_both(X, y, bag_size=2), X),
        "working model, left": lambda: (fit_both(X, y, censoring="left"), X),
        "working model, weights and groups": lambda: (
            fit_both(frame, y, fit_settings=weighted),
            frame,
        ),
        "working model, entry": lambda: (fit_both(X, censored(y["time"], y["event"], entry)), X),
        "working model, many features": lambda: (fit_both(wide, np.arange(60.0)), wide),
        "working model without noise": lambda: (
            fit_both(wide[:, :3], np.exp(9 * wide[:, 0])),
            wide[:, :3],
        ),
        "working model without features": lambda: (fit_both(X * 0, y), X),
        "working model, no features": lambda: (without_features(fit_both(frame, y)), frame),
    }


def make_forests_of_one_kind_of_trees():
    X, y = make_table()
    frame, _ = make_frame()
    rng = np.random.default_rng(2)
    wide = rng.normal(size=(40, 300))
    entry = np.where(rng.random(120) < 0.5, -np.inf, y["time"] / 2)
    return {
        "numbers": lambda: (fit(X, y), X),
        "frame": lambda: (fit(frame, y), frame),
        "stumps": lambda: (fit(X[:3], y[:3], n_estimators=2), X),
        "one tree, one row": lambda: (fit(X[:1], [4.0], n_estimators=1, max_samples=None), X),
        "bootstrap": lambda: (fit(X, y, bootstrap=True, max_samples=None), X),
        "not honest": lambda: (fit(X, y, honest=False, split_quantiles=(0.2, 0.8)), X),
        "bags": lambda: (fit(X, y, bag_size=2), X),
        "left": lambda: (fit(X, y, censoring="left"), X),
        "weights": lambda: (fit(X, y, fit_settings={"sample_weight": rng.random(120)}), X),
        "no weight": lambda: (fit(X, y, fit_settings={"sample_weight": np.arange(120) % 3}), X),
        "groups": lambda: (fit(X, y, fit_settings={"groups": np.arange(120) // 4}), X),
        "entry": lambda: (fit(X, censored(y["time"], y["event"], entry)), X),
        "many features": lambda: (fit(wide, np.arange(40.0)), wide),
        "knn, argmin": lambda: (
            fit(X, y, censoring_survival="knn", n_neighbors=np.int64(9), solver="argmin"),
            X,
        ),
        "no features": lambda: (
            without_features(
                fit(
                    frame,
                    y,
                    fit_settings={"sample_weight": rng.random(120), "groups": np.arange(120) % 9},
                )
            ),
            frame,
        ),
        "split levels of an array": lambda: (fit(X, y, split_quantiles=np.array([0.3, 0.6])), X),
    }


def answers(forest, X):
    """Everything a forest can say about rows and about itself."""
    settings = {"unidentified": "clip"}
    curves = forest.predict_survival(X)
    said = {
        "quantiles": forest.predict(X, LEVELS, **settings),
        "limit": forest.max_quantile(X),
        "mean": forest.predict_mean(X, beyond="restrict"),
        "times": curves.times,
        "survival": curves.values,
        "censoring": forest.predict_censoring(X).values,
        "weights": forest.weights(X).data,
        "neighbours": forest.weights(X).indices,
        "importance": forest.feature_importances_,
    }
    if forest.model_.keeps_features:
        said["oob"] = forest.predict_oob(LEVELS, **settings)
        said["oob weights"] = forest.weights_oob().data
        said["oob survival"] = forest.predict_survival_oob([0.5, 1.0], beyond="extend")
    if forest.bag_size > 1:
        said["error"] = forest.survival_standard_error(X, [1.0, 2.0])
    return said


def assert_same_forest(a, b, X):
    for name in Forest.__dataclass_fields__:
        one, other = getattr(a.model_.forest, name), getattr(b.model_.forest, name)
        assert one.dtype == other.dtype, name
        assert np.array_equal(one, other), name
    assert (a.model_.working is None) == (b.model_.working is None)
    said, again = answers(a, X), answers(b, X)
    for name in said:
        assert np.array_equal(said[name], again[name], equal_nan=True), name
    assert a.n_features_in_ == b.n_features_in_
    names = [getattr(forest, "feature_names_in_", None) for forest in (a, b)]
    assert (names[0] is None) == (names[1] is None)
    assert names[0] is None or names[0].tolist() == names[1].tolist()


@pytest.mark.filterwarnings("ignore:Duplicate")
@pytest.mark.parametrize("kind", make_forests())
def test_a_forest_is_the_same_after_save_and_load(kind, tmp_path):
    forest, X = make_forests()[kind]()
    forest.save(tmp_path / "model.cqrf")
    loaded = CensoredQuantileForest.load(tmp_path / "model.cqrf")
    assert_same_forest(forest, loaded, X)
    for name, value in forest.get_params().items():
        expected = list(value) if isinstance(value, tuple | np.ndarray) else value
        assert getattr(loaded, name) == expected, name
    # Once more: what was loaded is saved as it was.
    loaded.save(tmp_path / "again.cqrf")
    assert (tmp_path / "again.cqrf").read_bytes() == (tmp_path / "model.cqrf").read_bytes()


def test_a_loaded_forest_warns_and_refuses_as_before(tmp_path):
    frame, y = make_frame()
    forest = fit(frame, y)
    forest.save(tmp_path / "m")
    loaded = CensoredQuantileForest.load(tmp_path / "m")
    with pytest.raises(ValueError, match="feature names"):
        loaded.predict(frame.rename(columns={"a": "A"}))
    with pytest.warns(UserWarning, match="'colour': 'blue'"):
        loaded.predict(frame.assign(colour="blue"), 0.1, unidentified="clip")


def test_a_forest_without_features_says_so_after_save_and_load(tmp_path):
    X, y = make_table()
    without_features(fit(X, y)).save(tmp_path / "model.cqrf")
    loaded = CensoredQuantileForest.load(tmp_path / "model.cqrf")
    for ask in (loaded.predict_oob, loaded.weights_oob, loaded.score_oob):
        with pytest.raises(ValueError, match="keeps no features of its training rows"):
            ask()


def without_working_model(data):
    """Header and sections as formats before 3 have them."""
    header, sections = take_apart(data)
    del header["root_share"], header["settings"]["working_model"], header["causes"]
    for name in (*WORKING_SECTIONS, "cause", "lower"):
        del sections[name], header["sections"][name]
    return header, sections


def test_only_the_format_that_may_lack_features_does(good, tmp_path):
    header, sections = without_working_model(good)
    for name in ("codes", "unit_of_row"):
        sections[name], header["sections"][name] = b"", 0
    data = put_together(header, sections, written_format=2)
    assert not load_bytes(data, tmp_path).model_.keeps_features
    refused(put_together(header, sections, written_format=1), tmp_path, "length of codes")


def test_a_file_of_a_format_without_working_models_has_none(good, tmp_path):
    header, sections = without_working_model(good)
    forest = load_bytes(put_together(header, sections, written_format=2), tmp_path)
    assert forest.model_.working is None
    assert forest.working_model is None
    refused(put_together(header, sections, written_format=3), tmp_path, "root_share")
    header, sections = take_apart(good)
    refused(put_together(header, sections, written_format=2), tmp_path, "length of the sections")
    header["sections"] = []
    refused(put_together(header, sections, written_format=2), tmp_path, "sections")


def test_sections_of_a_working_model_that_is_not_there_are_empty(good, tmp_path):
    X, y = make_table()
    fit(X, y).save(tmp_path / "m")
    _, sections = take_apart((tmp_path / "m").read_bytes())
    assert {name for name in sections if not sections[name]} >= set(WORKING_SECTIONS)
    header, sections = take_apart(good)
    refused(put_together(header | {"root_share": None}, sections), tmp_path, "length of scored")


def test_a_file_holds_the_scores_of_bins_that_there_are(tmp_path):
    X, y = make_table()
    X[:, 3:] = 1.0
    X[:, 1] = np.arange(120) % 4
    forest = fit(X, y, working_model="cox")
    forest.save(tmp_path / "m")
    _, sections = take_apart((tmp_path / "m").read_bytes())
    scored = forest.model_.working.features
    assert scored.tolist() == [0, 1, 2]
    n_bins = [len(forest.model_.edges[feature]) + 2 for feature in scored]
    assert n_bins[1] == 5
    assert len(sections["scores"]) == 8 * sum(n_bins)
    assert list(sections["scored"]) == [1, 1, 1, 0, 0]


def test_settings_changed_after_the_fit_do_not_matter(tmp_path):
    X, y = make_table()
    forest = fit(X, y, working_model="cox")
    before = answers(forest, X)
    forest.set_params(working_model=None).save(tmp_path / "m")
    loaded = CensoredQuantileForest.load(tmp_path / "m")
    assert loaded.working_model is None
    for name, found in answers(loaded, X).items():
        assert np.array_equal(found, before[name], equal_nan=True), name


def test_the_limit_of_the_root_share_is_that_of_the_fit():
    assert LARGEST_ROOT_SHARE == MOST_SHARE


def test_units_without_features_are_refused(good, tmp_path):
    header, sections = take_apart(good)
    sections["codes"], header["sections"]["codes"] = b"", 0
    refused(put_together(header, sections), tmp_path, "length of unit_of_row")


def test_a_loaded_forest_can_be_fitted_again(tmp_path):
    X, y = make_table()
    fit(X, y).save(tmp_path / "m")
    loaded = CensoredQuantileForest.load(tmp_path / "m")
    assert_same_forest(loaded.fit(X, y), fit(X, y), X)


def test_a_generator_as_random_state_is_not_kept(tmp_path):
    X, y = make_table()
    forest = fit(X, y, random_state=np.random.RandomState(0))
    forest.save(tmp_path / "m")
    loaded = CensoredQuantileForest.load(tmp_path / "m")
    assert loaded.random_state is None
    assert_same_forest(forest, loaded, X)


def test_notes_are_kept(tmp_path):
    X, y = make_table()
    forest = fit(X, y)
    forest.save(tmp_path / "m", notes={"source": "ward 3 <ä>"})
    loaded = CensoredQuantileForest.load(tmp_path / "m")
    assert loaded.notes_ == {"source": "ward 3 <ä>"}
    loaded.save(tmp_path / "again")
    assert CensoredQuantileForest.load(tmp_path / "again").notes_ == loaded.notes_
    assert not hasattr(loaded.fit(X, y), "notes_")
    for notes in ({"a": 1}, {1: "a"}, "text", {"a": "x" * 70000}):
        with pytest.raises(ValueError, match="notes"):
            forest.save(tmp_path / "m", notes=notes)


def test_what_cannot_be_saved(tmp_path):
    X, y = make_table()
    with pytest.raises(NotFittedError):
        CensoredQuantileForest().save(tmp_path / "m")
    with pytest.raises(ValueError, match=r"verbose=.*plain value"):
        fit(X, y).set_params(verbose=object()).save(tmp_path / "m")
    with pytest.raises(ValueError, match="split_quantiles"):
        fit(X, y).set_params(split_quantiles=[0.123456789] * 9000).save(tmp_path / "m")
    with pytest.raises(IsADirectoryError):
        fit(X, y).save(tmp_path)
    with pytest.raises(FileNotFoundError):
        fit(X, y).save(tmp_path / "nowhere" / "m")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("working_model", [None, "cox"])
@pytest.mark.parametrize("protocol", [2, pickle.HIGHEST_PROTOCOL])
def test_pickle_and_joblib_work_too(protocol, working_model, tmp_path):
    frame, y = make_frame()
    forest = fit(frame, y, working_model=working_model)
    assert_same_forest(forest, pickle.loads(pickle.dumps(forest, protocol)), frame)
    joblib.dump(forest, tmp_path / "m")
    assert_same_forest(forest, joblib.load(tmp_path / "m"), frame)
    assert_same_forest(forest, joblib.load(tmp_path / "m", mmap_mode="r"), frame)


@pytest.mark.parametrize("working_model", [None, "cox"])
def test_a_pickle_holds_no_table(working_model):
    X = np.random.default_rng(0).normal(size=(4000, 60))
    forest = fit(X, np.exp(X[:, 0]), n_estimators=2, working_model=working_model)
    assert len(pickle.dumps(forest)) < X.nbytes / 4 + count_working_bytes(forest)
    forest.predict(X[:5])
    assert vars(pickle.loads(pickle.dumps(forest)).model_).keys() == {
        field.name for field in fields(forest.model_)
    }


@pytest.mark.parametrize("working_model", [None, "cox"])
def test_a_file_is_compact(working_model, tmp_path):
    X, y, _, _ = make_aft(2000, random_state=0)
    forest = fit(X, y, n_estimators=200, working_model=working_model)
    forest.save(tmp_path / "m")
    incompressible = count_working_bytes(forest)  # real numbers that are all different
    packed = (tmp_path / "m").stat().st_size - incompressible
    assert packed < (len(pickle.dumps(forest)) - incompressible) / 3


def count_working_bytes(forest):
    return sum(np.asarray(part).nbytes for part in forest.model_.working or ())


# Files that are none.


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    """The bytes of a small sound file, with every section in use that goes with a working model."""
    frame, y = make_frame(60)
    rng = np.random.default_rng(0)
    time = y["time"] * np.where(frame["colour"] == "red", 20, 1)
    y = censored(time, y["event"], np.where(rng.random(60) < 0.5, -np.inf, time / 2))
    forest = fit(
        frame,
        y,
        n_estimators=4,
        max_features=1,
        min_samples_leaf=1,
        min_samples_split=2,
        working_model="cox",
        fit_settings={"sample_weight": rng.random(60), "groups": np.arange(60) // 2},
    )
    path = tmp_path_factory.mktemp("good") / "model.cqrf"
    forest.save(path)
    data = path.read_bytes()
    _, sections = take_apart(data)
    assert [name for name in sections if not sections[name]] == ["cause", "lower"]
    return data


def take_apart(data):
    _, _, header_length, _ = PREAMBLE.unpack_from(data)
    header = json.loads(data[PREAMBLE.size :][:header_length])
    sections, at = {}, PREAMBLE.size + header_length + -header_length % 8
    for name, length in header["sections"].items():
        sections[name] = data[at : at + length]
        at += length + -length % 8
    assert at == len(data) - 32
    return header, sections


def put_together(header, sections, *, written_format=FORMAT):
    """A file with a right length and a right checksum, whatever is in it."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    body = b"".join(part + bytes(-len(part) % 8) for part in (text, *sections.values()))
    length = PREAMBLE.size + len(body) + 32
    data = PREAMBLE.pack(MARK, written_format, len(text), length) + body
    return data + hashlib.sha256(data).digest()


def forge(data, name, change):
    """The file with one section changed, its length in the header too."""
    header, sections = take_apart(data)
    array = np.frombuffer(sections[name], SECTIONS[name] or "u1").copy()
    changed = change(array)
    sections[name] = (array if changed is None else np.asarray(changed, array.dtype)).tobytes()
    header["sections"][name] = len(sections[name])
    return put_together(header, sections)


def load_bytes(data, tmp_path):
    path = tmp_path / "forged.cqrf"
    path.write_bytes(data)
    return CensoredQuantileForest.load(path)


def refused(data, tmp_path, match=None):
    with pytest.raises(ModelFileError, match=match) as caught:
        load_bytes(data, tmp_path)
    assert str(tmp_path / "forged.cqrf") in str(caught.value)


def test_the_tools_of_these_tests_make_files_that_load(good, tmp_path):
    assert_same_forest(
        load_bytes(good, tmp_path),
        load_bytes(forge(good, "time", lambda array: None), tmp_path),
        make_frame()[0],
    )


def test_a_file_cut_short_anywhere_is_refused(good, tmp_path):
    for length in [*range(0, 200), *range(200, len(good), 97), len(good) - 1]:
        refused(good[:length], tmp_path)
    refused(good + b"\0", tmp_path, "added to")


def test_every_flipped_bit_is_noticed(good, tmp_path):
    rng = np.random.default_rng(0)
    places = [*range(PREAMBLE.size * 8), *rng.integers(0, 8 * len(good), 1500)]
    for bit in places:
        data = bytearray(good)
        data[bit // 8] ^= 1 << (bit % 8)
        refused(bytes(data), tmp_path)


@pytest.mark.parametrize(
    "data", [b"", b"\x93", MARK, MARK + bytes(16), b"time,event\n3,1\n" * 9, pickle.dumps([1])]
)
def test_other_files_are_refused(data, tmp_path):
    refused(data, tmp_path)


def test_what_is_no_file_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError):
        CensoredQuantileForest.load(tmp_path / "none")
    with pytest.raises(ModelFileError, match="not a file"):
        CensoredQuantileForest.load("/dev/zero")
    with pytest.raises(IsADirectoryError):
        CensoredQuantileForest.load(tmp_path)


def test_more_trees_than_a_file_of_this_size_has_are_refused(good, tmp_path, monkeypatch):
    monkeypatch.setattr(file_checks, "FEW_TREES", 3)
    monkeypatch.setattr(file_checks, "BYTES_PER_TREE", 10**6)
    refused(good, tmp_path, "n_trees .too many")
    X, y = make_table()
    with pytest.raises(ValueError, match="at most 3 trees; found 4"):
        fit(X, y, n_estimators=4).save(tmp_path / "m")
    fit(X, y, n_estimators=3).save(tmp_path / "m")
    assert len(CensoredQuantileForest.load(tmp_path / "m").model_.forest.roots) == 3


def test_a_file_of_a_newer_format_says_so(good, tmp_path):
    header, sections = take_apart(good)
    refused(put_together(header, sections, written_format=FORMAT + 1), tmp_path, "Upgrade cqrf")
    header["settings"]["patience"] = 3
    refused(put_together(header, sections), tmp_path, "patience.*Upgrade cqrf")


def set_to(place, value):
    def change(array):
        array[place] = value

    return change


def swap_first_two(array):
    array[[0, 1]] = array[[1, 0]]


HOSTILE_SECTIONS = {
    "time that is NaN": ("time", set_to(3, np.nan)),
    "time that is infinite": ("time", set_to(-1, np.inf)),
    "time out of order": ("time", set_to(0, 1e9)),
    "one time less": ("time", lambda a: a[:-1]),
    "event that is 2": ("event", set_to(0, 2)),
    "no event": ("event", lambda a: a * 0),
    "order with a row twice": ("order", lambda a: np.where(a == 5, 6, a)),
    "order beyond the rows": ("order", set_to(0, 60)),
    "order below the rows": ("order", set_to(0, -1)),
    "unit beyond the units": ("unit_of_row", set_to(0, 30)),
    "unit below that of any group": ("unit_of_row", set_to(0, -32)),
    "half of the units": ("unit_of_row", lambda a: a[:30]),
    "code of no bin": ("codes", set_to(0, 254)),
    "codes of one row more": ("codes", lambda a: np.append(a, a[:9])),
    "negative weight": ("weight", set_to(0, -1)),
    "weight that is NaN": ("weight", set_to(0, np.nan)),
    "weights that are all 0": ("weight", lambda a: a * 0),
    "leaf without weight": ("weight", lambda a: np.where(np.arange(60) == 30, a, 0)),
    "entry after the time": ("entry", set_to(0, 1e9)),
    "entry that is NaN": ("entry", set_to(0, np.nan)),
    "more edges than bins": ("n_edges", set_to(0, 255)),
    "edges for a category": ("n_edges", set_to(5, 1)),
    "edges that fall": ("edges", swap_first_two),
    "edge that is infinite": ("edges", set_to(0, -np.inf)),
    "one edge less": ("edges", lambda a: a[:-1]),
    "unknown kind": ("kinds", set_to(0, 4)),
    "category without its levels": ("kinds", set_to(5, 0)),
    "levels of a number": ("n_levels", set_to(0, 1)),
    "too many levels": ("n_levels", set_to(5, 255)),
    "text longer than it is": ("text_lengths", set_to(0, 2**32 - 1)),
    "labels out of order": ("text", lambda a: a[::-1]),
    "text that is none": ("text", set_to(0, 255)),
    "tree without nodes": ("n_nodes", set_to(0, 0)),
    "tree of 4 billion nodes": ("n_nodes", set_to(0, 2**32 - 1)),
    "tree that takes a node of the next": ("n_nodes", lambda a: a + np.array([2, -2, 0, 0])),
    "split on a feature there is not": ("split_on", set_to(0, 10)),
    "root that is a leaf": ("split_on", set_to(0, 9)),
    "last leaf split": ("split_on", set_to(-1, 0)),
    "number split as a category": ("split_on", lambda a: np.where(a == 0, 5, a)),
    "code too few": ("split_code", lambda a: a[:-1]),
    "missing bits too few": ("missing_left", lambda a: a[:-1]),
    "subset too few": ("subsets", lambda a: a[:-4]),
    "empty leaf": ("leaves", set_to(0, 0)),
    "leaf that never ends": ("leaves", lambda a: a * 0 + 255),
    "leaf row beyond the table": ("leaves", set_to(1, 60)),
    "leaf larger than all": ("leaves", lambda a: np.append([255, 255, 255, 255, 7], a)),
    "leaves cut short": ("leaves", lambda a: a[:-1]),
    "leaves with more behind": ("leaves", lambda a: np.append(a, [1, 1])),
    "importance that is NaN": ("importance", set_to(0, np.nan)),
    "negative importance": ("importance", set_to(0, -1)),
    "feature scored twice": ("scored", set_to(0, 2)),
    "feature that is not scored": ("scored", set_to(0, 0)),
    "one feature less": ("scored", lambda a: a[:-1]),
    "no feature": ("scored", lambda a: a[:0]),
    "score that is NaN": ("scores", set_to(0, np.nan)),
    "score that is infinite": ("scores", set_to(-1, -np.inf)),
    "score above 50": ("scores", set_to(3, 50.1)),
    "score below -50": ("scores", set_to(3, -50.1)),
    "scores that are all 0": ("scores", lambda a: a * 0),
    "one score less": ("scores", lambda a: a[:-1]),
    "one score more": ("scores", lambda a: np.append(a, 1)),
    "knots out of order": ("knots", swap_first_two),
    "a knot twice": ("knots", lambda a: np.append(a[1], a[1:])),
    "knot that is NaN": ("knots", set_to(1, np.nan)),
    "knot that is infinite": ("knots", set_to(-1, np.inf)),
    "one knot less": ("knots", lambda a: a[:-1]),
    "no knots": ("knots", lambda a: a[:0]),
    "hazards that fall": ("hazards", lambda a: np.append(a[:-1], a[-2] / 2)),
    "negative hazard": ("hazards", set_to(0, -1e-9)),
    "hazard that is NaN": ("hazards", set_to(1, np.nan)),
    "last hazard that is NaN": ("hazards", set_to(-1, np.nan)),
    "hazard that is infinite": ("hazards", set_to(-1, np.inf)),
    "hazard that makes residuals infinite": ("hazards", set_to(-1, 1e300)),
    "hazards that are all 0": ("hazards", lambda a: a * 0),
    "one hazard more": ("hazards", lambda a: np.append(a, a[-1])),
    "linear predictor that is NaN": ("linear_predictor", set_to(5, np.nan)),
    "linear predictor that is infinite": ("linear_predictor", set_to(5, np.inf)),
    "linear predictor above 50": ("linear_predictor", set_to(0, 50.1)),
    "linear predictor below -50": ("linear_predictor", set_to(-1, -50.1)),
    "one linear predictor less": ("linear_predictor", lambda a: a[:-1]),
    "no linear predictor": ("linear_predictor", lambda a: a[:0]),
}


@pytest.mark.parametrize("root_share", [0.0, 0.25, 0.5])
def test_the_root_share_is_read(root_share, good, tmp_path):
    header, sections = take_apart(good)
    loaded = load_bytes(put_together(header | {"root_share": root_share}, sections), tmp_path)
    assert loaded.model_.working.root_share == root_share


def test_a_working_model_needs_two_trees(good, tmp_path):
    X, y = make_table(60)
    fit(X, y, n_estimators=1, max_samples=None, honest=False).save(tmp_path / "one")
    header, sections = take_apart((tmp_path / "one").read_bytes())
    forged = {
        "scored": np.zeros(5, np.uint8),
        "knots": np.array([1.0]),
        "hazards": np.array([1.0]),
        "linear_predictor": np.zeros(60),
    }
    for name, array in forged.items():
        sections[name], header["sections"][name] = array.tobytes(), array.nbytes
    refused(put_together(header | {"root_share": 0.0}, sections), tmp_path, "n_trees")


def test_a_bag_holds_as_many_trees_of_both_kinds(good, tmp_path):
    header, sections = take_apart(good)
    for bag_size in (2, 3, 5):
        changed = header | {"bag_size": bag_size, "size": 15}
        refused(put_together(changed, sections), tmp_path, "bag_size")
    changed = header | {"bag_size": 4, "size": 15}
    assert load_bytes(put_together(changed, sections), tmp_path).model_.sampling.bag_size == 4


@pytest.mark.parametrize("case", HOSTILE_SECTIONS)
def test_hostile_numbers_with_a_right_checksum_are_refused(case, good, tmp_path):
    name, change = HOSTILE_SECTIONS[case]
    refused(forge(good, name, change), tmp_path, "does not hold a forest")


HOSTILE_HEADERS = {
    **{
        f"{name} is {value}": {name: value}
        for name in ("n_rows", "n_features", "n_trees", "n_nodes", "n_leaf_rows", "n_units")
        for value in (0, -1, 1, 2**31, 2**61, 2**70, 1.0, "60", None, True)
        if (name, value) != ("n_units", 1)
    },
    "more draws than units": {"size": 31},
    "no draw": {"size": 0},
    "a bootstrap of 2**60": {"size": 2**60, "bootstrap": True},
    "a bootstrap of a million": {"size": 10**6, "bootstrap": True},
    "bags of more than half": {"bag_size": 2, "size": 16},
    "bags of nothing": {"bag_size": 0},
    "honest as a number": {"honest": 1},
    "named as text": {"named": "yes"},
    "no names": {"named": False},
    "seed below 0": {"seed": -1},
    "seed of 100 digits": {"seed": 10**100},
    "censoring to the middle": {"censoring": "middle"},
    "censoring from the left with entries": {"censoring": "left"},
    "settings as a list": {"settings": []},
    "notes of numbers": {"notes": {"a": 1}},
    "a setting within a setting": {"settings": {"n_jobs": {"a": 1}}},
    "split levels that are infinite": {"settings": {"split_quantiles": [0.5, float("inf")]}},
    "an unknown key": {"colour": "red"},
    "sections as a list": {"sections": [["time", 480]]},
    "no sections": {"sections": {}},
    **{
        f"root share of {value!r}": {"root_share": value}
        for value in (-0.1, 0.51, 1, True, "0.1", [0.1])
    },
}


@pytest.mark.parametrize("case", HOSTILE_HEADERS)
def test_hostile_headers_with_a_right_checksum_are_refused(case, good, tmp_path):
    header, sections = take_apart(good)
    header.update(HOSTILE_HEADERS[case])
    refused(put_together(header, sections), tmp_path, "does not hold a forest")


def test_infinity_as_a_number_of_json_is_refused(good, tmp_path):
    header, sections = take_apart(good)
    header["settings"]["split_quantiles"] = [0.5]
    text = json.dumps(header).replace('"split_quantiles": [0.5]', '"split_quantiles": [1e999]')
    assert "1e999" in text
    refused(put_together(text.encode(), sections), tmp_path, "settings")


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-32"])
def test_a_header_in_another_encoding_is_refused(encoding, good, tmp_path):
    header, sections = take_apart(good)
    refused(put_together(json.dumps(header).encode(encoding), sections), tmp_path, "header")


@pytest.mark.parametrize("key", ["seed", "n_jobs", "time"])
def test_a_key_that_stands_twice_is_refused(key, good, tmp_path):
    header, sections = take_apart(good)
    text, given = json.dumps(header), re.compile(rf'"{key}": [^,}}]+')
    twice = given.sub(lambda found: f"{found[0]}, {found[0]}", text, count=1)
    assert len(twice) > len(text)
    refused(put_together(twice.encode(), sections), tmp_path, "header")


@pytest.mark.parametrize(
    ("name", "value"),
    [("n_jobs", "abc"), ("n_jobs", 0), ("solver", "newton"),
     ("prediction", 3), ("unidentified", None), ("time_unit", 4), ("censoring", True)],
)  # fmt: skip
def test_settings_that_predictions_would_stumble_over(name, value, good, tmp_path):
    header, sections = take_apart(good)
    header["settings"][name] = value
    refused(put_together(header, sections), tmp_path, f"setting that is not valid: .*{name}")
    X, y = make_table()
    with pytest.raises((ValueError, TypeError), match=name):
        fit(X, y, n_estimators=2).set_params(**{name: value}).save(tmp_path / "m")


@pytest.mark.parametrize("name", ["n_rows", "seed", "settings", "sections", "root_share"])
def test_a_header_without_a_name_is_refused(name, good, tmp_path):
    header, sections = take_apart(good)
    del header[name]
    refused(put_together(header, sections), tmp_path, name)


@pytest.mark.parametrize("length", [-8, 2**40, 1.5, None, 7])
def test_sections_of_impossible_length_are_refused(length, good, tmp_path):
    header, sections = take_apart(good)
    header["sections"]["time"] = length
    refused(put_together(header, sections), tmp_path, "time|sections")


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b"[]",
        b"3",
        b"\xff\xfe",
        b"[" * 60000,
        b'{"n_rows": NaN}',
        b'{"n_rows": ' + b"9" * 60000 + b"}",
        b'{"' + b"a" * 70000 + b'": 1}',
    ],
)
def test_a_header_that_is_no_object_is_refused(text, tmp_path):
    refused(put_together(text, {}), tmp_path, "header")


def test_a_header_longer_than_the_file_is_refused(tmp_path):
    data = PREAMBLE.pack(MARK, FORMAT, 2**32 - 1, PREAMBLE.size + 32)
    refused(data + hashlib.sha256(data).digest(), tmp_path, "header")
    data = PREAMBLE.pack(MARK, FORMAT, 2**16, PREAMBLE.size + 32)
    refused(data + hashlib.sha256(data).digest(), tmp_path, "header")


def test_a_file_that_claims_to_be_huge_is_not_read(tmp_path):
    path = tmp_path / "forged.cqrf"
    with path.open("wb") as file:
        file.write(PREAMBLE.pack(MARK, FORMAT, 100, 2**40))
        file.truncate(2**36)  # without a byte on disk
    with pytest.raises(ModelFileError, match="cut short"):
        CensoredQuantileForest.load(path)


MEASURE_LOAD = """
import resource, sys
from cqrf import CensoredQuantileForest, ModelFileError

sound, *hostile = sys.argv[1:]
CensoredQuantileForest.load(sound)
for path in hostile:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        CensoredQuantileForest.load(path)
        print("loaded", path)
    except ModelFileError:
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.slow
def test_a_refused_file_costs_less_than_twice_its_size(good, tmp_path):
    """The last byte of large sections is wrong, so that everything before it was read."""
    X, y, _, _ = make_aft(60_000, n_features=5, random_state=0)
    forest = CensoredQuantileForest(criterion="variance", honest=False, random_state=0, n_jobs=2)
    forest.set_params(n_estimators=300).fit(X, y)
    forest.save(tmp_path / "large")
    (tmp_path / "small").write_bytes(good)
    data = (tmp_path / "large").read_bytes()
    paths = [tmp_path / "small"]
    for name, change in {
        "leaves": lambda a: np.append(a[:-1], 255),
        "split_on": set_to(-1, 0),
        "importance": set_to(-1, np.nan),
        "order": set_to(-1, -1),
    }.items():
        paths.append(tmp_path / name)
        paths[-1].write_bytes(forge(data, name, change))
    assert len(data) > 20e6
    run = subprocess.run(
        [sys.executable, "-c", MEASURE_LOAD, *map(str, paths)],
        capture_output=True,
        text=True,
        check=True,
    )
    grown = [int(line) * 1024 for line in run.stdout.split()]
    assert len(grown) == 4
    assert max(grown) < 2 * len(data)


# Writing.


# On a disk that takes its time, so that a kill falls into a write.
SAVE_FOR_EVER = """
import os
import sys
import time
from cqrf import CensoredQuantileForest

os.fsync = lambda file: time.sleep(0.02)
forests = [CensoredQuantileForest.load(path) for path in sys.argv[2:]]
forests[0].save(sys.argv[1])
print("ready", flush=True)
while True:
    for forest in forests:
        forest.save(sys.argv[1])
"""


@pytest.mark.slow
def test_a_process_killed_while_it_saves_leaves_a_whole_model(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 5))
    paths = [tmp_path / f"{seed}.cqrf" for seed in range(2)]
    for seed, path in enumerate(paths):
        fit(X, np.exp(X[:, 0]), n_estimators=300, random_state=seed).save(path)
    folder = tmp_path / "killed"
    folder.mkdir()
    for _ in range(8):
        killed_in_a_write(folder, paths, rng.uniform(0.0, 0.015))
        assert CensoredQuantileForest.load(folder / "m.cqrf").random_state in (0, 1)


def killed_in_a_write(folder, paths, delay):
    """Kill a saving process `delay` seconds after a part file appears, until one is left behind."""
    program = [sys.executable, "-c", SAVE_FOR_EVER, *map(str, [folder / "m.cqrf", *paths])]
    for _ in range(50):
        with subprocess.Popen(program, stdout=subprocess.PIPE, text=True) as run:
            assert run.stdout.readline().strip() == "ready"
            saved = {folder / "m.cqrf", *folder.iterdir()}
            last = time.monotonic() + 240
            while set(folder.iterdir()) <= saved:
                assert run.poll() is None
                assert time.monotonic() < last
            time.sleep(delay)
            run.send_signal(signal.SIGKILL)
        if len(list(folder.iterdir())) > 1:  # a save removes what those before it have left
            return
    raise AssertionError("no kill fell into a write: the test shows nothing")


def test_a_save_that_fails_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    X, y = make_table()
    path = tmp_path / "m.cqrf"
    fit(X, y).save(path)
    before = path.read_bytes()

    def no_space(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", no_space)
    with pytest.raises(OSError, match="No space"):
        fit(X, y, random_state=4).save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_links_and_permissions_stay(tmp_path):
    X, y = make_table()
    real, link = tmp_path / "real.cqrf", tmp_path / "link.cqrf"
    fit(X, y).save(real)
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE(real.stat().st_mode) == 0o666 & ~mask
    real.chmod(0o640)
    link.symlink_to(real)
    fit(X, y, random_state=4).save(link)
    assert link.is_symlink()
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    assert CensoredQuantileForest.load(real).random_state == 4
    assert read_model_file(link).settings["random_state"] == 4


def test_the_layout_is_as_documented(good):
    mark, written_format, header_length, length = struct.unpack_from("<8sIIQ", good)
    assert (mark, written_format, length) == (MARK, FORMAT, len(good))
    assert good[-32:] == hashlib.sha256(good[:-32]).digest()
    assert json.loads(good[24 : 24 + header_length])["n_rows"] == 60
