"""The methods of the estimator that need competing risks: incidence of each cause."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from cqrf._estimator.output import Values, index_of, time_names
from cqrf._estimator.prediction import PredictionMethods, warn_if_unknown
from cqrf._input.causes import Cause
from cqrf._model.queries import Queries, has_tree
from cqrf._readers.curves import KnownTimes
from cqrf._readers.incidence import FromIncidence, Incidence, IncidenceErrors
from cqrf._readers.reader import read_weights
from cqrf._runtime.arguments import read_times
from cqrf._survival.incidence import IncidenceCurves
from cqrf._survival.little_bags import confidence_width, log_log_interval
from cqrf._survival.step_curves import StepCurves


class IncidenceMethods(PredictionMethods):
    """Predictions of a fitted estimator, those for each cause among them."""

    @property
    def causes_(self) -> tuple[Cause, ...]:
        """Names of the causes, ascending; empty if there is one kind of event."""
        check_is_fitted(self, "model_")
        return self.model_.causes

    def predict_incidence(
        self,
        X: Any,
        times: ArrayLike | None = None,
        cause: Cause | None = None,
        *,
        given: ArrayLike | None = None,
        beyond: str = "nan",
    ) -> IncidenceCurves | StepCurves | Values:
        """Cumulative incidence P(T <= t, cause k | x), with competing risks.

        Parameters
        ----------
        X : array-like or frame of shape (n, n_features)
            Rows to predict.
        times : array-like, optional
            Times; measured from ``given`` on, if that is set.
        cause : optional
            One of ``causes_``. Default: all of them at once.
        given : float or array-like of shape (n,), optional
            Time up to which nothing has happened to each row.
        beyond : {"nan", "extend"}
            Values after the last time at which a training row with weight is at risk: NaN, with
            one warning, or the flat line, which is not an estimate.

        Returns
        -------
        ndarray of shape (n, n_causes, n_times), or (n, n_times) for one cause
            Without ``times``: IncidenceCurves, or the StepCurves of one cause. The incidences of
            all causes and ``predict_survival`` add up to 1.

        Examples
        --------
        >>> from cqrf import CensoredQuantileForest, datasets
        >>> X, y, *_ = datasets.make_competing_risks(200, random_state=0)
        >>> forest = CensoredQuantileForest(n_estimators=20, random_state=0).fit(X, y)
        >>> forest.predict_incidence(X[:2], times=[2.0, 4.0], cause=1).round(1)
        array([[0.1, 0.3],
               [0.2, 0.3]])
        """
        queries = self._queries(X, given)
        if times is None:
            curves = self._read(queries, Incidence()).with_index(index_of(X))
            return curves if cause is None else curves[cause]
        values = self._incidence(queries, times, cause, beyond)
        names = time_names("incidence", times)
        if cause is None and self._makes_frames:
            names = [f"{name} {each}" for each in self.causes_ for name in names]
            values = values.reshape(len(values), -1)
        return self._output(values, X, names)

    def predict_incidence_oob(
        self, times: ArrayLike | None = None, cause: Cause | None = None, *, beyond: str = "nan"
    ) -> IncidenceCurves | StepCurves | NDArray[np.float64]:
        """As ``predict_incidence``, for the training rows, each from trees that did not draw it.

        Parameters
        ----------
        times, cause, beyond : optional
            As in :meth:`predict_incidence`.

        Returns
        -------
        ndarray of shape (n_train, n_causes, n_times), or (n_train, n_times) for one cause
            Without ``times``: IncidenceCurves, or the StepCurves of one cause. A row that every
            tree has drawn has empty curves; at times it is NaN.

        Examples
        --------
        >>> from cqrf import CensoredQuantileForest, datasets
        >>> X, y, *_ = datasets.make_competing_risks(200, random_state=0)
        >>> forest = CensoredQuantileForest(n_estimators=50, random_state=0).fit(X, y)
        >>> forest.predict_incidence_oob(times=[0.5, 1.0]).shape
        (200, 2, 2)
        """
        queries = self._training_queries()
        if times is None:
            curves = self._read(queries, Incidence())
            return curves if cause is None else curves[cause]
        values = self._incidence(queries, times, cause, beyond)
        values[~has_tree(self.model_, queries)] = np.nan
        return values

    def incidence_standard_error(
        self, X: Any, times: ArrayLike, cause: Cause, *, beyond: str = "nan"
    ) -> NDArray[np.float64]:
        """Standard error of ``predict_incidence(X, times, cause)`` over repeated training samples.

        Parameters
        ----------
        X : array-like or frame of shape (n, n_features)
            Rows to predict.
        times : array-like
            Times.
        cause : one of ``causes_``
            The cause.
        beyond : {"nan", "extend"}
            As in :meth:`predict_incidence`.

        Returns
        -------
        ndarray of shape (n, n_times)
            Needs a forest with ``bag_size`` of 2 or more.

        Examples
        --------
        >>> from cqrf import CensoredQuantileForest, datasets
        >>> X, y, *_ = datasets.make_competing_risks(200, random_state=0)
        >>> forest = CensoredQuantileForest(n_estimators=60, bag_size=2, random_state=0).fit(X, y)
        >>> forest.incidence_standard_error(X[:2], times=[2.0, 4.0], cause=1).shape
        (2, 2)
        """
        return self._incidence_with_errors(X, times, cause, beyond)[1]

    def incidence_confidence_interval(
        self,
        X: Any,
        times: ArrayLike,
        cause: Cause,
        confidence: float = 0.95,
        *,
        beyond: str = "nan",
    ) -> NDArray[np.float64]:
        """Confidence interval of P(T <= t, cause k | x), pointwise.

        Needs ``bag_size`` of 2 or more. On the scale of log(-log(1 - F)). It covers the sampling
        error of the estimate, not its bias.

        Parameters
        ----------
        X : array-like or frame of shape (n, n_features)
            Rows to predict.
        times : array-like
            Times.
        cause : one of ``causes_``
            The cause.
        confidence : float, default=0.95
            Probability with which the interval holds at each time by itself.
        beyond : {"nan", "extend"}
            As in :meth:`predict_incidence`.

        Returns
        -------
        ndarray of shape (n, n_times, 2)
            Lower and upper end.

        Examples
        --------
        >>> from cqrf import CensoredQuantileForest, datasets
        >>> X, y, *_ = datasets.make_competing_risks(200, random_state=0)
        >>> forest = CensoredQuantileForest(n_estimators=60, bag_size=2, random_state=0).fit(X, y)
        >>> forest.incidence_confidence_interval(X[:2], times=[2.0, 4.0], cause=1).shape
        (2, 2, 2)
        """
        width = confidence_width(confidence)
        incidence, errors = self._incidence_with_errors(X, times, cause, beyond)
        lower, upper = log_log_interval(1.0 - incidence, width * errors)
        return np.stack([1.0 - upper, 1.0 - lower], axis=-1)

    def _incidence_with_errors(
        self, X: Any, times: ArrayLike, cause: Cause, beyond: str
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        queries = self._queries(X)
        errors = self._read(queries, IncidenceErrors(times, cause))
        incidence = self._incidence(queries, times, cause, beyond)
        return incidence, np.where(np.isnan(incidence), np.nan, errors)

    def _incidence(
        self, queries: Queries, times: ArrayLike, cause: Cause | None, beyond: str
    ) -> NDArray[np.float64]:
        """Values of shape (n, n_times) for one cause, (n, n_causes, n_times) for all."""
        at = read_times(times)

        def compute(curves: IncidenceCurves) -> NDArray[np.float64]:
            chosen: IncidenceCurves | StepCurves = curves if cause is None else curves[cause]
            return chosen(at, beyond)

        wanted = [FromIncidence(compute), KnownTimes()]
        values: NDArray[np.float64]
        values, known = read_weights(self.model_, queries, wanted, self.n_jobs)
        warn_if_unknown(values, known)
        return values
