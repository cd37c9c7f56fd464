"""Model files as each version wrote them: they load for ever, and answer as they did."""

import json
import re
import shutil
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import numpy as np
import pytest

from cqrf import CensoredQuantileForest
from cqrf._model.file_bytes import (
    CONFORMAL_FILE,
    FOREST_FILE,
    PREAMBLE,
    TREATMENT_FILE,
)
from cqrf._model.skill import compute_oob_skill
from cqrf.conformal import ConformalForest
from cqrf.datasets import load_pbc
from cqrf.effects import CensoredTreatmentForest

ROOT = Path(__file__).parents[2]
RELEASED = ROOT / "tests" / "data" / "models"
PATHS = sorted(RELEASED.glob("*.cqrf"))
KINDS = {"format": FOREST_FILE, "conformal": CONFORMAL_FILE, "treatment": TREATMENT_FILE}
TIMES = [500, 2000]


def read_kind(path):
    """Kind of a file by its name, and the format that its bytes say."""
    kind = KINDS[path.name.partition("_")[0]]
    mark, written_format, _, _ = PREAMBLE.unpack_from(path.read_bytes())
    assert mark == kind.mark
    assert path.stem.split("_")[1] == str(written_format)
    return kind, written_format


def ask_forest(path, expected, X):
    forest = CensoredQuantileForest.load(path)
    found = {"quantiles": forest.predict(X, expected["levels"], unidentified="clip")}
    if "score_oob" in expected:
        levels = (0.25, 0.5, 0.75)  # those of score_oob when the file was written
        oob = forest.predict_oob(levels, unidentified="clip")
        found["score_oob"] = compute_oob_skill(forest.model_, oob, levels)
    if "survival" in expected:
        found["survival"] = forest.predict_survival(X, TIMES, beyond="extend")
    if "incidence" in expected:
        found["incidence"] = forest.predict_incidence(X, TIMES, beyond="extend")
    if "standard_error" in expected:
        found["standard_error"] = forest.survival_standard_error(X, TIMES)
    return found


def ask_conformal(path, expected, X):
    forest = ConformalForest.load(path)
    return {"lower": forest.predict_lower(X), "interval": forest.predict_interval(X)}


def ask_treatment(path, expected, X):
    forest = CensoredTreatmentForest.load(path)
    return {
        "effect": forest.effect(X.drop(columns="trt"), target="survival", times=TIMES),
        "average": forest.ate(horizon=TIMES[1]).estimate,
    }


ANSWERS = {"format": ask_forest, "conformal": ask_conformal, "treatment": ask_treatment}


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_a_file_of_every_version_loads_for_ever(path):
    read_kind(path)
    expected = json.loads(path.with_suffix(".json").read_text())
    of_rows = next(expected[name] for name in ("quantiles", "lower", "effect") if name in expected)
    X = load_pbc(as_frame=True).X.iloc[: len(of_rows)]
    found = ANSWERS[path.name.partition("_")[0]](path, expected, X)
    assert set(found) == set(expected) - {"levels"}
    for name, values in found.items():
        np.testing.assert_allclose(values, expected[name], rtol=1e-9, err_msg=name)


@pytest.mark.parametrize("kind", KINDS.values(), ids=list(KINDS))
def test_there_is_a_file_of_every_format(kind):
    stored = {found[1] for found in map(read_kind, PATHS) if found[0] == kind}
    assert stored == set(range(1, kind.newest_format + 1))


def test_every_kind_of_outcome_has_a_file():
    forests = {path.stem: CensoredQuantileForest.load(path) for path in RELEASED.glob("f*.cqrf")}
    assert forests["format_3"].model_.working is not None
    assert forests["format_4"].model_.causes == ("death", "transplant")
    assert forests["format_4_intervals"].model_.lower is not None


def test_the_table_of_the_manual_has_every_format():
    page = (ROOT / "docs" / "how_to" / "save_and_load.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (forest|conformal forest|treatment forest) \| (\d+) \|", page, re.M)
    names = {"forest": FOREST_FILE, "conformal forest": CONFORMAL_FILE}
    names["treatment forest"] = TREATMENT_FILE
    assert [(names[kind], int(number)) for kind, number in rows] == [
        (kind, number) for kind in names.values() for number in range(1, kind.newest_format + 1)
    ]


def test_the_script_leaves_files_that_are_there(tmp_path):
    shutil.copytree(RELEASED, tmp_path, dirs_exist_ok=True)
    spec = spec_from_file_location("make", tmp_path / "make.py")
    make = module_from_spec(spec)
    spec.loader.exec_module(make)
    before = {path.name: path.read_bytes() for path in tmp_path.glob("*.*")}
    make.write_missing()
    assert {path.name: path.read_bytes() for path in tmp_path.glob("*.*")} == before
