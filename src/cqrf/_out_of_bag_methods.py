"""The methods of the estimator for its training rows, each read from trees that did not draw it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from cqrf._input.causes import Cause
from cqrf._model import predict as readers
from cqrf._model.queries import has_tree
from cqrf._prediction import PredictionMethods
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

        Rows that every tree has drawn are NaN.
        """
        return self._quantiles(self._training_queries(), quantiles, unidentified, cause)

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

    def weights_oob(self) -> sparse.csr_array:
        """Weights for the training rows, each from the trees that did not draw it."""
        return self._read(self._training_queries(), readers.WeightRows())
