"""Peers: the forests of scikit-survival and quantile-forest as baselines.

Both grow trees that are not honest, from bootstrap samples. The node size means the same as ours.
``pip install 'cqrf[bench]'`` installs both.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cqrf.study.paper_quantiles import last_above


def predict_quantile_forest(
    X: NDArray[np.float64],
    y: NDArray[np.void],
    X_test: NDArray[np.float64],
    levels: Sequence[float],
    *,
    node_size: int,
    n_estimators: int,
    seed: int,
    n_jobs: int,
) -> NDArray[np.float64]:
    """Quantiles of the observed times by quantile-forest, with all rows of each leaf."""
    from quantile_forest import RandomForestQuantileRegressor

    forest = RandomForestQuantileRegressor(
        n_estimators=n_estimators,
        min_samples_split=node_size + 1,
        max_features=min(math.ceil(math.sqrt(X.shape[1]) + 20), X.shape[1]),
        max_samples_leaf=None,
        n_jobs=n_jobs,
        random_state=seed,
    )
    return np.asarray(forest.fit(X, y["time"]).predict(X_test, quantiles=list(levels)))


def predict_survival_forest(
    X: NDArray[np.float64],
    y: NDArray[np.void],
    X_test: NDArray[np.float64],
    levels: Sequence[float],
    *,
    node_size: int,
    n_estimators: int,
    seed: int,
    n_jobs: int,
) -> NDArray[np.float64]:
    """Quantiles by scikit-survival's random survival forest, read off its curves."""
    from sksurv.ensemble import RandomSurvivalForest
    from sksurv.util import Surv

    forest = RandomSurvivalForest(
        n_estimators=n_estimators,
        min_samples_leaf=node_size,
        min_samples_split=2 * node_size,
        max_features="sqrt",
        n_jobs=n_jobs,
        random_state=seed,
    )
    forest.fit(X, Surv.from_arrays(y["event"], y["time"]))
    survival = forest.predict_survival_function(X_test, return_array=True)
    return np.array([last_above(forest.unique_times_, curve, levels) for curve in survival])


PREDICT: dict[str, Any] = {
    "variance": predict_quantile_forest,
    "logrank": predict_survival_forest,
}
