"""Load: memory stays within what is stated, and indices within 64 bits."""

import os
import subprocess
import sys

import numpy as np
import pytest

from cqrf import CensoredQuantileForest
from cqrf._forest.layout import _starts
from cqrf._forest.spec import LEAF, Forest
from cqrf._forest.traversal import find_leaves
from cqrf._forest.weights import forest_weights
from cqrf._model.fit import check_n_rows

MEASURE = """
import ctypes, gc, warnings
import numpy as np
from cqrf import CensoredQuantileForest

warnings.simplefilter("ignore")

def memory(name):
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith(name))

def peak_of(work):
    "Most memory that the work takes beyond what was there before it, and in use."
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)  # what a compilation has left behind would be used again
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    before = memory("VmRSS")
    result = work()
    return memory("VmHWM") - before, result

rng = np.random.default_rng(0)

def make(n, p):
    X = rng.random((n, p))
    y = np.column_stack([rng.exponential(np.exp(X[:, 0])), rng.random(n) < 0.7])
    return X, y

def warm(forest, p):
    "Compile and load everything first."
    small = forest.get_params()
    forest.set_params(n_estimators=3, max_samples=0.5).fit(*make(300, p)).predict(make(10, p)[0])
    return forest.set_params(**small)
"""


def measure(program, **environment):
    if not sys.platform.startswith("linux"):
        pytest.skip("memory is measured where /proc tells it")
    done = subprocess.run(
        [sys.executable, "-c", MEASURE + program],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | environment,
    )
    return [float(number) for number in done.stdout.split()]


# What predict takes beyond X and its answer: the codes of X twice, once in each order, and chunks
# of weights in each thread.
CHUNK_BYTES = 100e6


@pytest.mark.slow
def test_a_million_rows_are_predicted_in_bounded_memory():
    n_features = 20
    (peak,) = measure(f"""
p, n_queries = {n_features}, 1_000_000
forest = warm(CensoredQuantileForest(n_estimators=8, random_state=0, n_jobs=2), p)
forest.fit(*make(100_000, p))
asked = make(n_queries, p)[0]
peak, found = peak_of(lambda: forest.predict(asked, [.1, .5, .9], unidentified="clip"))
assert found.shape == (n_queries, 3)
print(peak)
""")
    answers = 1_000_000 * 3 * (8 + 8 + 1)  # quantiles, the clipped ones, and which are unknown
    assert peak < 2 * n_features * 1_000_000 + 2 * answers + CHUNK_BYTES


# What glibc comes to by itself after some large arrays, sooner or later: larger ones are mapped
# on their own, and of smaller ones what is freed is kept for the next.
STEADY_MALLOC = {
    "MALLOC_MMAP_THRESHOLD_": str(32 << 20),
    "MALLOC_TRIM_THRESHOLD_": str(64 << 20),
}
SIZES = {
    "deep": (30_000, 10, {"n_estimators": 300}),
    "not honest": (
        30_000,
        10,
        {"n_estimators": 150, "honest": False, "criterion": "variance"},
    ),
    "many rows": (500_000, 20, {"n_estimators": 20, "max_samples": 50_000}),
    "small leaves": (20_000, 5, {"min_samples_leaf": 1, "min_samples_split": 2}),
    "large leaves": (30_000, 10, {"min_samples_leaf": 20, "min_samples_split": 60}),
    "shallow": (30_000, 8, {"max_depth": 6}),
    "bootstrap": (
        100_000,
        10,
        {"n_estimators": 30, "bootstrap": True, "max_samples": None, "honest": False},
    ),
    "working model": (30_000, 10, {"n_estimators": 300, "working_model": "cox"}),
    "working model, many rows": (
        500_000,
        20,
        {"n_estimators": 20, "max_samples": 50_000, "working_model": "cox"},
    ),
    "working model, large leaves": (
        30_000,
        10,
        {"min_samples_leaf": 20, "min_samples_split": 60, "working_model": "cox"},
    ),
    "working model, many columns": (20_000, 200, {"n_estimators": 50, "working_model": "cox"}),
    "working model, wide": (3_000, 2000, {"n_estimators": 20, "working_model": "cox"}),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", SIZES)
def test_the_estimate_of_memory_is_within_a_quarter(kind):
    n, p, settings = SIZES[kind]
    fit = f"""
n, p = {n}, {p}
settings = dict(random_state=0, n_jobs=2, working_model=None) | {settings!r}
forest = warm(CensoredQuantileForest(**settings), p)
data = make(n, p)
told = forest.estimate_memory(n, p)
peak, _ = peak_of(lambda: forest.fit(*data))
model = forest.model_
arrays = [getattr(model.forest, name) for name in model.forest.__dataclass_fields__]
arrays += [model.rows.codes, model.rows.time, model.rows.event, model.order,
           model.sampling.unit_of_row]
if model.working is not None:
    residual = model.residual_trees
    arrays += [*model.working[:4], residual.leaf_rows, residual.direct_hazard,
               residual.target.time, residual.target.event]
print(told.fit, told.model, peak, sum(array.nbytes for array in arrays))
"""
    # How far the threads' own peaks fall together differs from run to run.
    runs = [measure(fit, **STEADY_MALLOC) for _ in range(2)]
    peak = max(run[2] for run in runs)
    estimated_fit, estimated_model, _, kept = runs[0]
    assert 0.75 * peak < estimated_fit < 1.25 * peak
    assert 0.75 * kept < estimated_model < 1.25 * kept


def test_an_estimate_needs_sizes_and_settings_that_can_be():
    forest = CensoredQuantileForest()
    with pytest.raises(ValueError, match="n=0"):
        forest.estimate_memory(0, 5)
    with pytest.raises(ValueError, match="criterion"):
        CensoredQuantileForest(criterion="gini").estimate_memory(100, 5)
    small, large = forest.estimate_memory(1000, 5), forest.estimate_memory(10**9, 5)
    assert large.model > 10**5 * small.model
    assert not hasattr(forest, "model_")


# Beyond 2**31, without the memory for it: files that are nearly all hole.

FAR = 2**31


def sparse_array(path, length, dtype):
    """An array of zeros of which only the pages that are written exist."""
    with path.open("wb") as file:
        file.truncate(length * np.dtype(dtype).itemsize)
    return np.asarray(np.memmap(path, dtype, "r+"))


def test_leaves_beyond_2_to_the_31_rows_are_read(tmp_path):
    rows = sparse_array(tmp_path / "rows", FAR + 10, np.int32)
    rows[FAR + 1 : FAR + 6] = [1, 4, 0, 2, 3]
    forest = Forest(
        roots=np.array([0]),
        feature=np.array([0, LEAF, LEAF], np.int32),
        code=np.zeros(3, np.int32),
        missing_left=np.zeros(3, bool),
        left=np.array([1, 0, 1]),
        subsets=np.empty((0, 4), np.uint64),
        categorical=np.zeros(1, bool),
        leaf_offsets=np.array([FAR + 1, FAR + 3, FAR + 6]),
        leaf_rows=rows,
        importance=np.zeros(1),
    )
    leaves = find_leaves(forest, np.array([[0], [1]], np.uint8))
    weights = forest_weights(leaves, forest.leaf_rows, 5)
    assert weights.ranks.tolist() == [1, 4, 0, 2, 3]
    np.testing.assert_allclose(weights.values, [1 / 2, 1 / 2, 1 / 3, 1 / 3, 1 / 3])


def test_nodes_and_leaves_are_numbered_beyond_2_to_the_31():
    sizes = np.array([2**31 - 1, 2**31 - 1, 3], np.int32)
    assert _starts(sizes).tolist() == [0, 2**31 - 1, 2**32 - 2, 2**32 + 1]


def test_more_rows_than_a_rank_can_number_are_refused():
    check_n_rows(2**31 - 1)
    with pytest.raises(ValueError, match="2147483647 rows"):
        check_n_rows(2**31)
