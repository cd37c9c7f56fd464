"""Predicting: a forest asked partition by partition, when somebody computes the answer.

The forest goes to the cluster once, in pieces that the scheduler keeps: a worker that dies takes
nothing with it.
"""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from typing import Any
from uuid import uuid4

import dask.array as da
import numpy as np
import pandas as pd
from dask.delayed import Delayed
from distributed import Client, Future
from sklearn.utils.validation import validate_data

from cqrf.dask.partitions import check_table, join_columns_of
from cqrf.estimator import CensoredQuantileForest

# Dask warns of graphs above 10 MB: a forest of more comes in several.
PIECE_BYTES = 4_000_000


def send_forest(forest: CensoredQuantileForest, client: Client) -> Future:
    """The forest on the cluster, for as long as the future is there."""
    name = uuid4().hex
    data = pickle.dumps(forest, protocol=pickle.HIGHEST_PROTOCOL)
    pieces = [
        client.submit(bytes, data[start : start + PIECE_BYTES], key=(f"cqrf-piece-{name}", start))
        for start in range(0, len(data), PIECE_BYTES)
    ]
    return client.submit(join_forest, *pieces, key=f"cqrf-forest-{name}")


def join_forest(*pieces: bytes) -> CensoredQuantileForest:
    """The forest from its pieces."""
    forest: CensoredQuantileForest = pickle.loads(b"".join(pieces))
    return forest


def ask(
    forest: CensoredQuantileForest,
    node: Delayed,
    X: Any,
    method: str,
    arguments: Mapping[str, Any],
    names: str | list[str],
) -> Any:
    """What a method of the forest says about X, lazily, with the partitions of X.

    ``names`` is that of the answer, or those of its columns. ``node`` is the forest in a graph.
    """
    check_table(X, "ask to_local() about it")
    check_features(forest, X)
    asked = {"method": method, "arguments": dict(arguments), "names": names}
    if isinstance(X, da.Array):
        X = join_columns_of(X)
        one = isinstance(names, str)
        return X.map_blocks(
            answer_part,
            forest=node,
            **asked,
            dtype=np.float64,
            chunks=(X.chunks[0],) if one else (X.chunks[0], (len(names),)),
            drop_axis=1 if one else None,
            meta=np.empty((0,) if one else (0, 0)),
        )
    return X.map_partitions(answer_part, node, **asked, meta=as_frame(None, X._meta.index, names))


def check_features(forest: CensoredQuantileForest, X: Any) -> None:
    """Refuse another number or other names of features than those of fit."""
    if isinstance(X, da.Array):
        if forest.model_.columns.categorical.any():
            raise ValueError(
                "some columns were categories in fit, so X must be a DataFrame with the same "
                "columns; found an Array, whose numbers cannot be matched to labels."
            )
        X = np.empty((0, X.shape[1]))
    validate_data(forest, getattr(X, "_meta", X), skip_check_array=True, reset=False)


def answer_part(
    X: Any,
    forest: CensoredQuantileForest,
    method: str,
    arguments: dict[str, Any],
    names: str | list[str],
) -> Any:
    """What the forest says about one partition."""
    if len(X):
        values = getattr(forest, method)(X, **arguments)
    else:
        values = np.empty((0,) if isinstance(names, str) else (0, len(names)))
    return values if isinstance(X, np.ndarray) else as_frame(values, X.index, names)


def as_frame(values: Any, index: Any, names: str | list[str]) -> Any:
    """Values with the index of their rows."""
    if isinstance(names, str):
        return pd.Series(values, index=index, name=names, dtype=np.float64)
    return pd.DataFrame(values, index=index, columns=names, dtype=np.float64)
