"""Concordance index: the share of comparable pairs that are ranked in the right order.

A pair is comparable if one row had its event at T, and the other was at risk after T or was
censored at T. A tied prediction counts 1/2. Harrell's index weights all pairs equally and so
depends on the censoring. Uno's index weights a pair by 1 / G(T-)^2, with G the censoring survival,
and uses events before the horizon only.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cqrf._input.sample_weight import read_sample_weight
from cqrf._input.target import Target, oriented, rank_target
from cqrf._runtime.arguments import read_choice, read_fraction
from cqrf._runtime.compiling import allocating_kernel
from cqrf.metrics.ipcw import as_target, read_evaluation_rows
from cqrf.metrics.metric import Metric, Predictions


def concordance_index(
    y: Any,
    predicted: ArrayLike,
    *,
    y_train: Any = None,
    horizon: float | None = None,
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
    """
    read_choice("censoring", censoring, ("right", "left"))
    target = as_target(y)
    values = _read_predicted(predicted, len(target.time))
    if y_train is None and train_weight is not None:
        raise ValueError("train_weight weights the rows of y_train, which is missing: give both.")
    last = np.inf
    if horizon is not None:
        last = oriented(read_fraction("horizon", horizon, -np.inf, np.inf), censoring)
    pair_divisor = np.ones(len(values))
    if y_train is not None:
        rows = read_evaluation_rows(y_train, target, censoring=censoring, train_weight=train_weight)
        last = min(last, rows.horizon)
        pair_divisor = rows.censoring_survival_before(rows.time) ** 2
    return _share_concordant(target, values, pair_divisor, last, censoring, sample_weight)


def _read_predicted(predicted: ArrayLike, n: int) -> NDArray[np.float64]:
    values = np.asarray(predicted, np.float64)
    if values.shape != (n,):
        raise ValueError(f"predicted has shape {values.shape}; expected one time a row: ({n},).")
    if np.isnan(values).any():
        raise ValueError("predicted times must not be NaN.")
    return values


def _share_concordant(
    target: Target,
    predicted: NDArray[np.float64],
    pair_divisor: NDArray[np.float64],
    horizon: float,
    censoring: str,
    sample_weight: ArrayLike | None,
) -> float:
    """Weighted share of concordant pairs.

    A pair's weight is divided by ``pair_divisor`` of the row with the first event.
    """
    n = len(predicted)
    time = oriented(target.time, censoring)
    weight = np.ones(n) if sample_weight is None else read_sample_weight(sample_weight, n)
    first_weight = weight / pair_divisor
    beyond = time >= horizon
    first_weight[beyond] = 0.0
    ranked, order = rank_target(target, censoring)
    _, places = np.unique(oriented(predicted, censoring), return_inverse=True)
    concordant, comparable = count_pairs(
        ranked.time, ranked.event, places[order], weight[order], first_weight[order]
    )
    if comparable == 0 and (target.event & beyond).any():
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


def _compute_harrell(predictions: Predictions, *, quantile: float | None = None) -> float:
    return concordance_index(
        predictions.y_test,
        predictions.ranking(quantile),
        censoring=predictions.censoring,
        sample_weight=predictions.sample_weight,
    )


def _compute_uno(predictions: Predictions, *, quantile: float | None = None) -> float:
    return concordance_index(
        predictions.y_test,
        predictions.ranking(quantile),
        y_train=predictions.y_train,
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
