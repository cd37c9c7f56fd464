"""Settings: the one place that reads the parameters of an estimator.

:func:`read_settings` checks every parameter of a fit and turns it into the numbers that the forest
needs; :func:`read_solver` does so for the parameters that predictions read anew each time. Each
error names the parameter, the value found, and what is allowed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from cqrf._forest.criteria import CRITERIA, Criterion
from cqrf._forest.spec import MAX_BINS, Growing, Limits, Sampling
from cqrf._input.causes import Cause, find_cause
from cqrf._input.target import SIDES
from cqrf._input.units import Units
from cqrf._runtime.arguments import (
    is_count,
    is_number,
    read_choice,
    read_count,
    read_flag,
    read_floats,
    read_fraction,
    read_share,
)
from cqrf._survival.quantiles import UNIDENTIFIED, QuantileSolver

WORKING_MODELS = ("auto", "cox")
DEFAULT_CRITERION = "censored_quantile"
PREDICTIONS = ("median", "mean", "risk")
UNLIMITED = np.iinfo(np.int32).max
# Rows per tree for max_samples="auto": max(n / 2, min(800, 0.8 n)) if n >= 50, else n / 2. An
# honest tree of a few hundred rows finds its splits in half of its sample, and a quarter of the
# table is too little. The theory, too, lets the share fall as n grows. Below 50 rows it is half,
# so that tables of some thirty rows are not split at all: only then do sample weights and repeated
# rows give the same forest, which scikit-learn's checks require.
SHARE, LARGE_SHARE, LARGE_SHARE_UP_TO, FEW_ROWS = 0.5, 0.8, 800, 50
# A table of at least so many features per row of positive weight is wide: see Settings.grow_direct.
WIDE = 1 / 5


class Settings(NamedTuple):
    """Every parameter of a fit, checked."""

    growing: Growing
    solver: QuantileSolver
    n_trees: int
    max_bins: int
    max_samples: float | int | str | None
    bootstrap: bool
    honest: bool
    dishonest_if_wide: bool
    """True for ``honest="auto"``, unless there are bags: standard errors need honest trees."""
    bag_size: int
    working_model: str | None
    seed: int

    @property
    def censoring(self) -> str:
        """Side on which times are censored: ``"right"`` or ``"left"``."""
        return self.solver.censoring

    def sample(self, units: Units, with_residual_trees: bool = False) -> Sampling:
        """How each tree draws from these units.

        With residual trees, a bag holds ``bag_size`` trees of either kind.
        """
        in_bags = self.bag_size > 1
        return Sampling(
            units.of_row,
            units.n_units,
            self.sample_size(units.n_units, units.noun),
            self.bootstrap,
            self.honest,
            self.bag_size * (2 if in_bags and with_residual_trees else 1),
        )

    def grow_direct(
        self, sampling: Sampling, n_rows: int, n_features: int
    ) -> tuple[Sampling, Growing]:
        """How direct trees are drawn and grown in a forest that has residual trees too.

        With ``honest="auto"`` those of a wide table are not honest: half of its rows are too few to
        find splits among so many features. They find them in twice as many rows, and their nodes
        are twice as large, so that they have about as many leaves as honest trees.

        n_rows : rows of positive weight
        """
        growing = self.growing
        if not self.dishonest_if_wide or n_features < WIDE * n_rows:
            return sampling, growing
        limits = growing.limits._replace(
            min_samples_split=2 * growing.limits.min_samples_split,
            min_samples_leaf=2 * growing.limits.min_samples_leaf,
        )
        return sampling._replace(honest=False), growing._replace(limits=limits)

    def sample_size(self, n_units: int, noun: str = "rows") -> int:
        """Number of units that a tree draws, of so many rows or groups."""
        return read_sample_size(self.max_samples, n_units, self.bootstrap, noun, self.bag_size)


def read_settings(
    estimator: Any,
    n_features: int,
    seed: int,
    causes: Sequence[Cause] = (),
    has_intervals: bool = False,
) -> Settings:
    """Settings of a fit to a table with so many features, and events of these causes.

    ``seed`` is an argument because :func:`draw_seed` changes a generator's state. ``causes`` is
    empty if there is one kind of event.
    """
    _check_prediction(estimator)
    solver = read_solver(estimator, read_choice("censoring", estimator.censoring, SIDES))
    n_trees = read_count("n_estimators", estimator.n_estimators, 1)
    growing = read_growing(estimator, n_features, causes)
    if has_intervals:
        check_interval_settings(estimator, solver)
        growing = growing._replace(criterion=growing.criterion.of_intervals())
    honest = read_honest(estimator.honest)
    bag_size = read_count("bag_size", estimator.bag_size, 1)
    return Settings(
        growing=growing,
        solver=solver,
        n_trees=n_trees,
        max_bins=read_bins(estimator.max_bins),
        max_samples=estimator.max_samples,
        bootstrap=read_flag("bootstrap", estimator.bootstrap),
        honest=bool(honest),
        dishonest_if_wide=honest == "auto" and bag_size == 1,
        bag_size=bag_size,
        working_model=read_working_model(estimator, solver, causes) if n_trees > 1 else None,
        seed=seed,
    )


def read_honest(honest: Any) -> bool | str:
    """Whether trees are honest: True, False or ``"auto"``."""
    if isinstance(honest, str) and honest == "auto":
        return honest
    if not isinstance(honest, bool | np.bool_):
        raise ValueError(f'honest={honest!r} must be True, False or "auto".')
    return bool(honest)


def check_interval_settings(estimator: Any, solver: QuantileSolver) -> None:
    """Raise if a setting is not for interval-censored rows."""
    bad = [
        (estimator.criterion != DEFAULT_CRITERION, "criterion", DEFAULT_CRITERION),
        (not solver.reads_curves and solver.rule == "root", "censoring_survival", "beran"),
        (solver.rule != "root", "solver", "root"),
        (estimator.bag_size != 1, "bag_size", 1),
    ]
    for is_bad, name, only in bad:
        if is_bad:
            raise ValueError(
                f"{name}={getattr(estimator, name)!r} is not available for y with intervals: leave "
                f"it at {only!r}."
            )


def read_working_model(
    estimator: Any, solver: QuantileSolver, causes: Sequence[Cause] = ()
) -> str | None:
    """The working model, ``"cox"`` or None.

    ``"auto"``: Cox for the default criterion, unless quantiles are to be solved for in another way
    than where the survival curve crosses 1 - tau. Other criteria are those of published forests.
    With several causes there is none: one linear predictor cannot tell them apart.
    """
    working_model = estimator.working_model
    if working_model is None:
        return None
    read_choice("working_model", working_model, WORKING_MODELS)
    if causes and working_model != "auto":
        raise ValueError(
            f"working_model={working_model!r} is for one kind of event; y has several causes. "
            'Leave it at "auto", or fit one cause, as in censored(time, cause == 1).'
        )
    if causes:
        return None
    if working_model == "auto":
        is_default = estimator.criterion == DEFAULT_CRITERION
        return "cox" if is_default and solver.reads_curves else None
    solver.check_reads_curves()
    return str(working_model)


def check_predictions(estimator: Any) -> None:
    """Raise unless the parameters that predictions read are valid, wherever they came from."""
    _check_prediction(estimator)
    read_solver(estimator, read_choice("censoring", estimator.censoring, SIDES))
    check_n_jobs(estimator)


def check_n_jobs(estimator: Any) -> None:
    """Raise unless ``n_jobs`` is what joblib takes."""
    n_jobs = estimator.n_jobs
    if n_jobs is not None and not (is_number(n_jobs) and int(n_jobs) == n_jobs != 0):
        raise ValueError(f"n_jobs={n_jobs!r} must be None or a whole number other than 0.")


def _check_prediction(estimator: Any) -> None:
    """Raise unless the parameters that only predictions and pictures read are valid."""
    read_choice("prediction", estimator.prediction, PREDICTIONS)
    read_choice("unidentified", estimator.unidentified, UNIDENTIFIED)
    check_names(estimator)


def check_names(estimator: Any) -> None:
    """Raise unless the unit of time and the name of the event are texts or None."""
    for name in ("time_unit", "event_name"):
        value = getattr(estimator, name)
        if value is not None and not isinstance(value, str):
            raise ValueError(f'{name}={value!r} must be text, such as "days" or "death".')


def draw_seed(random_state: Any) -> int:
    """Seed of a forest, from a seed, a generator or None."""
    return int(check_random_state(random_state).randint(2**31 - 1))


def read_solver(estimator: Any, censoring: str) -> QuantileSolver:
    """How the estimator solves for quantiles, for times censored on this side."""
    return QuantileSolver(
        censoring_survival=estimator.censoring_survival,
        n_neighbors=estimator.n_neighbors,
        solver=estimator.solver,
        censoring=censoring,
    )


def read_growing(estimator: Any, n_features: int, causes: Sequence[Cause] = ()) -> Growing:
    """How a tree chooses splits and when it stops."""
    criterion = CRITERIA[read_choice("criterion", estimator.criterion, tuple(CRITERIA))]
    levels = _read_split_quantiles(criterion, estimator.split_quantiles)
    place = read_split_causes(estimator.split_causes, criterion, causes)
    limits = Limits(
        n_candidates=read_max_features(estimator.max_features, n_features),
        max_depth=read_max_depth(estimator.max_depth),
        min_samples_split=read_count("min_samples_split", estimator.min_samples_split, 2),
        min_samples_leaf=read_count("min_samples_leaf", estimator.min_samples_leaf, 1),
        min_child_fraction=read_fraction(
            "min_child_fraction", estimator.min_child_fraction, 0.0, 0.5
        ),
    )
    if place is not None:
        return Growing(criterion.of_causes.from_causes(levels, place), limits)
    return Growing(criterion.parameters.from_levels(levels), limits)


def read_split_causes(
    split_causes: Any, criterion: Criterion, causes: Sequence[Cause]
) -> NDArray[np.int64] | None:
    """Place of each cause among those that are split on, censored rows first; -1 for the others.

    None if the criterion does not tell causes apart, or if there is one kind of event.
    """
    if split_causes is not None and not causes:
        raise ValueError(
            f"split_causes={split_causes!r}: y has one kind of event. To tell causes apart, fit "
            "with y = censored(time, cause)."
        )
    if split_causes is not None and criterion.of_causes is None:
        able = ", ".join(name for name, each in CRITERIA.items() if each.of_causes is not None)
        raise ValueError(
            f"split_causes={split_causes!r}: this criterion does not tell causes apart; choose one "
            f"of {able}."
        )
    if not causes or criterion.of_causes is None:
        return None
    chosen = list(range(len(causes)))
    if split_causes is not None:
        listed = [split_causes] if np.isscalar(split_causes) else list(split_causes)
        chosen = sorted({find_cause(cause, causes, "split_causes") for cause in listed})
        if not chosen:
            raise ValueError("split_causes is empty: name a cause, or leave it at None for all.")
    place = np.full(len(causes) + 1, -1, np.int64)
    place[np.array(chosen) + 1] = np.arange(len(chosen))
    return place


def read_sample_size(
    max_samples: Any, n_units: int, bootstrap: bool, noun: str = "rows", bag_size: int = 1
) -> int:
    """Number of units that a tree draws."""
    size = _read_sample_size(max_samples, n_units, bootstrap, noun, bag_size)
    if bag_size == 1:
        return size
    half = n_units // 2
    if half == 0 or size > (n_units + 1) // 2:
        raise ValueError(
            f"bag_size={bag_size} needs max_samples of at most half of the {n_units} {noun}: the "
            f"trees of a bag draw from one half; found max_samples={max_samples!r}."
        )
    return min(size, half)


def _read_sample_size(
    max_samples: Any, n_units: int, bootstrap: bool, noun: str, bag_size: int
) -> int:
    if max_samples is None:
        return n_units
    if isinstance(max_samples, str) and max_samples == "auto":
        size = max(1, round(SHARE * n_units))
        if bag_size > 1 or n_units < FEW_ROWS:
            return size
        return max(size, min(LARGE_SHARE_UP_TO, round(LARGE_SHARE * n_units)))
    if is_count(max_samples):
        size = read_count("max_samples", max_samples, 1)
        if size > n_units and not bootstrap:
            raise ValueError(
                f"max_samples={size} is more than the {n_units} training {noun}; without "
                "bootstrap a tree can draw each of them once."
            )
        return size
    if not is_number(max_samples) or not 0 < max_samples <= 1:
        raise ValueError(
            f"max_samples={max_samples!r} must be a number above 0 and at most 1, a count, None for"
            ' as many as there are, or "auto".'
        )
    return max(1, round(max_samples * n_units))


def read_bins(max_bins: Any) -> int:
    """Bins per feature."""
    n_bins = read_count("max_bins", max_bins, 2)
    if n_bins > MAX_BINS:
        raise ValueError(f"max_bins={n_bins} must be at most {MAX_BINS}: a code is one byte.")
    return n_bins


def plain_settings(estimator: Any) -> dict[str, Any]:
    """Parameters of an estimator as JSON can hold them."""
    return {name: plain_setting(name, value) for name, value in estimator.get_params().items()}


def plain_setting(name: str, value: Any) -> Any:
    """A parameter as a number, text, None or a list of numbers."""
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain_setting(name, each) for each in value]
    if value is None or isinstance(value, str | int | float):
        return value
    if name == "random_state":
        return None  # a generator, not a seed: the forest that grew from it is in the file
    raise ValueError(f"{name}={value!r} cannot be kept in a model file: give a plain value.")


def _read_split_quantiles(criterion: Criterion, split_quantiles: Any) -> tuple[float, ...]:
    if split_quantiles is None:
        return criterion.default_levels
    levels = np.unique(read_floats("split_quantiles", split_quantiles))
    if levels.size == 0 or not ((levels > 0) & (levels < 1)).all():
        raise ValueError(
            f"split_quantiles={split_quantiles!r} must be levels strictly between 0 and 1."
        )
    return tuple(float(level) for level in levels)


def read_max_depth(max_depth: Any) -> int:
    return UNLIMITED if max_depth is None else min(UNLIMITED, read_count("max_depth", max_depth, 1))


def read_max_features(max_features: Any, n_features: int) -> int:
    if max_features is None:
        return n_features
    if isinstance(max_features, str):
        choice = read_choice("max_features", max_features, ("sqrt", "log2"))
        share = math.sqrt(n_features) if choice == "sqrt" else math.log2(n_features)
        return max(1, int(share))
    if is_count(max_features):
        if not 1 <= max_features <= n_features:
            raise ValueError(
                f"max_features={max_features} must lie between 1 and the {n_features} features."
            )
        return int(max_features)
    return max(1, round(read_share("max_features", max_features) * n_features))
