"""Survival curves: the squared distance between what was predicted and what came.

The Brier score at t is the mean of (1(T > t) - S(t|x))^2, over the rows of which it is known
whether T > t, each weighted by one over the probability that it is (Graf et al. 1999). Its mean
over times is the integrated Brier score; its integral over all times up to the horizon is the
continuous ranked probability score, CRPS: in units of time. Without censoring there is no horizon,
and it is the usual one for a curve that comes down to 0; one that does not is judged up to the last
time of the training and test rows, wherever its steps are.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cqrf._input.target import oriented
from cqrf._runtime.arguments import read_floats
from cqrf._survival.curves import StepCurves
from cqrf.metrics.censoring import FLOOR, Seen, check_curves, see

# Curves are evaluated for blocks of rows of about this many values.
BLOCK_VALUES = 4_000_000
# The integrated Brier score, if no times are given: from here to there, by this many.
USUAL_RANGE = (0.1, 0.9)
N_TIMES = 50


def brier_score(
    y_train: Any,
    y_test: Any,
    survival: ArrayLike | StepCurves,
    times: ArrayLike,
    *,
    censoring: str = "right",
    censoring_survival: StepCurves | None = None,
    train_weight: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> NDArray[np.float64]:
    """Brier score at each time; NaN, with a warning, at times beyond the horizon.

    Parameters
    ----------
    y_train, y_test : targets in any form that ``fit`` takes
        Training rows, from which G is estimated, and the rows that are judged.
    survival : array-like of shape (n, n_times), or StepCurves
        P(T > t | x) of each row at each time.
    times : array-like of shape (n_times,)
        Where to ask.
    censoring : {"right", "left"}
        Side on which times are censored.
    censoring_survival : StepCurves, optional
        G of each row of ``y_test``; see :func:`censored_quantile_loss`.
    train_weight, sample_weight : array-like, optional
        Weights of the rows of ``y_train`` and of ``y_test``.

    Examples
    --------
    >>> from cqrf import censored
    >>> from cqrf.metrics import brier_score
    >>> y = censored([1.0, 2.0, 4.0, 5.0], [True, True, True, True])
    >>> brier_score(y, y, [[0.5], [0.5], [0.5], [0.5]], [3.0]).tolist()
    [0.25]
    """
    seen = see(
        y_train,
        y_test,
        censoring=censoring,
        censoring_survival=censoring_survival,
        train_weight=train_weight,
        sample_weight=sample_weight,
    )
    at = _read_times(times)
    values = survival(at) if isinstance(survival, StepCurves) else np.asarray(survival, np.float64)
    if values.shape != (len(seen.time), len(at)):
        raise ValueError(
            f"survival has shape {values.shape}; expected ({len(seen.time)}, {len(at)}): a row for "
            "each of y_test, a column for each time."
        )
    if not ((values >= 0) & (values <= 1)).all():
        raise ValueError("survival must be probabilities, from 0 to 1 and without NaN.")
    scores = _score(seen, values, oriented(at, censoring))
    beyond = oriented(at, censoring) >= seen.horizon
    if beyond.any():
        warnings.warn(
            f"{beyond.sum()} of {len(at)} times lie beyond the horizon "
            f"{oriented(seen.horizon, censoring):g}, where less than {FLOOR:g} of the "
            "training rows are uncensored: their score is NaN.",
            stacklevel=2,
        )
        scores[beyond] = np.nan
    return scores


def integrated_brier_score(
    y_train: Any,
    y_test: Any,
    survival: ArrayLike | StepCurves,
    times: ArrayLike | None = None,
    **options: Any,
) -> float:
    """Mean Brier score over the range of times, by the trapezoidal rule.

    Takes what :func:`brier_score` takes; ``times`` ascend. Times beyond the horizon are left
    out, with its warning; if fewer than two are left, the score is NaN.

    Without ``times``, which needs step curves, the range is that from the 10th to the 90th
    percentile of the test times. Where that is a single time (most rows end with the study, say)
    or begins beyond the horizon, percentiles are those of the distinct test times up to the
    horizon. If all test times are one, the score is NaN, with a warning.
    """
    if times is None:
        seen = see(y_train, y_test, **options)
        check_curves("survival", survival, len(seen.time))
        at = np.sort(oriented(_usual_times(seen), seen.censoring))
    else:
        at = _read_times(times)
        if len(at) < 2 or not (np.diff(at) > 0).all():
            raise ValueError("times must be at least two, in ascending order.")
    scores = brier_score(y_train, y_test, survival, at, **options)
    known = ~np.isnan(scores)
    if len(at) == 1 and known.all():
        warnings.warn(
            f"the test times are all {at[0]:g}: with no range to integrate over, the integrated "
            "Brier score is NaN.",
            stacklevel=2,
        )
    if known.sum() < 2:
        return np.nan
    return float(np.trapezoid(scores[known], at[known]) / np.ptp(at[known]))


def crps(
    y_train: Any,
    y_test: Any,
    survival: StepCurves,
    *,
    censoring: str = "right",
    censoring_survival: StepCurves | None = None,
    train_weight: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Continuous ranked probability score of survival curves, up to the horizon.

    The integral of the Brier score over time, exact for step curves, in units of time. Takes
    what :func:`brier_score` takes, with curves as ``forest.predict_survival(X_test)`` gives them.
    Where there is no horizon, as without censoring, a curve that comes down to 0 (or up to 1, back
    in time, under left censoring) is judged to its end, and any other up to the last time of the
    training and test rows.

    Examples
    --------
    >>> from cqrf import CensoredQuantileForest
    >>> from cqrf.datasets import make_aft
    >>> from cqrf.metrics import crps
    >>> train, test = make_aft(300, random_state=0), make_aft(300, random_state=1)
    >>> forest = CensoredQuantileForest(random_state=0).fit(train.X, train.y)
    >>> bool(crps(train.y, test.y, forest.predict_survival(test.X)) < 0.75)
    True
    """
    seen = see(
        y_train,
        y_test,
        censoring=censoring,
        censoring_survival=censoring_survival,
        train_weight=train_weight,
        sample_weight=sample_weight,
    )
    n = len(seen.time)
    check_curves("survival", survival, n)
    end = min(seen.horizon, seen.last)
    steps = [oriented(survival.times, censoring), seen.time, seen.marginal.times, np.array([end])]
    if censoring_survival is not None:
        steps.append(oriented(censoring_survival.times, censoring))
    grid = np.unique(np.concatenate(steps))
    grid = grid[grid <= seen.horizon]
    over = 0.0 if censoring == "right" else 1.0  # P(T > t) once all have had their event
    is_open = survival(oriented(np.inf, censoring)) != over
    # Between two steps nothing changes: any time in the interval will do.
    inside, lengths = (grid[1:] + grid[:-1]) / 2, np.diff(grid)
    total, size = 0.0, max(1, BLOCK_VALUES // n)
    for start in range(0, len(inside), size):
        at = inside[start : start + size]
        values = survival(oriented(at, censoring))
        values[np.ix_(is_open, at > end)] = over
        scores = _score(seen, values, at)
        total += float(scores @ lengths[start : start + size])
    return total


def _read_times(times: ArrayLike) -> NDArray[np.float64]:
    at = np.atleast_1d(read_floats("times", times))
    if at.ndim > 1 or np.isnan(at).any():
        raise ValueError(f"times must be a list of numbers without NaN; found {times!r}.")
    return at


def _usual_times(seen: Seen) -> NDArray[np.float64]:
    """Even times over the middle of the test times, oriented; a single one if all are alike."""
    time = seen.time[seen.sample_weight > 0]
    first, last = np.quantile(time, USUAL_RANGE)
    if first >= min(last, seen.horizon):
        first, last = np.quantile(np.unique(np.minimum(time, seen.horizon)), USUAL_RANGE)
    return np.unique(np.linspace(first, last, N_TIMES))


def _score(
    seen: Seen, survival: NDArray[np.float64], times: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Brier score at times oriented to the right; ``survival`` in the user's orientation."""
    own_time = seen.time[:, np.newaxis]
    if seen.censoring == "right":
        still, is_past = survival, own_time <= times
    else:  # S is P(T > t): what stands at t itself is still to come, from the right
        still, is_past = 1.0 - survival, own_time < times
    had_event = seen.event[:, np.newaxis] & is_past
    known = had_event / seen.uncensored_before(seen.time)[:, np.newaxis]
    scores = seen.sample_weight @ (known * still**2)
    return scores + seen.sample_weight @ (~is_past * (1.0 - still) ** 2 / seen.uncensored_at(times))
