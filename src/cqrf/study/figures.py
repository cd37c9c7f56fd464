"""Figures of the study; each method has the same colour and line style in all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cqrf.study.results import Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STYLE: Any = {
    "axes.spines.right": False,
    "axes.spines.top": False,
    "figure.constrained_layout.use": True,
    "font.size": 9,
    "legend.frameon": False,
    "savefig.dpi": 130,
    "svg.hashsalt": "cqrf",
}

# One colour per splitting criterion, one line style per way to estimate quantiles. The colours are
# Okabe and Ito's, which can be told apart with any colour vision.
BLUE, GREEN, VERMILLION, PURPLE = "#0072B2", "#009E73", "#D55E00", "#CC79A7"
STYLES: dict[str, dict[str, Any]] = {
    "censored-quantile": {"color": VERMILLION, "ls": "-", "lw": 2.2, "zorder": 4},
    "censored-quantile, argmin": {"color": VERMILLION, "ls": "--"},
    "crf-generalized": {"color": BLUE, "ls": "-"},
    "crf-generalized, root": {"color": BLUE, "ls": "-."},
    "crf-quantile": {"color": GREEN, "ls": "-"},
    "grf": {"color": BLUE, "ls": "--"},
    "qrf": {"color": GREEN, "ls": "--"},
    "rsf": {"color": PURPLE, "ls": "-"},
    "grf-oracle": {"color": BLUE, "ls": ":"},
    "qrf-oracle": {"color": GREEN, "ls": ":"},
    "Beran": {"color": BLUE, "ls": "-"},
    "neighbours": {"color": GREEN, "ls": "-"},
    "Beran, censored-quantile": {"color": VERMILLION, "ls": "-"},
    "root, Beran": {"color": VERMILLION, "ls": "-"},
    "argmin, Beran": {"color": BLUE, "ls": "-"},
    "argmin, neighbours": {"color": GREEN, "ls": "-"},
}
TRUTH = {"color": "black", "ls": "-", "lw": 1.8, "zorder": 5}


def panels(n_rows: int, n_columns: int, width: float = 3.4, height: float = 2.8) -> Any:
    """A figure with a grid of axes."""
    import matplotlib.pyplot as plt

    return plt.subplots(
        n_rows, n_columns, figsize=(width * n_columns, height * n_rows + 0.7), squeeze=False
    )


def add_legend(figure: Figure, axes: Axes) -> None:
    """One legend below all panels."""
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=min(len(labels), 5))


def draw_curves(results: Results, *, rows: str, columns: str, x_label: str) -> Figure:
    """Estimated quantiles of the first repeat against a covariate; true quantiles in black."""
    results = results.where(repeat=results.rows[0]["repeat"])
    figure, grid = panels(len(results.distinct(rows)), len(results.distinct(columns)))
    for line, (row, in_row) in zip(grid, results.groups(rows)):
        for axes, (column, cell) in zip(line, in_row.groups(columns)):
            for method, curve in cell.groups("method"):
                axes.plot(
                    curve.column("x"),
                    curve.column("quantile"),
                    label=method,
                    **{"lw": 1.0, **STYLES[method]},
                )
            axes.plot(curve.column("x"), curve.column("truth"), label="truth", **TRUTH)
            axes.set_title(f"{name_value(columns, column)}, {name_value(rows, row)}", fontsize=9)
            axes.set_xlabel(x_label)
        line[0].set_ylabel("quantile of T")
    add_legend(figure, grid[0, 0])
    return figure


def draw_intervals(results: Results, *, x_label: str) -> Figure:
    """A panel for each method: its interval along x as a band, the true interval as lines."""
    results = results.where(repeat=results.rows[0]["repeat"])
    methods = results.distinct("method")
    n_columns = (len(methods) + 1) // 2
    figure, grid = panels(2, n_columns, width=2.8, height=2.3)
    for axes in grid.flat[len(methods) :]:
        axes.set_visible(False)
    for axes, (method, subset) in zip(grid.flat, results.groups("method")):
        lower, upper = (subset.where(tau=tau) for tau in sorted(subset.distinct("tau")))
        ends = lower.column("quantile"), upper.column("quantile")
        axes.fill_between(lower.column("x"), *ends, color=STYLES[method]["color"], alpha=0.35, lw=0)
        for end in (lower, upper):
            axes.plot(end.column("x"), end.column("truth"), color="black", lw=1)
        axes.set_title(method, fontsize=9)
        axes.set_xlabel(x_label)
        axes.set_ylim(0.4, 4.6)
    return figure


def draw_lines(
    results: Results,
    *,
    x: str,
    panel: str,
    measures: Sequence[tuple[str, str]],
    log: str = "",
) -> Figure:
    """Mean and standard deviation over repeats against a setting, a line for each method.

    There is a column of panels for each value of ``panel`` and a row for each of the measures
    (column, label). If there is a single value the measures are in one row.
    """
    n_values = len(results.distinct(panel))
    if n_values == 1:
        figure, grid = panels(1, len(measures))
        grid = grid.T
    else:
        figure, grid = panels(len(measures), n_values)
    for line, (measure, label) in zip(grid, measures):
        for axes, (value, cell) in zip(line, results.groups(panel)):
            for method, curve in cell.groups("method"):
                points = [
                    (at, group.mean(measure), group.spread(measure))
                    for at, group in curve.groups(x)
                ]
                places, means, spreads = np.array(sorted(points)).T
                style = {"lw": 1.4, **STYLES[method]}
                axes.errorbar(
                    places, means, spreads, label=method, elinewidth=0.7, capsize=2, ms=3,
                    marker="o", **style,
                )  # fmt: skip
            for axis in log:
                use_log_scale(axes, axis)
            if name_value(panel, value):
                axes.set_title(name_value(panel, value), fontsize=9)
            axes.set_xlabel(NAMES.get(x, x))
        line[0].set_ylabel(label)
    add_legend(figure, grid[0, 0])
    return figure


def use_log_scale(axes: Axes, axis: str) -> None:
    """Logarithmic scale with plain numbers as tick labels."""
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    axes.set(**{f"{axis}scale": "log"})
    ticks = axes.xaxis if axis == "x" else axes.yaxis
    ticks.set_major_locator(LogLocator(10, subs=(1, 2, 5)))
    ticks.set_major_formatter(StrMethodFormatter("{x:g}"))
    ticks.set_minor_formatter(NullFormatter())


NAMES = {
    "node_size": "node size",
    "n": "training rows",
    "censored": "share of rows censored",
    "slope": "slope of log E[C] along x2",
}


def name_value(column: str, value: Any) -> str:
    """A setting as the title of a panel."""
    if column == "tau":
        return f"τ = {value:g}"
    if column == "node_size":
        return f"node size {value}"
    if column == "level":
        return f"{value:.0%} interval"
    return str(value)
