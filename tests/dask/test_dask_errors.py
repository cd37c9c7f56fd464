"""Error messages name the partition, the row or the column."""

import asyncio
import subprocess
import sys

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from dask.delayed import delayed
from distributed import Client

from cqrf import censored
from cqrf.dask import DaskCensoredQuantileForest
from support.dask_tables import EVEN, UNEVEN, as_dask, as_frame, cut

FOREST = DaskCensoredQuantileForest(n_estimators=2, random_state=0)


def refused(X, y, match, sample_weight=None, groups=None, kind=ValueError, **settings):
    forest = DaskCensoredQuantileForest(n_estimators=2, random_state=0, **settings)
    with pytest.raises(kind, match=match):
        forest.fit(X, y, sample_weight, groups)
    assert not hasattr(forest, "model_")


def test_without_dask_the_extra_is_named():
    program = "import sys; sys.modules['distributed'] = None; import cqrf.dask"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "cqrf.dask needs Dask: pip install 'cqrf[dask]'." in run.stderr


def test_without_a_client(table):
    X, y = table
    refused(as_dask(X, EVEN), as_dask(y, EVEN), "no Dask client was found: start one")


def test_plain_tables(client, table):
    X, y = table
    refused(
        X, y, "X is a pandas DataFrame, not a Dask .* fit CensoredQuantileForest", kind=TypeError
    )
    refused(as_dask(X, EVEN), y, "y is a ndarray; with a Dask X", kind=TypeError)
    refused(as_dask(X, EVEN), None, "requires y")
    refused(da.zeros(5), da.zeros(5), "X has 1 dimensions")


def test_partitions_that_cannot_be_matched(client, table):
    X, y = table
    match = "y has 7 partitions but X has 4, and their divisions are not known"
    refused(as_dask(X, EVEN), as_dask(as_frame(y), UNEVEN), match)
    weight = as_dask(pd.Series(np.ones(1200)), UNEVEN)
    refused(as_dask(X, EVEN), as_dask(y, EVEN), "sample_weight has 7 partitions", weight)
    other = as_dask(y, [300, 299, 301, 300])
    refused(as_dask(X, EVEN), other, "partition 1 of y has 299 rows but that of X has 300")
    array = da.from_array(X[["a", "b"]].to_numpy(), chunks=(300, -1))
    refused(array, da.from_array(y[:-1], chunks=300), "X has 1200 rows but y has 1199")


def test_columns_that_differ(client, table):
    X, y = table
    parts = cut(X, EVEN)

    def change(change_part):
        changed = [parts[0], parts[1], change_part(parts[2]), parts[3]]
        return dd.from_delayed(list(map(delayed, changed)), meta=X.iloc[:0], verify_meta=False)

    y = as_dask(y, EVEN)
    renamed = change(lambda part: part.rename(columns={"city": "town"}))
    refused(renamed, y, "partition 2 of X lacks column 'city' and has a column 'town'")
    refused(change(lambda part: part.drop(columns="a")), y, "partition 2 of X lacks column 'a'")
    turned = change(lambda part: part[part.columns[::-1]])
    refused(turned, y, "partition 2 of X has its columns in another order")
    typed = change(lambda part: part.assign(city=np.arange(300)))
    refused(typed, y, "column 'city' holds categories in partition 0 but numbers in partition 2")
    infinite = change(lambda part: part.assign(a=np.inf))
    refused(infinite, y, "partition 2: Input X contains infinity")


def test_levels_are_counted_over_all_partitions(client, table):
    X, y = table
    many = X.assign(city=[f"town {i // 4}" for i in range(1200)])
    match = "column 'city' has at least 300 levels; a category may have at most 254"
    refused(as_dask(many, EVEN), as_dask(y, EVEN), match)


def test_empty_tables(client, table):
    X, y = table
    sizes = [0, 0]
    refused(as_dask(X[:0], sizes), as_dask(y[:0], sizes), "X has no rows in any of its partitions")


def test_rows_are_numbered_over_all_partitions(client, table):
    X, y = table
    bad = y.copy()
    bad["time"][705] = np.nan
    X = as_dask(X, UNEVEN)
    refused(X, as_dask(as_frame(bad), UNEVEN), r"partition 5: .* time is nan in row 705 ")
    columns = as_frame(y).astype({"event": float})
    columns.loc[1100, "event"] = 2
    refused(X, as_dask(columns, UNEVEN), "partition 5: .* found 2.0 in row 1100")
    columns.loc[1100, "event"] = np.nan
    refused(X, as_dask(columns, UNEVEN), "event is missing in row 1100")
    late = as_frame(censored(y["time"], y["event"], y["time"] - 1))
    late.loc[900, "entry"] = late.loc[900, "time"]
    refused(X, as_dask(late, UNEVEN), "entry must be before time: entry is .* in row 900")


def test_errors_that_need_all_partitions(client, table):
    X, y = table
    cut_y = as_dask(y, EVEN)
    X = as_dask(X, EVEN)
    seen = y.copy()
    seen["event"] = np.arange(1200) == 5
    weight = as_dask(np.where(np.arange(1200) == 5, 0.0, 1.0), EVEN)
    refused(X, as_dask(seen, EVEN), "every row is censored", weight)
    refused(X, cut_y, "sample_weight is zero in every row", as_dask(np.zeros(1200), EVEN))
    negative = as_dask(np.where(np.arange(1200) > 900, -1.0, 1.0), EVEN)
    refused(X, cut_y, "partition 3: sample_weight must be finite", negative)
    refused(X, cut_y, "max_samples=2000 is more than the 1200 training rows", max_samples=2000)
    groups = as_dask(np.array(["a", None] * 600, dtype=object), EVEN)
    refused(X, cut_y, "partition 0: groups contains None or NaN", groups=groups)
    groups = as_dask(np.arange(1200) // 600, EVEN)
    refused(X, cut_y, "than the 2 training groups", groups=groups, max_samples=3)
    entered = [censored(p["time"], p["event"], p["time"] - 1) for p in cut(y, EVEN)]
    refused(X, as_dask(np.concatenate(entered), EVEN), "right censoring only", censoring="left")
    some = [delayed(part) for part in [*cut(y, EVEN)[:3], entered[3]]]
    refused(X, some, "entry times in partition 3 but none in partition 0")


def test_a_failed_fit_keeps_the_previous_forest(client, table):
    X, y = table
    forest = DaskCensoredQuantileForest(n_estimators=2, random_state=0)
    model = forest.fit(as_dask(X, EVEN), as_dask(y, EVEN)).model_
    with pytest.raises(ValueError, match="n_estimators"):
        forest.set_params(n_estimators=0).fit(as_dask(X, EVEN), as_dask(y, EVEN))
    with pytest.raises(ValueError, match="no rows"):
        forest.set_params(n_estimators=1).fit(as_dask(X[:0], [0]), as_dask(y[:0], [0]))
    assert forest.model_ is model


def test_an_asynchronous_client(table):
    X, y = as_dask(table[0], EVEN), as_dask(table[1], EVEN)

    async def try_to_fit():
        settings = {"processes": False, "n_workers": 1, "dashboard_address": ":0"}
        async with Client(asynchronous=True, **settings) as client:
            refused(X, y, "client is asynchronous", client=client)

    asyncio.run(try_to_fit())
