"""Plot of the skill against the leaf size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from cqrf._input.target import read_target
from cqrf._runtime.arguments import is_count, read_count
from cqrf.plots.style import COLORS, LEGEND, make_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from cqrf.estimator import CensoredQuantileForest


def plot_node_sizes(
    forest: CensoredQuantileForest,
    X: Any,
    y: Any,
    sizes: Sequence[int] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Out-of-bag skill against the leaf size, beside the skill of the given forest.

    For each size a copy of the forest is fitted with it as ``min_samples_leaf``, and
    ``min_samples_split`` just above twice that. Default: up to 6 sizes from 1 to a tenth of the
    rows.

    Parameters
    ----------
    forest : CensoredQuantileForest
        A forest, whose other settings are kept.
    X, y : as for ``fit``
        Training rows.
    sizes : sequence of int, optional
        Leaf sizes to try.
    ax : Axes, optional
        Where to draw.

    Returns
    -------
    Axes
        What was drawn on.

    Examples
    --------
    >>> from cqrf import CensoredQuantileForest
    >>> from cqrf.datasets import make_aft
    >>> from cqrf.plots import plot_node_sizes
    >>> X, y, _, _ = make_aft(200, 3, random_state=0)
    >>> forest = CensoredQuantileForest(n_estimators=50, random_state=0)
    >>> plot_node_sizes(forest, X, y, sizes=[5, 20]).get_ylabel()
    'out-of-bag skill (higher is better)'
    """
    chosen = _read_sizes(sizes, y)
    start = clone(forest).set_params(verbose=0)
    if not is_count(start.random_state):
        start.set_params(random_state=0)  # the same for all: copies differ by their size only

    def skill(**settings: int) -> float:
        return clone(start).set_params(**settings).fit(X, y).score_oob()

    skills = [skill(min_samples_leaf=size, min_samples_split=2 * size + 1) for size in chosen]
    ax = make_axes(ax)
    ax.plot(chosen, skills, "o-", color=COLORS[0], lw=1.8, label="copies with this leaf size")
    mark: Any = {"mfc": "none", "mec": COLORS[1], "mew": 2, "ms": 11}
    ax.plot(start.min_samples_leaf, skill(), "D", label="the given forest", **mark)
    ax.set_xscale("log")
    ax.set_xticks(chosen, labels=[str(size) for size in chosen])
    ax.set_xticks([], minor=True)
    ax.set(xlabel="min_samples_leaf", ylabel="out-of-bag skill (higher is better)")
    ax.legend(**LEGEND)
    return ax


def _read_sizes(sizes: Sequence[int] | None, y: Any) -> list[int]:
    if sizes is None:
        largest = max(1, len(read_target(y).time) // 10)
        return np.unique(np.geomspace(1, largest, 6).round().astype(int)).tolist()
    chosen = sorted({read_count("sizes", size, 1) for size in sizes})
    if not chosen:
        raise ValueError("sizes must have at least one node size.")
    return chosen
