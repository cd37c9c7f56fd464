"""The model file of a conformal forest: the same bounds after it, and one typed error."""

import contextlib
import hashlib
import json
import os
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from cqrf import CensoredQuantileForest, ModelFileError, censored
from cqrf._conformal.file import SECTIONS
from cqrf._model.file_bytes import CONFORMAL_FILE, FOREST_FILE, PREAMBLE
from cqrf.conformal import ConformalForest

FILES = int(os.environ.get("CQRF_FUZZ_FILES", "1000"))
N = 120


def make_table():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(N, 2)).round(2), columns=["a", "ü"])
    frame["c"] = rng.choice(["x", "y", "z"], N)
    time = rng.exponential(np.exp(frame["a"].to_numpy())).round(1) + 0.1
    return frame, censored(time, rng.random(N) < 0.7), rng


def small(**settings):
    return CensoredQuantileForest(n_estimators=6, random_state=3, n_jobs=1, **settings)


def make_models():
    """Fitted models of every kind, by name."""
    frame, y, rng = make_table()
    X = frame[["a"]].to_numpy()
    c = y["time"] + np.where(y["event"], rng.exponential(5.0, N), 0)
    late = censored(y["time"], y["event"], np.where(np.arange(N) % 2, -np.inf, y["time"] / 2))
    weighted = {"sample_weight": rng.integers(0, 3, N), "groups": np.arange(N) // 3}

    def fit(*data, forest=None, arguments=None, **settings):
        settings = {"coverage": 0.7, "random_state": 1, **settings}
        return ConformalForest(forest or small(), **settings).fit(*data, **(arguments or {}))

    return {
        "frame": lambda: (fit(frame, y), frame),
        "numbers": lambda: (fit(X, y), X),
        "nothing censored": lambda: (fit(frame, y["time"]), frame),
        "fixed": lambda: (fit(frame, y, method="fixed", cutoff=np.float64(1.5)), frame),
        "known C": lambda: (fit(frame, y, arguments={"censoring_time": c}), frame),
        "fixed, known C": lambda: (
            fit(frame, y, method="fixed", arguments={"censoring_time": c}),
            frame,
        ),
        "entry": lambda: (fit(frame, late), frame),
        "weights and groups": lambda: (fit(frame, y, arguments=weighted), frame),
        "own forest of C": lambda: (
            fit(frame, y, censoring_forest=small(split_quantiles=(0.2, 0.8))),
            frame,
        ),
        "default forest": lambda: (
            ConformalForest(random_state=0).set_params(coverage=0.6).fit(frame[:40], y[:40]),
            frame,
        ),
    }


def answers(model, X):
    return [model.predict_lower(X), model.predict_interval(X), model.level_, model.coverage_]


def assert_same(a, b, X):
    for one, other in zip(answers(a, X), answers(b, X), strict=True):
        np.testing.assert_array_equal(one, other)
    for name in ("cutoff_", "weights_depend_on_query_"):
        assert getattr(a, name) == getattr(b, name)
    assert (a.censoring_forest_ is None) == (b.censoring_forest_ is None)


@pytest.mark.parametrize("kind", make_models())
def test_bounds_are_the_same_after_save_and_load(kind, tmp_path):
    model, X = make_models()[kind]()
    model.save(tmp_path / "m.cqrf")
    loaded = ConformalForest.load(tmp_path / "m.cqrf")
    assert_same(model, loaded, X)
    assert loaded.get_params().keys() == model.get_params().keys()
    for name, value in model.get_params(deep=True).items():
        if not isinstance(value, CensoredQuantileForest):
            expected = list(value) if isinstance(value, tuple) else value
            assert loaded.get_params()[name] == expected, name
    loaded.save(tmp_path / "again.cqrf")
    assert (tmp_path / "again.cqrf").read_bytes() == (tmp_path / "m.cqrf").read_bytes()
    for scores in (loaded.lower_scores_, loaded.upper_scores_):
        assert scores is None or scores[0].flags.writeable


def test_a_loaded_model_can_be_fitted_again(tmp_path):
    frame, y, _ = make_table()
    model = ConformalForest(small(), random_state=1).fit(frame, y)
    model.save(tmp_path / "m")
    loaded = ConformalForest.load(tmp_path / "m")
    assert not hasattr(loaded.forest, "model_")
    assert_same(loaded.fit(frame, y), model, frame)


def test_what_was_set_after_the_fit_is_kept_as_a_setting_only(tmp_path):
    frame, y, _ = make_table()
    model = ConformalForest(small(), coverage=0.7, random_state=1).fit(frame, y)
    model.set_params(coverage=0.9, random_state=np.random.RandomState(0))
    model.save(tmp_path / "m")
    loaded = ConformalForest.load(tmp_path / "m")
    assert (loaded.coverage_, loaded.coverage, loaded.random_state) == (0.7, 0.9, None)
    assert_same(model, loaded, frame)


def test_notes_are_kept(tmp_path):
    frame, y, _ = make_table()
    model = ConformalForest(small(), random_state=1).fit(frame, y)
    model.save(tmp_path / "m", notes={"source": "ward 3 <ä>"})
    loaded = ConformalForest.load(tmp_path / "m")
    assert loaded.notes_ == {"source": "ward 3 <ä>"}
    loaded.save(tmp_path / "again")
    assert ConformalForest.load(tmp_path / "again").notes_ == loaded.notes_
    assert not hasattr(loaded.fit(frame, y), "notes_")
    for notes in ({"a": 1}, {1: "a"}, "text", {"a": "x" * 70000}):
        with pytest.raises(ValueError, match="notes"):
            model.save(tmp_path / "m", notes=notes)


def test_a_file_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    frame, y, _ = make_table()
    model = ConformalForest(small(), random_state=1).fit(frame, y)
    model.save(tmp_path / "m")
    before = (tmp_path / "m").read_bytes()

    def fail(fd):
        raise OSError("no space left")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="no space"):
        model.fit(frame[:60], y[:60]).save(tmp_path / "m")
    assert (tmp_path / "m").read_bytes() == before
    assert os.listdir(tmp_path) == ["m"]
    with pytest.raises(NotFittedError):
        ConformalForest().save(tmp_path / "other")


def test_a_file_of_the_other_kind_says_which_class_loads_it(tmp_path):
    frame, y, _ = make_table()
    model = ConformalForest(small(), random_state=1).fit(frame, y)
    model.save(tmp_path / "conformal")
    model.forest_.save(tmp_path / "forest")
    with pytest.raises(ModelFileError, match=r"conformal: holds a conformal forest, not a forest"):
        CensoredQuantileForest.load(tmp_path / "conformal")
    with pytest.raises(ModelFileError, match=r"load it with cqrf.conformal.ConformalForest.load"):
        CensoredQuantileForest.load(tmp_path / "conformal")
    with pytest.raises(ModelFileError, match=r"load it with cqrf.CensoredQuantileForest.load"):
        ConformalForest.load(tmp_path / "forest")


# Files that are none.


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    """The bytes of a small sound file, with every section in use."""
    model, _ = make_models()["frame"]()
    path = tmp_path_factory.mktemp("good") / "m"
    model.save(path)
    data = path.read_bytes()
    assert all(take_apart(data)[1].values())
    return data


def take_apart(data):
    header_length = int.from_bytes(data[12:16], "little")
    header = json.loads(data[PREAMBLE.size :][:header_length])
    sections, at = {}, PREAMBLE.size + header_length + -header_length % 8
    for name, length in header["sections"].items():
        sections[name] = data[at : at + length]
        at += length + -length % 8
    assert at == len(data) - 32
    return header, sections


def put_together(header, sections, kind=CONFORMAL_FILE):
    """A file with a right length and a right checksum, whatever is in it."""
    text = json.dumps(header).encode()
    body = b"".join(part + bytes(-len(part) % 8) for part in (text, *sections.values()))
    length = PREAMBLE.size + len(body) + 32
    data = PREAMBLE.pack(kind.mark, kind.newest_format, len(text), length) + body
    return data + hashlib.sha256(data).digest()


def load_bytes(data, tmp_path):
    path = tmp_path / "forged.cqrf"
    path.write_bytes(data)
    return ConformalForest.load(path)


def refused(data, tmp_path, match=None):
    with pytest.raises(ModelFileError, match=match) as caught:
        load_bytes(data, tmp_path)
    assert str(caught.value).startswith(str(tmp_path / "forged.cqrf"))


def forge(data, name, change):
    header, sections = take_apart(data)
    array = np.frombuffer(sections[name], SECTIONS[name])
    sections[name] = np.ascontiguousarray(change(array), array.dtype).tobytes()
    header["sections"][name] = len(sections[name])
    return put_together(header, sections)


def test_the_tools_of_these_tests_make_files_that_load(good, tmp_path):
    frame, _, _ = make_table()
    forged = load_bytes(forge(good, "lower_scores", lambda array: array), tmp_path)
    assert_same(load_bytes(good, tmp_path), forged, frame)


def replace_at(place, value):
    def change(array):
        array = array.copy()
        array[place] = value
        return array

    return change


HOSTILE_SECTIONS = {
    "no forest": ("forest", lambda a: a[:0]),
    "forest cut short": ("forest", lambda a: a[:-8]),
    "forest with more behind": ("forest", lambda a: np.append(a, a[:8])),
    "forest with a flipped bit": ("forest", lambda a: np.append(a[:-40], a[-40:] ^ 1)),
    "forest of C that is none": ("censoring_forest", lambda a: a * 0),
    "score above 1": ("lower_scores", replace_at(0, 1.5)),
    "score below 0": ("lower_scores", replace_at(-1, -0.5)),
    "score that is NaN": ("lower_scores", replace_at(1, np.nan)),
    "scores that rise": ("lower_scores", lambda a: a[::-1]),
    "one score less": ("lower_scores", lambda a: a[:-1]),
    "weight that is negative": ("lower_weight", replace_at(0, -1)),
    "weight that is infinite": ("lower_weight", replace_at(-1, np.inf)),
    "weights that fall": ("lower_weight", lambda a: a[::-1]),
    "one weight more": ("lower_weight", lambda a: np.append(a, a[-1])),
    "upper score that is NaN": ("upper_scores", replace_at(0, np.nan)),
    "upper weight less": ("upper_weight", lambda a: a[:-1]),
}


@pytest.mark.parametrize("case", HOSTILE_SECTIONS)
def test_hostile_numbers_with_a_right_checksum_are_refused(case, good, tmp_path):
    name, change = HOSTILE_SECTIONS[case]
    refused(forge(good, name, change), tmp_path, "does not hold a conformal forest")


HOSTILE_HEADERS = {
    **{f"coverage {value}": {"coverage": value} for value in (0.0, 1.0, 1, "0.9", None, True)},
    **{f"cutoff {value}": {"cutoff": value} for value in (1, "1", True, [])},
    **{
        f"{side} total {value}": {f"{side}_total": value}
        for side in ("lower", "upper")
        for value in (-1.0, "1", 10**30, [], True)
    },
    "weights of the query without a cutoff": {"weights_depend_on_query": True},
    "weights of the query as a number": {"weights_depend_on_query": 0},
    "shares above 1": {"lower_total": None},
    "upper shares above 1": {"upper_total": None},
    "settings as a list": {"settings": []},
    "a setting within a setting": {"settings": {"coverage": {"a": 1}}},
    "a forest as a setting": {"settings": {"coverage": 0.9, "forest": "x"}},
    "settings of one forest": {"forest_settings": {"forest": None}},
    "forest settings as a list": {"forest_settings": []},
    "forest settings as text": {"forest_settings": {"forest": "x", "censoring_forest": None}},
    "notes of numbers": {"notes": {"a": 1}},
    "no sections": {"sections": {}},
    "sections as a list": {"sections": [["forest", 8]]},
}


@pytest.mark.parametrize("case", HOSTILE_HEADERS)
def test_hostile_headers_with_a_right_checksum_are_refused(case, good, tmp_path):
    header, sections = take_apart(good)
    header.update(HOSTILE_HEADERS[case])
    refused(put_together(header, sections), tmp_path, "does not hold a conformal forest")


def test_scores_of_0_and_weights_below_1_are_read(good, tmp_path):
    forged = forge(good, "lower_scores", replace_at(-1, 0.0))
    assert load_bytes(forged, tmp_path).lower_scores_.scores[-1] == 0
    header, sections = take_apart(good)
    for total in (0.0, 0.5):
        header["lower_total"] = total
        model = load_bytes(put_together(header, sections), tmp_path)
        assert model.lower_scores_.total_weight == total


def test_a_header_without_a_name_is_refused(good, tmp_path):
    for name in take_apart(good)[0]:
        header, sections = take_apart(good)
        del header[name]
        if name == "cqrf":  # the version that wrote the file, for people
            load_bytes(put_together(header, sections), tmp_path)
        else:
            refused(put_together(header, sections), tmp_path, name)


def test_forests_that_do_not_belong_together_are_refused(good, tmp_path):
    frame, y, _ = make_table()
    header, sections = take_apart(good)

    def other(X, **settings):
        path = tmp_path / "other"
        small(**settings).fit(X, y).save(path)
        data = path.read_bytes()
        return put_together(
            header | {"sections": header["sections"] | {"censoring_forest": len(data)}},
            sections | {"censoring_forest": data},
        )

    load_bytes(other(frame), tmp_path)
    refused(other(frame[["a", "ü"]]), tmp_path, "features of the two forests")
    refused(other(frame.rename(columns={"a": "b"})), tmp_path, "features of the two forests")
    refused(other(frame, censoring="left"), tmp_path, "censoring of a forest")


def test_a_file_from_before_working_models_had_none(good, tmp_path):
    header, sections = take_apart(good)
    del header["forest_settings"]["forest"]["working_model"]
    assert load_bytes(put_together(header, sections), tmp_path).forest.working_model is None
    header["forest_settings"]["forest"]["working_model"] = "cox"
    assert load_bytes(put_together(header, sections), tmp_path).forest.working_model == "cox"


def test_a_newer_version_is_named(good, tmp_path):
    header, sections = take_apart(good)
    newer = CONFORMAL_FILE._replace(newest_format=CONFORMAL_FILE.newest_format + 1)
    refused(put_together(header, sections, newer), tmp_path, "Upgrade cqrf")
    for place in (header["settings"], header["forest_settings"]["forest"]):
        place["patience"] = 3
        refused(put_together(header, sections), tmp_path, "patience.*Upgrade cqrf")
        del place["patience"]
    forest = sections["forest"]
    sections["forest"] = forest[:8] + (99).to_bytes(4, "little") + forest[12:]
    refused(put_together(header, sections), tmp_path, "its forest has format 99.*Upgrade cqrf")


def test_a_file_cut_short_anywhere_is_refused(good, tmp_path):
    for length in [*range(0, 100), *range(100, len(good), 997), len(good) - 1]:
        refused(good[:length], tmp_path)
    refused(good + b"\0", tmp_path, "added to")


@pytest.mark.parametrize("data", [b"", CONFORMAL_FILE.mark, b"time,event\n3,1\n" * 9])
def test_other_files_are_refused(data, tmp_path):
    refused(data, tmp_path, "is not a model file of cqrf")


# Random damage.


def damage(data, rng):
    """The bytes with one change."""
    data = bytearray(data)
    at, length = int(rng.integers(0, len(data))), int(rng.integers(1, 40))
    match rng.integers(0, 6):
        case 0:
            data[at] ^= 1 << int(rng.integers(0, 8))
        case 1:
            data[at : at + length] = rng.bytes(length)
        case 2:
            del data[at : at + length]
        case 3:
            data[at:at] = rng.bytes(length)
        case 4:
            place = at - at % 8
            data[place : place + 8] = np.float64(rng.choice([np.nan, np.inf, -1, 0.5])).tobytes()
        case 5:
            data[at : at + length] = bytes([int(rng.choice([0, 1, 127, 128, 255]))]) * length
    return bytes(data)


def seal(data, kind):
    """The bytes with a right mark, length and checksum."""
    body = data[PREAMBLE.size : -32]
    header_length = int.from_bytes(data[12:16], "little")
    length = PREAMBLE.size + len(body) + 32
    start = PREAMBLE.pack(kind.mark, kind.newest_format, header_length, length)
    return start + body + hashlib.sha256(start + body).digest()


def damage_section(data, rng):
    """One section damaged, its lengths and checksums right."""
    header, sections = take_apart(data)
    name = str(rng.choice([name for name in sections if sections[name]]))
    changed = damage(sections[name], rng)
    if "forest" in name and len(changed) > PREAMBLE.size + 32:
        changed = seal(changed, FOREST_FILE)
    sections[name] = changed
    header["sections"][name] = len(changed)
    return put_together(header, sections)


def damage_header(data, rng):
    """One value of the header changed."""
    header, sections = take_apart(data)
    place = header["sections"] if rng.random() < 0.3 else header
    name = str(rng.choice(list(place)))
    values = [0, -1, 1, 0.5, 2.0, 2**63, 10**30, "x", None, [], {}, True]
    place[name] = values[rng.integers(0, len(values))]
    return put_together(header, sections)


def test_damaged_files(tmp_path):
    rng = np.random.default_rng([0, *os.urandom(4)] if "CQRF_FUZZ_FILES" in os.environ else 0)
    frame, _, _ = make_table()
    sound = []
    for kind in ("frame", "known C", "fixed, known C", "entry", "weights and groups"):
        make_models()[kind]()[0].save(tmp_path / "sound")
        sound.append((tmp_path / "sound").read_bytes())
    counts = {"refused": 0, "loaded": 0}
    for _ in range(FILES):
        data, kind = sound[rng.integers(0, len(sound))], rng.random()
        if kind < 0.2:
            data = damage(data, rng)
        elif kind < 0.4:
            data = seal(damage(data, rng), CONFORMAL_FILE)
        else:
            data = (damage_section if kind < 0.8 else damage_header)(data, rng)
        try:
            model = load_bytes(data, tmp_path)
        except ModelFileError:
            counts["refused"] += 1
            continue
        counts["loaded"] += 1
        use(model, frame)
    print(f"{counts['refused']} files refused, {counts['loaded']} loaded and used")
    assert counts["refused"] > counts["loaded"] > 0


def use(model, frame):
    """A file that loads holds a conformal forest: it answers, or says why it will not."""
    X = frame.iloc[:5].set_axis(model.forest_.feature_names_in_, axis=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for ask in (model.predict_lower, model.predict_interval):
            with contextlib.suppress(ValueError, TypeError):
                assert not np.isnan(ask(X)).any()
        assert 0 <= model.level_ <= 1
