"""Columns as people have them: Python objects, written dates and numbers, sparse arrays."""

import warnings
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

from cqrf import CensoredQuantileForest, TextColumnWarning
from cqrf._input.columns import join_columns
from cqrf._input.features import read_features, survey_part
from cqrf._input.written_values import describe_written

N = 12
DAYS = [date(2020, 1, 1) + timedelta(days=37 * i) for i in range(N)]


def read(X):
    matrix, columns = read_features(CensoredQuantileForest(), X)
    return matrix, columns.kinds


def as_objects(values):
    return pd.DataFrame({"x": pd.Series(values, dtype=object)})


@pytest.mark.parametrize(
    "values",
    [
        DAYS,
        [datetime(day.year, day.month, day.day) for day in DAYS],
        [datetime(day.year, day.month, day.day, tzinfo=UTC) for day in DAYS],
        [pd.Timestamp(day) for day in DAYS],
        [np.datetime64(day) for day in DAYS],
    ],
)
def test_dates_are_dates_whatever_object_holds_them(values):
    typed, kinds = read(pd.DataFrame({"x": pd.to_datetime(pd.Series(DAYS))}))
    assert kinds == ("date",)
    gap = [*values[:3], None, *values[4:]]
    for X in (as_objects(gap), pl.DataFrame({"x": pl.Series(gap, dtype=pl.Object)})):
        matrix, kinds = read(X)
        assert kinds == ("date",)
        assert np.isnan(matrix[3, 0])
        np.testing.assert_array_equal(np.delete(matrix, 3), np.delete(typed, 3))


def test_durations_and_decimals_are_numbers():
    spans = [timedelta(hours=7 * i) for i in range(N)]
    matrix, kinds = read(as_objects([*spans, None]))
    assert kinds == ("duration",)
    np.testing.assert_array_equal(matrix[:-1, 0], [7 * 3600.0 * i for i in range(N)])
    matrix, kinds = read(as_objects([np.timedelta64(7 * i, "h") for i in range(N)]))
    np.testing.assert_array_equal(matrix[:, 0], [7 * 3600.0 * i for i in range(N)])
    prices = [Decimal(f"{i}.25") for i in range(N)]
    for X in (as_objects(prices), pl.DataFrame({"x": prices}), pa.table({"x": prices})):
        matrix, kinds = read(X)
        assert kinds == ("number",)
        np.testing.assert_array_equal(matrix[:, 0], [i + 0.25 for i in range(N)])


def test_objects_of_several_kinds_are_labels():
    assert read(as_objects([1, date(2020, 1, 1), "a", True]))[1] == ("category",)
    one, two = as_objects(DAYS), as_objects([*DAYS[:3], "unknown"])
    columns = join_columns([survey_part(one), survey_part(two)])
    assert columns.kinds == ("category",)
    assert "2020-01-01" in columns.levels[0]


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (pd.DataFrame({"z": [1j, 2.0]}), "column 'z' holds complex numbers"),
        (as_objects([1j, 2.0, None]), "column 'x' holds complex numbers"),
        (as_objects([[1], [2, 3]]), "column 'x' holds values of type list"),
        (pl.DataFrame({"x": [{"a": 1}]}), "column 'x' holds values of type Struct"),
        (pd.DataFrame(np.ones((2, 3)), columns=["a", "b", "a"]), "more than one column named 'a'"),
        (pa.Table.from_arrays([pa.array([1])] * 2, names=["a", "a"]), "more than one .* 'a'"),
        (pd.DataFrame({"a": [1, np.inf]}), r"column 'a', in row 1 \(the first row is 0\)"),
        (np.array([[1j], [2.0]]), "Complex data not supported: pass .* as two columns.$"),
        (sparse.csr_array([[1j], [2.0]]), "Complex data not supported: pass .* as two columns.$"),
        (np.array([["a"], ["b"]]), "an array with text .*'a'.* pass a frame"),
    ],
)
def test_what_cannot_be_read_names_the_column(X, message):
    with pytest.raises(ValueError, match=message):
        read(X)


WRITTEN = {
    "iso": [day.isoformat() for day in DAYS],
    "with time": [f"{day.isoformat()} 10:30" for day in DAYS],
    "day first": [f"{day:%d/%m/%Y}" for day in DAYS],
    "month first": [f"{day:%m-%d-%Y}" for day in DAYS],
    "dots": [f"{day:%d.%m.%Y}" for day in DAYS],
    "short year": [f"{day:%d/%m/%y}" for day in DAYS],
    "named month": [f"{day:%d-%b-%Y}" for day in DAYS],
    "named month, joined": [f"{day:%d%b%Y}".upper() for day in DAYS],
    "month's name first": [f"{day:%B %d, %Y}" for day in DAYS],
    "currency": [f"${i}.50" for i in range(N)],
    "euro": [f"{i},50 €" for i in range(N)],
    "thousands": [f"{i},234.50" for i in range(N)],
    "percent": [f"{i} %" for i in range(N)],
    "decimals": [f"{i}.5" for i in range(N)],
}
LABELS = {
    "grades": [f"A{i}" for i in range(N)],
    "roman": ["I", "II", "III", "IV"] * 3,
    "ranges": [f"{i}-{i + 1}" for i in range(N)],
    "postcodes": [f"{10115 + i}" for i in range(N)],
    "spaced postcodes": [f"{100 + i} 45" for i in range(N)],
    "few dates": ["2020-01-01", "2020-06-01"] * 6,
    "few shares": ["10 %", "20 %", "30 %"] * 4,
    "one is none": [*WRITTEN["iso"][:-1], "unknown"],
    "versions": [f"1.{i}.0" for i in range(N)],
    "phone": [f"030/{1000 + i}" for i in range(N)],
    "dashes": ["-"] * 3 + [f"x{i}" for i in range(N)],
    "names": [f"{i} March House" for i in range(N)],
    "ages": [f"{5 * i} to {5 * i + 4}" for i in range(N)],
}


@pytest.mark.parametrize("name", WRITTEN)
def test_written_dates_and_numbers_are_recognised(name):
    is_number = name in ("currency", "euro", "thousands", "percent", "decimals")
    assert describe_written(WRITTEN[name]) == ("numbers" if is_number else "dates")


@pytest.mark.parametrize("name", LABELS)
def test_labels_are_no_dates_or_numbers(name):
    assert describe_written(set(LABELS[name])) is None


def test_one_warning_names_every_column_of_written_values():
    X = pd.DataFrame({"seen": WRITTEN["day first"], "cost": WRITTEN["currency"]})
    X = X.assign(group=LABELS["grades"])
    with pytest.warns(
        TextColumnWarning,
        match=r"'seen' looks like dates, column 'cost' looks like "
        "numbers",
    ) as caught:
        forest = CensoredQuantileForest(n_estimators=2, max_samples=0.9).fit(X, np.arange(1.0, 13))
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert "group" not in str(caught[0].message)
    assert forest.model_.columns.kinds == ("category",) * 3
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        forest.predict(X, 0.1)


def test_too_many_levels_that_are_dates_say_how_to_convert_them():
    texts = [(date(2020, 1, 1) + timedelta(days=i)).isoformat() for i in range(300)]
    with pytest.raises(ValueError, match=r"300 levels.*look like dates.*to_datetime"):
        read(pd.DataFrame({"seen": texts}))


FORMATS = [
    sparse.csr_matrix,
    sparse.csc_array,
    sparse.coo_array,
    sparse.lil_matrix,
    lambda dense: pd.DataFrame.sparse.from_spmatrix(sparse.csr_matrix(dense)),
]


@pytest.mark.parametrize("convert", FORMATS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
def test_a_sparse_table_gives_the_forest_of_the_dense_one(convert, dtype):
    rng = np.random.default_rng(0)
    dense = (rng.integers(1, 9, (60, 5)) * (rng.random((60, 5)) < 0.3)).astype(dtype)
    y = 1.0 + dense.sum(axis=1) + rng.random(60)
    forest = CensoredQuantileForest(n_estimators=10, random_state=0, max_samples=0.8)
    expected = forest.fit(dense, y).predict(dense)
    X = convert(dense)
    np.testing.assert_array_equal(forest.fit(X, y).predict(X), expected)


def test_a_gap_in_a_sparse_table_is_missing():
    dense = np.array([[0.0, np.nan], [1.0, 0.0]])
    np.testing.assert_array_equal(read(sparse.csr_array(dense))[0], dense)
