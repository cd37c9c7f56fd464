"""Start a cluster, split tables into partitions, compare models array by array."""

import time
from itertools import pairwise

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
from dask.delayed import delayed
from distributed import LocalCluster

from cqrf._forest.spec import Forest

EVEN = [300, 300, 300, 300]
UNEVEN = [0, 700, 0, 0, 1, 499, 0]  # with empty partitions, and one of a single row
WHOLE = [1200]


def start_cluster(**settings):
    """Workers are single-threaded processes; the dashboard takes any free port."""
    return LocalCluster(threads_per_worker=1, dashboard_address=":0", **settings)


def cut(data, sizes):
    ends = np.cumsum([0, *sizes]).tolist()
    assert ends[-1] == len(data)
    take = data.iloc.__getitem__ if hasattr(data, "iloc") else data.__getitem__
    return [take(slice(start, end)) for start, end in pairwise(ends)]


def as_dask(data, sizes):
    """The data in partitions of these sizes; a frame without known divisions.

    A Dask array has empty blocks only if their lengths are unknown.
    """
    parts = [delayed(part) for part in cut(data, sizes)]
    if isinstance(data, pd.DataFrame | pd.Series):
        return dd.from_delayed(parts, meta=data.iloc[:0], verify_meta=False)
    blocks = [
        da.from_delayed(part, (size, *data.shape[1:]), data.dtype)
        for part, size in zip(parts, sizes, strict=True)
    ]
    return da.concatenate(blocks)


def as_frame(y):
    """A frame from a structured array, a series from a plain one."""
    return (
        pd.DataFrame({name: y[name] for name in y.dtype.names}) if y.dtype.names else pd.Series(y)
    )


def wait_for_none(client):
    """Keys of our tasks that are left on the scheduler after at most two minutes."""
    for _ in range(1200):
        left = client.run_on_scheduler(lambda dask_scheduler: list(map(str, dask_scheduler.tasks)))
        left = [key for key in left if "cqrf" in key]
        if not left:
            break
        time.sleep(0.1)
    return left


def assert_same_model(one, other):
    """Compare every array of the models except the training features, which Dask does not keep."""
    pairs = {name: (getattr(one.forest, name), getattr(other.forest, name)) for name in FIELDS}
    pairs |= {f"edges {j}": pair for j, pair in enumerate(zip(one.edges, other.edges, strict=True))}
    for name in ("time", "event", "weight", "first_at_risk"):
        pairs[name] = getattr(one.rows, name), getattr(other.rows, name)
    pairs["order"], pairs["entry"] = (one.order, other.order), (one.entry, other.entry)
    assert (one.working is None) == (other.working is None)
    if one.working is not None:
        for name in ("scores", "knots", "hazards", "linear_predictor"):
            pairs[name] = getattr(one.working, name), getattr(other.working, name)
        assert one.working.root_share == other.working.root_share
    for name, (ours, theirs) in pairs.items():
        assert (ours is None) == (theirs is None), name
        if ours is not None:
            assert ours.dtype == theirs.dtype, name
            assert np.array_equal(ours, theirs), name
    assert one.columns == other.columns
    assert one.sampling[1:] == other.sampling[1:]
    assert (one.seed, one.censoring) == (other.seed, other.censoring)


FIELDS = tuple(Forest.__dataclass_fields__)
