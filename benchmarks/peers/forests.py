"""Python packages with a common interface: fit, predict, save.

A package is imported where it is used, so a worker needs only its own.
"""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any, Protocol

import numpy as np

LEVELS = (0.1, 0.5, 0.9)
SAMPLE_SHARE = 0.632
LEAF_SIZE = 20


class Forest(Protocol):
    def fit(
        self, X: np.ndarray, time: np.ndarray, event: np.ndarray, trees: int, threads: int
    ) -> None: ...

    def predict(self, X: np.ndarray) -> np.ndarray: ...

    def save(self, path: Path) -> None: ...


class Pickled:
    model: Any

    def save(self, path: Path) -> None:
        with path.open("wb") as file:
            pickle.dump(self.model, file, protocol=pickle.HIGHEST_PROTOCOL)


class Cqrf:
    def __init__(self, rows_per_tree: int | None = None, **settings: Any) -> None:
        from cqrf import CensoredQuantileForest

        self.rows_per_tree = rows_per_tree
        self.model = CensoredQuantileForest(random_state=0, **settings)

    def fit(self, X, time, event, trees, threads):
        from cqrf import censored

        if self.rows_per_tree:
            self.model.set_params(max_samples=min(self.rows_per_tree, len(X)))
        self.model.set_params(n_estimators=trees, n_jobs=threads).fit(X, censored(time, event))

    def predict(self, X):
        return self.model.predict(X, LEVELS, unidentified="clip")

    def save(self, path):
        self.model.save(path)


class ScikitLearn(Pickled):
    def fit(self, X, time, event, trees, threads):
        from sklearn.ensemble import RandomForestRegressor

        self.model = RandomForestRegressor(
            trees, min_samples_leaf=LEAF_SIZE, n_jobs=threads, random_state=0
        ).fit(X, time)

    def predict(self, X):
        return self.model.predict(X)


class QuantileForest(Pickled):
    def fit(self, X, time, event, trees, threads):
        from quantile_forest import RandomForestQuantileRegressor

        self.model = RandomForestQuantileRegressor(
            trees, min_samples_leaf=LEAF_SIZE, max_samples_leaf=None, n_jobs=threads, random_state=0
        ).fit(X, time)

    def predict(self, X):
        return self.model.predict(X, quantiles=list(LEVELS))


class LightGBM(Pickled):
    def fit(self, X, time, event, trees, threads):
        from lightgbm import LGBMRegressor

        self.model = LGBMRegressor(
            boosting_type="rf",
            n_estimators=trees,
            subsample=SAMPLE_SHARE,
            subsample_freq=1,
            num_leaves=max(2, int(SAMPLE_SHARE * len(X)) // LEAF_SIZE),
            min_child_samples=LEAF_SIZE,
            min_child_weight=0.0,
            n_jobs=threads,
            random_state=0,
            verbosity=-1,
        ).fit(X, time)

    def predict(self, X):
        return self.model.predict(X)


class ScikitSurvival(Pickled):
    def fit(self, X, time, event, trees, threads):
        from sksurv.ensemble import RandomSurvivalForest
        from sksurv.util import Surv

        self.model = RandomSurvivalForest(
            trees,
            min_samples_leaf=LEAF_SIZE,
            min_samples_split=2 * LEAF_SIZE,
            max_features=None,
            n_jobs=threads,
            random_state=0,
        ).fit(X, Surv.from_arrays(event, time))

    def predict(self, X):
        survival = self.model.predict_survival_function(X, return_array=True)
        return read_quantiles(1 - survival, self.model.unique_times_)


class Comprisk(Pickled):
    def fit(self, X, time, event, trees, threads):
        from comprisk import CompetingRiskForest

        self.model = CompetingRiskForest(
            trees,
            splitrule="logrank",
            max_depth=None,  # type: ignore[arg-type]  # it allows this
            min_samples_leaf=LEAF_SIZE,
            min_samples_split=2 * LEAF_SIZE,
            max_features=None,
            samptype="swor",
            sampsize=SAMPLE_SHARE,
            nsplit=0,  # all thresholds
            n_jobs=threads,
            random_state=0,
        ).fit(X, time, event.astype(np.int32))

    def predict(self, X):
        return read_quantiles(self.model.predict_cif(X)[:, 0], self.model.unique_times_)


def read_quantiles(curves: np.ndarray, times: np.ndarray) -> np.ndarray:
    """First time at which each distribution function reaches each level, else the last time."""
    reached = [curves >= level for level in LEVELS]
    found = [np.where(there.any(1), there.argmax(1), len(times) - 1) for there in reached]
    return times[np.column_stack(found)]


FORESTS: dict[str, type] = {
    forest.__name__: forest
    for forest in (Cqrf, ScikitLearn, QuantileForest, LightGBM, ScikitSurvival, Comprisk)
}
