"""Predicting: apply a method of the forest to each partition, lazily.

The forest is sent to the cluster once, in pieces that the scheduler holds. If a worker dies, Dask
rebuilds the forest from these pieces.
"""

from __future__ import annotations

import pickle
from typing import Any, NamedTuple
from uuid import uuid4

import dask.array as da
import numpy as np
import pandas as pd
from dask.delayed import Delayed
from distributed import Client, Future
from numpy.typing import NDArray
from sklearn.utils.validation import validate_data

from cqrf.dask.partitions import check_table, merge_column_chunks
from cqrf.estimator import CensoredQuantileForest

PIECE_BYTES = 4_000_000  # Dask warns about graphs above 10 MB


class Call(NamedTuple):
    """A prediction method, its arguments, and the name of its output or of its columns."""

    method: str
    arguments: dict[str, Any]
    names: str | list[str]


def send_forest(forest: CensoredQuantileForest, client: Client) -> Future:
    """The forest on the cluster, for as long as the future lives."""
    name = uuid4().hex
    data = pickle.dumps(forest, protocol=pickle.HIGHEST_PROTOCOL)
    pieces = [
        client.submit(bytes, data[start : start + PIECE_BYTES], key=(f"cqrf-piece-{name}", start))
        for start in range(0, len(data), PIECE_BYTES)
    ]
    return client.submit(join_forest, *pieces, key=f"cqrf-forest-{name}")


def join_forest(*pieces: bytes) -> CensoredQuantileForest:
    """The forest from its pickled pieces."""
    forest: CensoredQuantileForest = pickle.loads(b"".join(pieces))
    return forest


def predict_lazily(forest: CensoredQuantileForest, forest_node: Delayed, X: Any, call: Call) -> Any:
    """Output of a prediction method for X, lazily, with the partitions of X.

    ``forest_node`` is the forest as a node of Dask's graph; ``forest`` itself checks X.
    """
    check_table(X, "predict with to_local()")
    check_features(forest, X)
    if isinstance(X, da.Array):
        X = merge_column_chunks(X)
        is_1d = isinstance(call.names, str)
        return X.map_blocks(
            predict_partition,
            forest=forest_node,
            call=call,
            dtype=np.float64,
            chunks=(X.chunks[0],) if is_1d else (X.chunks[0], (len(call.names),)),
            drop_axis=1 if is_1d else None,
            meta=np.empty((0,) if is_1d else (0, 0)),
        )
    meta = as_frame(None, X._meta.index, call.names)
    return X.map_partitions(predict_partition, forest_node, call=call, meta=meta)


def check_features(forest: CensoredQuantileForest, X: Any) -> None:
    """Raise an error if number or names of the features differ from those of fit."""
    if isinstance(X, da.Array):
        if forest.model_.columns.categorical.any():
            raise ValueError(
                "some columns were categories in fit, so X must be a DataFrame with the same "
                "columns; found an Array, whose numbers cannot be matched to labels."
            )
        X = np.empty((0, X.shape[1]))
    validate_data(forest, getattr(X, "_meta", X), skip_check_array=True, reset=False)


def predict_partition(X: Any, forest: CensoredQuantileForest, call: Call) -> Any:
    """Output of a prediction method for one partition."""
    if len(X):
        values = getattr(forest, call.method)(X, **call.arguments)
        if values.ndim == 3:  # of all causes: the columns of one after those of another
            values = values.reshape(len(X), -1)
    else:
        values = np.empty((0,) if isinstance(call.names, str) else (0, len(call.names)))
    return values if isinstance(X, np.ndarray) else as_frame(values, X.index, call.names)


def split_causes(values: NDArray[np.float64], shape: tuple[int, int]) -> NDArray[np.float64]:
    """Incidences of all causes of a partition, of shape (n, n_causes, n_times)."""
    return values.reshape(len(values), *shape)


def as_frame(values: Any, index: Any, names: str | list[str]) -> Any:
    """Values as a Series or DataFrame with the index of their rows."""
    if isinstance(names, str):
        return pd.Series(values, index=index, name=names, dtype=np.float64)
    return pd.DataFrame(values, index=index, columns=names, dtype=np.float64)
