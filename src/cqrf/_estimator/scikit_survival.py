"""The methods of the estimator that give curves in the form of scikit-survival."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from cqrf._estimator.prediction import PredictionMethods
from cqrf._readers.curves import SurvivalCurves
from cqrf._survival.step_curve import StepCurve
from cqrf._survival.step_curves import StepCurves


class ScikitSurvivalMethods(PredictionMethods):
    """Curves for the metrics and tools of scikit-survival."""

    def predict_survival_function(self, X: Any, return_array: bool = False) -> NDArray[Any]:
        """Survival curves in the form of scikit-survival, for its metrics and tools.

        As in that package a curve is drawn on as a flat line to the last training time;
        :meth:`predict_survival` shows where it is known.

        Parameters
        ----------
        X : array-like or frame of shape (n, n_features)
            Rows to predict.
        return_array : bool, default=False
            Whether to return values at ``unique_times_`` instead of step functions.

        Returns
        -------
        ndarray of StepCurve, shape (n,), or ndarray of shape (n, n_unique_times)
            Step functions with ``x``, ``y`` and ``domain``.

        Examples
        --------
        >>> from cqrf import CensoredQuantileForest, datasets
        >>> X, y, _, _ = datasets.make_aft(100, random_state=0)
        >>> forest = CensoredQuantileForest(n_estimators=20, random_state=0).fit(X, y)
        >>> curve = forest.predict_survival_function(X[:2])[0]
        >>> curve([1.0, 2.0]).round(1)
        array([1. , 0.9])
        """
        return self._functions(self._read(self._queries(X), SurvivalCurves()), return_array)

    def predict_cumulative_hazard_function(
        self, X: Any, return_array: bool = False
    ) -> NDArray[Any]:
        """Nelson-Aalen cumulative hazards, in the form of :meth:`predict_survival_function`.

        Parameters
        ----------
        X : array-like or frame of shape (n, n_features)
            Rows to predict.
        return_array : bool, default=False
            Whether to return values at ``unique_times_`` instead of step functions.

        Returns
        -------
        ndarray of StepCurve, shape (n,), or ndarray of shape (n, n_unique_times)

        Examples
        --------
        >>> from cqrf import CensoredQuantileForest, datasets
        >>> X, y, _, _ = datasets.make_aft(100, random_state=0)
        >>> forest = CensoredQuantileForest(n_estimators=20, random_state=0).fit(X, y)
        >>> hazards = forest.predict_cumulative_hazard_function(X[:2], return_array=True)
        >>> hazards.shape == (2, len(forest.unique_times_))
        True
        """
        curves = self._read(self._queries(X), SurvivalCurves())
        return self._functions(curves.cumulative_hazard(), return_array)

    @property
    def unique_times_(self) -> NDArray[np.float64]:
        """Distinct training times, ascending."""
        check_is_fitted(self, "model_")
        return np.unique(self.model_.training_target.time)

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
