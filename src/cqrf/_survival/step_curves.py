"""Step curves: right-continuous step functions, one per query, each known on a range of times.

A survival curve is known up to the last time at which a row with weight is at risk, and for all
times if it has fallen to 0 there. Under left censoring it is known from the first such time on.
Outside of this range the data say nothing: values are NaN unless the caller asks for the flat line.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cqrf._runtime.arguments import read_choice
from cqrf._survival.curve_views import curves_frame, curves_html, describe_curves, describe_range
from cqrf._survival.step_curve import BEYOND, StepCurve
from cqrf._survival.step_kernels import (
    cumulate_hazard,
    evaluate,
    evaluate_each,
    find_first_at_most,
    restrict_means,
)

BEYOND_MEAN = (*BEYOND, "restrict")


class BeyondFollowUpWarning(UserWarning):
    """Some times lie beyond the follow-up of the training rows, where nothing is known."""


@dataclass(frozen=True, eq=False, repr=False)
class StepCurves:
    """One step curve per query; ``curves[i]`` is a :class:`StepCurve`, a slice is StepCurves.

    Calling it with times gives an array of shape (n_queries, n_times). ``start`` and ``end`` are
    the first and last time at which each curve is known, infinite where there is no such limit.
    ``index`` labels the curves in :meth:`to_frame`; None numbers them.

    Examples
    --------
    >>> from cqrf import CensoredQuantileForest
    >>> from cqrf.datasets import make_aft
    >>> X, y, _, _ = make_aft(100, 2, random_state=0)
    >>> forest = CensoredQuantileForest(n_estimators=20, random_state=0).fit(X, y)
    >>> curves = forest.predict_survival(X[:3])
    >>> len(curves), curves([1.0, 2.0]).shape
    (3, (3, 2))
    """

    offsets: NDArray[np.int64]
    times: NDArray[np.float64]
    values: NDArray[np.float64]
    initial: NDArray[np.float64]
    start: Any = None
    end: Any = None
    index: Any = None

    def __post_init__(self) -> None:
        everywhere = np.full(len(self), np.inf)
        if self.start is None:
            object.__setattr__(self, "start", -everywhere)
        if self.end is None:
            object.__setattr__(self, "end", everywhere)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @overload
    def __getitem__(self, query: int) -> StepCurve: ...

    @overload
    def __getitem__(self, query: slice) -> StepCurves: ...

    def __getitem__(self, query: int | slice) -> StepCurve | StepCurves:
        if isinstance(query, slice):
            return self._take(np.arange(len(self))[query])
        query = range(len(self))[query]
        steps = slice(self.offsets[query], self.offsets[query + 1])
        initial, start, end = (float(each[query]) for each in (self.initial, self.start, self.end))
        return StepCurve(self.times[steps], self.values[steps], initial, start, end)

    def _take(self, queries: NDArray[np.intp]) -> StepCurves:
        lengths = np.diff(self.offsets)[queries]
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        steps = np.arange(offsets[-1]) + np.repeat(self.offsets[queries] - offsets[:-1], lengths)
        return StepCurves(
            offsets,
            self.times[steps],
            self.values[steps],
            self.initial[queries],
            self.start[queries],
            self.end[queries],
            None if self.index is None else self.index[queries],
        )

    def __iter__(self) -> Iterator[StepCurve]:
        return (self[query] for query in range(len(self)))

    def __call__(self, times: ArrayLike, beyond: str = "nan") -> NDArray[np.float64]:
        """Values of every curve at the given times.

        Parameters
        ----------
        times : float or array-like
            Times, the same for all curves.
        beyond : {"nan", "extend"}
            Values outside of the times at which a curve is known: NaN, or the flat line, which is
            not an estimate.

        Returns
        -------
        ndarray of shape (n_queries, n_times), or (n_queries,) for a single time
        """
        at = np.asarray(times, dtype=np.float64)
        if at.ndim > 1 or np.isnan(at).any():
            raise ValueError(f"times must be a list of numbers without NaN; found {times!r}.")
        if at.ndim == 0:
            return self(at[np.newaxis], beyond)[:, 0]
        order = np.argsort(at, kind="stable")
        ascending, values = np.empty((2, len(self), len(at)))
        evaluate(self.offsets, self.times, self.values, self.initial, at[order], ascending)
        values[:, order] = ascending
        if read_choice("beyond", beyond, BEYOND) == "nan":
            is_unknown = (at < self.start[:, np.newaxis]) | (at > self.end[:, np.newaxis])
            values[is_unknown] = np.nan
        return values

    def each(self, times: ArrayLike) -> NDArray[np.float64]:
        """Value of every curve at a time of its own, on the flat line beyond its end.

        Parameters
        ----------
        times : array-like of shape (n_queries,)
            A time for each curve.

        Returns
        -------
        ndarray of shape (n_queries,)

        Examples
        --------
        >>> from cqrf import CensoredQuantileForest, datasets
        >>> X, y, _, _ = datasets.make_aft(100, random_state=0)
        >>> forest = CensoredQuantileForest(n_estimators=20, random_state=0).fit(X, y)
        >>> forest.predict_survival(X[:2]).each([1.0, 2.0]).round(1)
        array([1., 0.])
        """
        at = np.asarray(times, dtype=np.float64)
        if at.shape != (len(self),) or np.isnan(at).any():
            raise ValueError(f"times must be {len(self)} numbers without NaN, one for each curve.")
        values = np.empty(len(self))
        evaluate_each(self.offsets, self.times, self.values, self.initial, at, values)
        return values

    def first_at_most(self, values: ArrayLike) -> NDArray[np.float64]:
        """First time at which each curve is at most a value of its own.

        Parameters
        ----------
        values : array-like of shape (n_queries,) or (n_queries, k)
            One value, or several, for each curve.

        Returns
        -------
        ndarray of the shape of ``values``
            Infinite where a curve does not fall so far.

        Examples
        --------
        >>> from cqrf import CensoredQuantileForest, datasets
        >>> X, y, _, _ = datasets.make_aft(100, random_state=0)
        >>> forest = CensoredQuantileForest(n_estimators=20, random_state=0).fit(X, y)
        >>> forest.predict_survival(X[:2]).first_at_most([0.5, 0.5]).round(1)
        array([3.7, 1.2])
        """
        given = np.asarray(values, dtype=np.float64)
        rows = given if given.ndim == 2 else given.reshape(-1, 1)
        bounds = np.broadcast_to(rows, (len(self), rows.shape[1]))
        times = np.empty(bounds.shape)
        find_first_at_most(self.offsets, self.times, self.values, self.initial, bounds, times)
        return times if given.ndim == 2 else times[:, 0]

    def restricted_mean(
        self, horizon: ArrayLike, censoring: str = "right", beyond: str = "nan"
    ) -> NDArray[np.float64]:
        """E[min(T, horizon)] of each survival curve; E[max(T, horizon)] under left censoring.

        Parameters
        ----------
        horizon : float or array-like of shape (n_queries,)
            One time for all curves, or one for each.
        censoring : {"right", "left"}
            Side on which times are censored.
        beyond : {"nan", "restrict", "extend"}
            What becomes of a curve that ends before the horizon: NaN; its own end is taken for the
            horizon; or the flat line is drawn, which is not an estimate.

        Returns
        -------
        ndarray of shape (n_queries,)

        Examples
        --------
        >>> from cqrf import CensoredQuantileForest, datasets
        >>> X, y, _, _ = datasets.make_aft(100, random_state=0)
        >>> forest = CensoredQuantileForest(n_estimators=20, random_state=0).fit(X, y)
        >>> forest.predict_survival(X[:2]).restricted_mean(3.0).round(1)
        array([2.9, 1.2])
        """
        read_choice("beyond", beyond, BEYOND_MEAN)
        from_left, means = censoring == "left", np.empty(len(self))
        horizons = np.full(len(self), horizon, dtype=np.float64)
        if beyond == "restrict":
            limit = self.start if from_left else self.end
            horizons = (np.maximum if from_left else np.minimum)(horizons, limit)
        restrict_means(
            self.offsets, self.times, self.values, self.initial, horizons, from_left, means
        )
        if beyond == "nan":
            means[(horizons < self.start) | (horizons > self.end)] = np.nan
        elif beyond == "restrict":  # some curve is known nowhere
            means[np.isinf(horizons)] = np.nan
        return means

    def given(self, times: ArrayLike) -> StepCurves:
        """Survival curves of the remaining time T - t0, given T > t0.

        Parameters
        ----------
        times : float or array-like of shape (n_queries,)
            t0: one time for all curves, or one for each.

        Returns
        -------
        StepCurves
            A curve that is not known at t0, or is 0 there, is known nowhere.

        Examples
        --------
        >>> from cqrf import CensoredQuantileForest, datasets
        >>> X, y, _, _ = datasets.make_aft(100, random_state=0)
        >>> forest = CensoredQuantileForest(n_estimators=20, random_state=0).fit(X, y)
        >>> forest.predict_survival(X[:2]).given(1.0)([0.5, 1.0]).round(1)
        array([[1. , 0.9],
               [0.3, 0. ]])
        """
        at = np.broadcast_to(np.asarray(times, dtype=np.float64), len(self))
        lengths = np.diff(self.offsets)
        reached = self.each(at)
        is_known = (at <= self.end) & (at >= self.start) & (reached > 0.0)
        own = np.repeat(np.where(is_known, at, np.inf), lengths)
        is_later = self.times > own
        counts = np.add.reduceat(np.append(is_later, False), self.offsets[:-1], dtype=np.int64)
        counts[lengths == 0] = 0
        shares = self.values[is_later] / np.repeat(reached, lengths)[is_later]
        return StepCurves(
            np.concatenate([[0], np.cumsum(counts)]),
            self.times[is_later] - own[is_later],
            shares,
            np.ones(len(self)),
            np.where(is_known, -np.inf, np.inf),
            np.where(is_known, self.end - at, -np.inf),
            self.index,
        )

    def cumulative_hazard(self) -> StepCurves:
        """Nelson-Aalen cumulative hazard of each survival curve.

        Returns
        -------
        StepCurves
            Finite also where a survival curve falls to 0.

        Examples
        --------
        >>> from cqrf import CensoredQuantileForest, datasets
        >>> X, y, _, _ = datasets.make_aft(100, random_state=0)
        >>> forest = CensoredQuantileForest(n_estimators=20, random_state=0).fit(X, y)
        >>> forest.predict_survival(X[:2]).cumulative_hazard()([1.0, 2.0]).round(1)
        array([[0. , 0.1],
               [0.2, 4.2]])
        """
        hazard = np.empty(len(self.values))
        cumulate_hazard(self.offsets, self.values, self.initial, hazard)
        nothing = np.zeros(len(self))
        return StepCurves(
            self.offsets, self.times, hazard, nothing, self.start, self.end, self.index
        )

    def to_frame(self, times: ArrayLike | None = None) -> Any:
        """The curves as a pandas frame.

        Parameters
        ----------
        times : array-like, optional
            Times. Default: the steps of the curves.

        Returns
        -------
        pandas.DataFrame
            One row for each curve and one column for each time. Without ``times``: one row for each
            step, with the columns ``row``, ``time`` and ``value``: the value from this time on,
            until the next step of the row or the end of its curve.

        Examples
        --------
        >>> from cqrf import CensoredQuantileForest, datasets
        >>> X, y, _, _ = datasets.make_aft(100, random_state=0)
        >>> forest = CensoredQuantileForest(n_estimators=20, random_state=0).fit(X, y)
        >>> forest.predict_survival(X[:2]).to_frame([1.0, 2.0]).round(1)
           1.0  2.0
        0  1.0  0.9
        1  0.8  0.0
        """
        return curves_frame(self, times)

    @staticmethod
    def join(parts: list[StepCurves]) -> StepCurves:
        """Join the curves of consecutive blocks of queries.

        Parameters
        ----------
        parts : list of StepCurves
            The blocks, in order.

        Returns
        -------
        StepCurves

        Examples
        --------
        >>> from cqrf import CensoredQuantileForest, datasets
        >>> X, y, _, _ = datasets.make_aft(100, random_state=0)
        >>> forest = CensoredQuantileForest(n_estimators=20, random_state=0).fit(X, y)
        >>> curves = forest.predict_survival(X[:2])
        >>> len(curves.join([curves, curves]))
        4
        """
        lengths = np.concatenate([np.diff(part.offsets) for part in parts])
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        fields = ("times", "values", "initial", "start", "end")
        joined = [np.concatenate([getattr(part, name) for part in parts]) for name in fields]
        return StepCurves(offsets, *joined)

    def __repr__(self) -> str:
        n = len(self)
        return f"StepCurves({n} curve{'' if n == 1 else 's'}, {describe_curves(self)})"

    def _repr_html_(self) -> str:
        return curves_html(self)


def warn_beyond(
    start: NDArray[np.float64], end: NDArray[np.float64], stacklevel: int = 3, of_mean: bool = False
) -> None:
    """Warn that some results are NaN, as they lie outside of where these curves are known."""
    known = [
        f"{words} {describe_range(limits[np.isfinite(limits)])}"
        for words, limits in (("from", start), ("up to", end))
        if np.isfinite(limits).any()
    ]
    reach = f" For these rows it is known {' and '.join(known)}." if known else ""
    where = "up to this horizon" if of_mean else "at some of these times"
    restrict = "beyond='restrict' gives the mean up to the end of each curve, " if of_mean else ""
    warnings.warn(
        f"the survival curve is not known {where}, as no training row with weight is still at risk "
        f"there: the result is NaN.{reach} {restrict}beyond='extend' draws the curve on as a flat "
        "line, which is not an estimate.",
        BeyondFollowUpWarning,
        stacklevel=stacklevel,
    )


def warn_outlived(stacklevel: int = 3) -> None:
    """Warn that some results are NaN, as nothing is known after the time survived."""
    warnings.warn(
        "given: no training row with weight has survived as long as some of these rows, so that "
        "nothing is known about the time that remains for them: the result is NaN.",
        BeyondFollowUpWarning,
        stacklevel=stacklevel,
    )
