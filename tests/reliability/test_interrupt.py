"""Ctrl-C: a fit stops within two seconds and leaves the estimator as it was."""

import signal
import subprocess
import sys
import time

import pytest

PROGRAM = """
import sys, time
import numpy as np
from cqrf import CensoredQuantileForest

rng = np.random.default_rng(0)
X = rng.normal(size=(20000, 20))
y = np.exp(X[:, 0])
forest = CensoredQuantileForest(n_estimators=4, random_state=0, n_jobs={n_jobs})
forest.fit(X[:500], y[:500])
before = forest.predict(X[:50])
forest.n_estimators = 1000000
print("ready", flush=True)
try:
    forest.fit(X, y)
except KeyboardInterrupt:
    print("stopped", flush=True)
    forest.n_estimators = 4
    assert (forest.predict(X[:50]) == before).all()
    print("as before", flush=True)
"""


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_interrupted_fit(n_jobs):
    program = [sys.executable, "-c", PROGRAM.format(n_jobs=n_jobs)]
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True) as run:
        try:
            assert run.stdout.readline().strip() == "ready"
            time.sleep(1.5)
            assert run.poll() is None
            run.send_signal(signal.SIGINT)
            began = time.perf_counter()
            assert run.stdout.readline().strip() == "stopped"
            assert time.perf_counter() - began < 2.0
            assert run.stdout.readline().strip() == "as before"
            assert run.wait(timeout=10) == 0
        finally:
            run.kill()
