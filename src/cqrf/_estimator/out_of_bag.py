"""The methods of the estimator for its training rows, each read from trees that did not draw it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from cqrf._estimator.prediction import PredictionMethods
from cqrf._input.causes import Cause
from cqrf._model.queries import has_tree
from cqrf._readers.curves import SurvivalCurves
from cqrf._readers.weight_rows import WeightRows
from cqrf._survival.step_curves import StepCurves


class OutOfBagMethods(PredictionMethods):
    """Predictions of the training rows, out of bag."""

    def predict_oob(
        self,
        quantiles: float | Sequence[float] = 0.5,
        *,
        cause: Cause | None = None,
        unidentified: str | None = None,
    ) -> NDArray[np.float64]:
        """Quantiles for the training rows, each from the trees that did not draw it.

        Parameters
        ----------
        quantiles : float or sequence of float
            Levels in (0, 1).
        cause, unidentified : optional
            As in :meth:`predict`.

        Returns
        -------
        ndarray of shape (n_train,), or (n_train, n_quantiles) for a sequence of levels
            Rows that every tree has drawn are NaN.

        Examples
        --------
        >>> from cqrf import CensoredQuantileForest, datasets
        >>> X, y, _, _ = datasets.make_aft(100, random_state=0)
        >>> forest = CensoredQuantileForest(n_estimators=20, random_state=0).fit(X, y)
        >>> forest.predict_oob([0.1, 0.5]).shape
        (100, 2)
        """
        return self._quantiles(self._training_queries(), quantiles, unidentified, cause)

    def predict_survival_oob(
        self, times: ArrayLike | None = None, *, beyond: str = "nan"
    ) -> StepCurves | NDArray[np.float64]:
        """Survival P(T > t | x) of the training rows, each from the trees that did not draw it.

        Parameters
        ----------
        times, beyond : optional
            As in :meth:`predict_survival`.

        Returns
        -------
        StepCurves, or an ndarray of shape (n_train, n_times) if times are given
            A row that every tree has drawn has an empty curve; at times it is NaN.

        Examples
        --------
        >>> from cqrf import CensoredQuantileForest, datasets
        >>> X, y, _, _ = datasets.make_aft(100, random_state=0)
        >>> forest = CensoredQuantileForest(n_estimators=50, random_state=0).fit(X, y)
        >>> forest.predict_survival_oob(times=[0.5, 1.0]).shape
        (100, 2)
        """
        queries = self._training_queries()
        if times is None:
            return self._read(queries, SurvivalCurves())
        survival = self._survival_at(queries, times, beyond)
        survival[~has_tree(self.model_, queries)] = np.nan
        return survival

    def weights_oob(self) -> sparse.csr_array:
        """Weights for the training rows, each from the trees that did not draw it.

        Returns
        -------
        sparse array of shape (n_train, n_train)
            Each row sums to 1, and is empty if every tree has drawn it.

        Examples
        --------
        >>> from cqrf import CensoredQuantileForest, datasets
        >>> X, y, _, _ = datasets.make_aft(100, random_state=0)
        >>> forest = CensoredQuantileForest(n_estimators=20, random_state=0).fit(X, y)
        >>> forest.weights_oob().shape
        (100, 100)
        """
        return self._read(self._training_queries(), WeightRows())
