"""Columns: ranges, quantiles and typical values, from bins and from the table."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sklearn.base import clone

from cqrf import CensoredQuantileForest
from cqrf._forest.binning import column_edges, encode
from cqrf._model.bin_values import are_evenly_spaced, estimate_bin_values
from cqrf.serve.columns import find_step, summarise_columns
from cqrf.serve.data_rows import read_data_rows
from cqrf.serve.model_view import make_view


def by_name(view):
    return {summary.column.name: summary for summary in view.summaries}


def test_the_training_table_gives_exact_ranges_and_quantiles(view, frame):
    columns = by_name(view)
    age = frame["age"].dropna()
    assert (columns["age"].low, columns["age"].high) == (age.min(), age.max())
    for mark in columns["age"].quantiles:
        assert mark.value in set(age)
        assert (age <= mark.value).mean() >= mark.level
        assert (age < mark.value).mean() < mark.level
    assert columns["age"].missing == pytest.approx(frame["age"].isna().mean())
    assert columns["age"].typical == pytest.approx(age.median(), abs=0.5)
    colours = frame["colour"].value_counts(normalize=True)
    assert {c.value: c.share for c in columns["colour"].choices} == pytest.approx(dict(colours))
    assert columns["colour"].typical == colours.index[0]
    assert columns["seen"].typical == frame["seen"].quantile(0.5, "lower").date().isoformat()
    assert columns["seen"].low == frame["seen"].min().date().isoformat()
    assert columns["stay"].high == pytest.approx(frame["stay"].max().total_seconds() / 86400)


def test_without_the_table_bins_tell_nearly_the_same(view, lone_view):
    exact, rough = by_name(view), by_name(lone_view)
    spread = exact["age"].high - exact["age"].low
    assert rough["age"].low == pytest.approx(exact["age"].low, abs=0.1 * spread)
    assert rough["age"].high == pytest.approx(exact["age"].high, abs=0.1 * spread)
    for one, two in zip(rough["age"].quantiles, exact["age"].quantiles, strict=True):
        assert one.value == pytest.approx(two.value, abs=0.05 * spread)
    assert rough["colour"].choices == exact["colour"].choices
    assert [choice.value for choice in rough["treated"].choices] == [0, 1]


@given(
    st.lists(st.integers(-300, 300), min_size=8, max_size=40, unique=True),
    st.sampled_from([0.01, 0.5, 1, 10]),
)
def test_edges_between_all_values_tell_them(values, unit):
    values = np.sort(np.array([*values, 1000, 1001, 1002])) * unit
    edges = column_edges(values, 255)
    found = estimate_bin_values(edges)
    # Two neighbours one unit apart leave no other round number for the first value.
    np.testing.assert_allclose(found, values, atol=1e-9)


@example([0.0, 1e-302, 1e-101, 1e-76], 4)
@given(st.lists(st.floats(-1e6, 1e6), min_size=3, max_size=60, unique=True), st.integers(2, 10))
def test_every_bin_holds_the_value_it_is_given(values, max_bins):
    edges = column_edges(np.array(values), max_bins)
    found = estimate_bin_values(edges)
    codes = encode(found[:, np.newaxis], [edges])[0]
    assert codes.tolist() == list(range(len(edges) + 1))


def test_middles_of_whole_numbers_are_these():
    np.testing.assert_allclose(estimate_bin_values(np.array([0.5])), [0, 1])
    np.testing.assert_allclose(estimate_bin_values(np.array([1.5, 2.5, 3.5])), [1, 2, 3, 4])
    assert are_evenly_spaced(np.array([1.5, 2.5, 3.5]))
    assert not are_evenly_spaced(np.array([1.5, 2.5, 30.0]))
    assert not are_evenly_spaced(np.array([]))
    np.testing.assert_allclose(estimate_bin_values(np.array([17.0, 27.0])), [12, 22, 32])
    for edge in (17.0, 7.5):  # of 10 and 24, of 5 and 10 or of any others with this mean
        assert not are_evenly_spaced(np.array([edge]))


@pytest.mark.parametrize(
    ("values", "step"),
    [
        ([0.3, 28.0], 0.1),
        ([1.0, 4.0], 1.0),
        ([289, 13862.4], 100.0),
        ([0, 1e-3], 1e-5),
        ([5, 5], 1),
    ],
)
def test_steps_are_round(values, step):
    assert find_step(np.array(values, dtype=float), "number") == pytest.approx(step)


def test_columns_without_values_or_spread():
    X = np.column_stack([np.arange(60.0), np.full(60, 3.0), np.full(60, np.nan)])
    forest = CensoredQuantileForest(n_estimators=5, random_state=0).fit(X, np.arange(60.0) + 1)
    moving, constant, empty = make_view(forest, "m").summaries
    assert moving.column.name == "feature 0"
    assert (constant.low, constant.typical, constant.missing) == (None, None, 0.0)
    assert (empty.low, empty.typical, empty.missing) == (None, None, 1.0)
    _, exact, _ = summarise_columns(forest.model_, ["a", "b", "c"], forest.feature_importances_, X)
    assert (exact.low, exact.high, exact.typical, exact.missing) == (3, 3, 3, 0.0)


def test_a_column_of_one_value_and_gaps_is_there_or_not():
    X = np.column_stack([np.arange(60.0), np.where(np.arange(60) % 4, 3.0, np.nan)])
    forest = CensoredQuantileForest(n_estimators=5, random_state=0).fit(X, np.arange(60.0) + 1)
    _, flag = make_view(forest, "m").summaries
    assert (flag.low, flag.choices, flag.missing, flag.is_exact) == (None, None, 0.25, False)
    asked = np.array([[30.0, flag.typical], [30.0, 3.0]])
    like, same = forest.predict_survival(asked, [20.0])
    assert like == same
    assert flag.typical_number == flag.typical
    _, exact = summarise_columns(forest.model_, ["a", "b"], forest.feature_importances_, X)
    assert [choice.value for choice in exact.choices] == [3]
    assert exact.is_exact


def test_a_forest_that_keeps_no_features_is_served_by_its_bins(forest, frame, target):
    rows = forest.model_.rows
    bare = replace(forest.model_, rows=rows._replace(codes=rows.codes[:, :0]))
    without = clone(forest)
    without.__dict__.update(forest.__dict__, model_=bare)
    data = read_data_rows(without, frame, target, [""] * len(frame), "patients.csv")
    assert data.training is None
    view = make_view(without, "patients.cqrf", data)
    known = make_view(forest, "patients.cqrf")
    for column, full in zip(view.summaries, known.summaries, strict=True):
        assert (column.low, column.high, column.missing) == (full.low, full.high, 0.0)
        assert column.typical is not None
    assert view.no_errors_reason is None


def test_numbers_near_the_largest_are_described():
    rng = np.random.default_rng(0)
    X, time = rng.normal(size=(80, 2)), rng.exponential(size=80)
    X[:4, 0] = -1.7e308, 1.7e308, -1.5e308, 1.5e308
    time[0] = 1.79e308
    forest = CensoredQuantileForest(n_estimators=4, random_state=0).fit(X, time)
    view = make_view(forest, "m.cqrf")
    first, second = view.summaries
    assert first.step == 1e306
    assert -np.inf < first.low < -1.6e308
    assert 1.6e308 < first.high < np.inf
    assert second.step == 0.01
    assert np.isfinite(view.times).all()
    assert view.times[-1] == pytest.approx(1.797e308, rel=1e-3)
    assert np.isfinite(view.grid(0.5)).all()


def test_values_of_bins_whose_span_overflows():
    edges = np.array([-1.2e308, -1.0, 1.5e308])
    values = estimate_bin_values(edges)
    assert np.isfinite(values).all()
    assert (values[:-1] <= edges).all()
    assert (values[1:] > edges).all()
