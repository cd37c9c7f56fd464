"""Ctrl-C ends work that would take hours, and the estimator is as it was before."""

import signal
import subprocess
import sys
import time

import pytest

PATIENCE = 240  # seconds; two on an idle machine

PROGRAM = """
import sys, time
import numpy as np
from cqrf import CensoredQuantileForest, tune

rng = np.random.default_rng(0)
X = rng.normal(size=(20000, 20))
y = np.exp(X[:, 0])
forest = CensoredQuantileForest(n_estimators=4, random_state=0, n_jobs={n_jobs})
forest.fit(X[:500], y[:500])
before, settings, held = forest.predict(X[:50]), forest.get_params(), dict(vars(forest))
asked = np.tile(X, (100, 1))
tune(forest, X[:500], y[:500], n_trials=2)
print("ready", flush=True)
try:
    {work}
    print("not interrupted", flush=True)
except KeyboardInterrupt:
    print("stopped", flush=True)
    forest.set_params(n_estimators=4)
    assert vars(forest).keys() == held.keys()
    assert all(vars(forest)[name] is held[name] for name in held if name != "n_estimators")
    assert (forest.predict(X[:50]) == before).all()
    print("as before", flush=True)
"""

WORK = {
    "fit": "forest.set_params(n_estimators=1000000).fit(X, y)",
    "predict": "[forest.predict(asked, [.1, .5, .9]) for _ in range(1000)]",
    "predict_survival": "[forest.predict_survival(asked, [1.0, 2.0]) for _ in range(1000)]",
    "predict_oob": "[forest.predict_oob() for _ in range(1000000)]",
    "weights": "[forest.weights(asked[:200000]) for _ in range(1000)]",
    "tune": "tune(forest.set_params(n_estimators=500), X, y, n_trials=1000)",
}
SAMPLE = {("fit", 1), ("fit", 2), ("predict", 2)}  # the other cases are slow


CASES = [
    pytest.param(work, n_jobs, marks=[] if (work, n_jobs) in SAMPLE else pytest.mark.slow)
    for work in WORK
    for n_jobs in (1, 2)
]


@pytest.mark.parametrize(("work", "n_jobs"), CASES)
def test_interrupted(work, n_jobs):
    program = [sys.executable, "-c", PROGRAM.format(n_jobs=n_jobs, work=WORK[work])]
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True) as run:
        try:
            assert run.stdout.readline().strip() == "ready"
            time.sleep(1.0)
            assert run.poll() is None
            run.send_signal(signal.SIGINT)
            began = time.perf_counter()
            assert run.stdout.readline().strip() == "stopped"
            assert time.perf_counter() - began < PATIENCE
            assert run.stdout.readline().strip() == "as before"
            assert run.wait(timeout=PATIENCE) == 0
        finally:
            run.kill()
