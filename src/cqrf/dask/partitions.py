"""Partitions: X, y, sample weights and groups, split at the same rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import dask.array as da
import dask.dataframe as dd
from dask.delayed import Delayed

FRAMES = (dd.DataFrame, dd.Series)


class Partition(NamedTuple):
    """The same rows of every input: delayed on the client, data on a worker."""

    number: int
    X: Any
    y: Any
    weight: Any
    groups: Any


def align_partitions(X: Any, y: Any, sample_weight: Any, groups: Any) -> list[Partition]:
    """Partitions of all inputs, aligned as far as metadata allows without reading them."""
    check_table(X)
    if y is None:
        raise ValueError(
            "requires y to be passed, but the target y is None: pass a Dask DataFrame with the "
            "columns time and event."
        )
    X_parts = _split("X", X)
    n = len(X_parts)
    y_parts = _split("y", y, X, n)
    weight_parts = _split_optional("sample_weight", sample_weight, X, n)
    group_parts = _split_optional("groups", groups, X, n)
    return [Partition(i, X_parts[i], y_parts[i], weight_parts[i], group_parts[i]) for i in range(n)]


def check_table(X: Any, instead: str = "fit CensoredQuantileForest on it") -> None:
    """Raise an error if X is not a Dask table."""
    if not isinstance(X, dd.DataFrame | da.Array):
        raise TypeError(
            f"X is a {type(X).__module__.split('.')[0]} {type(X).__name__}, not a Dask DataFrame "
            f"or Array: {instead}, or convert it with dask.dataframe.from_pandas or "
            "dask.array.from_array."
        )
    if isinstance(X, da.Array) and X.ndim != 2:
        raise ValueError(f"X has {X.ndim} dimensions; expected rows and columns.")


def merge_column_chunks(X: Any) -> Any:
    """X with all columns of a row in one chunk."""
    return X.rechunk({1: -1}) if isinstance(X, da.Array) and X.ndim == 2 else X


def _split_optional(name: str, data: Any, X: Any, n: int) -> list[Delayed] | list[None]:
    return [None] * n if data is None else _split(name, data, X, n)


def _split(name: str, data: Any, X: Any = None, n: int | None = None) -> list[Delayed]:
    """Partitions of one of the inputs; n of them, split as X is, where X is given."""
    if isinstance(data, Sequence) and data and all(isinstance(part, Delayed) for part in data):
        parts = list(data)
    elif isinstance(data, (*FRAMES, da.Array)):
        whole = merge_column_chunks(data if X is None else _split_like(name, data, X))
        delayed = whole.to_delayed()
        parts = delayed.ravel().tolist() if isinstance(whole, da.Array) else list(delayed)
    else:
        raise TypeError(
            f"{name} is a {type(data).__name__}; with a Dask X it must be a Dask DataFrame, "
            "Series or Array."
        )
    if n is not None and len(parts) != n:
        raise ValueError(
            f"{name} has {len(parts)} partitions but X has {n}, and their divisions are not "
            "known, so their rows cannot be matched. Take both from one DataFrame, give both "
            "known divisions (set_index), or call compute_chunk_sizes() on arrays."
        )
    return parts


def _repartition(name: str, data: Any, X: Any) -> Any:
    (first, *_, last), (low, *_, high) = data.divisions, X.divisions
    if first < low or last > high:
        raise ValueError(
            f"{name} has divisions from {first!r} to {last!r} but X from {low!r} to {high!r}: "
            "give both the same index."
        )
    return data.repartition(divisions=X.divisions, force=True)


def _split_like(name: str, data: Any, X: Any) -> Any:
    """The data split where X is, if the divisions or chunks of both are known."""
    if isinstance(data, FRAMES) and isinstance(X, FRAMES):
        if data.known_divisions and X.known_divisions and data.divisions != X.divisions:
            return _repartition(name, data, X)
    elif isinstance(data, da.Array) and isinstance(X, da.Array):
        ours, theirs = data.chunks[0], X.chunks[0]
        if ours != theirs and not any(map(math.isnan, (*ours, *theirs))):
            if sum(ours) != sum(theirs):
                raise ValueError(f"X has {sum(theirs)} rows but {name} has {sum(ours)}.")
            return data.rechunk({0: theirs})
    return data
