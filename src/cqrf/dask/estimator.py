"""The estimator: fit and predict on tables on a Dask cluster."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
from dask.base import compute
from dask.delayed import Delayed, delayed
from distributed import Client, Future
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.utils.validation import check_is_fitted, validate_data

from cqrf._input.causes import Cause
from cqrf._input.features import copy_feature_names
from cqrf._input.target import read_target
from cqrf._model.settings import draw_seed, read_settings
from cqrf._model.skill import compute_skill
from cqrf.dask.fitting import fit_on_cluster
from cqrf.dask.lazy_methods import LazyMethods
from cqrf.dask.partitions import align_partitions
from cqrf.dask.predicting import send_forest
from cqrf.dask.reading import ReadingContext
from cqrf.estimator import CensoredQuantileForest


class DaskCensoredQuantileForest(LazyMethods, RegressorMixin, BaseEstimator):
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
    model_, causes_, n_features_in_, feature_names_in_
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
        """The fitted forest without Dask.

        Returns
        -------
        CensoredQuantileForest
            With the same trees; it does not keep the features of the training rows.
        """
        check_is_fitted(self)
        local = self._local()
        copy_feature_names(self, local)
        local.model_ = self.model_
        return local

    @property
    def causes_(self) -> tuple[Cause, ...]:
        """Names of the causes, ascending; empty if there is one kind of event."""
        check_is_fitted(self)
        return self.model_.causes

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """Share of each feature in the total gain of all splits; the shares sum to 1."""
        return self.to_local().feature_importances_

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Skill over the Kaplan-Meier curve, computed immediately.

        As :meth:`cqrf.CensoredQuantileForest.score`: three quantiles of each row, and y, are
        sent to the client.

        Parameters
        ----------
        X : Dask DataFrame or Array of shape (n, n_features)
            Test rows.
        y : Dask DataFrame, Series or Array
            Their times and events, as for :meth:`fit`.
        sample_weight : Dask Series or Array of shape (n,), optional
            Weights of the test rows; only ratios matter.

        Returns
        -------
        float
            1 is perfect, 0 is no better than one marginal curve for all rows.
        """
        check_is_fitted(self)
        predicted = self.predict(X, self.model_.score_levels, unidentified="clip")
        # One at a time: Dask fails on frames and arrays in one computation.
        (predicted,), (y,), (weight,) = compute(predicted), compute(y), compute(sample_weight)
        return compute_skill(
            self.model_, np.ascontiguousarray(predicted), read_target(y), sample_weight=weight
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
