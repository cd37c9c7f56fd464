"""Methods that the paper compares: a splitting criterion and a way to estimate quantiles.

The methods that treat censored times as event times (grf, qrf) have the same trees as those that
do not (crf-generalized, crf-quantile): both split on Y. So a forest is grown once, and each method
computes its quantiles from the same weights. An oracle is fitted to the latent times.

Settings follow the R packages that the paper used. Forests with ``quantile`` or ``variance``
splits have grf's settings: honest, subsamples of n/2, mtry min(ceil(sqrt(p) + 20), p), and nodes
of at most ``node_size`` rows are not split. rsf has randomForestSRC's settings: not honest,
subsamples of 0.632 n, mtry ceil(sqrt(p)), leaves of at least ``node_size`` rows. The library's
default keeps its own settings except for the node size (and min_samples_leaf, if that is above
half of the node size). No forest has a working model: methods are read from weights.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cqrf import CensoredQuantileForest, solve_quantiles
from cqrf._input.target import censored
from cqrf.study.paper_quantiles import last_above


@dataclass(frozen=True)
class Method:
    """A splitting criterion and a way to estimate quantiles from the weights."""

    criterion: str
    solver: str = "root"
    oracle: bool = False
    """Whether it is fitted to the latent times."""
    corrected: bool = True
    """Whether it corrects for censoring; if not, every time is treated as an event."""
    has_peer: bool = False
    """Whether another Python package has this method too."""


DEFAULT_LEAF_SIZE = CensoredQuantileForest().min_samples_leaf
DEFAULT = "censored-quantile"
METHODS = {
    DEFAULT: Method("censored_quantile"),
    "censored-quantile, argmin": Method("censored_quantile", solver="argmin"),
    "crf-generalized": Method("quantile", solver="argmin"),
    "crf-generalized, root": Method("quantile"),
    "crf-quantile": Method("variance", solver="argmin"),
    "grf": Method("quantile", corrected=False),
    "qrf": Method("variance", corrected=False, has_peer=True),
    "rsf": Method("logrank", has_peer=True),
    "grf-oracle": Method("quantile", oracle=True),
    "qrf-oracle": Method("variance", oracle=True, has_peer=True),
}
CENSORED = (DEFAULT, "crf-generalized", "crf-quantile", "grf", "qrf", "rsf")
ORACLES = ("grf-oracle", "qrf-oracle")
BOTH_RULES = ("censored-quantile, argmin", "crf-generalized, root")


class Sample(NamedTuple):
    """Training rows; only the oracles need ``latent``."""

    X: NDArray[np.float64]
    y: NDArray[np.void]
    latent: NDArray[np.float64] | None = None

    @classmethod
    def of(cls, data: Any, rows: NDArray[np.intp] | slice = slice(None)) -> Sample:
        """Rows of a simulated or loaded data set."""
        latent = None if data.latent is None else data.latent[rows]
        return cls(data.X[rows], data.y[rows], latent)


@dataclass(frozen=True)
class Study:
    """Size of a study, and whether baselines come from other packages."""

    quick: bool = False
    with_peers: bool = False
    n_jobs: int = -1

    def pick(self, full: Any, quick: Any) -> Any:
        """The first value in a full study, the second in a quick one."""
        return quick if self.quick else full


def build_forest(
    criterion: str, n_features: int, *, node_size: int, n_estimators: int, seed: int, n_jobs: int
) -> CensoredQuantileForest:
    """Forest with the settings in the docstring of this module."""
    settings: dict[str, Any]
    if criterion == "censored_quantile":
        leaf = min(DEFAULT_LEAF_SIZE, max(1, node_size // 2))
        settings = {"min_samples_leaf": leaf, "min_samples_split": node_size + 1}
    elif criterion == "logrank":
        settings = {
            "honest": False,
            "max_samples": 0.632,
            "max_features": math.ceil(math.sqrt(n_features)),
            "min_samples_leaf": node_size,
            "min_samples_split": 2 * node_size,
            "min_child_fraction": 0.0,
        }
    else:
        settings = {
            "max_samples": 0.5,
            "max_features": min(math.ceil(math.sqrt(n_features) + 20), n_features),
            "min_samples_leaf": 1,
            "min_samples_split": node_size + 1,
        }
    return CensoredQuantileForest(
        criterion=criterion,
        n_estimators=n_estimators,
        working_model=None,
        random_state=seed,
        n_jobs=n_jobs,
        **settings,
    )


def predict_all(
    names: Sequence[str],
    train: Sample,
    X: NDArray[np.float64] | None,
    levels: Sequence[float],
    *,
    node_size: int,
    n_estimators: int,
    seed: int,
    study: Study,
) -> dict[str, NDArray[np.float64]]:
    """Quantiles of each method, shape (n, n_levels); out of bag if X is None."""
    settings = {"node_size": node_size, "n_estimators": n_estimators, "seed": seed}
    weights_of: dict[tuple[str, bool], Any] = {}
    predicted = {}
    for name in names:
        method = METHODS[name]
        y = train.y
        if method.oracle:
            assert train.latent is not None
            y = censored(train.latent, np.ones(len(train.X), bool))
        if study.with_peers and method.has_peer and X is not None:
            from cqrf.study.peers import PREDICT

            predict = PREDICT[method.criterion]
            predicted[name] = predict(train.X, y, X, levels, n_jobs=study.n_jobs, **settings)
            continue
        grown = method.criterion, method.oracle
        if grown not in weights_of:
            forest = build_forest(
                method.criterion, train.X.shape[1], n_jobs=study.n_jobs, **settings
            ).fit(train.X, y)
            if method.criterion == "logrank":
                curves = forest.predict_survival(X)
                predicted[name] = np.array([last_above(c.times, c.values, levels) for c in curves])
                continue
            weights_of[grown] = forest.weights_oob() if X is None else forest.weights(X)
        event = y["event"] if method.corrected else np.ones(len(y), bool)
        predicted[name] = solve_quantiles(
            weights_of[grown], y["time"], event, levels, solver=method.solver, unidentified="clip"
        )
    return predicted
