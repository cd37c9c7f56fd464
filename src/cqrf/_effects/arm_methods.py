"""Methods of the treatment forest that predict the times of one arm."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cqrf._effects.methods import AverageMethods, read_arm
from cqrf._effects.predict import arm_curves, column_times, quantile_columns
from cqrf._estimator.output import index_of
from cqrf._survival.quantiles import read_levels
from cqrf._survival.step_curves import StepCurves


class ArmMethods(AverageMethods):
    """Survival curves and quantiles of one arm."""

    arms_: tuple[Any, Any]

    def predict_survival(
        self, X: Any, times: ArrayLike | None = None, *, arm: Any = 1, beyond: str = "nan"
    ) -> StepCurves | NDArray[np.float64]:
        """Survival P(T > t | x) in one arm, as StepCurves, or of (n, n_times) if times are given.

        Parameters
        ----------
        X : array-like or frame of shape (n, n_features)
            Rows to predict.
        times : array-like, optional
            Times. Default: whole curves.
        arm : {0, 1} or a name
            0 is the control and 1 the treatment, also where arms are called by numbers; or one of
            ``arms_``.
        beyond : {"nan", "extend"}
            Values after the last time at which the arm is known: NaN, or the flat line, which is
            not an estimate.

        Returns
        -------
        StepCurves, or an ndarray of shape (n, n_times) if times are given

        Examples
        --------
        >>> from cqrf import datasets, effects
        >>> data = datasets.make_treatment("null", n=200, random_state=0)
        >>> forest = effects.CensoredTreatmentForest(n_estimators=40, random_state=0)
        >>> forest = forest.fit(data.X, data.y, data.treatment, propensity=0.5)
        >>> forest.predict_survival(data.X[:2], times=[1.0, 2.0], arm=0).shape
        (2, 2)
        """
        model, queries = self._queries(X)
        number = read_arm(arm, self.arms_, model.treated)
        values = arm_curves(model, queries, self.n_jobs)[number][:, 1:]
        n, n_times = values.shape
        curves = StepCurves(
            np.arange(n + 1, dtype=np.int64) * n_times,
            np.tile(model.grid.times, n),
            values.ravel(),
            np.ones(n),
            end=np.where(values[:, -1] <= 0.0, np.inf, model.ends[number]),
            index=index_of(X),
        )
        return curves if times is None else curves(times, beyond)

    def predict(
        self, X: Any, quantiles: float | Sequence[float] = 0.5, *, arm: Any = 1
    ) -> NDArray[np.float64]:
        """Quantiles of T in one arm; infinite where they are not identifiable.

        Parameters
        ----------
        X : array-like or frame of shape (n, n_features)
            Rows to predict.
        quantiles : float or sequence of float
            Levels in (0, 1).
        arm : {0, 1} or a name
            As in :meth:`predict_survival`.

        Returns
        -------
        ndarray of shape (n,), or (n, n_quantiles) for a sequence of levels

        Examples
        --------
        >>> from cqrf import datasets, effects
        >>> data = datasets.make_treatment("null", n=200, random_state=0)
        >>> forest = effects.CensoredTreatmentForest(n_estimators=40, random_state=0)
        >>> forest = forest.fit(data.X, data.y, data.treatment, propensity=0.5)
        >>> forest.predict(data.X[:2], [0.25, 0.5], arm=1).shape
        (2, 2)
        """
        levels, is_scalar = read_levels(quantiles)
        model, queries = self._queries(X)
        curves = arm_curves(model, queries, self.n_jobs)[read_arm(arm, self.arms_, model.treated)]
        values = column_times(model, quantile_columns(curves, levels))
        return values[:, 0] if is_scalar else values
