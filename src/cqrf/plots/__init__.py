"""Plots of a forest's predictions. Each function draws on ``ax`` and returns it.

``survival.py`` draws survival curves, ``incidence.py`` those of several causes, ``features.py``
partial dependence and importance, ``effects.py`` and ``subgroups.py`` effects of a treatment,
``calibration.py`` and ``node_sizes.py`` what their names say; ``style.py`` has what they share.
"""

from cqrf.plots.calibration import plot_calibration
from cqrf.plots.effects import plot_arms, plot_effect, plot_overlap, plot_toc
from cqrf.plots.features import plot_importance, plot_partial_dependence, plot_quantile_fan
from cqrf.plots.incidence import plot_incidence
from cqrf.plots.node_sizes import plot_node_sizes
from cqrf.plots.subgroups import plot_subgroups
from cqrf.plots.survival import plot_censoring, plot_survival

__all__ = [
    "plot_arms",
    "plot_calibration",
    "plot_censoring",
    "plot_effect",
    "plot_importance",
    "plot_incidence",
    "plot_node_sizes",
    "plot_overlap",
    "plot_partial_dependence",
    "plot_quantile_fan",
    "plot_subgroups",
    "plot_survival",
    "plot_toc",
]
