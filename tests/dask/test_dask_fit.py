"""A forest grown on Dask equals the local forest, bit for bit."""

import pickle

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from dask.delayed import delayed
from sklearn.base import clone

from cqrf import CensoredQuantileForest, censored
from cqrf._forest import binning
from cqrf._forest.sampling import derive_tree_keys, draw_subsamples, in_bag_bits
from cqrf.dask import DaskCensoredQuantileForest, fitting
from cqrf.dask.growing import TreeBatch, UnitSampling, draw_units
from cqrf.report.predictions import predict_table
from support.dask_tables import (
    EVEN,
    UNEVEN,
    WHOLE,
    as_dask,
    as_frame,
    assert_same_model,
    cut,
    wait_for_none,
)

SETTINGS = {"n_estimators": 12, "random_state": 3}


def fit_both(X, y, sizes=UNEVEN, *, sample_weight=None, groups=None, **settings):
    """The local forest of the whole table, and the Dask forest of the same table."""
    settings = SETTINGS | settings
    whole = np.asarray if isinstance(X, np.ndarray) else as_frame
    local = CensoredQuantileForest(**settings).fit(X, y, sample_weight, groups)
    on_dask = DaskCensoredQuantileForest(**settings).fit(
        as_dask(X, sizes),
        as_dask(whole(y), sizes),
        None if sample_weight is None else as_dask(whole(sample_weight), sizes),
        None if groups is None else as_dask(whole(groups), sizes),
    )
    return local, on_dask


@pytest.mark.parametrize("sizes", [EVEN, UNEVEN, WHOLE], ids=["even", "uneven", "whole"])
def test_partitions_do_not_matter(sizes, client, table):
    X, y = table
    rng = np.random.default_rng(1)
    entered = censored(y["time"], y["event"], np.where(rng.random(1200) < 0.5, -1, y["time"] / 2))
    weight, groups = rng.random(1200) * (rng.random(1200) < 0.9), rng.integers(0, 400, 1200)
    local, on_dask = fit_both(X, entered, sizes, sample_weight=weight, groups=groups)
    assert_same_model(local.model_, on_dask.model_)
    asked = X.iloc[:50]
    levels = [0.1, 0.5, 0.9]
    expected = local.predict(asked, levels, unidentified="clip")
    assert np.array_equal(expected, on_dask.to_local().predict(asked, levels, unidentified="clip"))
    assert np.array_equal(local.feature_importances_, on_dask.feature_importances_)
    assert on_dask.feature_names_in_.tolist() == list(X.columns)


@pytest.mark.parametrize(
    "settings",
    [
        {"criterion": "variance"},
        {"criterion": "quantile", "honest": False},
        {"criterion": "logrank", "max_samples": 100, "max_features": 2},
        {"bootstrap": True, "max_samples": None},
        {"bag_size": 2},
        {"censoring": "left"},
        {"max_samples": 1},
        {"censoring_survival": "knn", "max_bins": 20},
    ],
    ids=str,
)
def test_all_settings_give_the_same_forest(settings, client, table):
    local, on_dask = fit_both(*table, **settings)
    assert_same_model(local.model_, on_dask.model_)


def test_late_entries_outside_the_subsample(client, table):
    X, y = table
    entry = np.full(1200, -np.inf)
    entry[0], y = y["time"].max() - 0.5, y.copy()
    y["time"][0] = y["time"].max()
    y = censored(y["time"], y["event"], entry)
    for criterion in ("censored_quantile", "logrank"):
        local, on_dask = fit_both(X, y, criterion=criterion, max_samples=60)
        assert_same_model(local.model_, on_dask.model_)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
def test_arrays_of_any_type(dtype, client, table):
    X = (table[0][["a", "c", "count"]].to_numpy() * 10).astype(dtype)
    local, on_dask = fit_both(X, table[1])
    assert_same_model(local.model_, on_dask.model_)
    assert not hasattr(on_dask, "feature_names_in_")


def test_columns_in_several_chunks_are_joined(client, table):
    X, y = table[0][["a", "c", "count"]].to_numpy(), table[1]
    local = CensoredQuantileForest(**SETTINGS).fit(X, y)
    on_dask = DaskCensoredQuantileForest(**SETTINGS)
    on_dask.fit(da.from_array(X, chunks=(500, 2)), da.from_array(y, chunks=700))
    assert_same_model(local.model_, on_dask.model_)


def test_targets_in_any_form(client, table):
    X, y = table
    as_columns = np.column_stack([y["time"], y["event"]])
    forms = [
        as_dask(as_columns, EVEN).rechunk({1: 1}),
        [delayed(part) for part in cut(y, EVEN)],
        as_dask(y, EVEN),
        as_dask(as_frame(y), EVEN),
    ]
    local = CensoredQuantileForest(**SETTINGS).fit(X, y)
    for form in forms:
        on_dask = DaskCensoredQuantileForest(**SETTINGS).fit(as_dask(X, EVEN), form)
        assert_same_model(local.model_, on_dask.model_)
    local = CensoredQuantileForest(**SETTINGS).fit(X, y["time"])
    times = as_dask(pd.Series(y["time"]), UNEVEN)
    on_dask = DaskCensoredQuantileForest(**SETTINGS).fit(as_dask(X, UNEVEN), times)
    assert_same_model(local.model_, on_dask.model_)


def test_known_divisions_are_matched(client, table):
    index = np.arange(1200) * 2
    X, y = table[0].set_index(index), as_frame(table[1]).set_index(index)
    local = CensoredQuantileForest(**SETTINGS).fit(X, table[1])
    on_dask = DaskCensoredQuantileForest(**SETTINGS).fit(
        dd.from_pandas(X, npartitions=3), dd.from_pandas(y, npartitions=7)
    )
    assert_same_model(local.model_, on_dask.model_)
    shifted = y.set_index(index + 1)  # as many partitions, cut at other rows
    with pytest.raises(ValueError, match=r"y has divisions from 1 to 2399 but X from 0 to 2398"):
        on_dask.fit(dd.from_pandas(X, npartitions=3), dd.from_pandas(shifted, npartitions=3))


def test_bin_edges_use_the_same_sample_as_the_local_forest(client, table, monkeypatch):
    everything = CensoredQuantileForest(**SETTINGS).fit(*table)
    monkeypatch.setattr(binning, "EDGE_SAMPLE", 100)
    weight = (np.arange(1200) % 5 > 0).astype(float)
    local, on_dask = fit_both(*table, sample_weight=weight)
    assert_same_model(local.model_, on_dask.model_)
    assert len(local.model_.edges[0]) < len(everything.model_.edges[0])


@pytest.mark.parametrize("censoring", ["right", "left"])
def test_a_long_table_keeps_only_the_rows_in_leaves(censoring, client, table, monkeypatch):
    monkeypatch.setattr(fitting, "MAX_KEPT_ROWS", 1000)
    X, y = table[0], table[1].copy()
    weight = np.linspace(1, 2, 1200)
    weight[-1] = 0.0
    how = {"max_samples": 40, "censoring": censoring, "working_model": None}
    first, _ = fit_both(X, y, sample_weight=weight, **how)
    drawn = in_bag_bits(first.model_.sampling, range(first.n_estimators), first.model_.seed)
    assert not drawn.any(axis=1).all()
    local, on_dask = fit_both(X, y, sample_weight=weight, **how)
    in_leaves = np.unique(local.model_.forest.leaf_rows)
    assert len(on_dask.model_.order) == len(in_leaves) < 1000
    plain = on_dask.to_local()
    for ask in ("max_quantile", "predict"):
        assert np.array_equal(getattr(local, ask)(X), getattr(plain, ask)(X)), ask
    means = [forest.predict_mean(X, 3.0, beyond="restrict") for forest in (local, plain)]
    assert np.array_equal(*means)
    at = {"times": [1.0, 5.0], "beyond": "extend"}
    assert np.array_equal(local.predict_survival(X, **at), plain.predict_survival(X, **at))


def test_all_rows_are_kept_if_the_censoring_survival_needs_them(client, table, monkeypatch):
    monkeypatch.setattr(fitting, "MAX_KEPT_ROWS", 1000)
    local, on_dask = fit_both(*table, censoring_survival="km")
    assert_same_model(local.model_, on_dask.model_)


def test_a_forest_of_a_long_table_is_saved_and_loaded(client, table, monkeypatch, tmp_path):
    monkeypatch.setattr(fitting, "MAX_KEPT_ROWS", 1000)
    X, y = table
    _, on_dask = fit_both(X, y, max_samples=40, working_model=None)
    plain = on_dask.to_local()
    plain.save(tmp_path / "model.cqrf")
    loaded = CensoredQuantileForest.load(tmp_path / "model.cqrf")
    assert np.array_equal(loaded.predict(X), plain.predict(X))
    assert loaded.model_.sampling.n_units == 1200 > len(loaded.model_.order)
    assert loaded.get_params() == plain.get_params()
    with pytest.raises(ValueError, match="keeps no features of its training rows"):
        loaded.score_oob()


def test_object_columns_have_the_kind_of_the_whole_column(client):
    n = 1200
    rng = np.random.default_rng(0)
    mixed = np.array([1, 2.5, 3], dtype=object)[rng.integers(0, 3, n)]
    mixed[900:] = "late"
    gone = np.full(n, None, dtype=object)
    gone[701:] = rng.choice(["p", "q"], n - 701)
    numbers = np.array([0.5, 7], dtype=object)[rng.integers(0, 2, n)]
    X = pd.DataFrame({"mixed": mixed, "gone": gone, "numbers": numbers, "never": [None] * n})
    y = censored(rng.exponential(1.0 + 3 * (gone == "p")), rng.random(n) < 0.8)
    with dask.config.set({"dataframe.convert-string": False}):
        for sizes in (EVEN, UNEVEN):
            local, on_dask = fit_both(X, y, sizes)
            assert_same_model(local.model_, on_dask.model_)
        lazy = on_dask.predict(as_dask(X, EVEN), unidentified="nan").compute()
    assert on_dask.model_.columns.kinds == ("category", "category", "number", "category")
    assert on_dask.model_.columns.levels[0] == ("1", "2.5", "3", "late")
    assert np.array_equal(lazy, local.predict(X, unidentified="nan"), equal_nan=True)


@pytest.mark.parametrize("bootstrap", [False, True])
@pytest.mark.parametrize("bag_size", [1, 3])
@pytest.mark.parametrize("honest", [False, True])
def test_units_are_drawn_as_in_the_local_forest(bootstrap, bag_size, honest):
    on_dask = UnitSampling(7, 50, 20, bootstrap, honest, bag_size)
    local = on_dask.sampling._replace(unit_of_row=np.arange(50, dtype=np.int32))
    samples = draw_subsamples(local, derive_tree_keys(local, 7, range(2, 6)))
    parts = iter(np.split(samples.ranks, samples.starts[1:-1]))
    for units, draws in draw_units(TreeBatch(on_dask, (2, 3, 4, 5))):
        assert draws.dtype == np.int32
        for sign in (1, -1):  # rows that choose splits, rows that fill leaves
            assert np.array_equal(np.repeat(units, np.maximum(sign * draws, 0)), next(parts))


def test_batches_fit_into_the_memory_of_workers():
    class FakeClient:
        def __init__(self, *workers):
            self.workers = dict(enumerate(workers))

        def scheduler_info(self, n_workers):
            assert n_workers == -1  # all of them, not the first few
            return {"workers": self.workers}

    small = {"nthreads": 2, "memory_limit": 3_200_000}
    large = {"nthreads": 1, "memory_limit": 10**9}
    assert fitting.choose_batch_size(FakeClient(large), 10_000, 400, 4) == (1, 100)
    assert fitting.choose_batch_size(FakeClient(large, small), 10_000, 400, 4) == (3, 10)
    assert fitting.choose_batch_size(FakeClient(small), 10**9, 400, 4) == (2, 1)
    unlimited = {"nthreads": 2, "memory_limit": 0}
    assert fitting.choose_batch_size(FakeClient(unlimited), 10**9, 400, 4) == (2, 50)
    assert fitting.choose_batch_size(FakeClient(), 10**9, 3, 4) == (1, 1)
    many = [large] * 100
    assert fitting.choose_batch_size(FakeClient(*many), 10_000, 400, 1) == (100, 1)
    assert fitting.choose_batch_size(FakeClient(*many), 10_000, 400, 1000) == (100, 20)


def test_nothing_is_left_on_the_cluster(client, table, capsys):
    fit_both(*table, verbose=1)
    assert "12/12 trees" in capsys.readouterr().err
    assert wait_for_none(client) == []
    shown = client.run_on_scheduler(lambda dask_scheduler: set(dask_scheduler.task_prefixes))
    stages = ("read", "count", "sample", "edges", "bin", "draw", "grow", "keep")
    assert {f"cqrf-{stage}" for stage in stages} <= shown  # what the dashboard calls them


def test_it_is_an_estimator_with_the_settings_of_the_plain_one(client, table):
    forest = DaskCensoredQuantileForest(client=client, n_estimators=7, random_state=1)
    plain = CensoredQuantileForest(n_estimators=7, random_state=1)
    assert forest.get_params() == plain.get_params() | {"client": client}
    assert repr(forest).startswith("DaskCensoredQuantileForest(client=<Client")
    assert repr(clone(forest).set_params(client=None)) == (
        "DaskCensoredQuantileForest(n_estimators=7, random_state=1)"
    )
    assert clone(forest).client is client
    with pytest.raises(TypeError, match="n_trees"):
        DaskCensoredQuantileForest(n_trees=3)
    X, y = table
    forest.fit(as_dask(X, EVEN), as_dask(y, EVEN))
    again = pickle.loads(pickle.dumps(forest))
    assert again.client is None
    assert_same_model(again.model_, forest.model_)
    assert type(again.to_local()) is CensoredQuantileForest
    assert again.to_local().get_params() == plain.get_params()


def test_a_report_on_a_forest_from_dask_is_not_out_of_bag(client, table):
    X, y = table
    _, on_dask = fit_both(X, y, EVEN)
    predictions = predict_table(on_dask.to_local(), X, y)
    assert (predictions.out_of_bag, predictions.n_training_rows) == (False, 1200)
    later = censored(y["time"] + 0.05, y["event"])
    assert predict_table(on_dask.to_local(), X, later).n_training_rows == 0
