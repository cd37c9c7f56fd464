"""The methods of the estimator that predict, lazily."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import dask.array as da
import numpy as np
from dask.delayed import Delayed
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from cqrf._input.causes import Cause, find_cause
from cqrf._model.fitted import Model
from cqrf._readers.incidence import check_causes
from cqrf._runtime.arguments import exactly, read_choice, read_floats
from cqrf._survival.quantiles import UNIDENTIFIED, interval_levels, read_levels
from cqrf._survival.step_curve import BEYOND
from cqrf._survival.step_curves import BEYOND_MEAN
from cqrf.dask.predicting import Call, predict_lazily, split_causes
from cqrf.estimator import CensoredQuantileForest


class LazyMethods:
    """Predictions with the partitions of X, computed where these are."""

    model_: Model
    unidentified: str

    to_local: Callable[[], CensoredQuantileForest]
    _forest_node: Callable[[CensoredQuantileForest], Delayed]

    def predict(
        self,
        X: Any,
        quantiles: float | Sequence[float] = 0.5,
        *,
        cause: Cause | None = None,
        unidentified: str | None = None,
    ) -> Any:
        """Quantiles of the latent time at each row of X, lazily.

        As :meth:`cqrf.CensoredQuantileForest.predict`, with the partitions and the index of X.

        Parameters
        ----------
        X : Dask DataFrame or Array of shape (n, n_features)
            Rows to predict.
        quantiles : float or sequence of float
            Levels in (0, 1).
        cause : optional
            With competing risks, one of the causes. Default: the time to any event.
        unidentified : {"inf", "clip", "nan"}, optional
            Value of a quantile that is not identifiable, instead of the estimator's.

        Returns
        -------
        Dask Array, Series or DataFrame
            An Array gives an Array. A DataFrame gives a Series, or, for a sequence of levels, a
            DataFrame with columns such as q0.5.
        """
        levels, is_scalar = read_levels(quantiles)
        names = [f"q{exactly(level)}" for level in levels]
        chosen = self._unidentified(unidentified)
        arguments = {"quantiles": quantiles, "cause": cause, "unidentified": chosen}
        return self._predict_lazily(X, "predict", arguments, names[0] if is_scalar else names)

    def predict_interval(
        self, X: Any, coverage: float = 0.95, *, unidentified: str | None = None
    ) -> Any:
        """Prediction interval of T, lazily: quantiles with half of 1 - coverage on each side.

        Parameters
        ----------
        X : Dask DataFrame or Array of shape (n, n_features)
            Rows to predict.
        coverage : float, default=0.95
            Probability between both ends, as the forest estimates it.
        unidentified : {"inf", "clip", "nan"}, optional
            As in :meth:`predict`.

        Returns
        -------
        Dask Array or DataFrame
            Columns lower and upper.
        """
        interval_levels(coverage)
        arguments = {"coverage": coverage, "unidentified": self._unidentified(unidentified)}
        return self._predict_lazily(X, "predict_interval", arguments, ["lower", "upper"])

    def predict_survival(self, X: Any, times: ArrayLike, *, beyond: str = "nan") -> Any:
        """Survival P(T > t | x) at given times, lazily.

        Parameters
        ----------
        X : Dask DataFrame or Array of shape (n, n_features)
            Rows to predict.
        times : float or array-like
            Times.
        beyond : {"nan", "extend"}
            Values after the last time at which a training row with weight is at risk: NaN, or the
            flat line, which is not an estimate.

        Returns
        -------
        Dask Array or DataFrame
            Columns such as survival365.
        """
        return self._predict_at_times(X, "predict_survival", times, "survival", beyond)

    def predict_censoring(self, X: Any, times: ArrayLike, *, beyond: str = "nan") -> Any:
        """Survival P(C > t | x) of the censoring time at given times, lazily.

        Parameters
        ----------
        X : Dask DataFrame or Array of shape (n, n_features)
            Rows to predict.
        times, beyond
            As in :meth:`predict_survival`.

        Returns
        -------
        Dask Array or DataFrame
            Columns such as censoring365.
        """
        return self._predict_at_times(X, "predict_censoring", times, "censoring", beyond)

    def survival_standard_error(self, X: Any, times: ArrayLike, *, beyond: str = "nan") -> Any:
        """Standard error of the survival curve, lazily; needs ``bag_size`` of 2 or more.

        Parameters
        ----------
        X : Dask DataFrame or Array of shape (n, n_features)
            Rows to predict.
        times, beyond
            As in :meth:`predict_survival`.

        Returns
        -------
        Dask Array or DataFrame
            Columns such as error365.
        """
        return self._predict_at_times(X, "survival_standard_error", times, "error", beyond)

    def predict_incidence(
        self, X: Any, times: ArrayLike, cause: Cause | None = None, *, beyond: str = "nan"
    ) -> Any:
        """Incidence P(T <= t, cause | x) of a cause, or of all, at given times, lazily.

        Parameters
        ----------
        X : Dask DataFrame or Array of shape (n, n_features)
            Rows to predict.
        times, beyond
            As in :meth:`predict_survival`.
        cause : optional
            One of ``causes_``. Default: all of them.

        Returns
        -------
        Dask Array of shape (n, n_times), or (n, n_causes, n_times) for all causes, or DataFrame
            Columns such as incidence365, or "incidence365 death" for all causes.
        """
        check_is_fitted(self)
        check_causes(self.model_)
        values = self._predict_at_times(X, "predict_incidence", times, "incidence", beyond, cause)
        if cause is not None or not isinstance(values, da.Array):
            return values
        shape = len(self.model_.causes), np.size(times)
        chunks = values.chunks[0], shape[:1], shape[1:]
        options = {"chunks": chunks, "new_axis": 2, "dtype": np.float64}
        return da.map_blocks(split_causes, values, shape, **options)

    def predict_mean(
        self,
        X: Any,
        horizon: float | None = None,
        *,
        cause: Cause | None = None,
        beyond: str = "nan",
    ) -> Any:
        """Restricted mean, or mean time lost to a cause, lazily.

        Parameters
        ----------
        X : Dask DataFrame or Array of shape (n, n_features)
            Rows to predict.
        horizon : float, optional
            Default: ``model_.follow_up``.
        cause : optional
            With competing risks, one of the causes.
        beyond : {"nan", "restrict", "extend"}
            As in :meth:`cqrf.CensoredQuantileForest.predict_mean`.

        Returns
        -------
        Dask Array or Series
        """
        read_choice("beyond", beyond, BEYOND_MEAN)
        arguments = {"horizon": horizon, "cause": cause, "beyond": beyond}
        return self._predict_lazily(X, "predict_mean", arguments, "mean")

    def max_quantile(self, X: Any, *, cause: Cause | None = None) -> Any:
        """Largest level that is identifiable at each row of X, lazily.

        Parameters
        ----------
        X : Dask DataFrame or Array of shape (n, n_features)
            Rows to predict.
        cause : optional
            With competing risks, one of the causes: its incidence at the last known time.

        Returns
        -------
        Dask Array or Series
            Levels from 0 to 1.
        """
        return self._predict_lazily(X, "max_quantile", {"cause": cause}, "max_quantile")

    def _predict_lazily(
        self, X: Any, method: str, arguments: dict[str, Any], names: str | list[str]
    ) -> Any:
        check_is_fitted(self)
        forest = self.to_local().set_params(n_jobs=1)
        return predict_lazily(forest, self._forest_node(forest), X, Call(method, arguments, names))

    def _unidentified(self, unidentified: str | None) -> str:
        chosen = self.unidentified if unidentified is None else unidentified
        return read_choice("unidentified", chosen, UNIDENTIFIED)

    def _predict_at_times(
        self,
        X: Any,
        method: str,
        times: ArrayLike,
        name: str,
        beyond: str,
        cause: Cause | None = None,
    ) -> Any:
        if times is None:
            raise ValueError(f"{method} on Dask needs times; to_local() gives whole curves.")
        times = np.atleast_1d(read_floats("times", times))
        names = [f"{name}{exactly(time)}" for time in times]
        arguments = {"times": times, "beyond": read_choice("beyond", beyond, BEYOND)}
        if method == "predict_incidence" and cause is None:
            names = [f"{name} {each}" for each in self.model_.causes for name in names]
        elif cause is not None:
            arguments["cause"] = self.model_.causes[find_cause(cause, self.model_.causes)]
        return self._predict_lazily(X, method, arguments, names)
