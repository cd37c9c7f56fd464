"""Threads and processes around the forest: no hang, no abort, and the same answers."""

import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import joblib
import numpy as np
import pytest

import cqrf
from cqrf import CensoredQuantileForest

PATIENCE = 240  # seconds until a hang is called one

WORK = """
import numpy as np
from cqrf import CensoredQuantileForest

X = np.random.default_rng(0).normal(size=(60, 2))
forest = CensoredQuantileForest(n_estimators=6, random_state=0, n_jobs=2).fit(X, np.exp(X[:, 0]))
print(repr(forest.predict(X).sum()))
"""


def make_table(n=300):
    X = np.random.default_rng(0).normal(size=(n, 3))
    return X, np.exp(X[:, 0])


def run(program, **settings):
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        **settings,
    )
    assert done.returncode == 0, done.stderr
    return done


def test_many_threads_predict_on_one_forest():
    X, y = make_table()
    forest = CensoredQuantileForest(n_estimators=50, random_state=0, n_jobs=2).fit(X, y)
    expected = forest.predict(X), forest.predict_survival(X, [1.0, 2.0]), forest.predict_oob()

    def ask(_):
        return forest.predict(X), forest.predict_survival(X, [1.0, 2.0]), forest.predict_oob()

    with ThreadPoolExecutor(16) as pool:
        for found in pool.map(ask, range(64), timeout=PATIENCE):
            for one, other in zip(found, expected, strict=True):
                assert np.array_equal(one, other, equal_nan=True)


def test_many_threads_fit_at_once():
    X, y = make_table()

    def grow(seed):
        forest = CensoredQuantileForest(n_estimators=20, random_state=seed % 4, n_jobs=2)
        return forest.fit(X, y).predict(X)

    expected = [grow(seed) for seed in range(4)]
    with ThreadPoolExecutor(8) as pool:
        for seed, found in enumerate(pool.map(grow, range(24), timeout=PATIENCE)):
            assert np.array_equal(found, expected[seed % 4])


FORKED = """
import multiprocessing
import numpy as np
from cqrf import CensoredQuantileForest

X = np.random.default_rng(0).normal(size=(300, 3))
forest = CensoredQuantileForest(n_estimators=40, random_state=0, n_jobs=2).fit(X, np.exp(X[:, 0]))
expected = forest.predict(X)

def ask(_):
    fitted = CensoredQuantileForest(n_estimators=40, random_state=0, n_jobs=2)
    return forest.predict(X), fitted.fit(X, np.exp(X[:, 0])).predict(X)

with multiprocessing.get_context("fork").Pool(3) as pool:
    for answers in pool.imap(ask, range(9)):
        assert all((found == expected).all() for found in answers)
print("done")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_children_forked_after_a_fit_predict_and_fit():
    assert run(FORKED).stdout.strip() == "done"


def fit_and_ask(seed):
    X, y = make_table()
    return CensoredQuantileForest(n_estimators=20, random_state=seed, n_jobs=2).fit(X, y).predict(X)


@pytest.mark.parametrize("backend", ["loky", "threading", "multiprocessing"])
def test_joblib_around_the_forest(backend):
    found = joblib.Parallel(n_jobs=2, backend=backend)(
        joblib.delayed(fit_and_ask)(seed) for seed in range(4)
    )
    for seed in range(4):
        assert np.array_equal(found[seed], fit_and_ask(seed))


@pytest.mark.slow
def test_a_read_only_install_without_a_home(tmp_path):
    """No place for compiled kernels: said once, and everything works.

    Root may write anywhere, so what bars the way is not permissions: files where folders would
    have to be made.
    """
    package = tmp_path / "cqrf"
    shutil.copytree(
        Path(cqrf.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__", "paper_r")
    )
    for folder in [package, *(path for path in package.rglob("*") if path.is_dir())]:
        (folder / "__pycache__").touch()
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": "/dev/null",
        "PYTHONPATH": str(tmp_path),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    # The kernels of the linear algebra library decide the last digits of the working model.
    environment |= {k: v for k, v in os.environ.items() if k.startswith("OPENBLAS")}
    done = run(WORK, env=environment, cwd="/")
    assert done.stderr.count("set NUMBA_CACHE_DIR") == 1
    assert done.stdout == run(WORK).stdout


@pytest.mark.slow
def test_two_processes_compile_into_one_folder_at_once(tmp_path):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    program = [sys.executable, "-c", WORK]
    both = [
        subprocess.Popen(
            program, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    said = [process.communicate(timeout=PATIENCE) for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    assert said[0][0] == said[1][0] == run(WORK).stdout
    # What they left behind is whole: a third one reads it.
    assert run(WORK, env=environment).stdout == said[0][0]
