"""The methods of the estimator that predict: each reads the weights of its rows once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from cqrf._estimator.output import OutputMethods, Values, level_names, time_names, with_index
from cqrf._input.causes import Cause
from cqrf._input.features import read_features
from cqrf._model.fitted import Model
from cqrf._model.queries import Queries, encode_queries, training_queries
from cqrf._model.settings import PREDICTIONS, read_solver
from cqrf._readers.curves import (
    CensoringAt,
    CensoringCurves,
    KnownTimes,
    SurvivalAt,
    SurvivalCurves,
)
from cqrf._readers.incidence import FromIncidence, choose_mean, choose_quantiles
from cqrf._readers.quantiles import MaxLevel
from cqrf._readers.reader import ArrayReader, Reader, Result, read_one, read_weights
from cqrf._readers.weight_rows import WeightRows
from cqrf._runtime.arguments import read_choice
from cqrf._survival.quantiles import UNIDENTIFIED, QuantileSolver, interval_levels, read_levels
from cqrf._survival.step_curves import StepCurves, warn_beyond, warn_outlived


class PredictionMethods(OutputMethods):
    """Predictions of a fitted estimator."""

    model_: Model
    n_jobs: int | None
    prediction: str
    unidentified: str

    def predict(
        self,
        X: Any,
        quantiles: float | Sequence[float] | None = None,
        *,
        cause: Cause | None = None,
        given: ArrayLike | None = None,
        unidentified: str | None = None,
    ) -> Values:
        """Quantiles of the latent time at each row of X.

        Parameters
        ----------
        X : array-like or frame of shape (n, n_features)
            Rows to predict.
        quantiles : float or sequence of float, optional
            Levels in (0, 1). Default: what ``prediction`` says, the median unless set otherwise.
        cause : optional
            With competing risks, one of ``causes_``: the first time at which the incidence of this
            cause reaches the level, infinite if it never does. Default: the time to any event.
        given : float or array-like of shape (n,), optional
            Time that each row has already survived. Predicts the time that remains from then on;
            NaN where no training row with weight has survived so long.
        unidentified : {"inf", "clip", "nan"}, optional
            Value of a quantile that is not identifiable, instead of the estimator's.

        Returns
        -------
        ndarray of shape (n,), or (n, n_quantiles) for a sequence of levels
            With the root rule, quantiles of one row never cross.

        Examples
        --------
        >>> from cqrf import CensoredQuantileForest, datasets
        >>> X, y, _, _ = datasets.make_aft(100, random_state=0)
        >>> forest = CensoredQuantileForest(n_estimators=20, random_state=0).fit(X, y)
        >>> forest.predict(X[:2], quantiles=[0.1, 0.5]).round(1)
        array([[2.7, 3.7],
               [0.9, 1.2]])
        """
        queries = self._queries(X, given)
        prediction = read_choice("prediction", self.prediction, PREDICTIONS)
        if quantiles is None and prediction != "median":
            means = self._read(queries, choose_mean(cause, None, "restrict"))
            if np.isnan(means).any():
                warn_outlived()
            is_risk = prediction == "risk" and cause is None
            return self._output(-means if is_risk else means, X, prediction)
        levels = 0.5 if quantiles is None else quantiles
        values = self._quantiles(queries, levels, unidentified, cause)
        return self._output(values, X, level_names(levels))

    def predict_interval(
        self,
        X: Any,
        coverage: float = 0.95,
        *,
        given: ArrayLike | None = None,
        unidentified: str | None = None,
    ) -> Values:
        """Prediction interval of T: quantiles that leave out half of 1 - coverage on each side.

        Parameters
        ----------
        X : array-like or frame of shape (n, n_features)
            Rows to predict.
        coverage : float, default=0.95
            Probability between both ends, as the forest estimates it.
        given, unidentified : optional
            As in :meth:`predict`.

        Returns
        -------
        ndarray of shape (n, 2)
            Lower and upper end.

        Examples
        --------
        >>> from cqrf import CensoredQuantileForest, datasets
        >>> X, y, _, _ = datasets.make_aft(100, random_state=0)
        >>> forest = CensoredQuantileForest(n_estimators=20, random_state=0).fit(X, y)
        >>> forest.predict_interval(X[:2], coverage=0.5).round(1)
        array([[3. , 5.1],
               [1.1, 1.3]])
        """
        levels = interval_levels(coverage)
        ends = self._quantiles(self._queries(X, given), levels, unidentified)
        return self._output(ends, X, ["lower", "upper"])

    def predict_survival(
        self,
        X: Any,
        times: ArrayLike | None = None,
        *,
        given: ArrayLike | None = None,
        beyond: str = "nan",
    ) -> StepCurves | Values:
        """Survival P(T > t | x) as StepCurves, or of shape (n, n_times) if times are given.

        Parameters
        ----------
        X : array-like or frame of shape (n, n_features)
            Rows to predict.
        times : array-like, optional
            Times; measured from ``given`` on, if that is set.
        given : float or array-like of shape (n,), optional
            Time t0 that each row has already survived: P(T - t0 > t | T > t0, x).
        beyond : {"nan", "extend"}
            A curve is known up to the last time at which a training row with weight is at risk
            (from the first such time on, under left censoring), or everywhere if it has reached
            0. Values beyond are NaN, with one warning; ``"extend"`` draws the flat line, which is
            not an estimate.

        Returns
        -------
        StepCurves, or an ndarray of shape (n, n_times) if times are given
            ``curves[i]`` is the curve of row i.

        Examples
        --------
        >>> from cqrf import CensoredQuantileForest, datasets
        >>> X, y, _, _ = datasets.make_aft(100, random_state=0)
        >>> forest = CensoredQuantileForest(n_estimators=20, random_state=0).fit(X, y)
        >>> forest.predict_survival(X[:2], times=[1.0, 2.0]).round(1)
        array([[1. , 0.9],
               [0.8, 0. ]])
        >>> len(forest.predict_survival(X[:2]))
        2
        """
        queries = self._queries(X, given)
        if times is not None:
            survival = self._survival_at(queries, times, beyond)
            return self._output(survival, X, time_names("survival", times))
        curves = self._read(queries, SurvivalCurves())
        return with_index(curves, X)

    def predict_censoring(
        self, X: Any, times: ArrayLike | None = None, *, beyond: str = "nan"
    ) -> StepCurves | Values:
        """Survival P(C > t | x) of the censoring time, in the form of :meth:`predict_survival`.

        Parameters
        ----------
        X : array-like or frame of shape (n, n_features)
            Rows to predict.
        times, beyond : optional
            As in :meth:`predict_survival`.

        Returns
        -------
        StepCurves, or an ndarray of shape (n, n_times) if times are given

        Examples
        --------
        >>> from cqrf import CensoredQuantileForest, datasets
        >>> X, y, _, _ = datasets.make_aft(100, random_state=0)
        >>> forest = CensoredQuantileForest(n_estimators=20, random_state=0).fit(X, y)
        >>> forest.predict_censoring(X[:2], times=[1.0, 2.0]).round(1)
        array([[0.9, 0.7],
               [0.9, 0.9]])
        """
        queries = self._queries(X)
        if times is None:
            return with_index(self._read(queries, CensoringCurves()), X)
        wanted = [CensoringAt(times, beyond), KnownTimes(of_censoring=True)]
        survival, known = read_weights(self.model_, queries, wanted, self.n_jobs)
        warn_if_unknown(survival, known, stacklevel=4)
        return self._output(survival, X, time_names("censoring", times))

    def predict_mean(
        self,
        X: Any,
        horizon: float | None = None,
        *,
        cause: Cause | None = None,
        given: ArrayLike | None = None,
        beyond: str = "nan",
    ) -> Values:
        """Restricted mean E[min(T, horizon) | x]; under left censoring E[max(T, horizon) | x].

        With a cause: the mean time lost to it before the horizon, the integral of its incidence.

        Parameters
        ----------
        X : array-like or frame of shape (n, n_features)
            Rows to predict.
        horizon : float, optional
            Default: ``model_.follow_up``, the last time at which a tenth of the training weight
            is at risk (the first, under left censoring).
        cause : optional
            With competing risks, one of ``causes_``.
        given : float or array-like of shape (n,), optional
            Time t0 that each row has already survived: E[min(T - t0, horizon) | T > t0, x]. The
            default horizon is then what is left of the follow-up, of each row.
        beyond : {"nan", "restrict", "extend"}
            What the mean is where a survival curve ends before the horizon: NaN, with one
            warning; restricted to the end of the row's own curve; or computed from the flat line,
            which is not an estimate.

        Returns
        -------
        ndarray of shape (n,)

        Examples
        --------
        >>> from cqrf import CensoredQuantileForest, datasets
        >>> X, y, _, _ = datasets.make_aft(100, random_state=0)
        >>> forest = CensoredQuantileForest(n_estimators=20, random_state=0).fit(X, y)
        >>> forest.predict_mean(X[:2], horizon=3.0).round(1)
        array([2.9, 1.2])
        """
        queries = self._queries(X, given)
        wanted = [choose_mean(cause, horizon, beyond), KnownTimes()]
        means, known = read_weights(self.model_, queries, wanted, self.n_jobs)
        warn_if_unknown(means, known, stacklevel=4, of_mean=True)
        return self._output(means, X, "mean")

    def max_quantile(
        self, X: Any, *, cause: Cause | None = None, given: ArrayLike | None = None
    ) -> Values:
        """Largest level that is identifiable at each row of X.

        Higher levels cannot be estimated because of censoring (the argmin rule gives a number for
        them all the same). Under left censoring: the smallest level.

        Parameters
        ----------
        X : array-like or frame of shape (n, n_features)
            Rows to predict.
        cause : optional
            With competing risks, one of ``causes_``: its incidence at the last time at which it is
            known.
        given : float or array-like of shape (n,), optional
            Time that each row has already survived.

        Returns
        -------
        ndarray of shape (n,)
            Levels from 0 to 1.

        Examples
        --------
        >>> from cqrf import CensoredQuantileForest, datasets
        >>> table = datasets.load_pbc()
        >>> forest = CensoredQuantileForest(n_estimators=20, random_state=0).fit(table.X, table.y)
        >>> forest.max_quantile(table.X[:3]).round(1)
        array([1. , 0.5, 0.9])
        """
        queries = self._queries(X, given)
        reader: ArrayReader = MaxLevel(self._solver())
        if cause is not None:
            reader = FromIncidence(lambda curves: curves.last(cause))
        levels = self._read(queries, reader)
        return self._output(levels, X, "max_quantile")

    def weights(self, X: Any) -> sparse.csr_array:
        """Weight of every training row at each row of X.

        Parameters
        ----------
        X : array-like or frame of shape (n, n_features)
            Rows to predict.

        Returns
        -------
        sparse array of shape (n, n_train)
            Each row sums to 1.

        Examples
        --------
        >>> from cqrf import CensoredQuantileForest, datasets
        >>> X, y, _, _ = datasets.make_aft(100, random_state=0)
        >>> forest = CensoredQuantileForest(n_estimators=20, random_state=0).fit(X, y)
        >>> weights = forest.weights(X[:2])
        >>> weights.shape, weights.sum(axis=1).round(6).tolist()
        ((2, 100), [1.0, 1.0])
        """
        return self._read(self._queries(X), WeightRows())

    def _solver(self) -> QuantileSolver:
        return read_solver(self, self.model_.censoring)

    def _queries(self, X: Any, given: ArrayLike | None = None) -> Queries:
        check_is_fitted(self, "model_")
        matrix, _ = read_features(self, X, self.model_.columns)
        return encode_queries(self.model_, matrix, self.n_jobs, given)

    def _training_queries(self) -> Queries:
        check_is_fitted(self, "model_")
        return training_queries(self.model_)

    def _read(self, queries: Queries, reader: Reader[Any, Result]) -> Result:
        return read_one(self.model_, queries, reader, self.n_jobs)

    def _quantiles(
        self,
        queries: Queries,
        quantiles: float | Sequence[float],
        unidentified: str | None,
        cause: Cause | None = None,
    ) -> NDArray[np.float64]:
        levels, is_scalar = read_levels(quantiles)
        chosen = self.unidentified if unidentified is None else unidentified
        read_choice("unidentified", chosen, UNIDENTIFIED)
        solution = self._read(queries, choose_quantiles(self._solver(), levels, cause))
        if queries.given is not None and np.isnan(solution.values).any():
            warn_outlived(stacklevel=4)
        values = solution.fill(chosen, stacklevel=4, of_cause=cause is not None)
        return values[:, 0] if is_scalar else values

    def _survival_at(self, queries: Queries, times: ArrayLike, beyond: str) -> NDArray[np.float64]:
        wanted = [SurvivalAt(times, beyond), KnownTimes()]
        survival, known = read_weights(self.model_, queries, wanted, self.n_jobs)
        warn_if_unknown(survival, known)
        return survival


def warn_if_unknown(
    values: NDArray[np.float64],
    known: NDArray[np.float64],
    stacklevel: int = 5,
    of_mean: bool = False,
) -> None:
    """Warn if some values are NaN: times beyond those at which the curves are known."""
    unknown = np.isnan(values.reshape(len(values), -1)).any(axis=1)
    start, end = known[unknown].T
    if len(start) > 0 and (start > end).all():  # known nowhere, after the time survived
        warn_outlived(stacklevel)
    elif len(start) > 0:
        warn_beyond(start, end, stacklevel, of_mean)
