"""Partitions: X, y, sample weights and groups, cut at the same rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import dask.array as da
import dask.dataframe as dd
from dask.delayed import Delayed

FRAMES = (dd.DataFrame, dd.Series)


class Partitions(NamedTuple):
    """The i-th of each list holds the same rows; weights and groups may be None."""

    X: list[Delayed]
    y: list[Delayed]
    weight: list[Delayed | None]
    groups: list[Delayed | None]


def pair_partitions(X: Any, y: Any, sample_weight: Any, groups: Any) -> Partitions:
    """Partitions that pair up, as far as can be told without reading them."""
    check_table(X)
    if y is None:
        raise ValueError(
            "requires y to be passed, but the target y is None: pass a Dask DataFrame with the "
            "columns time and event."
        )
    parts = _split("X", X)
    n = len(parts)
    return Partitions(
        parts,
        _split("y", y, X, n),
        [None] * n if sample_weight is None else list(_split("sample_weight", sample_weight, X, n)),
        [None] * n if groups is None else list(_split("groups", groups, X, n)),
    )


def check_table(X: Any, instead: str = "fit CensoredQuantileForest on it") -> None:
    """Refuse an X that is not a Dask table."""
    if not isinstance(X, dd.DataFrame | da.Array):
        raise TypeError(
            f"X is a {type(X).__module__.split('.')[0]} {type(X).__name__}, not a Dask DataFrame "
            f"or Array: {instead}, or make it one with dask.dataframe.from_pandas or "
            "dask.array.from_array."
        )
    if isinstance(X, da.Array) and X.ndim != 2:
        raise ValueError(f"X has {X.ndim} dimensions; expected rows and columns.")


def join_columns_of(X: Any) -> Any:
    """X with all columns of a row in one block."""
    return X.rechunk({1: -1}) if isinstance(X, da.Array) and X.ndim == 2 else X


def _split(name: str, data: Any, X: Any = None, n: int | None = None) -> list[Delayed]:
    """Partitions of one of the inputs; n of them, cut as X is, where X is given."""
    if isinstance(data, Sequence) and data and all(isinstance(part, Delayed) for part in data):
        parts = list(data)
    elif isinstance(data, (*FRAMES, da.Array)):
        whole = join_columns_of(data if X is None else _cut_as(name, data, X))
        delayed = whole.to_delayed()
        parts = delayed.ravel().tolist() if isinstance(whole, da.Array) else list(delayed)
    else:
        raise TypeError(
            f"{name} is a {type(data).__name__}; beside a Dask X it must be a Dask DataFrame, "
            "Series or Array."
        )
    if n is not None and len(parts) != n:
        raise ValueError(
            f"{name} has {len(parts)} partitions but X has {n}, and where they are cut is not "
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


def _cut_as(name: str, data: Any, X: Any) -> Any:
    """The data cut where X is, if that can be told of both."""
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
