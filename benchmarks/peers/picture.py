"""One figure: fit time, predict time and memory against n, p and number of trees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.peers.libraries import CENSORED, LOGRANK, QUANTILE, VARIANCE
from benchmarks.peers.measure import Point, Shape

OURS = "#0b0b0b"
# Okabe and Ito's colours, which can be told apart with any colour vision.
STYLES: dict[str, dict[str, Any]] = {
    VARIANCE: {"color": OURS, "linewidth": 2.8, "marker": "o"},
    CENSORED: {"color": OURS, "linewidth": 1.8, "linestyle": (0, (5, 2)), "marker": "o"},
    LOGRANK: {"color": OURS, "linewidth": 1.4, "linestyle": (0, (1, 1.5)), "marker": "o"},
    QUANTILE: {"color": OURS, "linewidth": 1.4, "linestyle": (0, (5, 2, 1, 2)), "marker": "o"},
    "scikit-learn": {"color": "#E69F00", "marker": "s"},
    "quantile-forest": {"color": "#D55E00", "marker": "D"},
    "ranger": {"color": "#0072B2", "marker": "^"},
    "grf": {"color": "#009E73", "marker": "v"},
    "scikit-survival": {"color": "#CC79A7", "marker": "P"},
    "comprisk": {"color": "#56B4E9", "marker": "X"},
    "LightGBM": {"color": "#8C8C8C", "marker": "h"},
}
LEAST_MEMORY = 0.1  # MB; below is noise
ROWS = {"fit": "fit, seconds", "predict": "predict 1000 rows, seconds", "memory": "fit, MB"}


def draw(points: Sequence[Point], axes: Mapping[str, Sequence[Shape]], path: Path) -> None:
    """Draw all points along all axes; along n, where trees differ, times are per 100 trees."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    plt.rcParams.update({"font.size": 9, "axes.titlesize": 10, "axes.titleweight": "bold"})
    figure, panels = plt.subplots(3, 3, figsize=(12, 10.5), squeeze=True)
    for column, (axis, shapes) in enumerate(axes.items()):
        for row, what in enumerate(ROWS):
            _draw_panel(panels[row, column], points, axis, shapes, what)
    handles = {
        text: handle
        for panel in panels.flat
        for handle, text in zip(*panel.get_legend_handles_labels())
    }
    names = [name for name in STYLES if name in handles]
    figure.legend(
        [handles[name] for name in names], names, loc="lower center", ncols=6, frameon=False
    )
    figure.suptitle("The same work for all, two threads; lower is better", x=0.04, ha="left")
    figure.tight_layout(rect=(0, 0.06, 1, 0.99), h_pad=1.6, w_pad=1.6)
    figure.savefig(path, dpi=100)
    plt.close(figure)


def _draw_panel(
    panel: Any, points: Sequence[Point], axis: str, shapes: Sequence[Shape], what: str
) -> None:
    for name, style in STYLES.items():
        line = [
            (getattr(shape, axis), value)
            for shape in shapes
            for point in points
            if point.library == name and point.shape == shape
            if (value := _value(point, axis, what)) is not None
        ]
        if line:
            order = 3 if name.startswith("cqrf") else 2
            panel.plot(*zip(*line), label=name, markersize=4, zorder=order, **style)
    panel.set(xscale="log", yscale="log", title=_title(axis, shapes, what))
    panel.set_xticks([getattr(shape, axis) for shape in shapes])
    panel.set_xticklabels([f"{getattr(shape, axis):,}".replace(",", " ") for shape in shapes])
    panel.minorticks_off()
    panel.grid(color="#e6e6e6", linewidth=0.8)
    panel.spines[["top", "right"]].set_visible(False)
    panel.tick_params(length=0)
    panel.set_xlabel({"n": "rows", "p": "features", "trees": "trees"}[axis])


def _value(point: Point, axis: str, what: str) -> float | None:
    value = point.median(what)
    if value is None:
        return None
    if what == "memory":
        return max(value / 1e6, LEAST_MEMORY)
    return value * 100 / point.shape.trees if axis == "n" else value


def _title(axis: str, shapes: Sequence[Shape], what: str) -> str:
    if axis == "n":
        trees = "/".join(str(shape.trees) for shape in shapes)
        note = f"{trees} trees" if what == "memory" else "for 100 trees"
    elif axis == "p":
        note = f"n {shapes[0].n}, {shapes[0].trees} trees"
    else:
        note = f"n {shapes[0].n}, p {shapes[0].p}"
    return f"{ROWS[what]} ({note})"
