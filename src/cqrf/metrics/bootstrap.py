"""Confidence intervals of metrics, by the bootstrap over test rows.

A resample draws as many rows as there are, with replacement, or whole groups of rows. It is a
count for each row, by which its sample weight is multiplied; so any metric that takes sample
weights can be resampled. The interval is between two percentiles of the metric over the resamples.

Predictions and the censoring survival G are as they are: no forest is refitted. The interval is
about how well *this* forest predicts rows like the test rows, not about other forests.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from functools import partial
from inspect import Parameter, signature
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from cqrf._input.sample_weight import read_sample_weight
from cqrf._input.units import Units, number_units
from cqrf._runtime.arguments import is_number, read_count
from cqrf.metrics.ipcw import as_target

# A metric must be determined in this share of the resamples to have an interval.
FEWEST_DETERMINED = 0.9


class Interval(NamedTuple):
    """A metric with its confidence interval; arrays if it has one value per level or time.

    Examples
    --------
    >>> from cqrf.metrics import Interval
    >>> Interval(estimate=0.7, lower=0.65, upper=0.75).lower
    0.65
    """

    estimate: Any
    lower: Any
    upper: Any


def bootstrap_interval(
    metric: Callable[..., Any],
    *arguments: Any,
    groups: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    confidence: float = 0.95,
    n_boot: int = 1000,
    random_state: Any = None,
    **options: Any,
) -> Interval:
    """Confidence interval of a metric, by the bootstrap over test rows.

    The forest is not refitted, and G, which IPCW metrics estimate from ``y_train``, stays.

    Parameters
    ----------
    metric : callable
        With arguments ``sample_weight`` and ``y_test`` or ``y``; gives a number or an array.
    *arguments, **options
        What the metric takes: targets, predictions, ``censoring="left"`` ...
    groups : array-like of shape (n,), optional
        Groups of dependent rows, such as visits of one patient, which are drawn as a whole.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows, as the metric takes them. A row of weight 0 is not drawn.
    confidence : float, default=0.95
        Level of the interval, between 0 and 1.
    n_boot : int, default=1000
        Number of resamples.
    random_state : int, RandomState or None
        Seed of the resamples.

    Returns
    -------
    Interval
        Named tuple of ``estimate``, ``lower`` and ``upper``. The ends are NaN if more than a tenth
        of the resamples do not determine the metric: too few events, say.

    Examples
    --------
    >>> from cqrf import CensoredQuantileForest
    >>> from cqrf.datasets import make_aft
    >>> from cqrf.metrics import bootstrap_interval, concordance_index
    >>> train, test = make_aft(300, random_state=0), make_aft(300, random_state=1)
    >>> forest = CensoredQuantileForest(random_state=0).fit(train.X, train.y)
    >>> mean = forest.predict_mean(test.X, beyond="extend")
    >>> found = bootstrap_interval(concordance_index, test.y, mean, random_state=0)
    >>> bool(found.lower < found.estimate < found.upper)
    True
    """
    level = read_confidence(confidence)
    n_boot = read_count("n_boot", n_boot, 1)
    n = _count_rows(metric, arguments, options)
    weight = np.ones(n) if sample_weight is None else read_sample_weight(sample_weight, n)
    units = number_units(weight > 0, groups)
    if units.n_units < 2:
        raise ValueError(f"a bootstrap needs at least two {units.noun}; found {units.n_units}.")
    of_weight = partial(metric, *arguments, **options)
    estimate = of_weight(sample_weight=weight)
    resamples = _resample(weight, units, n_boot, random_state)
    return _find_interval(estimate, _compute_values(of_weight, resamples, estimate), level)


def read_confidence(confidence: Any) -> float:
    """The level of an interval as a float, if it lies between 0 and 1."""
    if not is_number(confidence) or not 0 < confidence < 1:
        raise ValueError(f"confidence={confidence!r} must be a number between 0 and 1.")
    return float(confidence)


def _count_rows(
    metric: Callable[..., Any], arguments: tuple[Any, ...], options: dict[str, Any]
) -> int:
    """Number of test rows among the arguments of a metric."""
    if not callable(metric):
        raise ValueError(f"metric={metric!r} must be a function, such as cqrf.metrics.crps.")
    name = getattr(metric, "__name__", repr(metric))
    parameters = signature(metric)
    kinds = {each.kind for each in parameters.parameters.values()}
    if "sample_weight" not in parameters.parameters and Parameter.VAR_KEYWORD not in kinds:
        raise ValueError(f"{name} must have an argument sample_weight: it is how rows are drawn.")
    bound = parameters.bind(*arguments, sample_weight=None, **options).arguments
    target = bound.get("y_test", bound.get("y"))
    if target is None:
        raise ValueError(f"{name} must have an argument y_test or y: the test rows to draw from.")
    return len(as_target(target).time)


def _resample(
    weight: NDArray[np.float64], units: Units, n_boot: int, random_state: Any
) -> Iterator[NDArray[np.float64]]:
    """Sample weights of each resample: those given, times the number of draws of the unit."""
    rng = check_random_state(random_state)
    has_unit = units.of_row >= 0
    unit = units.of_row[has_unit]
    for _ in range(n_boot):
        drawn = rng.randint(units.n_units, size=units.n_units)
        counts = np.bincount(drawn, minlength=units.n_units)
        resampled = np.zeros(len(weight))
        resampled[has_unit] = weight[has_unit] * counts[unit]
        yield resampled


def _compute_values(
    metric: Callable[..., Any], resamples: Iterator[NDArray[np.float64]], estimate: Any
) -> NDArray[np.float64]:
    """Like the estimate, with the weights of each resample; NaN if these do not determine it."""
    values = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the estimate has given the metric's warning
        for weight in resamples:
            try:
                values.append(metric(sample_weight=weight))
            except ValueError:
                values.append(np.full(np.shape(estimate), np.nan))
    return np.asarray(values, np.float64)


def _find_interval(estimate: Any, values: NDArray[np.float64], confidence: float) -> Interval:
    """Percentiles over the first axis; NaN where too few resamples determine the metric."""
    finite = np.where(np.isfinite(values), values, np.nan)
    has_enough = (~np.isnan(finite)).mean(axis=0) >= FEWEST_DETERMINED
    known = np.where(has_enough, finite, 0.0)
    tail = (1 - confidence) / 2
    ends = np.nanquantile(known, [tail, 1 - tail], axis=0)
    lower, upper = np.where(has_enough, ends, np.nan)
    if np.ndim(estimate) == 0:
        return Interval(float(estimate), float(lower), float(upper))
    return Interval(estimate, lower, upper)
