"""Methods of the treatment forest that predict the times of one arm."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cqrf._effects.methods import AverageMethods, read_arm
from cqrf._effects.predict import arm_curves, column_times, quantile_columns
from cqrf._model.output import index_of
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
        times : array-like, optional
        arm : {0, 1} or a name
            0 is the control and 1 the treatment, also where arms are called by numbers; or one of
            ``arms_``.
        beyond : {"nan", "extend"}
            What becomes of times after the last one at which the arm is known.
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

        Shape (n,), or (n, n_quantiles) for a list; ``arm`` as in :meth:`predict_survival`.
        """
        levels, is_scalar = read_levels(quantiles)
        model, queries = self._queries(X)
        curves = arm_curves(model, queries, self.n_jobs)[read_arm(arm, self.arms_, model.treated)]
        values = column_times(model, quantile_columns(curves, levels))
        return values[:, 0] if is_scalar else values
