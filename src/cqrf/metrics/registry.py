"""The registry of metrics.

To add a metric, write a file with its function and its :class:`~cqrf.metrics.metric.Metric` entry,
and add the entry to ``BUILT_IN`` below. It then has a scorer, a place in what ``evaluate``
returns, and a row in the command line's table and in the report. ``register`` does the same from
outside the package.
"""

from __future__ import annotations

from cqrf.metrics.auc import TIME_DEPENDENT_AUC
from cqrf.metrics.concordance import HARRELL_CONCORDANCE, UNO_CONCORDANCE
from cqrf.metrics.metric import Metric
from cqrf.metrics.quantile import QUANTILE_LOSS
from cqrf.metrics.survival import CRPS, INTEGRATED_BRIER_SCORE

# In the order in which ``evaluate`` lists them.
BUILT_IN = (
    HARRELL_CONCORDANCE,
    UNO_CONCORDANCE,
    TIME_DEPENDENT_AUC,
    INTEGRATED_BRIER_SCORE,
    CRPS,
    QUANTILE_LOSS,
)

METRICS: dict[str, Metric] = {metric.name: metric for metric in BUILT_IN}


def register(metric: Metric) -> None:
    """Add a metric, or replace the one of the same name."""
    METRICS[metric.name] = metric
