"""The methods of the estimator that predict: each reads the weights of its rows once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from cqrf._input.causes import Cause
from cqrf._input.features import read_features
from cqrf._model import predict as readers
from cqrf._model.fitted import Model
from cqrf._model.incidence import FromIncidence, choose_mean, choose_quantiles
from cqrf._model.output import OUTPUTS, as_frame, index_of
from cqrf._model.queries import Queries, encode_queries, has_tree, training_queries
from cqrf._model.settings import PREDICTIONS, read_solver
from cqrf._runtime.arguments import exactly, read_choice
from cqrf._survival.little_bags import confidence_width, survival_interval
from cqrf._survival.quantiles import UNIDENTIFIED, QuantileSolver, interval_levels, read_levels
from cqrf._survival.step_curves import StepCurve, StepCurves, warn_beyond, warn_outlived

Values = Any  # an array; a frame or a series after set_output


class PredictionMethods:
    """Predictions of a fitted estimator."""

    model_: Model
    n_jobs: int | None
    prediction: str
    unidentified: str

    def set_output(self, *, transform: str | None = None) -> Any:
        """Choose what predictions are returned as.

        ``"pandas"`` or ``"polars"``: frames and series, with the index of X and columns named
        after levels or times. ``"default"``: arrays. None changes nothing.
        """
        if transform is not None:
            read_choice("transform", transform, OUTPUTS)
            self._sklearn_output_config = {"transform": transform}
        return self

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
        return self._output(values, X, _level_names(levels))

    def predict_interval(
        self,
        X: Any,
        coverage: float = 0.95,
        *,
        given: ArrayLike | None = None,
        unidentified: str | None = None,
    ) -> Values:
        """Quantiles that leave out half of 1 - coverage on each side; shape (n, 2)."""
        levels = interval_levels(coverage)
        ends = self._quantiles(self._queries(X, given), levels, unidentified)
        return self._output(ends, X, ["lower", "upper"])

    def predict_oob(
        self,
        quantiles: float | Sequence[float] = 0.5,
        *,
        cause: Cause | None = None,
        unidentified: str | None = None,
    ) -> NDArray[np.float64]:
        """Quantiles for the training rows, each from the trees that did not draw it.

        Rows that every tree has drawn are NaN.
        """
        return self._quantiles(self._training_queries(), quantiles, unidentified, cause)

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
        times : array-like, optional
            Times; measured from ``given`` on, if that is set.
        given : float or array-like of shape (n,), optional
            Time t0 that each row has already survived: P(T - t0 > t | T > t0, x).
        beyond : {"nan", "extend"}
            A curve is known up to the last time at which a training row with weight is at risk
            (from the first such time on, under left censoring), or everywhere if it has reached
            0. Values beyond are NaN, with one warning; ``"extend"`` draws the flat line, which is
            not an estimate.
        """
        queries = self._queries(X, given)
        if times is not None:
            survival = self._survival_at(queries, times, beyond)
            return self._output(survival, X, time_names("survival", times))
        curves = self._read(queries, readers.SurvivalCurves())
        return _with_index(curves, X)

    def predict_survival_oob(
        self, times: ArrayLike | None = None, *, beyond: str = "nan"
    ) -> StepCurves | NDArray[np.float64]:
        """Survival P(T > t | x) of the training rows, each from the trees that did not draw it.

        A row that every tree has drawn has an empty curve; at times it is NaN.
        """
        queries = self._training_queries()
        if times is None:
            return self._read(queries, readers.SurvivalCurves())
        survival = self._survival_at(queries, times, beyond)
        survival[~has_tree(self.model_, queries)] = np.nan
        return survival

    def predict_censoring(
        self, X: Any, times: ArrayLike | None = None, *, beyond: str = "nan"
    ) -> StepCurves | Values:
        """Survival P(C > t | x) of the censoring time, in the form of ``predict_survival``."""
        queries = self._queries(X)
        if times is None:
            return _with_index(self._read(queries, readers.CensoringCurves()), X)
        wanted = [readers.CensoringAt(times, beyond), readers.KnownTimes(of_censoring=True)]
        survival, known = readers.read_weights(self.model_, queries, wanted, self.n_jobs)
        warn_if_unknown(survival, known, stacklevel=4)
        return self._output(survival, X, time_names("censoring", times))

    def predict_survival_function(self, X: Any, return_array: bool = False) -> NDArray[Any]:
        """Survival curves in the form of scikit-survival, for its metrics and tools.

        An array of step functions with ``x``, ``y`` and ``domain``, or, with ``return_array``,
        of their values at ``unique_times_``. As in that package a curve is drawn on as a flat
        line to the last training time; :meth:`predict_survival` shows where it is known.
        """
        return self._functions(self._read(self._queries(X), readers.SurvivalCurves()), return_array)

    def predict_cumulative_hazard_function(
        self, X: Any, return_array: bool = False
    ) -> NDArray[Any]:
        """Nelson-Aalen cumulative hazards, in the form of ``predict_survival_function``."""
        curves = self._read(self._queries(X), readers.SurvivalCurves())
        return self._functions(curves.cumulative_hazard(), return_array)

    @property
    def unique_times_(self) -> NDArray[np.float64]:
        """Distinct training times, ascending."""
        check_is_fitted(self, "model_")
        return np.unique(self.model_.training_target.time)

    def survival_standard_error(self, X: Any, times: ArrayLike, *, beyond: str = "nan") -> Values:
        """Standard error of ``predict_survival(X, times)`` over repeated training samples.

        Needs ``bag_size`` of 2 or more. Shape (n, n_times).
        """
        errors = self._survival_with_errors(self._queries(X), times, beyond)[1]
        return self._output(errors, X, time_names("error", times))

    def survival_confidence_interval(
        self, X: Any, times: ArrayLike, confidence: float = 0.95, *, beyond: str = "nan"
    ) -> NDArray[np.float64]:
        """Confidence interval of P(T > t | x), pointwise; needs ``bag_size`` of 2 or more.

        On the scale of log(-log S), as is usual for survival curves. It covers the sampling
        error of the estimate, not its bias, which is small but not zero.

        Returns
        -------
        ndarray of shape (n, n_times, 2)
            Lower and upper end, which hold with probability ``confidence`` at each time by itself.
        """
        width = confidence_width(confidence)
        survival, errors = self._survival_with_errors(self._queries(X), times, beyond)
        return np.stack(survival_interval(survival, width * errors, self.model_.censoring), axis=-1)

    def quantile_confidence_interval(
        self, X: Any, quantiles: float | Sequence[float] = 0.5, confidence: float = 0.95
    ) -> NDArray[np.float64]:
        """Confidence interval of the estimated quantile; needs ``bag_size`` of 2 or more.

        Returns
        -------
        ndarray of shape (n, n_quantiles, 2), or (n, 2) for a single level
            Lower and upper end, which hold with probability ``confidence`` at each level by
            itself. An end that is not identifiable because of censoring is infinite. For an
            interval of T itself see ``predict_interval``.
        """
        levels, is_scalar = read_levels(quantiles)
        width, queries = confidence_width(confidence), self._queries(X)
        ends = self._read(queries, readers.QuantileIntervals(self._solver(), levels, width))
        return ends[:, 0] if is_scalar else ends

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
        """
        queries = self._queries(X, given)
        wanted = [choose_mean(cause, horizon, beyond), readers.KnownTimes()]
        means, known = readers.read_weights(self.model_, queries, wanted, self.n_jobs)
        warn_if_unknown(means, known, stacklevel=4, of_mean=True)
        return self._output(means, X, "mean")

    def max_quantile(
        self, X: Any, *, cause: Cause | None = None, given: ArrayLike | None = None
    ) -> Values:
        """Largest level that is identifiable at each row of X.

        Higher levels cannot be estimated because of censoring (the argmin rule gives a number for
        them all the same). Under left censoring: the smallest level. With a cause: its incidence at
        the last time at which it is known.
        """
        queries = self._queries(X, given)
        reader: readers.ArrayReader = readers.MaxLevel(self._solver())
        if cause is not None:
            reader = FromIncidence(lambda curves: curves.last(cause))
        levels = self._read(queries, reader)
        return self._output(levels, X, "max_quantile")

    def weights(self, X: Any) -> sparse.csr_array:
        """Weight of every training row at each row of X, shape (n, n_train); rows sum to 1."""
        return self._read(self._queries(X), readers.WeightRows())

    def weights_oob(self) -> sparse.csr_array:
        """Weights for the training rows, each from the trees that did not draw it."""
        return self._read(self._training_queries(), readers.WeightRows())

    def _solver(self) -> QuantileSolver:
        return read_solver(self, self.model_.censoring)

    def _queries(self, X: Any, given: ArrayLike | None = None) -> Queries:
        check_is_fitted(self, "model_")
        matrix, _ = read_features(self, X, self.model_.columns)
        return encode_queries(self.model_, matrix, self.n_jobs, given)

    def _training_queries(self) -> Queries:
        check_is_fitted(self, "model_")
        return training_queries(self.model_)

    def _read(
        self, queries: Queries, reader: readers.Reader[Any, readers.Result]
    ) -> readers.Result:
        return readers.read_one(self.model_, queries, reader, self.n_jobs)

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
        wanted = [readers.SurvivalAt(times, beyond), readers.KnownTimes()]
        survival, known = readers.read_weights(self.model_, queries, wanted, self.n_jobs)
        warn_if_unknown(survival, known)
        return survival

    def _survival_with_errors(
        self, queries: Queries, times: ArrayLike, beyond: str
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        wanted = [
            readers.SurvivalAt(times, beyond),
            readers.SurvivalErrors(times),
            readers.KnownTimes(),
        ]
        survival, errors, known = readers.read_weights(self.model_, queries, wanted, self.n_jobs)
        warn_if_unknown(survival, known)
        return survival, np.where(np.isnan(survival), np.nan, errors)

    def _functions(self, curves: StepCurves, return_array: bool) -> NDArray[Any]:
        times = self.unique_times_
        values = curves(times, beyond="extend")
        if return_array:
            return values
        first = min(0.0, times[0])
        functions = np.empty(len(values), dtype=object)
        for i, row in enumerate(values):
            functions[i] = StepCurve(times, row, float(curves.initial[i]), first, times[-1])
        return functions

    @property
    def _makes_frames(self) -> bool:
        """Whether set_output asks for frames."""
        config = getattr(self, "_sklearn_output_config", {})
        return config.get("transform", "default") != "default"

    def _output(self, values: NDArray[np.float64], X: Any, names: str | list[str]) -> Values:
        """The values as an array, or as the frame that set_output asks for."""
        config = getattr(self, "_sklearn_output_config", {})
        return as_frame(values, X, names, config.get("transform", "default"))


def _level_names(levels: float | Sequence[float]) -> str | list[str]:
    read, is_scalar = read_levels(levels)
    names = [f"q{exactly(level)}" for level in read]
    return names[0] if is_scalar else names


def time_names(name: str, times: ArrayLike) -> list[str]:
    return [f"{name}{exactly(time)}" for time in np.atleast_1d(np.asarray(times, np.float64))]


def _with_index(curves: StepCurves, X: Any) -> StepCurves:
    object.__setattr__(curves, "index", index_of(X))
    return curves


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
