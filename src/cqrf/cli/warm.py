"""``cqrf warm``: compile the kernels of the common paths, so that the cache has them.

Numba compiles a kernel for the types of its arguments. Each step below is a use of the library with
its own types: whatever it calls is compiled, or read from the cache if it is there.
"""

from __future__ import annotations

import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cqrf import CensoredQuantileForest, censored
from cqrf._forest.criteria import CRITERIA
from cqrf._forest.grower import grow_trees
from cqrf._runtime.compiling import notice
from cqrf._runtime.progress import show_progress, show_waiting
from cqrf.cli.console import count, is_terminal, print_message
from cqrf.cli.outputs import Outputs, predict_columns

N_ROWS = 80
LEVELS, TIMES = [0.25, 0.5], [0.5, 1.0]
FULL = Outputs(LEVELS, TIMES, interval=0.5, mean=True, max_quantile=True)


def compile_kernels() -> None:
    """Run every step, and say how many kernels were compiled and where they are kept."""
    folder = find_cache()
    # This command says itself what it does, and has a bar of its own.
    notice.is_announced = True
    show_waiting(False)
    began = time.perf_counter()
    steps = run_steps()
    for _ in show_progress(steps, len(STEPS), len(STEPS), "steps") if is_terminal() else steps:
        pass
    seconds = time.perf_counter() - began
    if notice.n_kernels:
        done = f"Compiled {count(notice.n_kernels, 'kernel')} in {seconds:.1f} s, kept in {folder}"
    else:
        done = f"Nothing to compile: all kernels are in {folder}"
    print_message(done)


def find_cache() -> Path:
    """Folder of the compiled kernels; raises a ValueError if there is none."""
    kept = getattr(getattr(grow_trees, "stats", None), "cache_path", None)
    if kept is None:
        raise ValueError(
            "there is no folder to keep compiled kernels in: set NUMBA_CACHE_DIR to one that can "
            "be written."
        )
    folder = Path(kept)
    return folder.parent.parent if folder.name == "__pycache__" else folder.parent


def run_steps() -> Iterator[str]:
    """Run the steps, and yield the name of each after its end."""
    for name, step in STEPS.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            step()
        yield name


def make_rows() -> tuple[NDArray[np.float64], NDArray[np.void], NDArray[np.float64]]:
    """Features, targets and weights of some rows."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_ROWS, 4))
    time = np.exp(X[:, 0]) * rng.exponential(size=N_ROWS) + 0.01
    return X, censored(time, rng.random(N_ROWS) < 0.7), rng.random(N_ROWS) + 0.5


def make_frame(X: NDArray[np.float64]) -> pa.Table:
    """The features with missing values, and a category."""
    X = X.copy()
    X[::7, 1] = np.nan
    labels = np.array(["red", "green", "blue", None], dtype=object)[np.arange(N_ROWS) % 4]
    return pa.table({**{f"x{j}": X[:, j] for j in range(4)}, "colour": labels.tolist()})


def make_forest(**settings: Any) -> CensoredQuantileForest:
    """A forest that is fitted in no time; without a working model unless one is named."""
    defaults = {"n_estimators": 20, "random_state": 0, "working_model": None}
    return CensoredQuantileForest(**{**defaults, **settings})


def use_criteria() -> None:
    """Fit with each splitting criterion, to an array."""
    X, y, _ = make_rows()
    for criterion in CRITERIA:
        make_forest(criterion=criterion).fit(X, y).predict(X, LEVELS)


def use_weights() -> None:
    """Fit with sample weights and clusters, and score."""
    X, y, weight = make_rows()
    for criterion in CRITERIA:
        forest = make_forest(criterion=criterion).fit(X, y, weight, np.arange(N_ROWS) // 2)
    read_everything(forest, X)
    forest.score(X, y)


def use_frames() -> None:
    """Fit to a frame with categories and missing values, with and without weights."""
    X, y, weight = make_rows()
    frame = make_frame(X)
    for criterion in CRITERIA:
        for each in (None, weight):
            forest = make_forest(criterion=criterion).fit(frame, y, each)
            read_everything(forest, frame)


def use_entries() -> None:
    """Fit rows that enter late, and times that are censored on the left."""
    X, y, _ = make_rows()
    entered = censored(y["time"], y["event"], entry=y["time"] * (np.arange(N_ROWS) % 2) / 2)
    read_everything(make_forest().fit(X, entered), X)
    read_everything(make_forest(censoring="left").fit(X, y), X)


def use_solvers() -> None:
    """Solve with the other rule and the other estimates of the censoring survival."""
    X, y, _ = make_rows()
    forest = make_forest().fit(X, y)
    for censoring_survival in ("beran", "knn", "km"):
        for solver in ("root", "argmin"):
            forest.set_params(solver=solver, censoring_survival=censoring_survival)
            forest.predict(X, LEVELS)
            forest.max_quantile(X)


def use_bags() -> None:
    """Standard errors and confidence intervals."""
    X, y, _ = make_rows()
    forest = make_forest(bag_size=2).fit(X, y)
    read_everything(forest, X)
    forest.survival_confidence_interval(X, TIMES)
    forest.quantile_confidence_interval(X, LEVELS)


def use_working_model() -> None:
    """Fit with a working model: numbers, categories, weights, entries, left censoring, bags."""
    X, y, weight = make_rows()
    entered = censored(y["time"], y["event"], entry=y["time"] * (np.arange(N_ROWS) % 2) / 2)
    frame = make_frame(X)
    groups = np.arange(N_ROWS) // 2
    for rows, target, each in ((X, y, None), (X, y, weight), (frame, y, None), (frame, y, weight)):
        for bag_size in (1, 2):
            forest = make_forest(working_model="cox", bag_size=bag_size)
            read_everything(forest.fit(rows, target, each, groups), rows)
        forest.survival_confidence_interval(rows, TIMES)
        forest.quantile_confidence_interval(rows, LEVELS)
        forest.score(rows, target)
    for rows in (X, frame):
        for each in (None, weight):
            read_everything(make_forest(working_model="cox").fit(rows, entered, each), rows)
    read_everything(make_forest(working_model="cox", censoring="left").fit(X, y), X)


def use_files() -> None:
    """Save and load, and what is printed and shown about a model."""
    from cqrf.evaluation import evaluate

    X, y, _ = make_rows()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "warm.cqrf"
        make_forest().fit(X, y).save(path)
        forest = CensoredQuantileForest.load(path)
    read_everything(forest, X)
    evaluate(forest)
    evaluate(forest, X, y)


def use_conformal() -> None:
    """Conformal bounds and intervals, by both methods."""
    from cqrf.conformal import ConformalForest

    X, y, _ = make_rows()
    known = np.where(y["event"], y["time"] + 1.0, y["time"])
    for method in ("adaptive", "fixed"):
        for censoring_time in (None, known):
            forest = ConformalForest(make_forest(), method=method, random_state=0)
            forest.fit(X, y, censoring_time).predict_interval(X)
            forest.predict_lower(X)


def read_everything(forest: CensoredQuantileForest, X: Any) -> None:
    """Every kind of prediction, also out of bag and given a time survived."""
    predict_columns(forest, X, FULL)
    forest.predict_survival(X)
    forest.predict_censoring(X, TIMES)
    forest.weights(X)
    forest.predict_cumulative_hazard_function(X)
    forest.predict_survival_oob(TIMES)
    if forest.censoring == "right":
        predict_columns(forest, X, FULL, 0.1)
    forest.score_oob()


STEPS: dict[str, Callable[[], None]] = {
    "criteria": use_criteria,
    "weights": use_weights,
    "frames": use_frames,
    "entries": use_entries,
    "solvers": use_solvers,
    "bags": use_bags,
    "working model": use_working_model,
    "files": use_files,
    "conformal": use_conformal,
}
