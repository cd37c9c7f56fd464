"""The methods of the estimator that give standard errors and confidence intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cqrf._estimator.output import Values, time_names
from cqrf._estimator.prediction import PredictionMethods, warn_if_unknown
from cqrf._model.queries import Queries
from cqrf._readers.curves import KnownTimes, SurvivalAt
from cqrf._readers.errors import QuantileIntervals, SurvivalErrors
from cqrf._readers.reader import read_weights
from cqrf._survival.little_bags import confidence_width, survival_interval
from cqrf._survival.quantiles import read_levels


class ErrorMethods(PredictionMethods):
    """Standard errors from little bags, for forests with a ``bag_size`` of 2 or more."""

    def survival_standard_error(self, X: Any, times: ArrayLike, *, beyond: str = "nan") -> Values:
        """Standard error of ``predict_survival(X, times)`` over repeated training samples.

        Needs ``bag_size`` of 2 or more.

        Parameters
        ----------
        X : array-like or frame of shape (n, n_features)
            Rows to predict.
        times : array-like
            Times.
        beyond : {"nan", "extend"}
            As in :meth:`predict_survival`.

        Returns
        -------
        ndarray of shape (n, n_times)

        Examples
        --------
        >>> from cqrf import CensoredQuantileForest, datasets
        >>> X, y, _, _ = datasets.make_aft(100, random_state=0)
        >>> forest = CensoredQuantileForest(n_estimators=60, bag_size=2, random_state=0).fit(X, y)
        >>> forest.survival_standard_error(X[:2], times=[1.0, 2.0]).shape
        (2, 2)
        """
        errors = self._survival_with_errors(self._queries(X), times, beyond)[1]
        return self._output(errors, X, time_names("error", times))

    def survival_confidence_interval(
        self, X: Any, times: ArrayLike, confidence: float = 0.95, *, beyond: str = "nan"
    ) -> NDArray[np.float64]:
        """Confidence interval of P(T > t | x), pointwise; needs ``bag_size`` of 2 or more.

        On the scale of log(-log S), as is usual for survival curves. It covers the sampling
        error of the estimate, not its bias, which is small but not zero.

        Parameters
        ----------
        X : array-like or frame of shape (n, n_features)
            Rows to predict.
        times : array-like
            Times.
        confidence : float, default=0.95
            Probability with which the interval holds at each time by itself.
        beyond : {"nan", "extend"}
            As in :meth:`predict_survival`.

        Returns
        -------
        ndarray of shape (n, n_times, 2)
            Lower and upper end.

        Examples
        --------
        >>> from cqrf import CensoredQuantileForest, datasets
        >>> X, y, _, _ = datasets.make_aft(100, random_state=0)
        >>> forest = CensoredQuantileForest(n_estimators=60, bag_size=2, random_state=0).fit(X, y)
        >>> forest.survival_confidence_interval(X[:2], times=[1.0, 2.0]).shape
        (2, 2, 2)
        """
        width = confidence_width(confidence)
        survival, errors = self._survival_with_errors(self._queries(X), times, beyond)
        return np.stack(survival_interval(survival, width * errors, self.model_.censoring), axis=-1)

    def quantile_confidence_interval(
        self, X: Any, quantiles: float | Sequence[float] = 0.5, confidence: float = 0.95
    ) -> NDArray[np.float64]:
        """Confidence interval of the estimated quantile; needs ``bag_size`` of 2 or more.

        For an interval of T itself see :meth:`predict_interval`.

        Parameters
        ----------
        X : array-like or frame of shape (n, n_features)
            Rows to predict.
        quantiles : float or sequence of float
            Levels in (0, 1).
        confidence : float, default=0.95
            Probability with which the interval holds at each level by itself.

        Returns
        -------
        ndarray of shape (n, n_quantiles, 2), or (n, 2) for a single level
            Lower and upper end. An end that is not identifiable because of censoring is infinite.

        Examples
        --------
        >>> from cqrf import CensoredQuantileForest, datasets
        >>> X, y, _, _ = datasets.make_aft(100, random_state=0)
        >>> forest = CensoredQuantileForest(n_estimators=60, bag_size=2, random_state=0).fit(X, y)
        >>> forest.quantile_confidence_interval(X[:2], 0.5).shape
        (2, 2)
        """
        levels, is_scalar = read_levels(quantiles)
        width, queries = confidence_width(confidence), self._queries(X)
        ends = self._read(queries, QuantileIntervals(self._solver(), levels, width))
        return ends[:, 0] if is_scalar else ends

    def _survival_with_errors(
        self, queries: Queries, times: ArrayLike, beyond: str
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        wanted = [
            SurvivalAt(times, beyond),
            SurvivalErrors(times),
            KnownTimes(),
        ]
        survival, errors, known = read_weights(self.model_, queries, wanted, self.n_jobs)
        warn_if_unknown(survival, known)
        return survival, np.where(np.isnan(survival), np.nan, errors)
