"""Concordance index: the share of comparable pairs that are ranked in the right order.

A pair is comparable if one row had its event at T, and the other was at risk after T or was
censored at T. A tied prediction counts 1/2. Harrell's index weights all pairs equally and so
depends on the censoring. Uno's index weights a pair by 1 / G(T-)^2, with G the censoring survival,
and uses events before the horizon only.

Competing risks: a row that had another event will never have one of cause k. It is comparable with
every row that had, and is ranked right if its event of cause k is predicted later (Wolbers et al.
2009). In Uno's form a pair with an event of cause k at T, and another event at T' < T in the other
row, has the weight 1 / (G(T-) G(T'-)) (Wolbers et al. 2014).
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cqrf._input.sample_weight import read_sample_weight
from cqrf._input.target import Target, oriented, rank_target
from cqrf._runtime.arguments import read_choice, read_fraction
from cqrf._runtime.compiling import allocating_kernel
from cqrf.metrics.causes import rows_of_cause
from cqrf.metrics.ipcw import as_target, read_evaluation_rows
from cqrf.metrics.metric import Metric, Predictions


def concordance_index(
    y: Any,
    predicted: ArrayLike,
    *,
    y_train: Any = None,
    horizon: float | None = None,
    cause: Any = None,
    censoring: str = "right",
    train_weight: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Concordance of predicted times with censored ones, in O(n log n).

    NaN, with a warning, if every event that could start a pair lies beyond the horizon.

    Parameters
    ----------
    y : target in any form that ``fit`` takes
        The test rows.
    predicted : array-like of shape (n,)
        Larger means a later event; may be infinite.
    y_train : target, optional
        Training rows to estimate G from. Gives Uno's index; without it, Harrell's.
    horizon : float, optional
        Events at this time or later start no pair. Default: no limit for Harrell's index; the
        time where G falls below the floor for Uno's.
    cause : int or str, optional
        With competing risks: the cause whose events are ranked, which gives Wolbers' index. Pass
        minus the cumulative incidence at some time, or minus the mean time lost to the cause.
        Default: events of any cause.
    censoring : {"right", "left"}
        Side on which times are censored.
    train_weight, sample_weight : array-like, optional
        Weights of the rows of ``y_train`` and of ``y``. A pair has the product of its weights.

    Returns
    -------
    float
        1 is a perfect ranking, .5 a random one.

    Examples
    --------
    >>> from cqrf import censored
    >>> from cqrf.metrics import concordance_index
    >>> y = censored([1.0, 2.0, 3.0], [True, False, True])
    >>> concordance_index(y, [10.0, 30.0, 5.0])
    0.5
    >>> y = censored([1.0, 2.0, 3.0], [2, 1, 0])
    >>> incidence = [0.1, 0.7, 0.3]
    >>> concordance_index(y, [-share for share in incidence], cause=1)
    1.0
    """
    target = as_target(y)
    values = _read_predicted(predicted, len(target.time))
    pairs = _read_pairs(target, y_train, cause, censoring, train_weight, sample_weight)
    if horizon is not None:
        last = oriented(read_fraction("horizon", horizon, -np.inf, np.inf), censoring)
        pairs = pairs._replace(horizon=min(last, pairs.horizon))
    return _share_concordant(pairs, values)


def _read_pairs(
    target: Target,
    y_train: Any,
    cause: Any,
    censoring: str,
    train_weight: ArrayLike | None,
    sample_weight: ArrayLike | None,
) -> _Pairs:
    """Rows to pair, up to the horizon of Uno's index."""
    read_choice("censoring", censoring, ("right", "left"))
    if y_train is None and train_weight is not None:
        raise ValueError("train_weight weights the rows of y_train, which is missing: give both.")
    if cause is not None and censoring == "left":
        raise ValueError("several causes go with right censoring only: leave cause out.")
    n = len(target.time)
    last, censoring_survival = np.inf, np.ones(n)
    if y_train is not None:
        rows = read_evaluation_rows(y_train, target, censoring=censoring, train_weight=train_weight)
        last = rows.horizon
        censoring_survival = rows.censoring_survival_before(rows.time)
    of_cause = rows_of_cause(target, cause, None if y_train is None else as_target(y_train))
    weight = np.ones(n) if sample_weight is None else read_sample_weight(sample_weight, n)
    return _Pairs(target, of_cause, weight, censoring_survival, last, censoring)


def _read_predicted(predicted: ArrayLike, n: int) -> NDArray[np.float64]:
    values = np.asarray(predicted, np.float64)
    if values.shape != (n,):
        raise ValueError(f"predicted has shape {values.shape}; expected one time a row: ({n},).")
    if np.isnan(values).any():
        raise ValueError("predicted times must not be NaN.")
    return values


class _Pairs(NamedTuple):
    """Rows to pair: one had an event of the cause, before the horizon (oriented)."""

    target: Target
    of_cause: NDArray[np.bool_]
    weight: NDArray[np.float64]
    censoring_survival: NDArray[np.float64]
    """G just before the time of each row; 1 for Harrell's index."""
    horizon: float
    censoring: str


def _share_concordant(pairs: _Pairs, predicted: NDArray[np.float64]) -> float:
    """Weighted share of concordant pairs."""
    target, of_cause, weight, censoring_survival, horizon, censoring = pairs
    beyond = oriented(target.time, censoring) >= horizon
    _, places = np.unique(oriented(predicted, censoring), return_inverse=True)
    # At a tied time another event, like a censoring, leaves the row without one of the cause.
    ranked, order = rank_target(target._replace(event=of_cause), censoring)
    first_weight = np.where(beyond, 0.0, weight / censoring_survival**2)
    concordant, comparable = count_pairs(
        ranked.time, ranked.event, places[order], weight[order], first_weight[order]
    )
    is_other = target.event & ~of_cause
    if is_other.any():  # before the event of the cause: the pair in reverse order
        ranked, order = rank_target(target, censoring)
        share = weight / censoring_survival
        later, first = np.where(of_cause & ~beyond, share, 0.0), np.where(is_other, share, 0.0)
        reverse = places.max() - places
        more_concordant, more_comparable = count_pairs(
            ranked.time, ranked.event, reverse[order], later[order], first[order]
        )
        concordant, comparable = concordant + more_concordant, comparable + more_comparable
    if comparable == 0 and (of_cause & beyond).any():
        warnings.warn(
            "no event that could start a pair comes before the horizon "
            f"{oriented(horizon, censoring):g}: the concordance is NaN.",
            stacklevel=3,
        )
        return np.nan
    if comparable == 0:
        raise ValueError("no two rows of y are comparable: no event comes before another time.")
    return concordant / comparable


@allocating_kernel
def count_pairs(
    time: NDArray[np.float64],
    event: NDArray[np.bool_],
    places: NDArray[np.intp],
    weight: NDArray[np.float64],
    first_weight: NDArray[np.float64],
) -> tuple[float, float]:
    """Total weight of the concordant pairs, ties counting 1/2, and of the comparable pairs.

    All inputs have shape (n,). Rows are sorted by time, events before censorings at a tied
    time; ``places`` are the ranks of the predictions, from 0. A pair has the ``first_weight`` of
    the row with the first event times the ``weight`` of the other.

    Rows are visited from the last to the first. A binary indexed tree holds the weight of the
    visited rows by place, so the cost is O(n log n).
    """
    n = len(time)
    later = np.zeros(n + 1)
    total, concordant, comparable = 0.0, 0.0, 0.0
    last = n - 1
    while last >= 0:
        first = last
        if event[last]:
            while first > 0 and event[first - 1] and time[first - 1] == time[last]:
                first -= 1
            for i in range(first, last + 1):
                up_to, below = 0.0, 0.0
                at = places[i] + 1
                while at > 0:
                    up_to += later[at]
                    at -= at & -at
                at = places[i]
                while at > 0:
                    below += later[at]
                    at -= at & -at
                concordant += first_weight[i] * (total - up_to + 0.5 * (up_to - below))
                comparable += first_weight[i] * total
        for i in range(first, last + 1):
            total += weight[i]
            at = places[i] + 1
            while at <= n:
                later[at] += weight[i]
                at += at & -at
        last = first - 1
    return concordant, comparable


def _compute_harrell(
    predictions: Predictions, *, quantile: float | None = None, cause: Any = None
) -> float:
    return concordance_index(
        predictions.y_test,
        predictions.ranking(quantile, cause),
        cause=cause,
        censoring=predictions.censoring,
        sample_weight=predictions.sample_weight,
    )


def _compute_uno(
    predictions: Predictions, *, quantile: float | None = None, cause: Any = None
) -> float:
    return concordance_index(
        predictions.y_test,
        predictions.ranking(quantile, cause),
        y_train=predictions.y_train,
        cause=cause,
        censoring=predictions.censoring,
        train_weight=predictions.train_weight,
        sample_weight=predictions.sample_weight,
    )


HARRELL_CONCORDANCE = Metric(
    name="concordance",
    key="concordance",
    label="concordance (Harrell's C)",
    description="Share of comparable pairs of rows whose predicted means are in the right order.",
    higher_is_better=True,
    needs=("ranking",),
    compute=_compute_harrell,
    label_of_cause="concordance (Wolbers' C)",
)

UNO_CONCORDANCE = Metric(
    name="uno_concordance",
    key=None,
    label="concordance (Uno's C)",
    description="Concordance with pairs weighted by IPCW, up to the horizon.",
    higher_is_better=True,
    needs=("ranking", "training_rows"),
    compute=_compute_uno,
)
