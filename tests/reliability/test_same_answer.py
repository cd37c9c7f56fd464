"""The same answer, bit for bit: for any number of threads, rows, chunks, and in other processes."""

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from cqrf import CensoredQuantileForest, censored
from cqrf._forest import weights as weights_room

LEVELS = [0.1, 0.5, 0.9]


def make_table(n=400, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.normal(size=(n, 4)).round(2), columns=list("abcd"))
    frame["colour"] = rng.choice(["red", "green", None], n)
    time = rng.exponential(np.exp(frame["a"] + (frame["colour"] == "red"))).round(2)
    return frame, censored(time, rng.random(n) < 0.7)


def fit(n_jobs=1, **settings):
    X, y = make_table()
    settings = {"n_estimators": 60, "bag_size": 2, "random_state": 5, **settings}
    return CensoredQuantileForest(n_jobs=n_jobs, **settings).fit(X, y)


def answers(forest, X):
    curves = forest.predict_survival(X)
    return [
        forest.predict(X, LEVELS, unidentified="clip"),
        forest.predict_mean(X),
        forest.max_quantile(X),
        curves.times,
        curves.values,
        forest.weights(X).data,
        forest.survival_standard_error(X, [0.5, 2.0]),
        forest.predict_oob(LEVELS, unidentified="clip"),
        np.array([forest.score_oob()]),
    ]


def assert_same(a, b):
    for one, other in zip(a, b, strict=True):
        assert np.array_equal(one, other, equal_nan=True)


@pytest.mark.parametrize("n_jobs", [2, 8, -1])
def test_any_number_of_threads_in_fit_and_predict(n_jobs):
    X, _ = make_table(150, seed=1)
    expected = answers(fit(1), X)
    assert_same(answers(fit(n_jobs), X), expected)
    assert_same(answers(fit(n_jobs).set_params(n_jobs=1), X), expected)
    assert_same(answers(fit(1).set_params(n_jobs=n_jobs), X), expected)


@pytest.mark.parametrize("numbers_in_a_chunk", [1, 1000, 10**9])
def test_any_size_of_chunk(numbers_in_a_chunk, monkeypatch):
    X, _ = make_table(150, seed=1)
    forest = fit(2)
    expected = answers(forest, X)
    monkeypatch.setattr(weights_room, "CHUNK_WEIGHTS", numbers_in_a_chunk)
    assert_same(answers(forest, X), expected)


@pytest.mark.slow
def test_one_row_or_a_million():
    rng = np.random.default_rng(2)
    X, y = make_table()
    numbers = X[list("abcd")].to_numpy()
    forest = CensoredQuantileForest(n_estimators=5, random_state=0, n_jobs=2).fit(numbers, y)
    million = rng.normal(size=(1_000_000, 4)).round(2)
    found = forest.predict(million, LEVELS, unidentified="clip")
    for row in [0, 1, 499_999, 500_000, *rng.integers(0, 1_000_000, 60), 999_999]:
        alone = forest.predict(million[row : row + 1], LEVELS, unidentified="clip")
        assert np.array_equal(found[row], alone[0])


ELSEWHERE = """
import json, sys
import numpy as np
from cqrf import CensoredQuantileForest

rng = np.random.default_rng(7)
X = rng.normal(size=(300, 3))
forest = CensoredQuantileForest.load(sys.argv[1])
again = CensoredQuantileForest(n_estimators=30, random_state=1).fit(X, np.exp(X[:, 0]))
for one in (forest, again):
    print(json.dumps([float.hex(x) for x in one.predict(X[:40])]))
"""


def test_another_process_fits_and_predicts_the_same(tmp_path):
    rng = np.random.default_rng(7)
    X = rng.normal(size=(300, 3))
    forest = CensoredQuantileForest(n_estimators=30, random_state=1).fit(X, np.exp(X[:, 0]))
    forest.save(tmp_path / "m.cqrf")
    program = [sys.executable, "-c", ELSEWHERE, str(tmp_path / "m.cqrf")]
    run = subprocess.run(program, capture_output=True, text=True, check=True)
    expected = [float.hex(x) for x in forest.predict(X[:40])]
    loaded, refitted = map(json.loads, run.stdout.splitlines())
    assert loaded == expected
    assert refitted == expected
