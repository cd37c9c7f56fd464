"""The model file of a treatment forest: the same effects after it, and one typed error."""

import hashlib
import json
import os
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from cqrf import CensoredQuantileForest, ModelFileError, censored
from cqrf._effects.file import FORESTS
from cqrf._model.file_bytes import FOREST_FILE, PREAMBLE, TREATMENT_FILE
from cqrf._model.file_sections import TREATMENT_SECTIONS
from cqrf.conformal import ConformalForest
from cqrf.effects import CensoredTreatmentForest

FILES = int(os.environ.get("CQRF_FUZZ_FILES", "300"))
N = 90

pytestmark = pytest.mark.filterwarnings("ignore::cqrf.effects.OverlapWarning")


def make_table():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(N, 2)).round(2), columns=["a", "ü"])
    frame["c"] = rng.choice(["x", "y", "z"], N)
    frame.loc[::7, "a"] = np.nan
    treated = rng.random(N) < 0.5
    time = rng.exponential(np.exp(0.5 * treated + frame["ü"].to_numpy())).round(1) + 0.1
    return frame, censored(time, rng.random(N) < 0.7), treated, rng


def small(**settings):
    nuisance = CensoredQuantileForest(n_estimators=6)
    settings = {"n_estimators": 8, "random_state": 3, "nuisance_forest": nuisance, **settings}
    return CensoredTreatmentForest(**settings)


def make_models():
    """Fitted models of every kind, by name."""
    frame, y, treated, rng = make_table()
    X = frame[["a", "ü"]].to_numpy()
    weighted = {"sample_weight": rng.integers(0, 3, N), "groups": np.arange(N) // 2}
    names = np.where(treated, "drug <ä>", "placebo")
    each = rng.uniform(0.3, 0.7, N)
    return {
        "frame": lambda: (small().fit(frame, y, treated), frame),
        "numbers": lambda: (small().fit(X, y, treated.astype(int)), X),
        "texts": lambda: (small().fit(frame, y, names, control="placebo"), frame),
        "the other control": lambda: (small().fit(frame, y, names, control="drug <ä>"), frame),
        "floats": lambda: (small().fit(X, y, np.where(treated, 2.5, 1.0)), X),
        "known propensity": lambda: (small().fit(X, y, treated, propensity=0.4), X),
        "propensity of each row": lambda: (small().fit(X, y, treated, propensity=each), X),
        "weights and groups": lambda: (small().fit(frame, y, treated, **weighted), frame),
        "default nuisances": lambda: (small(nuisance_forest=None).fit(X, y, treated), X),
        "nothing censored": lambda: (small().fit(X, y["time"], treated), X),
    }


def answers(model, X):
    """Whatever a treatment forest says."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        average = model.ate()
        return [
            model.effect(X),
            model.effect(X, "survival", times=[0.5, 1.0]),
            model.effect(X, "quantile", quantiles=[0.25, 0.5]),
            model.effect_interval(X),
            model.effect_interval(X, "quantile"),
            model.effect_oob(),
            model.scores("survival", times=1.0),
            model.predict(X, arm=0),
            model.predict(X, arm=1),
            model.predict_survival(X, [0.5, 1.0], arm=1, beyond="extend"),
            [average.estimate, average.standard_error, model.rate().estimate],
            model.overlap().propensity,
            model.overlap().treated,
            [model.overlap().censoring_floored],
        ]


def assert_same(a, b, X):
    for one, other in zip(answers(a, X), answers(b, X), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("kind", make_models())
def test_answers_are_the_same_after_save_and_load(kind, tmp_path):
    model, X = make_models()[kind]()
    model.save(tmp_path / "m.cqrf")
    loaded = CensoredTreatmentForest.load(tmp_path / "m.cqrf")
    assert_same(model, loaded, X)
    assert loaded.arms_ == model.arms_
    assert [type(name) for name in loaded.arms_] == [type(name) for name in model.arms_]
    for name, value in model.get_params().items():
        if not isinstance(value, CensoredQuantileForest):
            assert loaded.get_params()[name] == value, name
    loaded.save(tmp_path / "again.cqrf")
    assert (tmp_path / "again.cqrf").read_bytes() == (tmp_path / "m.cqrf").read_bytes()
    assert loaded.n_features_in_ == X.shape[1]
    assert hasattr(loaded, "feature_names_in_") == isinstance(X, pd.DataFrame)


def test_the_number_of_threads_changes_nothing(tmp_path):
    frame, y, treated, _ = make_table()
    model = small(n_jobs=1).fit(frame, y, treated)
    model.save(tmp_path / "one")
    model.set_params(n_jobs=2).save(tmp_path / "two")
    for name, n_jobs in (("one", 1), ("two", 2)):
        loaded = CensoredTreatmentForest.load(tmp_path / name)
        assert loaded.n_jobs == n_jobs
        assert_same(model, loaded, frame)
        assert_same(model, loaded.set_params(n_jobs=3), frame)


def test_a_loaded_model_can_be_fitted_again(tmp_path):
    frame, y, treated, _ = make_table()
    model = small().fit(frame, y, treated)
    model.save(tmp_path / "m", notes={"source": "ward 3"})
    loaded = CensoredTreatmentForest.load(tmp_path / "m")
    assert_same(loaded.fit(frame, y, treated), model, frame)
    assert not hasattr(loaded, "notes_")


def test_notes_are_kept(tmp_path):
    frame, y, treated, _ = make_table()
    model = small().fit(frame, y, treated)
    model.save(tmp_path / "m", notes={"source": "ward 3 <ä>"})
    loaded = CensoredTreatmentForest.load(tmp_path / "m")
    assert loaded.notes_ == {"source": "ward 3 <ä>"}
    loaded.save(tmp_path / "again")
    assert CensoredTreatmentForest.load(tmp_path / "again").notes_ == loaded.notes_
    for notes in ({"a": 1}, {1: "a"}, "text", {"a": "x" * 70000}):
        with pytest.raises(ValueError, match="notes"):
            model.save(tmp_path / "m", notes=notes)


def test_a_file_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    frame, y, treated, _ = make_table()
    model = small().fit(frame, y, treated)
    model.save(tmp_path / "m")
    before = (tmp_path / "m").read_bytes()

    def fail(fd):
        raise OSError("no space left")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="no space"):
        model.save(tmp_path / "m", notes={"a": "b"})
    assert (tmp_path / "m").read_bytes() == before
    assert os.listdir(tmp_path) == ["m"]
    with pytest.raises(NotFittedError):
        small().save(tmp_path / "other")


def test_names_of_arms_that_json_cannot_hold_are_refused(tmp_path):
    frame, y, treated, _ = make_table()
    days = np.where(treated, np.datetime64("2020-01-01"), np.datetime64("2021-01-01"))
    model = small().fit(frame, y, days)
    with pytest.raises(ValueError, match=r"treatment has the value .*2020.* texts, numbers, or"):
        model.save(tmp_path / "m")
    assert os.listdir(tmp_path) == []


def test_a_file_of_another_kind_says_which_class_loads_it(tmp_path):
    frame, y, treated, _ = make_table()
    small().fit(frame, y, treated).save(tmp_path / "treatment")
    quantiles = CensoredQuantileForest(n_estimators=6, random_state=0)
    quantiles.fit(frame, y).save(tmp_path / "forest")
    ConformalForest(quantiles, random_state=0).fit(frame, y).save(tmp_path / "conformal")
    for name, kind, sentence in (
        (
            "forest",
            CensoredTreatmentForest,
            "a forest, not a treatment forest: load it with cqrf.C",
        ),
        ("conformal", CensoredTreatmentForest, "a conformal forest, not a treatment forest"),
        ("treatment", CensoredQuantileForest, "a treatment forest, not a forest: load it with"),
        ("treatment", ConformalForest, "load it with cqrf.effects.CensoredTreatmentForest.load"),
    ):
        with pytest.raises(ModelFileError, match=sentence) as caught:
            kind.load(tmp_path / name)
        assert str(caught.value).startswith(f"{tmp_path / name}: holds a")


# Files that are none.


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    """The bytes of a small sound file with a forest of propensities."""
    return save_bytes(make_models()["frame"]()[0], tmp_path_factory.mktemp("good"))


@pytest.fixture(scope="module")
def of_trial(tmp_path_factory):
    """The bytes of a small sound file with known propensities."""
    frame, y, treated, _ = make_table()
    return save_bytes(
        small().fit(frame, y, treated, propensity=0.4), tmp_path_factory.mktemp("trial")
    )


def save_bytes(model, folder):
    model.save(folder / "m")
    return (folder / "m").read_bytes()


def take_apart(data):
    header_length = int.from_bytes(data[12:16], "little")
    header = json.loads(data[PREAMBLE.size :][:header_length])
    sections, at = {}, PREAMBLE.size + header_length + -header_length % 8
    for name, length in header["sections"].items():
        sections[name] = data[at : at + length]
        at += length + -length % 8
    assert at == len(data) - 32
    return header, sections


def put_together(header, sections, kind=TREATMENT_FILE):
    """A file with a right length and a right checksum, whatever is in it."""
    text = json.dumps(header).encode()
    body = b"".join(part + bytes(-len(part) % 8) for part in (text, *sections.values()))
    length = PREAMBLE.size + len(body) + 32
    data = PREAMBLE.pack(kind.mark, kind.newest_format, len(text), length) + body
    return data + hashlib.sha256(data).digest()


def load_bytes(data, tmp_path):
    path = tmp_path / "forged.cqrf"
    path.write_bytes(data)
    return CensoredTreatmentForest.load(path)


def refused(data, tmp_path, match=None):
    with pytest.raises(ModelFileError, match=match) as caught:
        load_bytes(data, tmp_path)
    assert str(caught.value).startswith(str(tmp_path / "forged.cqrf"))


def replace_section(data, name, content):
    header, sections = take_apart(data)
    sections[name] = content
    header["sections"][name] = len(content)
    return put_together(header, sections)


def forge(data, name, change):
    array = np.frombuffer(take_apart(data)[1][name], TREATMENT_SECTIONS[name])
    changed = np.ascontiguousarray(change(array), array.dtype)
    return replace_section(data, name, changed.tobytes())


def replace_at(place, value):
    def change(array):
        array = array.copy()
        array[place] = value
        return array

    return change


def test_the_tools_of_these_tests_make_files_that_load(good, tmp_path):
    frame = make_table()[0]
    forged = load_bytes(forge(good, "arm", lambda array: array), tmp_path)
    assert_same(load_bytes(good, tmp_path), forged, frame)


HOSTILE_SECTIONS = {
    **{f"no {name}": (name, lambda a: a[:0]) for name in (*FORESTS, "arm")},
    **{f"{name} cut short": (name, lambda a: a[:-8]) for name in FORESTS},
    **{f"{name} with a flipped bit": (name, lambda a: a ^ 1) for name in FORESTS},
    "an arm more": ("arm", lambda a: np.append(a, a[:1])),
    "an arm less": ("arm", lambda a: a[:-1]),
    "a third arm": ("arm", replace_at(5, 2)),
    "one arm": ("arm", lambda a: a * 0),
    "arms the other way round": ("arm", lambda a: 1 - a),
    "a row in the other arm": ("arm", lambda a: np.where(np.arange(len(a)) == 7, 1 - a, a)),
    "rows in another order": ("arm", lambda a: np.append(a[:1], a[:0:-1])),
    "a propensity too many": ("known_propensity", lambda a: np.full(N, 0.5)),
}


@pytest.mark.parametrize("case", HOSTILE_SECTIONS)
def test_hostile_numbers_with_a_right_checksum_are_refused(case, good, tmp_path):
    name, change = HOSTILE_SECTIONS[case]
    refused(forge(good, name, change), tmp_path, "does not hold a treatment forest")


@pytest.mark.parametrize("value", [0.0, 1.0, -0.5, np.nan, np.inf])
def test_hostile_propensities_are_refused(value, of_trial, tmp_path):
    load_bytes(forge(of_trial, "known_propensity", replace_at(3, 0.7)), tmp_path)
    for change in (replace_at(3, value), lambda a: a[1:], lambda a: np.append(a, 0.5)):
        refused(forge(of_trial, "known_propensity", change), tmp_path, "known_propensity")


HOSTILE_HEADERS = {
    **{f"treated {value}": {"treated": value} for value in (2, -1, 1.0, True, None, "1")},
    "arms as text": {"arms": "ab"},
    "one name": {"arms": ["a"]},
    "three names": {"arms": ["a", "b", "c"]},
    "names that are equal": {"arms": ["a", "a"]},
    "True and 1": {"arms": [True, 1]},
    "a list as a name": {"arms": ["a", ["b"]]},
    "no name": {"arms": ["a", None]},
    "settings as a list": {"settings": []},
    "a setting within a setting": {"settings": {"max_depth": {"a": 1}}},
    "a forest as a setting": {"settings": {"nuisance_forest": None}},
    "no threads": {"settings": {"n_jobs": 0}},
    "threads as text": {"settings": {"n_jobs": "2"}},
    "nuisance settings as a list": {"nuisance_settings": []},
    "notes of numbers": {"notes": {"a": 1}},
    "no sections": {"sections": {}},
    "sections as a list": {"sections": [["pooled", 8]]},
}


@pytest.mark.parametrize("case", HOSTILE_HEADERS)
def test_hostile_headers_with_a_right_checksum_are_refused(case, good, tmp_path):
    header, sections = take_apart(good)
    header.update(HOSTILE_HEADERS[case])
    refused(put_together(header, sections), tmp_path, "does not hold a treatment forest")


@pytest.mark.parametrize(("name", "value"), [("time_unit", 4), ("event_name", ["death"])])
def test_settings_that_pages_would_stumble_over_are_refused(name, value, good, tmp_path):
    header, sections = take_apart(good)
    header["settings"][name] = value
    refused(put_together(header, sections), tmp_path, f"setting that is not valid: {name}")
    frame, y, treated, _ = make_table()
    model = small().fit(frame, y, treated).set_params(**{name: value})
    with pytest.raises(ValueError, match=name):
        model.save(tmp_path / "m")


def test_trees_that_drew_all_rows_are_refused(good, tmp_path):
    header, sections = take_apart(take_apart(good)[1]["pooled"])
    drawn = header | {"bootstrap": True, "size": 20 * N}
    pooled = put_together(drawn, sections, FOREST_FILE)
    refused(replace_section(good, "pooled", pooled), tmp_path, "drawn by all of its 6 trees")


def test_a_header_without_a_name_is_refused(good, tmp_path):
    for name in take_apart(good)[0]:
        header, sections = take_apart(good)
        del header[name]
        if name == "cqrf":  # the version that wrote the file, for people
            load_bytes(put_together(header, sections), tmp_path)
        else:
            refused(put_together(header, sections), tmp_path, name)


def test_a_number_that_json_does_not_have_is_refused(good, tmp_path):
    header, sections = take_apart(good)
    refused(put_together(header | {"arms": [0.0, np.inf]}, sections), tmp_path, "header")


def forest_bytes(X, y, tmp_path, **settings):
    """The file of a quantile forest."""
    path = tmp_path / "forest"
    CensoredQuantileForest(**{"n_estimators": 8, "random_state": 3, **settings}).fit(X, y).save(
        path
    )
    return path.read_bytes()


def test_forests_that_do_not_belong_together_are_refused(good, tmp_path):
    frame, y, _, _ = make_table()
    shifted = censored(y["time"] + 1, y["event"])

    def other(name, *table, **settings):
        return replace_section(good, name, forest_bytes(*table, tmp_path, **settings))

    with_a_bag = {"bag_size": 4, "working_model": None, "max_samples": N // 2}
    load_bytes(other("effect", frame, y, **with_a_bag), tmp_path)
    for name in ("pooled", "propensity", "effect"):
        for columns in (frame[["a", "ü"]], frame.rename(columns={"a": "b"})):
            refused(other(name, columns, y), tmp_path, "features of ")
        refused(other(name, frame.assign(c="x"), y), tmp_path, "features of ")
        refused(other(name, frame.assign(a=frame["a"] * 2), y), tmp_path, "features of ")
        refused(other(name, frame, shifted), tmp_path, "times of ")
    refused(other("effect", frame, y, censoring="left"), tmp_path, "censoring of effect")
    refused(other("arm_1", frame, y), tmp_path, "number of rows of arm_1")
    sections = take_apart(good)[1]
    refused(replace_section(good, "arm_1", sections["arm_0"]), tmp_path, "arm_1|arm_0")
    late = censored(y["time"], y["event"], np.where(np.arange(N) % 2, -np.inf, y["time"] / 2))
    refused(other("effect", frame, late, **with_a_bag), tmp_path, "censoring of effect")
    turned = frame.assign(c=frame["c"].map({"x": "y", "y": "x", "z": "z"}))
    refused(other("effect", turned, y, **with_a_bag), tmp_path, "rows of effect")


def test_arm_0_is_that_of_the_first_row(of_trial, tmp_path):
    header, sections = take_apart(of_trial)
    arm = np.frombuffer(sections["arm"], np.uint8)
    swapped = {"arm_0": sections["arm_1"], "arm_1": sections["arm_0"], "arm": bytes(1 - arm)}
    for name, section in swapped.items():
        header["sections"][name] = len(section)
    refused(put_together(header, sections | swapped), tmp_path, "arm is not as it should be")


def test_an_effect_forest_without_full_bags_is_refused(good, tmp_path):
    frame, y, _, _ = make_table()
    for settings in ({}, {"n_estimators": 9, "bag_size": 4}, {"n_estimators": 4, "bag_size": 4}):
        data = forest_bytes(frame, y, tmp_path, working_model=None, max_samples=40, **settings)
        refused(replace_section(good, "effect", data), tmp_path, "bag_size of effect")
    data = forest_bytes(frame, y, tmp_path, bag_size=4, max_samples=40, n_estimators=16)
    refused(replace_section(good, "effect", data), tmp_path, "seed of effect")


def test_a_newer_version_is_named(good, tmp_path):
    header, sections = take_apart(good)
    newer = TREATMENT_FILE._replace(newest_format=TREATMENT_FILE.newest_format + 1)
    refused(put_together(header, sections, newer), tmp_path, "Upgrade cqrf")
    for place in (header["settings"], header["nuisance_settings"]):
        place["patience"] = 3
        refused(put_together(header, sections), tmp_path, "patience.*Upgrade cqrf")
        del place["patience"]
    effect = sections["effect"]
    sections["effect"] = effect[:8] + (99).to_bytes(4, "little") + effect[12:]
    refused(put_together(header, sections), tmp_path, "its effect has format 99.*Upgrade cqrf")


def test_a_file_cut_short_anywhere_is_refused(good, tmp_path):
    for length in [*range(0, 100), *range(100, len(good), 997), len(good) - 1]:
        refused(good[:length], tmp_path)
    refused(good + b"\0", tmp_path, "added to")


@pytest.mark.parametrize("data", [b"", TREATMENT_FILE.mark, b"time,event\n3,1\n" * 9])
def test_other_files_are_refused(data, tmp_path):
    refused(data, tmp_path, "is not a model file of cqrf")


# Random damage.


def damage(data, rng):
    """The bytes with one change."""
    data = bytearray(data)
    at, length = int(rng.integers(0, len(data))), int(rng.integers(1, 40))
    match rng.integers(0, 4):
        case 0:
            data[at] ^= 1 << int(rng.integers(0, 8))
        case 1:
            data[at : at + length] = rng.bytes(length)
        case 2:
            del data[at : at + length]
        case 3:
            data[at : at + length] = bytes([int(rng.choice([0, 1, 127, 128, 255]))]) * length
    return bytes(data)


def test_damaged_bytes_are_refused(good, tmp_path):
    rng = np.random.default_rng(0)
    for _ in range(FILES):
        changed = damage(good, rng)
        if changed != good:
            refused(changed, tmp_path)


def seal(data, kind):
    """The bytes with a right length and a right checksum."""
    start = PREAMBLE.pack(kind.mark, *PREAMBLE.unpack(data[: PREAMBLE.size])[1:3], len(data))
    body = start + data[PREAMBLE.size : -32]
    return body + hashlib.sha256(body).digest()


@pytest.mark.parametrize("name", [*FORESTS, "arm"])
def test_damage_behind_right_checksums_is_refused_or_harmless(name, good, tmp_path):
    """A damaged section either is refused with the one error, or gives answers."""
    rng = np.random.default_rng(list(TREATMENT_SECTIONS).index(name))
    frame, errors = make_table()[0], []
    for _ in range(FILES // 10):
        section = damage(take_apart(good)[1][name], rng)
        if name in FORESTS and len(section) > PREAMBLE.size + 32:
            section = seal(section, FOREST_FILE)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                loaded = load_bytes(replace_section(good, name, section), tmp_path)
            except ModelFileError as error:
                errors.append(str(error))
            else:
                answers(loaded, frame)
    assert errors
    assert all(error.startswith(str(tmp_path / "forged.cqrf")) for error in errors)
