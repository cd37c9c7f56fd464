"""Small forests of every kind and all that can be read from them, for a run without compilation.

``python -m support.small_forests FILE`` writes the answers of all of them to an .npz file, and with
a share such as ``0/2`` only every second one's. With NUMBA_DISABLE_JIT=1 every kernel runs as plain
Python, where coverage can see its lines.
"""

import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

from cqrf import CensoredQuantileForest, censored
from cqrf.metrics import censored_quantile_loss, concordance_index, crps

LEVELS = [0.1, 0.5, 0.9]
SETTINGS = {
    "n_estimators": 4,
    "min_samples_leaf": 2,
    "min_samples_split": 4,
    "random_state": 0,
    "n_jobs": 1,
}
# Settings of the forest, and what its rows have: categories and gaps, weights, clusters, entries.
CASES = {
    "censored_quantile": ({"bag_size": 2}, ""),
    "quantile": ({"criterion": "quantile", "solver": "argmin"}, ""),
    "variance": ({"criterion": "variance", "bootstrap": True, "honest": False}, ""),
    "logrank": ({"criterion": "logrank", "censoring_survival": "knn"}, ""),
    "weights and categories": ({"bag_size": 2}, "categories weights"),
    "entries": ({"censoring_survival": "beran"}, "entries"),
    "entries, logrank": ({"criterion": "logrank"}, "entries"),
    "clusters, left censoring": ({"censoring": "left", "solver": "argmin"}, "clusters"),
    "one curve of censoring": ({"censoring_survival": "km", "max_depth": 3}, ""),
    "causes": ({"bag_size": 2}, "causes"),
    "causes, logrank": ({"criterion": "logrank"}, "causes entries weights"),
    "deep": ({"n_estimators": 2, "max_features": 2, "max_bins": 8}, "many rows"),
}


def make_table(kinds, n=40):
    rng = np.random.default_rng(0)
    n = 150 if "many rows" in kinds else n
    X = pd.DataFrame(rng.normal(size=(n, 3)).round(1), columns=["a", "b", "c"])
    latent = rng.exponential(np.exp(X["a"])).round(1) + 0.2
    event = rng.random(n) < 0.7
    entry = np.where(rng.random(n) < 0.5, (latent / 2).round(1), 0.0)
    if "categories" in kinds:
        X["colour"] = rng.choice(["red", "green", "blue"], n)
        X.loc[rng.random(n) < 0.2, ["b", "colour"]] = None
    event = event * rng.integers(1, 3, n) if "causes" in kinds else event
    y = censored(latent, event, entry=entry) if "entries" in kinds else censored(latent, event)
    fit = {}
    if "weights" in kinds:
        fit["sample_weight"] = rng.integers(1, 5, n) / 4
    if "clusters" in kinds:
        fit["groups"] = np.arange(n) // 2
    return X, y, fit


def read_all(name):
    """Every kind of answer of one forest, by name."""
    settings, kinds = CASES[name]
    X, y, fit = make_table(kinds)
    forest = CensoredQuantileForest(**SETTINGS | settings).fit(X, y, **fit)
    with tempfile.TemporaryDirectory() as folder:
        forest.save(Path(folder) / "m.cqrf")
        forest = CensoredQuantileForest.load(Path(folder) / "m.cqrf")
    asked = X.head(12)
    curves = forest.predict_survival(asked)
    found = {
        "quantiles": forest.predict(asked, LEVELS, unidentified="clip"),
        "out of bag": forest.predict_oob(LEVELS, unidentified="clip"),
        "times": curves.times,
        "survival": curves.values,
        "at times": forest.predict_survival(asked, [0.5, 1.5]),
        "mean": forest.predict_mean(asked),
        "largest level": forest.max_quantile(asked),
        "weights": forest.weights(asked).toarray(),
        "importance": forest.feature_importances_,
        "skill": np.array([forest.score_oob()]),
    }
    if forest.censoring == "right" and "entries" not in kinds:
        time = forest.predict(X, 0.5, unidentified="clip")
        found["metrics"] = np.array(
            [
                concordance_index(y, time),
                censored_quantile_loss(y, y, time, 0.5),
                crps(y, y, forest.predict_survival(X)),
            ]
        )
    if forest.causes_:
        found["incidence"] = forest.predict_incidence(asked, [0.5, 1.5])
    if forest.causes_ and forest.bag_size > 1:
        found["error of incidence"] = forest.incidence_standard_error(asked, [0.5, 1.5], 1)
    if forest.bag_size > 1:
        found["standard error"] = forest.survival_standard_error(asked, [0.5, 1.5])
    return found


def write_answers(path, names):
    """The answers of some forests, under "case: answer"."""
    with warnings.catch_warnings():
        # NumPy warns where an unsigned number wraps around; compiled code does it silently.
        warnings.simplefilter("ignore")
        answers = {
            f"{name}: {kind}": array for name in names for kind, array in read_all(name).items()
        }
    with open(path, "wb") as file:
        np.savez(file, **answers)


if __name__ == "__main__":
    share, n_shares = map(int, (sys.argv[2] if len(sys.argv) > 2 else "0/1").split("/"))
    write_answers(sys.argv[1], list(CASES)[share::n_shares])
