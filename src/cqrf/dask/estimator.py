"""The estimator: fit and predict on tables on a Dask cluster."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import numpy as np
from dask.base import compute
from dask.delayed import Delayed, delayed
from distributed import Client, Future
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.utils.validation import check_is_fitted, validate_data

from cqrf._input.causes import Cause, find_cause
from cqrf._input.features import copy_feature_names
from cqrf._input.target import read_target
from cqrf._model.settings import draw_seed, read_settings
from cqrf._model.skill import compute_skill
from cqrf._runtime.arguments import exactly, read_choice, read_floats
from cqrf._survival.quantiles import UNIDENTIFIED, interval_levels, read_levels
from cqrf._survival.step_curves import BEYOND, BEYOND_MEAN
from cqrf.dask.fitting import fit_on_cluster
from cqrf.dask.partitions import align_partitions
from cqrf.dask.predicting import Call, predict_lazily, send_forest
from cqrf.dask.reading import ReadingContext
from cqrf.estimator import CensoredQuantileForest


class DaskCensoredQuantileForest(RegressorMixin, BaseEstimator):
    """Forest that predicts quantiles of censored times, for tables on a Dask cluster.

    It is, bit for bit, the :class:`~cqrf.CensoredQuantileForest` of the same rows in the same
    order, for any partitions and workers. It does not keep the features of the training rows, so
    it has no out-of-bag predictions. For a table above 20 million rows and with
    ``censoring_survival="beran"`` it keeps the targets of only those rows that are in leaves
    (with a working model, also a row with the last time, and all rows if they are in at most
    100 000 groups): these rows are then the columns of ``to_local().weights(X)`` and determine the
    Kaplan-Meier baseline of ``score``.

    Parameters
    ----------
    client : distributed.Client, optional
        The client to use; by default the current one. It is not pickled with the estimator.
    **settings
        Parameters of :class:`~cqrf.CensoredQuantileForest`. ``n_jobs`` has no effect: every
        thread of the cluster is used.

    Attributes
    ----------
    model_, n_features_in_, feature_names_in_
        As those of :class:`~cqrf.CensoredQuantileForest`.

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from cqrf.dask import DaskCensoredQuantileForest
    >>> from cqrf.datasets import make_aft
    >>> X, y, _, _ = make_aft(300, random_state=0)
    >>> X, y = da.from_array(X, chunks=(100, -1)), da.from_array(y, chunks=100)
    >>> with Client(processes=False, dashboard_address=None) as client:
    ...     forest = DaskCensoredQuantileForest(n_estimators=50, random_state=0).fit(X, y)
    ...     forest.predict(X, quantiles=[0.25, 0.5], unidentified="clip").compute().shape
    (300, 2)
    """

    def __init__(self, *, client: Client | None = None, **settings: Any) -> None:
        self.client = client
        for name, value in CensoredQuantileForest(**settings).get_params().items():
            setattr(self, name, value)

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None
    ) -> DaskCensoredQuantileForest:
        """Fit the forest.

        Parameters
        ----------
        X : Dask DataFrame or Array of shape (n, n_features)
            Its partitions are read three times and not held in memory: ``persist`` X if reading
            is slow and the cluster has the memory. Partitions may be empty.
        y : Dask DataFrame, Series or Array
            A DataFrame with the columns time and event (and entry); an Array of what
            :func:`~cqrf.censored` returns, or of two columns (time, event); or one column of
            times that are all events. Split as X is, or with known divisions or chunks.
        sample_weight, groups : Dask Series or Array of shape (n,), optional
            As in :class:`~cqrf.CensoredQuantileForest`.

        Returns
        -------
        self
            Unchanged if anything fails.
        """
        partitions = align_partitions(X, y, sample_weight, groups)
        local = self._local()
        meta, names = X._meta, None
        if hasattr(meta, "columns"):
            names = list(meta.columns)
        else:
            meta = np.empty((0, X.shape[1]))
        validate_data(local, meta, skip_check_array=True, reset=True)
        early = clone(local).set_params(split_causes=None)  # the causes are not known yet
        settings = read_settings(early, local.n_features_in_, draw_seed(local.random_state))
        model = fit_on_cluster(
            self._find_client(),
            partitions,
            settings,
            ReadingContext(local, names),
            bool(self.verbose),
        )
        copy_feature_names(local, self)
        self.__dict__.pop("_sent_forest", None)
        self.model_ = model
        return self

    def to_local(self) -> CensoredQuantileForest:
        """The fitted :class:`~cqrf.CensoredQuantileForest`, which does not need Dask."""
        check_is_fitted(self)
        local = self._local()
        copy_feature_names(self, local)
        local.model_ = self.model_
        return local

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """Share of each feature in the total gain of all splits; the shares sum to 1."""
        return self.to_local().feature_importances_

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
        """Interval between quantiles, lazily; columns lower and upper."""
        interval_levels(coverage)
        arguments = {"coverage": coverage, "unidentified": self._unidentified(unidentified)}
        return self._predict_lazily(X, "predict_interval", arguments, ["lower", "upper"])

    def predict_survival(self, X: Any, times: ArrayLike, *, beyond: str = "nan") -> Any:
        """Survival P(T > t | x) at given times, lazily; columns such as survival365."""
        return self._predict_at_times(X, "predict_survival", times, "survival", beyond)

    def predict_censoring(self, X: Any, times: ArrayLike, *, beyond: str = "nan") -> Any:
        """Survival P(C > t | x) of the censoring time, lazily; columns such as censoring365."""
        return self._predict_at_times(X, "predict_censoring", times, "censoring", beyond)

    def survival_standard_error(self, X: Any, times: ArrayLike, *, beyond: str = "nan") -> Any:
        """Standard error of the survival curve, lazily; columns such as error365."""
        return self._predict_at_times(X, "survival_standard_error", times, "error", beyond)

    def predict_incidence(
        self, X: Any, times: ArrayLike, cause: Cause, *, beyond: str = "nan"
    ) -> Any:
        """Incidence P(T <= t, cause | x) of a cause, lazily; columns such as incidence365."""
        return self._predict_at_times(X, "predict_incidence", times, "incidence", beyond, cause)

    def predict_mean(
        self,
        X: Any,
        horizon: float | None = None,
        *,
        cause: Cause | None = None,
        beyond: str = "nan",
    ) -> Any:
        """Restricted mean, or mean time lost to a cause, lazily."""
        read_choice("beyond", beyond, BEYOND_MEAN)
        arguments = {"horizon": horizon, "cause": cause, "beyond": beyond}
        return self._predict_lazily(X, "predict_mean", arguments, "mean")

    def max_quantile(self, X: Any, *, cause: Cause | None = None) -> Any:
        """Largest identifiable quantile level at each row of X, lazily."""
        return self._predict_lazily(X, "max_quantile", {"cause": cause}, "max_quantile")

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Skill over the Kaplan-Meier curve, computed immediately.

        As :meth:`cqrf.CensoredQuantileForest.score`: three quantiles of each row, and y, are
        sent to the client.
        """
        check_is_fitted(self)
        predicted = self.predict(X, self.model_.score_levels, unidentified="clip")
        # One at a time: Dask fails on frames and arrays in one computation.
        (predicted,), (y,), (weight,) = compute(predicted), compute(y), compute(sample_weight)
        return compute_skill(
            self.model_, np.asarray(predicted), read_target(y), sample_weight=weight
        )

    def __sklearn_clone__(self) -> DaskCensoredQuantileForest:
        return type(self)(client=self.client, **clone(self._local()).get_params())

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "client": None, "_sent_forest": None}

    def _local(self) -> CensoredQuantileForest:
        """An unfitted plain forest with the same parameters."""
        settings = self.get_params(deep=False)
        settings.pop("client")
        return CensoredQuantileForest(**settings)

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
        if cause is not None:
            arguments["cause"] = self.model_.causes[find_cause(cause, self.model_.causes)]
        return self._predict_lazily(X, method, arguments, names)

    def _forest_node(self, forest: CensoredQuantileForest) -> Delayed:
        """The forest as one node of Dask's graph, shared by all partitions."""
        client = self.client or _current_client()
        if client is None:  # one of Dask's schedulers within this process
            return delayed(forest, traverse=False)
        key = client, self.censoring_survival, self.n_neighbors, self.solver
        sent: tuple[Any, Future] | None = self.__dict__.get("_sent_forest")
        if sent is None or sent[0] != key or sent[1].status in ("cancelled", "error"):
            sent = self._sent_forest = (key, send_forest(forest, client))
        return delayed(sent[1])

    def _find_client(self) -> Client:
        client = self.client or _current_client()
        if client is None:
            raise ValueError(
                "no Dask client was found: start one with client = distributed.Client(), or pass "
                "client= to DaskCensoredQuantileForest."
            )
        if client.asynchronous:
            raise ValueError("client is asynchronous: pass a synchronous one.")
        return client


def _current_client() -> Client | None:
    try:
        return Client.current()
    except ValueError:
        return None


def _declare_settings() -> None:
    """Give ``__init__`` the parameters of the plain forest, for scikit-learn and ``help``."""
    own = inspect.signature(DaskCensoredQuantileForest.__init__).parameters
    settings = inspect.signature(CensoredQuantileForest.__init__).parameters
    declared = [*settings.values(), own["client"]]
    DaskCensoredQuantileForest.__init__.__signature__ = inspect.Signature(declared)  # type: ignore[attr-defined]


_declare_settings()
