"""What a metric is: a function of predictions, and an entry that describes it.

A metric's entry names the function, its label, its direction and what it reads. The scorers,
``cqrf.evaluation.evaluate``, the command line and the report take everything from the entry, so
a new metric needs no change in any of them. See ``cqrf.metrics.registry``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cqrf._input.causes import Cause
from cqrf._input.risk_sets import TOLERANCE
from cqrf._input.target import Target
from cqrf._survival.step_curves import StepCurves

# Levels of the quantile loss where censoring hides none of them, and the factors by which they are
# scaled down where it does.
SCORE_QUANTILES = (0.25, 0.5, 0.75)
LEVEL_FACTORS = (1.0, 0.8, 0.6, 0.4, 0.2, 0.1)

Need = Literal["quantiles", "survival", "ranking", "training_rows"]


def choose_levels(known_share: float, censoring: str) -> tuple[float, ...]:
    """Levels of the quantile loss, ascending, if the data show this share of the distribution.

    SCORE_QUANTILES times the largest of LEVEL_FACTORS with which the last level is at most
    ``known_share``, or the smallest if there is none; mirrored under left censoring.
    """
    fitting = [f for f in LEVEL_FACTORS if SCORE_QUANTILES[-1] * f <= known_share + TOLERANCE]
    factor = fitting[0] if fitting else LEVEL_FACTORS[-1]
    levels = tuple(round(factor * level, 3) for level in SCORE_QUANTILES)
    if censoring == "right":
        return levels
    return tuple(round(1.0 - level, 3) for level in reversed(levels))


def describe_levels(levels: Sequence[float]) -> str:
    """Why quantiles are scored at these levels, and not at SCORE_QUANTILES."""
    shown, usual = (", ".join(f"{level:g}" for level in each) for each in (levels, SCORE_QUANTILES))
    return (
        f"Quantiles are scored at the levels {shown} instead of {usual}: censoring hides the "
        "quantiles at these in the training rows."
    )


@dataclass(frozen=True, eq=False)
class Predictions(ABC):
    """Test rows, and what was predicted for them.

    Attributes
    ----------
    y_train : Target
        Rows that the censoring survival G is estimated from.
    y_test : Target
        Rows that were predicted.
    censoring : {"right", "left"}
        Side on which times are censored.
    train_weight, sample_weight : array-like or None
        Weights of the rows of ``y_train`` and of ``y_test``.
    score_levels : tuple of float
        Levels of the quantile loss where none are given: those that the training rows can tell.
    """

    y_train: Target
    y_test: Target
    censoring: str
    train_weight: ArrayLike | None
    sample_weight: ArrayLike | None
    score_levels: tuple[float, ...]

    @abstractmethod
    def quantiles(self, levels: Sequence[float] | NDArray[np.float64]) -> NDArray[np.float64]:
        """Quantiles of shape (n, n_levels); those not identifiable are clipped."""

    @abstractmethod
    def survival(self, times: ArrayLike | None = None) -> StepCurves | NDArray[np.float64]:
        """Survival curves, or their values of shape (n, n_times)."""

    @abstractmethod
    def mean(self) -> NDArray[np.float64]:
        """Restricted means of shape (n,)."""

    @abstractmethod
    def censoring_survival(self) -> StepCurves:
        """G(.|x) of each row, as the forest estimates it."""

    @property
    def causes(self) -> tuple[Cause, ...]:
        """Causes that the forest tells apart; empty with one kind of event."""
        return ()

    def incidence(
        self, cause: Cause, times: ArrayLike | None = None
    ) -> StepCurves | NDArray[np.float64]:
        """Cumulative incidences of one of ``causes``, or their values of shape (n, n_times)."""
        raise NotImplementedError(f"these predictions have no incidence of cause {cause!r}.")

    def time_lost(self, cause: Cause) -> NDArray[np.float64]:
        """Mean time lost to one of ``causes`` before the horizon of ``mean``; shape (n,)."""
        raise NotImplementedError(f"these predictions have no time lost to cause {cause!r}.")

    def ranking(
        self, quantile: float | None = None, cause: Cause | None = None
    ) -> NDArray[np.float64]:
        """What rows are ranked by: the restricted mean, or one quantile. Larger is later.

        With a cause: minus the mean time lost to it.
        """
        if cause is not None and quantile is not None:
            raise ValueError("rows are ranked by a quantile or for a cause: give one of both.")
        if cause is not None:
            return -self.time_lost(cause)
        return self.mean() if quantile is None else self.quantiles([quantile])[:, 0]

    def ipcw_options(self, *, forest_censoring: bool = False) -> dict[str, Any]:
        """Keyword arguments that every IPCW metric takes.

        ``forest_censoring``: G(.|x) of the forest, instead of one Kaplan-Meier estimate.
        """
        return {
            "censoring": self.censoring,
            "censoring_survival": self.censoring_survival() if forest_censoring else None,
            "train_weight": self.train_weight,
            "sample_weight": self.sample_weight,
        }


@dataclass(frozen=True)
class Metric:
    """The registry entry of a metric.

    Attributes
    ----------
    name : str
        Name for :func:`cqrf.metrics.make_scorer`.
    key : str or None
        Key in what ``evaluate`` returns; None leaves the metric out. With ``"{level}"`` in it,
        ``compute`` returns one value for each of ``predictions.score_levels``.
    label : str
        What a table of results calls it, with ``"{level}"`` where ``key`` has it.
    description : str
        One sentence that explains it.
    higher_is_better : bool
        Its direction. Scorers negate a metric for which lower is better.
    needs : tuple of {"quantiles", "survival", "ranking", "training_rows"}
        What ``compute`` reads of the predictions; ``"training_rows"`` means IPCW.
    compute : callable
        ``compute(predictions, **options)`` returns a number, or one per level. Its keyword-only
        arguments are the options that ``make_scorer`` accepts. It raises a ValueError, or
        returns NaN with a warning, where the rows do not determine the metric.
    label_of_cause : str, optional
        What the metric is called for a single cause, where there are competing risks.
        ``compute`` then has the option ``cause``, and ``evaluate`` gives it for each cause.
    """

    name: str
    key: str | None
    label: str
    description: str
    higher_is_better: bool
    needs: tuple[Need, ...]
    compute: Callable[..., float | NDArray[np.float64]]
    label_of_cause: str | None = None

    def labels(
        self, levels: Sequence[float] = SCORE_QUANTILES, causes: Sequence[Cause] = ()
    ) -> dict[str, str]:
        """Label of each key in what ``evaluate`` returns.

        ``levels``: those of the quantile loss; ``causes``: those that the forest tells apart.
        """
        if self.key is None:
            return {}
        if "{level}" in self.key:
            return {self.key.format(level=q): self.label.format(level=q) for q in levels}
        labels = {self.key: self.label}
        if self.label_of_cause is not None:
            for cause in causes:
                labels[key_of_cause(self.key, cause)] = f"{self.label_of_cause}, cause {cause}"
        return labels

    def evaluate(self, predictions: Predictions) -> dict[str, float]:
        """The metric's values by key; NaN where the rows do not determine them."""
        if self.key is None:
            return {}
        n_values = len(predictions.score_levels) if "{level}" in self.key else 1
        values = self._compute(predictions, n_values)
        if self.label_of_cause is not None:
            for cause in predictions.causes:
                values += self._compute(predictions, 1, cause=cause)
        keys = self.labels(predictions.score_levels, predictions.causes)
        return dict(zip(keys, values, strict=True))

    def _compute(self, predictions: Predictions, n_values: int, **options: Any) -> list[float]:
        """Values of ``compute``; NaN where the rows do not determine them."""
        try:
            return [float(value) for value in np.atleast_1d(self.compute(predictions, **options))]
        except ValueError:
            return [np.nan] * n_values


def key_of_cause(key: str, cause: Cause) -> str:
    """Key of a metric for a single cause."""
    return f"{key}_cause_{cause}"
