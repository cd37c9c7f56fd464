"""Plots: pictures of what a forest predicts. Each draws on ``ax`` and returns it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cqrf.curves import StepCurves

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from cqrf.calibration import Calibration
    from cqrf.estimator import CensoredQuantileForest

# Okabe and Ito's colours, told apart with any colour vision; line styles repeat the message.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")


def plot_survival(
    forest: CensoredQuantileForest,
    X: Any,
    *,
    quantiles: Sequence[float] = (0.1, 0.5, 0.9),
    labels: Sequence[str] | None = None,
    scale: float = 1.0,
    ax: Axes | None = None,
) -> Axes:
    """Survival curves of the rows of X, with their quantiles marked.

    A curve ends in an open circle where censoring hides the rest of it; quantiles beyond
    are not marked. Times are divided by ``scale``.
    """
    ax = _axes(ax)
    curves = forest.predict_survival(X)
    assert isinstance(curves, StepCurves)
    values = forest.predict(X, quantiles, unidentified="nan")
    for i, curve in enumerate(curves):
        color = COLORS[i % len(COLORS)]
        start = min([0.0, *curve.times[:1]])
        times = np.concatenate([[start], curve.times]) / scale
        survival = np.concatenate([[curve.initial], curve.values])
        label = None if labels is None else labels[i]
        ax.step(times, survival, where="post", color=color, lw=1.8, label=label)
        ax.plot(values[i] / scale, 1 - np.asarray(quantiles), "o", color=color, ms=5)
        hidden = {-1: survival[-1] > 0, min(1, len(curve.times)): curve.initial < 1}
        for step in (step for step, is_hidden in hidden.items() if is_hidden):
            ax.plot(times[step], survival[step], "o", mfc="white", mec=color, ms=7, zorder=3)
    for level in quantiles:
        ax.axhline(1 - level, color="0.85", lw=0.8, zorder=0)
    ax.set(ylim=(0, 1.03), xlabel="time", ylabel="probability that the event is still to come")
    if labels is not None:
        ax.legend(frameon=False)
    return ax


def plot_quantile_fan(
    forest: CensoredQuantileForest,
    X: NDArray[np.float64],
    feature: int,
    *,
    quantiles: Sequence[float] = (0.1, 0.5, 0.9),
    ax: Axes | None = None,
) -> Axes:
    """Predicted quantiles of the rows of X, an array, against one of its columns."""
    ax = _axes(ax)
    order = np.argsort(X[:, feature], kind="stable")
    values = forest.predict(X[order], quantiles, unidentified="nan")
    for k, level in enumerate(quantiles):
        color = COLORS[k % len(COLORS)]
        ax.plot(X[order, feature], values[:, k], color=color, lw=1.8, label=f"{level:g} quantile")
    ax.set(xlabel=f"feature {feature}", ylabel="time")
    ax.legend(frameon=False)
    return ax


def plot_calibration(calibration: Calibration, *, ax: Axes | None = None) -> Axes:
    """Observed against predicted levels, with the confidence band; the diagonal is perfect."""
    ax = _axes(ax)
    levels = calibration.levels
    ax.plot([0, 1], [0, 1], color="0.6", lw=1, ls="--", label="perfect")
    ax.fill_between(levels, calibration.lower, calibration.upper, color=COLORS[0], alpha=0.2, lw=0)
    label = f"observed: distance {calibration.distance:.3f}, p {calibration.p_value:.2f}"
    ax.plot(levels, calibration.observed, color=COLORS[0], lw=1.8, label=label)
    ax.set(xlim=(0, 1), ylim=(0, 1), xlabel="predicted level", ylabel="share of events below it")
    ax.set_aspect("equal")
    ax.legend(frameon=False, loc="upper left")
    return ax


def _axes(ax: Axes | None) -> Axes:
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=(7, 4.2), layout="constrained")[1]
