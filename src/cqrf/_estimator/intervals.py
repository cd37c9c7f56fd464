"""The methods of the estimator that give both ends of what interval censoring leaves open."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cqrf._estimator.output import with_index
from cqrf._estimator.prediction import PredictionMethods, warn_if_unknown
from cqrf._readers.curves import KnownTimes, SurvivalCurves
from cqrf._readers.intervals import LowerCurves, QuantileBounds, fill_bounds
from cqrf._readers.reader import read_weights
from cqrf._runtime.arguments import read_choice, read_times
from cqrf._survival.quantiles import UNIDENTIFIED, read_levels
from cqrf._survival.step_curve import BEYOND
from cqrf._survival.step_curves import StepCurves, warn_outlived


class IntervalMethods(PredictionMethods):
    """Predictions of a fitted estimator, those with both ends of an interval among them."""

    def predict_quantile_bounds(
        self,
        X: Any,
        quantiles: float | Sequence[float] = 0.5,
        *,
        given: ArrayLike | None = None,
        unidentified: str | None = None,
    ) -> NDArray[np.float64]:
        """Ends of the interval that each estimated quantile lies in.

        With interval censoring the estimate says how much probability lies between two times, not
        where: all times in this interval fit the training rows equally well. ``predict`` gives its
        right end. Both ends are equal for a forest of exact and right-censored times. This is not
        a confidence interval.

        Parameters
        ----------
        X : array-like or frame of shape (n, n_features)
            Rows to predict.
        quantiles : float or sequence of float
            Levels in (0, 1).
        given, unidentified : optional
            As in :meth:`predict`.

        Returns
        -------
        ndarray of shape (n, 2), or (n, n_quantiles, 2) for a sequence of levels
            Left and right end.

        Examples
        --------
        >>> from cqrf import CensoredQuantileForest, datasets, interval
        >>> X, _, time, _ = datasets.make_aft(200, random_state=0)
        >>> y = interval(time // 1, time // 1 + 1)  # known to the unit
        >>> forest = CensoredQuantileForest(n_estimators=20, random_state=0).fit(X, y)
        >>> forest.predict_quantile_bounds(X[:2]).round(1)
        array([[3. , 3. ],
               [1. , 1.4]])
        """
        levels, is_scalar = read_levels(quantiles)
        chosen = self.unidentified if unidentified is None else unidentified
        read_choice("unidentified", chosen, UNIDENTIFIED)
        queries = self._queries(X, given)
        ends = self._read(queries, QuantileBounds(self._solver(), levels))
        if given is not None and np.isnan(ends[1].values).any():
            warn_outlived()
        bounds = fill_bounds(ends, chosen)
        return bounds[:, 0] if is_scalar else bounds

    def predict_survival_bounds(
        self,
        X: Any,
        times: ArrayLike | None = None,
        *,
        given: ArrayLike | None = None,
        beyond: str = "nan",
    ) -> tuple[StepCurves, StepCurves] | NDArray[np.float64]:
        """Smallest and largest survival P(T > t | x) that fit the training rows equally well.

        With interval censoring a survival curve is not determined between the ends of an interval
        in which it falls. ``predict_survival`` gives the largest: it falls at the right ends. Both
        are equal for a forest of exact and right-censored times. This is not a confidence band.

        Parameters
        ----------
        X : array-like or frame of shape (n, n_features)
            Rows to predict.
        times, given, beyond : optional
            As in :meth:`predict_survival`.

        Returns
        -------
        two StepCurves, or an ndarray of shape (n, n_times, 2) if times are given
            The smallest and the largest.

        Examples
        --------
        >>> from cqrf import CensoredQuantileForest, datasets, interval
        >>> X, _, time, _ = datasets.make_aft(200, random_state=0)
        >>> y = interval(time // 1, time // 1 + 1)  # known to the unit
        >>> forest = CensoredQuantileForest(n_estimators=20, random_state=0).fit(X, y)
        >>> forest.predict_survival_bounds(X[:1], times=[2.5]).round(1)
        array([[[0.7, 0.9]]])
        """
        read_choice("beyond", beyond, BEYOND)
        at = None if times is None else read_times(times)
        queries = self._queries(X, given)
        readers: list[Any] = [LowerCurves(), SurvivalCurves(), KnownTimes()]
        lower, upper, known = read_weights(self.model_, queries, readers, self.n_jobs)
        if at is not None:
            values = np.stack([lower(at, beyond), upper(at, beyond)], axis=-1)
            warn_if_unknown(values, known, stacklevel=4)
            return values
        return with_index(lower, X), with_index(upper, X)
