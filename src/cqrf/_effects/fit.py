"""Fitting a treatment forest: forests of the nuisances, then the effect forest."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_consistent_length

from cqrf._effects.fitted import EffectModel
from cqrf._effects.forest import grow_effect_forest
from cqrf._effects.nuisances import estimate_nuisances, fit_forests
from cqrf._effects.treatment import (
    Treatment,
    check_arms,
    read_propensity,
    warn_of_other_arm,
    warn_of_overlap,
)
from cqrf._forest.spec import Limits
from cqrf._input.intervals import refuse_intervals
from cqrf._input.sample_weight import relative_weight
from cqrf._input.target import warn_of_negative_times
from cqrf._model.fit import TrainingTable
from cqrf._model.settings import check_names, read_max_depth, read_max_features, read_settings
from cqrf._runtime.arguments import read_count, read_fraction
from cqrf.estimator import CensoredQuantileForest

# Rows of each arm, and events, in a child, for min_samples_arm="auto": ARM_ROWS in a table of
# ARM_ROWS_AT rows, and as the square root of the number of rows elsewhere.
ARM_ROWS, ARM_ROWS_AT, FEWEST_ARM_ROWS = 30, 2000, 5
FEWEST_GROUPS = 10  # of which trees, halves and standard errors draw some


class EffectSettings(NamedTuple):
    """Parameters of a treatment forest, checked."""

    limits: Limits
    n_trees: int
    bag_size: int
    seed: int


def read_effect_settings(
    estimator: Any, n_units: int, n_features: int, seed: int
) -> EffectSettings:
    """Settings of a fit; ``n_units`` are the rows or clusters that trees draw from."""
    bag_size = read_count("bag_size", estimator.bag_size, 2)
    n_trees = read_count("n_estimators", estimator.n_estimators, 2 * bag_size)
    if n_trees % bag_size:
        raise ValueError(
            f"n_estimators={n_trees} must be a multiple of bag_size={bag_size}, so that all bags "
            "are full."
        )
    in_arm = estimator.min_samples_arm
    if isinstance(in_arm, str) and in_arm == "auto":
        in_arm = max(FEWEST_ARM_ROWS, round(ARM_ROWS * np.sqrt(n_units / ARM_ROWS_AT)))
    else:
        in_arm = read_count("min_samples_arm", in_arm, 1)
    limits = Limits(
        n_candidates=read_max_features(estimator.max_features, n_features),
        max_depth=read_max_depth(estimator.max_depth),
        min_samples_split=2 * in_arm,
        min_samples_leaf=in_arm,
        min_child_fraction=read_fraction(
            "min_child_fraction", estimator.min_child_fraction, 0.0, 0.5
        ),
        min_samples_stratum=in_arm,
    )
    return EffectSettings(limits, n_trees, bag_size, seed)


def read_nuisance_forest(forest: Any) -> CensoredQuantileForest:
    """The forest whose parameters nuisances are estimated with."""
    if forest is None:
        return CensoredQuantileForest()
    if not isinstance(forest, CensoredQuantileForest):
        raise ValueError(f"nuisance_forest={forest!r} must be a CensoredQuantileForest, or None.")
    if forest.censoring != "right":
        raise ValueError(
            f"nuisance_forest has censoring={forest.censoring!r}: effects are available for "
            "right-censored times only."
        )
    return forest


def check_groups(n_groups: int) -> None:
    """Raise if there are too few groups for standard errors."""
    if n_groups < FEWEST_GROUPS:
        raise ValueError(
            f"groups: {n_groups} groups are too few, at least {FEWEST_GROUPS} are needed: trees "
            "and standard errors draw whole groups. If rows are independent, leave groups out; to "
            "compare subgroups, use ate(subset=...)."
        )


def fit_effect_model(
    estimator: Any, table: TrainingTable, treatment: Treatment, propensity: Any, seed: int
) -> EffectModel:
    """Grow all forests of a treatment forest."""
    check_names(estimator)
    n, n_features = table.matrix.shape
    target = table.target
    check_consistent_length(table.matrix, target.time)
    if target.causes:
        raise ValueError(
            "y has several causes: effects of treatment are those on one kind of event. "
            "Take any event, as in censored(time, cause != 0), or one cause with the others "
            "censored, as in censored(time, cause == 1)."
        )
    refuse_intervals(target.lower, "effects of treatment are")
    if target.entry is not None:
        raise ValueError(
            "y has entry times: effects of treatment on rows that enter late are not available. If "
            "rows enter where treatment is decided, count time from there: censored(time - entry, "
            "event)."
        )
    weight = None if table.sample_weight is None else relative_weight(table.sample_weight, n)
    has_weight: NDArray[np.bool_] = np.full(n, True) if weight is None else weight > 0
    check_arms(treatment, target, has_weight)
    known = read_propensity(propensity, treatment)
    n_jobs = estimator.n_jobs
    forest = read_nuisance_forest(estimator.nuisance_forest)
    warn_of_negative_times(target, forest.censoring)
    of_times = read_settings(forest, n_features, seed)
    of_arm = CensoredQuantileForest(
        n_estimators=forest.n_estimators, criterion="variance", working_model=None
    )
    forests = fit_forests(
        table,
        treatment.arm,
        of_times,
        None if known is not None else read_settings(of_arm, n_features, seed),
        n_jobs,
    )
    n_units = forests.pooled.sampling.n_units
    if table.groups is not None:
        check_groups(n_units)
    settings = read_effect_settings(estimator, n_units, n_features, seed)
    nuisances = estimate_nuisances(forests, treatment.arm, known, n_jobs)
    effect = grow_effect_forest(
        forests.pooled, nuisances, settings.limits, settings.n_trees, settings.bag_size, n_jobs
    )
    warn_of_overlap(nuisances.probability[:, treatment.treated], stacklevel=4)
    if known is not None:
        unit = forests.pooled.sampling.unit_of_row[forests.pooled.ranks]
        warn_of_other_arm(known, treatment, unit, stacklevel=4)
    return EffectModel(
        forests=forests,
        effect=effect,
        nuisances=nuisances,
        arm=treatment.arm,
        known_propensity=known,
        treated=treatment.treated,
    )
