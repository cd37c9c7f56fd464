"""Metrics: how good predictions are, of times that are only partly seen.

Every metric weighs a row whose outcome is known by one over the probability that censoring let
it be known, G, the survival of the censoring time: by Kaplan-Meier on the training rows, or
given for each row. Nothing is asked beyond the *horizon*, the last time at which Kaplan-Meier's G
is at least ``FLOOR``, and a smaller G counts as that: no row counts for more than 1 / FLOOR rows.
Test times beyond the horizon, or beyond every training time, are rows known to be still at risk
there; they raise nothing. What cannot be said before the horizon is NaN, with a warning.
"""

from cqrf.metrics.censoring import FLOOR, censoring_target
from cqrf.metrics.concordance import concordance_index
from cqrf.metrics.quantile import censored_quantile_loss, quantile_loss
from cqrf.metrics.scorers import SCORERS, make_scorer
from cqrf.metrics.survival import brier_score, crps, integrated_brier_score

__all__ = [
    "FLOOR",
    "SCORERS",
    "brier_score",
    "censored_quantile_loss",
    "censoring_target",
    "concordance_index",
    "crps",
    "integrated_brier_score",
    "make_scorer",
    "quantile_loss",
]
