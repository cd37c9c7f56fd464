"""Checks of the settings of ConformalForest, with the table where they concern it."""

from __future__ import annotations

from typing import Any

import numpy as np

from cqrf._conformal.table import ConformalTable
from cqrf._runtime.arguments import read_choice, read_floats, read_fraction
from cqrf.estimator import CensoredQuantileForest
from cqrf.metrics.ipcw import estimate_censoring_survival

FORESTS = ("forest", "censoring_forest")  # parameters that are forests
METHODS = ("adaptive", "fixed")
DEFAULT_CUTOFF_SHARE = 0.5


def read_coverage(model: Any) -> float:
    """The coverage, with the other settings checked too."""
    coverage = read_fraction("coverage", model.coverage, 0.0, 1.0)
    if not 0 < coverage < 1:
        raise ValueError(f"coverage={model.coverage!r} must lie strictly between 0 and 1.")
    method = read_choice("method", model.method, METHODS)
    share = read_fraction("calibration_share", model.calibration_share, 0.0, 1.0)
    if not 0 < share < 1:
        raise ValueError(f"calibration_share={share:g} must lie strictly between 0 and 1.")
    if model.cutoff is not None and method != "fixed":
        raise ValueError(f'cutoff={model.cutoff!r} goes with method="fixed".')
    return coverage


def read_forest(model: Any, table: ConformalTable) -> CensoredQuantileForest:
    """The forest to calibrate, checked with the table."""
    forest = CensoredQuantileForest() if model.forest is None else model.forest
    for name, given in (("forest", forest), ("censoring_forest", model.censoring_forest)):
        if given is None:
            continue
        if not isinstance(given, CensoredQuantileForest):
            raise ValueError(
                f"{name} must be a CensoredQuantileForest; found {type(given).__name__}."
            )
        if given.censoring != "right":
            raise ValueError(
                f"{name} has censoring={given.censoring!r}: ConformalForest takes "
                "right-censored times only."
            )
    if table.target.entry is not None and model.method == "fixed":
        raise ValueError(
            'method="fixed" cannot be used with entry times: it counts rows that were under '
            'observation from the start to the cutoff. Use method="adaptive".'
        )
    if table.target.entry is not None and table.censoring_time is not None:
        raise ValueError(
            "censoring_time cannot be used with entry times: rows with a known C are counted "
            "as observed from the start to C. Leave it out; C is then estimated."
        )
    return forest


def read_cutoff(model: Any, train: ConformalTable) -> float:
    """The given cutoff, or the first time with a Kaplan-Meier G below 1/2."""
    if model.cutoff is not None:
        cutoff = float(read_floats("cutoff", model.cutoff))
        if not np.isfinite(cutoff):
            raise ValueError(f"cutoff={model.cutoff!r} must be a finite time.")
        return cutoff
    curve = estimate_censoring_survival(train.target, train_weight=train.weight)
    below = curve.times[curve.values < DEFAULT_CUTOFF_SHARE]
    return float(below[0]) if len(below) else float(train.target.time.max())
