"""Metrics of predictions for censored times.

Metrics use inverse-probability-of-censoring weights (IPCW): a row with a known outcome is weighted
by 1 / G, with G the censoring survival, from the Kaplan-Meier estimate on the training rows or
given for each row. Scores are computed up to the *horizon*, the first time at which the
Kaplan-Meier estimate of G is below ``FLOOR``, and a smaller G is replaced by FLOOR. Test times
beyond the horizon, or beyond every training time, do not raise an error: these rows are still at
risk at the horizon. A score that is not determined before the horizon is NaN, with a warning.
"""

from cqrf.metrics.auc import integrated_auc, time_dependent_auc
from cqrf.metrics.bootstrap import Interval, bootstrap_interval
from cqrf.metrics.concordance import concordance_index
from cqrf.metrics.incidence import brier_score_incidence, integrated_brier_score_incidence
from cqrf.metrics.incidence_calibration import IncidenceCalibration, incidence_calibration
from cqrf.metrics.ipcw import FLOOR, censoring_target
from cqrf.metrics.quantile import censored_quantile_loss, quantile_loss
from cqrf.metrics.scorers import SCORERS, make_scorer
from cqrf.metrics.skill import quantile_skill
from cqrf.metrics.survival import brier_score, crps, integrated_brier_score

__all__ = [
    "FLOOR",
    "SCORERS",
    "IncidenceCalibration",
    "Interval",
    "bootstrap_interval",
    "brier_score",
    "brier_score_incidence",
    "censored_quantile_loss",
    "censoring_target",
    "concordance_index",
    "crps",
    "incidence_calibration",
    "integrated_auc",
    "integrated_brier_score",
    "integrated_brier_score_incidence",
    "make_scorer",
    "quantile_loss",
    "quantile_skill",
    "time_dependent_auc",
]
