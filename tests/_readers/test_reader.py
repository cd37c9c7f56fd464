"""Readers: weights are made once for all of them, whatever the chunks and the threads."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from cqrf import CensoredQuantileForest, StepCurves, censored
from cqrf._forest import weights as forest_weights_module
from cqrf._model import kinds
from cqrf._model.queries import (
    encode_queries,
)
from cqrf._model.settings import read_solver
from cqrf._readers import errors, reader
from cqrf._readers.curves import (
    CensoringAt,
    CensoringCurves,
    RestrictedMean,
    SurvivalAt,
    SurvivalCurves,
)
from cqrf._readers.errors import Confidence, QuantileIntervals, SurvivalErrors, check_errors
from cqrf._readers.quantiles import MaxLevel, Quantiles
from cqrf._readers.reader import Reader, read_one, read_weights
from cqrf._readers.weight_rows import WeightRows
from cqrf._survival.little_bags import survival_interval
from cqrf.datasets import make_aft

LEVELS = np.array([0.005, 0.25, 0.5, 0.995])
TIMES = [1.0, 2.0, 3.5]


@pytest.fixture(scope="module")
def data():
    return make_aft(200, 4, random_state=0)


@pytest.fixture(scope="module", params=["right", "left"])
def forest(request, data):
    unfitted = CensoredQuantileForest(
        n_estimators=40, bag_size=2, random_state=0, censoring=request.param
    )
    return unfitted.fit(data.X, forest_target(unfitted, data))


@pytest.fixture
def queries(forest, data):
    return encode_queries(forest.model_, data.X[:37])


def all_readers(forest):
    solver = read_solver(forest, forest.model_.censoring)
    return [
        WeightRows(),  # first: a reader must leave the weights as they are
        Quantiles(solver, LEVELS),
        MaxLevel(solver),
        SurvivalCurves(),
        CensoringCurves(),
        SurvivalAt(TIMES),
        CensoringAt(TIMES),
        RestrictedMean(),
        RestrictedMean(2.0),
        SurvivalErrors(TIMES),
        QuantileIntervals(solver, LEVELS, 1.96),
    ]


def flatten(result):
    """Arrays of any result."""
    if isinstance(result, StepCurves):
        return [result.offsets, result.times, result.values, result.initial]
    if hasattr(result, "indptr"):
        return [result.indptr, result.indices, result.data, np.array(result.shape)]
    return list(result) if isinstance(result, tuple) else [result]


def assert_same(found, expected):
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        for a, b in zip(flatten(one), flatten(other), strict=True):
            assert_array_equal(a, b)


def test_together_and_alone_readers_give_the_same(forest, queries):
    together = read_weights(forest.model_, queries, all_readers(forest))
    alone = [read_one(forest.model_, queries, one) for one in all_readers(forest)]
    assert_same(together, alone)


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("chunk_weights", [1, 300, 10**9])
def test_chunks_and_threads_change_nothing(forest, queries, n_jobs, chunk_weights, monkeypatch):
    expected = read_weights(forest.model_, queries, all_readers(forest), 1)
    monkeypatch.setattr(forest_weights_module, "CHUNK_WEIGHTS", chunk_weights)
    assert_same(read_weights(forest.model_, queries, all_readers(forest), n_jobs), expected)


def count_calls(monkeypatch, name, module=reader):
    calls, original = [], getattr(module, name)

    def counted(*arguments, **options):
        calls.append(name)
        return original(*arguments, **options)

    monkeypatch.setattr(module, name, counted)
    return calls


@pytest.fixture(scope="module")
def plain(forest, data):
    settings = {"working_model": None, "n_jobs": 1}
    return clone(forest).set_params(**settings).fit(data.X, forest_target(forest, data))


def forest_target(forest, data):
    y, is_right = data.y, forest.censoring == "right"
    return y if is_right else censored(-y["time"], y["event"])


def test_leaves_weights_and_curves_are_made_once_for_all_readers(plain, data, monkeypatch):
    names = ("find_leaves", "forest_weights", "compute_steps", "step_curves")
    calls = {name: count_calls(monkeypatch, name) for name in names}
    calls["bag_variances"] = count_calls(monkeypatch, "bag_variances", errors)
    queries = encode_queries(plain.model_, data.X[:37])
    read_weights(plain.model_, queries, all_readers(plain), 1)
    made = {name: len(found) for name, found in calls.items()}
    # Standard errors of curves and of quantiles are at other times; curves are of T and of C.
    assert made == {
        "find_leaves": 1,
        "forest_weights": 1,
        "bag_variances": 2,
        "compute_steps": 1,
        "step_curves": 1,
    }


def test_with_a_working_model_weights_and_curves_are_made_once_for_each_kind(
    forest, queries, monkeypatch
):
    names = ("forest_weights", "compute_steps", "bag_moves", "mix_steps")
    calls = {name: count_calls(monkeypatch, name, kinds) for name in names}
    solver = read_solver(forest, forest.model_.censoring)
    levels = np.array([0.4, 0.6])
    readers = [SurvivalCurves(), SurvivalAt(TIMES), RestrictedMean(), SurvivalErrors(TIMES)]
    read_weights(forest.model_, queries, [*readers, Quantiles(solver, levels)], 1)
    made = {name: len(found) for name, found in calls.items()}
    assert made == {"forest_weights": 2, "compute_steps": 2, "bag_moves": 2, "mix_steps": 1}


def test_confidence_reads_what_its_parts_read_in_one_pass_over_the_bags(plain, data, monkeypatch):
    model, times = plain.model_, np.array(TIMES)
    solver, queries = read_solver(plain, model.censoring), encode_queries(model, data.X[:37])
    parts = [
        Quantiles(solver, LEVELS),
        QuantileIntervals(solver, LEVELS[:2], 1.96),
        SurvivalErrors(times),
    ]
    solution, ends, of_curves = (read_one(model, queries, part) for part in parts)
    calls = count_calls(monkeypatch, "bag_variances", errors)
    monkeypatch.setattr(forest_weights_module, "CHUNK_WEIGHTS", 10 * len(model.order))
    found = read_one(model, queries, Confidence(solver, LEVELS, 2, times, 1.96), 1)
    assert len(calls) == 4  # chunks of ten queries
    assert_array_equal(found.solution.values, solution.values)
    assert_array_equal(found.solution.last_neighbor, solution.last_neighbor)
    assert_array_equal(found.ends, ends)
    assert_array_equal(found.errors, of_curves)


def test_an_interval_takes_the_larger_error_on_either_side_of_the_quantile(plain, data):
    model, level, width = plain.model_, 0.4, 1.5
    solver, queries = read_solver(plain, model.censoring), encode_queries(model, data.X[:6])
    ends = read_one(model, queries, QuantileIntervals(solver, np.array([level]), width))[:, 0]
    curves = read_one(model, queries, SurvivalCurves())
    quantiles = read_one(model, queries, Quantiles(solver, np.array([level]))).fill("clip")[:, 0]
    earlier = -np.inf if model.censoring == "right" else np.inf
    sides = []
    for i, quantile in enumerate(quantiles):
        times = [quantile, np.nextafter(quantile, earlier)]
        error = read_one(model, queries.take([i]), SurvivalErrors(times))[0]
        sides.append(error.argmax())
        low, high = survival_interval(1 - level, width * error.max(), model.censoring)
        first, last = (
            min(t for t, s in zip(curves[i].times, curves[i].values, strict=True) if s <= bound)
            for bound in (high, low)
        )
        assert ends[i].tolist() == [min(first, quantile), max(last, quantile)]
    assert set(sides) == {0, 1}


def test_a_quantile_interval_makes_weights_once(plain, data, monkeypatch):
    calls = count_calls(monkeypatch, "forest_weights")
    plain.quantile_confidence_interval(data.X[:5], [0.25, 0.5])
    assert len(calls) == 1


def test_a_reader_of_ones_own_gets_every_query_once(forest, queries, monkeypatch):
    class RowSums(Reader):
        """Numbers of the queries, and the sums of their weights."""

        def read(self, chunk):
            numbers = np.arange(len(queries.codes))[chunk.rows]
            assert len(numbers) == chunk.n_queries
            rows = np.repeat(np.arange(chunk.n_queries), np.diff(chunk.weights.offsets))
            return numbers, np.bincount(rows, chunk.weights.values)

        def join(self, parts):
            return tuple(np.concatenate(column) for column in zip(*parts, strict=True))

    monkeypatch.setattr(forest_weights_module, "CHUNK_WEIGHTS", 300)
    numbers, sums = read_one(forest.model_, queries, RowSums(), 2)
    assert numbers.tolist() == list(range(37))
    assert_allclose(sums, 1)


def test_readers_agree_with_each_other(forest, queries):
    model = forest.model_
    solver = read_solver(forest, model.censoring)
    solution, limits, curves, at, mean, errors, ends, weights = read_weights(
        model,
        queries,
        [
            Quantiles(solver, LEVELS),
            MaxLevel(solver),
            SurvivalCurves(),
            SurvivalAt(TIMES),
            RestrictedMean(2.0),
            SurvivalErrors(TIMES),
            QuantileIntervals(solver, LEVELS, 1.96),
            WeightRows(),
        ],
    )
    assert_array_equal(at, curves(TIMES))
    assert_array_equal(mean, curves.restricted_mean(2.0, model.censoring))
    reached = limits[:, np.newaxis] + 1e-12 >= LEVELS
    if model.censoring == "left":
        reached = limits[:, np.newaxis] - 1e-12 <= LEVELS
    assert_array_equal(np.isfinite(solution.values), reached)
    assert (~reached).any()
    values = solution.fill("clip")
    assert (ends[..., 0] <= values).all()
    assert (values <= ends[..., 1]).all()
    assert errors.shape == at.shape
    lower, upper = survival_interval(at, 1.96 * errors, model.censoring)
    assert ((lower <= at) & (at <= upper)).all()
    assert_allclose(weights.sum(axis=1), 1)
    assert weights.shape == (37, 200)


def test_weights_are_in_the_order_of_the_table(forest, data, queries):
    # Without censoring the mean is the weighted mean of the times.
    plain = CensoredQuantileForest(n_estimators=20, random_state=0, working_model=None)
    plain.fit(data.X, data.y["time"])
    horizon = float(data.y["time"].max())
    weights, mean = read_weights(plain.model_, queries, [WeightRows(), RestrictedMean(horizon)])
    assert_allclose(weights @ data.y["time"], mean)


# What cannot be read


@pytest.mark.parametrize("horizon", [np.inf, np.nan, "late", True, None])
def test_a_horizon_is_a_finite_time(forest, queries, horizon):
    if horizon is None:
        default = read_one(forest.model_, queries, RestrictedMean())
        followed = read_one(forest.model_, queries, RestrictedMean(forest.model_.follow_up))
        assert_array_equal(default, followed)
    else:
        with pytest.raises(ValueError, match="must be a finite time"):
            read_one(forest.model_, queries, RestrictedMean(horizon))


def test_a_forest_without_bags_is_refused_before_any_weights_are_made(data, monkeypatch):
    forest = CensoredQuantileForest(n_estimators=4).fit(data.X, data.y)
    queries = encode_queries(forest.model_, data.X)
    calls = count_calls(monkeypatch, "find_leaves")
    solver = read_solver(forest, "right")
    for refused in (SurvivalErrors([1.0]), QuantileIntervals(solver, LEVELS, 2.0)):
        with pytest.raises(ValueError, match="fit with bag_size=2 or more"):
            read_weights(forest.model_, queries, [SurvivalCurves(), refused])
    with pytest.raises(ValueError, match="fit with bag_size=2 or more"):
        check_errors(forest.model_)
    assert calls == []


@pytest.mark.parametrize("times", [[[1.0]], [1.0, np.nan], "late"])
def test_times_are_a_list_of_numbers(times):
    with pytest.raises(ValueError, match="times must be"):
        SurvivalErrors(times)
