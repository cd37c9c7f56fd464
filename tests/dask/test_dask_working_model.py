"""With a working model, a forest grown on Dask still equals the local forest, bit for bit."""

import numpy as np
import pytest

from cqrf import CensoredQuantileForest, censored
from cqrf._input.target import Target
from cqrf._model import share
from cqrf._working_model import fit as fit_of_working_model
from cqrf._working_model.design import MOST_COLUMNS
from cqrf._working_model.transform import WorkingModel
from cqrf.dask import DaskCensoredQuantileForest, fitting, preparing
from cqrf.dask.reading import BinnedPartition
from cqrf.dask.working import summarise_residuals
from support.dask_tables import (
    EVEN,
    UNEVEN,
    WHOLE,
    as_dask,
    as_frame,
    assert_same_model,
    wait_for_none,
)

SETTINGS = {"n_estimators": 13, "random_state": 3, "working_model": "cox"}
MANY = [40] * 30
LEVELS = [0.1, 0.5, 0.9]


def fit_both(X, y, sizes=UNEVEN, *, sample_weight=None, groups=None, **settings):
    """The local forest of the whole table, and the Dask forest of the same table."""
    settings = SETTINGS | settings
    local = CensoredQuantileForest(**settings).fit(X, y, sample_weight, groups)
    whole = np.asarray if isinstance(X, np.ndarray) else as_frame
    on_dask = DaskCensoredQuantileForest(**settings).fit(
        as_dask(X, sizes),
        as_dask(whole(y), sizes),
        None if sample_weight is None else as_dask(whole(sample_weight), sizes),
        None if groups is None else as_dask(whole(groups), sizes),
    )
    return local, on_dask


def assert_same_predictions(local, on_dask, X):
    plain = on_dask.to_local()
    expected = local.predict(X, LEVELS, unidentified="nan")
    assert np.array_equal(expected, plain.predict(X, LEVELS, unidentified="nan"), equal_nan=True)
    at = {"times": [1.0, 5.0], "beyond": "extend"}
    assert np.array_equal(local.predict_survival(X, **at), plain.predict_survival(X, **at))
    assert np.array_equal(local.feature_importances_, on_dask.feature_importances_)


@pytest.fixture(scope="module")
def others():
    """Sample weights with zeros, and groups: some have no row of positive weight."""
    rng = np.random.default_rng(1)
    groups = rng.integers(0, 400, 1200)
    weight = rng.random(1200) * (rng.random(1200) < 0.7) * (groups != groups[5])
    return weight, groups


def enter_late(y):
    late = np.random.default_rng(2).random(len(y)) < 0.5
    return censored(y["time"], y["event"], np.where(late, y["time"] / 2, -1.0))


@pytest.mark.parametrize(
    "sizes", [EVEN, UNEVEN, WHOLE, MANY], ids=["even", "uneven", "whole", "many"]
)
def test_partitions_do_not_matter(sizes, client, table, others):
    """Missing values, categories, weights, groups and entry times at once."""
    X, y = table
    weight, groups = others
    assert np.unique(groups[weight == 0]).size > np.unique(groups).size / 4
    local, on_dask = fit_both(X, enter_late(y), sizes, sample_weight=weight, groups=groups)
    assert local.model_.working is not None
    assert_same_model(local.model_, on_dask.model_)
    assert_same_predictions(local, on_dask, X.iloc[:100])


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"n_estimators": 2},
        {"n_estimators": 12, "bag_size": 2},
        {"censoring": "left"},
        {"bootstrap": True, "max_samples": None},
        {"honest": False, "max_features": 2},
        {"max_samples": 60},
        {"criterion": "logrank"},
    ],
    ids=str,
)
def test_all_settings_give_the_same_forest(settings, client, table):
    local, on_dask = fit_both(*table, **settings)
    assert local.model_.working is not None
    assert_same_model(local.model_, on_dask.model_)


@pytest.mark.parametrize("n_features", [36, 37])
def test_direct_trees_of_a_wide_table(n_features, client):
    """Rows of weight 0 do not count: 185 of 240 rows are left, five for each of 37 features."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(240, n_features))
    y = censored(np.exp(X[:, 0] + rng.normal(size=240)), rng.random(240) < 0.7)
    weight = rng.permutation(np.arange(240) < 185).astype(float)
    local, on_dask = fit_both(X, y, [100, 0, 60, 80], sample_weight=weight)
    assert_same_model(local.model_, on_dask.model_)
    assert_same_predictions(local, on_dask, X[:20])
    n_rows = len(local.model_.forest.leaf_rows)
    assert n_rows == (7 * 148 + 6 * 74 if n_features == 37 else 13 * 74)


@pytest.mark.parametrize("with_groups", [False, True])
@pytest.mark.parametrize("with_weight", [False, True])
def test_weights_and_groups(with_weight, with_groups, client, table, others):
    weight, groups = (
        each if given else None for each, given in zip(others, (with_weight, with_groups))
    )
    local, on_dask = fit_both(*table, EVEN, sample_weight=weight, groups=groups, bag_size=2)
    assert_same_model(local.model_, on_dask.model_)


def test_late_entries_outside_the_subsample(client, table):
    X, y = table
    entry = np.full(1200, -np.inf)
    entry[0], y = y["time"].max() - 0.5, y.copy()
    y["time"][0] = y["time"].max()
    local, on_dask = fit_both(X, censored(y["time"], y["event"], entry), max_samples=60)
    assert_same_model(local.model_, on_dask.model_)


def test_wide_tables(client):
    """More columns than the working model is fitted to: it takes principal components."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1200, MOST_COLUMNS + 20))
    time = rng.exponential(np.exp(X[:, 0] - X[:, 1]))
    local, on_dask = fit_both(X, censored(time, time < 3.0), EVEN, max_samples=200, max_features=9)
    assert np.count_nonzero(local.model_.working.scores.any(axis=1)) == X.shape[1]
    assert_same_model(local.model_, on_dask.model_)


@pytest.mark.parametrize("is_weighted", [False, True])
def test_the_root_has_the_same_share(is_weighted, client):
    """Where hazards are almost proportional, the working model's own curve takes part."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1200, 4))
    scale = np.exp(-0.5 * X.sum(axis=1) - 0.7 * X[:, 0] * X[:, 1])
    time, end = rng.exponential(scale), rng.exponential(2.0, 1200)
    y = censored(np.minimum(time, end), time <= end)
    weight = np.where(np.arange(1200) % 7, 1.5, 0.0) if is_weighted else None
    groups = np.arange(1200) % 500 if is_weighted else None
    local, on_dask = fit_both(X, y, MANY, sample_weight=weight, groups=groups, n_estimators=60)
    assert 0 < local.model_.working.root_share < share.MOST_SHARE
    assert_same_model(local.model_, on_dask.model_)
    assert_same_predictions(local, on_dask, X[:100])


def test_a_large_table_is_represented_by_the_same_sample(client, table, others, monkeypatch):
    whole = CensoredQuantileForest(**SETTINGS).fit(*table)
    monkeypatch.setattr(fit_of_working_model, "MOST_ROWS", 300)
    local, on_dask = fit_both(*table, sample_weight=others[0], groups=others[1])
    assert_same_model(local.model_, on_dask.model_)
    assert not np.array_equal(local.model_.working.knots, whole.model_.working.knots)


@pytest.mark.parametrize("censoring", ["right", "left"])
def test_a_long_table_keeps_only_the_rows_in_leaves(
    censoring, client, table, monkeypatch, tmp_path
):
    """And a row with the last time, which is in no leaf here: its weight is 0."""
    monkeypatch.setattr(fitting, "MAX_KEPT_ROWS", 1000)
    X, y, weight = table[0], table[1].copy(), np.linspace(1, 2, 1200)
    y["time"][700], weight[700] = (900.0 if censoring == "right" else 0.01), 0.0
    how = {"max_samples": 40, "censoring": censoring, "sample_weight": weight}
    local, on_dask = fit_both(X, y, **how)
    assert_same_model(local.model_, on_dask.model_)  # the share of the root needs all rows
    monkeypatch.setattr(share, "MOST_UNITS", 500)
    local, on_dask = fit_both(X, y, **how)
    in_leaves = np.unique(local.model_.forest.leaf_rows)
    assert len(on_dask.model_.order) == len(in_leaves) + 1 < 1000
    assert_same_predictions(local, on_dask, X)
    plain = on_dask.to_local()
    plain.save(tmp_path / "model.cqrf")
    loaded = CensoredQuantileForest.load(tmp_path / "model.cqrf")
    assert np.array_equal(
        loaded.predict_survival(X, [1.0, 5.0]), local.predict_survival(X, [1.0, 5.0])
    )
    assert np.array_equal(local.max_quantile(X), plain.max_quantile(X))


@pytest.mark.parametrize(("n_rows", "n_events"), [(49, 40), (60, 9)])
def test_too_few_rows_or_events_have_no_working_model(n_rows, n_events, client, table):
    X, y = table[0].iloc[:120], table[1][:120].copy()
    weight = np.where(np.arange(120) < n_rows, 1.0, 0.0)
    y["event"] = (np.arange(120) < n_events) | (weight == 0)
    local, on_dask = fit_both(X, y, [50, 70], sample_weight=weight)
    assert local.model_.working is None
    assert_same_model(local.model_, on_dask.model_)


def test_a_saved_forest_predicts_the_same(client, table, tmp_path):
    X, y = table
    local, on_dask = fit_both(X, y, EVEN)
    loaded = []
    for forest in (local, on_dask.to_local()):
        forest.save(tmp_path / "model.cqrf")
        loaded.append(CensoredQuantileForest.load(tmp_path / "model.cqrf"))
    assert loaded[1].model_.working is not None
    assert_same_model(*(forest.model_ for forest in loaded))
    assert np.array_equal(loaded[1].predict(X, 0.3), local.predict(X, 0.3))


def test_tasks_are_named_and_released(client, table):
    fit_both(*table, EVEN)
    assert wait_for_none(client) == []
    shown = client.run_on_scheduler(lambda dask_scheduler: set(dask_scheduler.task_prefixes))
    assert {f"cqrf-{stage}" for stage in ("working", "residuals", "score")} <= shown


def test_units_of_rows_without_weight():
    """Groups of such rows have the unit of their group in any partition, or none."""
    parts = [
        preparing.PositiveRows(1, 1, 0.0, 1.0, ["b", "a", "z"], 1),
        preparing.PositiveRows(2, 1, 0.0, 1.0, ["a", "b"], 2),
    ]
    n_units, units = preparing.number_units(parts)
    assert n_units == 2
    assert [each.tolist() for each in units] == [[0, 1, -1], [1, 0]]


def test_residual_trees_are_grown_on_their_own_scale(client, table):
    """Squares of residuals would underflow on the scale of such times."""
    X, y = table
    y = censored(y["time"] * 1e200, y["event"])
    local, on_dask = fit_both(X, y, criterion="variance")
    assert_same_model(local.model_, on_dask.model_)


def test_the_range_of_residuals():
    """Rows of weight 0 count for where residuals begin and entries end, not for their size."""
    working = WorkingModel(
        scores=np.zeros((1, 256)),
        knots=np.array([0.0, 10.0]),
        hazards=np.array([0.0, 10.0]),
        linear_predictor=np.empty(0),
    )
    partition = BinnedPartition(
        first_row=0,
        target=Target(
            np.array([4.0, 1.0, 9.0, 2.0]), np.full(4, True), np.array([0.0, 0.0, 8.0, 1.0])
        ),
        weight=np.array([1.0, 0.0, 0.0, 2.0], np.float32),
        codes=np.zeros((4, 1), np.uint8),
        unit=np.array([0, 1], np.int32),
        row_of_unit=np.array([0, 3], np.int32),
        cluster=np.array([0, -1, -1, 1], np.int32),
        linear_predictor=np.log([1.0, 0.5, 2.0, 3.0]),
    )
    found = summarise_residuals(partition, working, "right")
    assert found == pytest.approx((6.0, 0.5, 16.0), rel=1e-12)
