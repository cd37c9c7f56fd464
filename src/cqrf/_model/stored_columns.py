"""Edges and levels of a loaded forest, kept as the file has them; made where they are asked for.

An array or a text of its own for each feature or level would take ten times the bytes of the file.
``cqrf info`` reads columns, so that Numba is imported only where edges are asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from operator import eq
from typing import Any

import numpy as np
from numpy.typing import NDArray


class StoredLevels(Sequence[Any]):
    """The levels of each feature: a tuple of texts, or None for one that is no category.

    is_category : (n_features,) bool; n_levels : (n_features,) uint8
    text : all labels in UTF-8, one after the other
    bounds : (n_labels + 1,) int64, where each begins, and the end of the last
    """

    def __init__(
        self,
        is_category: NDArray[np.bool_],
        n_levels: NDArray[np.uint8],
        text: bytes,
        bounds: NDArray[np.int64],
    ) -> None:
        self.is_category, self.n_levels = is_category, n_levels
        self.text, self.bounds = text, bounds
        self.ends = np.cumsum(n_levels, dtype=np.int64)  # of the labels of each feature

    def __len__(self) -> int:
        return len(self.n_levels)

    def __getitem__(self, feature: Any) -> Any:
        if isinstance(feature, slice):
            return tuple(self[each] for each in range(len(self))[feature])
        if not self.is_category[feature]:
            return None
        end = int(self.ends[feature])
        first = end - int(self.n_levels[feature])
        bounds = self.bounds[first : end + 1].tolist()
        return tuple(
            str(self.text[start:stop], "utf-8", "surrogatepass") for start, stop in pairwise(bounds)
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence):
            return NotImplemented
        return len(self) == len(other) and all(map(eq, self, other))

    __hash__ = None  # type: ignore[assignment]


class StoredEdges(Sequence[Any]):
    """The bin edges of each feature; those of a category lie between its levels.

    is_category : (n_features,) bool; n_levels, n_edges : (n_features,) uint8
    edges : of all features that are no category, one after the other
    """

    def __init__(
        self,
        is_category: NDArray[np.bool_],
        n_levels: NDArray[np.uint8],
        edges: NDArray[np.float64],
        n_edges: NDArray[np.uint8],
    ) -> None:
        self.is_category, self.n_levels = is_category, n_levels
        self.edges, self.n_edges = edges, n_edges
        self.ends = np.cumsum(n_edges, dtype=np.int64)

    def __len__(self) -> int:
        return len(self.n_edges)

    def __getitem__(self, feature: Any) -> Any:
        from cqrf._forest.binning import level_edges

        if isinstance(feature, slice):
            return [self[each] for each in range(len(self))[feature]]
        if self.is_category[feature]:
            return level_edges(int(self.n_levels[feature]))
        end = int(self.ends[feature])
        return self.edges[end - int(self.n_edges[feature]) : end]
