"""Methods: what the paper compares, as forests and ways to read them.

The methods that take censored times for event times (grf, qrf) grow the very trees of those
that do not (crf-generalized, crf-quantile): both split on Y. So a forest is grown once, and
each method reads quantiles off its weights in its own way. An oracle is told the latent times.

Settings follow the R packages the paper used. Forests that split on quantile classes or on the
variance are grf's: honest, on half of the rows, with min(ceil(sqrt(p) + 20), p) features tried
at a node, and no node of ``node_size`` rows or less is split. rsf is randomForestSRC's: not
honest, 632 rows in 1000, ceil(sqrt(p)) features, no leaf below ``node_size`` rows. The
library's default keeps its own settings, but for the node size (and its smallest leaf where that
would be more than half a node).
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


@dataclass(frozen=True)
class Method:
    """A forest and a way to read it."""

    criterion: str
    solver: str = "root"
    oracle: bool = False
    """Whether it is told the latent times."""
    corrected: bool = True
    """Whether it knows which times are censored."""
    has_peer: bool = False
    """Whether another Python package has it too."""


SMALLEST_LEAF = CensoredQuantileForest().min_samples_leaf
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
    """Rows to learn from; ``latent`` is needed by the oracles only."""

    X: NDArray[np.float64]
    y: NDArray[np.void]
    latent: NDArray[np.float64] | None = None

    @classmethod
    def of(cls, data: Any, rows: NDArray[np.intp] | slice = slice(None)) -> Sample:
        """Rows of a simulation or of a table."""
        latent = None if data.latent is None else data.latent[rows]
        return cls(data.X[rows], data.y[rows], latent)


@dataclass(frozen=True)
class Study:
    """How large and with whose baselines a study is run."""

    quick: bool = False
    with_peers: bool = False
    n_jobs: int = -1

    def pick(self, full: Any, quick: Any) -> Any:
        """The first at the paper's size, the second in a quick run."""
        return quick if self.quick else full


def build_forest(
    criterion: str, n_features: int, *, node_size: int, n_estimators: int, seed: int, n_jobs: int
) -> CensoredQuantileForest:
    """Forest with the settings that the module's text names."""
    settings: dict[str, Any]
    if criterion == "censored_quantile":
        leaf = min(SMALLEST_LEAF, max(1, node_size // 2))
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
        criterion=criterion, n_estimators=n_estimators, random_state=seed, n_jobs=n_jobs, **settings
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
    """Quantiles by each method, of shape (n, n_levels); out of bag where X is None."""
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


def last_above(
    times: NDArray[np.float64], survival: NDArray[np.float64], levels: Sequence[float]
) -> NDArray[np.float64]:
    """Quantiles as the paper reads them off a survival curve: last time with S >= 1 - tau."""
    n_above = np.searchsorted(-survival, np.asarray(levels) - 1.0, side="right")
    return times[np.maximum(n_above - 1, 0)]
