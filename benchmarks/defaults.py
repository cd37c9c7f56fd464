"""Comparison of the defaults with one changed setting at a time, on many data sets.

Simulated data: mean absolute error to the true quantiles at .1 .3 .5 .7 .9. Real data: IPCW
quantile loss at .25 .5 .75 in five-fold cross-validation. Each number is the ratio to the defaults
on the same data: below 1 is better than the default. All forests are grown without a working model.

Run: python benchmarks/defaults.py [--repeats 3] [--trees 300]
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable

import numpy as np
from sklearn.model_selection import KFold

from cqrf import CensoredQuantileForest
from cqrf._input.target import read_target
from cqrf.datasets import (
    load_boston_housing,
    load_pbc,
    make_aft,
    make_dependent_censoring,
    make_heteroscedastic,
    make_sine,
)
from cqrf.metrics import censored_quantile_loss

LEVELS = [0.1, 0.3, 0.5, 0.7, 0.9]
HELD_OUT_LEVELS = [0.25, 0.5, 0.75]

VARIANTS: dict[str, dict] = {
    "defaults": {},
    "max_features=0.67": {"max_features": 0.67},
    "max_features=0.33": {"max_features": 0.33},
    'max_features="sqrt"': {"max_features": "sqrt"},
    "min_samples_split=6, min_samples_leaf=1": {"min_samples_split": 6, "min_samples_leaf": 1},
    "min_samples_leaf=1": {"min_samples_leaf": 1},
    "min_samples_leaf=3": {"min_samples_leaf": 3},
    "min_samples_split=16": {"min_samples_split": 16},
    "min_samples_split=21": {"min_samples_split": 21},
    "min_samples_split=21, min_samples_leaf=10": {"min_samples_split": 21, "min_samples_leaf": 10},
    "min_samples_split=41": {"min_samples_split": 41},
    "min_child_fraction=0": {"min_child_fraction": 0.0},
    "honest=False": {"honest": False},
    "honest=False, min_samples_split=21": {"honest": False, "min_samples_split": 21},
    "max_samples=0.5": {"max_samples": 0.5},
    "max_samples=0.65": {"max_samples": 0.65},
    "max_samples=0.8": {"max_samples": 0.8},
    "bootstrap=True, max_samples=None": {"bootstrap": True, "max_samples": None},
    'criterion="logrank"': {"criterion": "logrank"},
    'criterion="quantile"': {"criterion": "quantile"},
    'criterion="variance"': {"criterion": "variance"},
}


def simulated_error(make: Callable, repeats: int, settings: dict) -> float:
    errors = []
    for repeat in range(repeats):
        train, test = make(random_state=repeat), make(random_state=1000 + repeat)
        forest = CensoredQuantileForest(
            working_model=None, random_state=repeat, n_jobs=2, **settings
        )
        predicted = forest.fit(train.X, train.y).predict(test.X, LEVELS, unidentified="clip")
        errors.append(np.abs(predicted - test.quantile(test.X, LEVELS)).mean())
    return float(np.mean(errors))


def held_out_loss(X: np.ndarray, y: np.ndarray, repeats: int, settings: dict) -> float:
    losses = []
    for repeat in range(repeats):
        for train, test in KFold(5, shuffle=True, random_state=repeat).split(X):
            forest = CensoredQuantileForest(
                working_model=None, random_state=repeat, n_jobs=2, **settings
            )
            forest.fit(X[train], y[train])
            predicted = forest.predict(X[test], HELD_OUT_LEVELS, unidentified="clip")
            targets = read_target(y[train]), read_target(y[test])
            losses.append(censored_quantile_loss(*targets, predicted, HELD_OUT_LEVELS).mean())
    return float(np.mean(losses))


def list_data() -> dict[str, Callable[[int, dict], float]]:
    """Loss or error on each data set, as a function of repeats and settings."""
    data: dict[str, Callable[[int, dict], float]] = {}
    for name, make in {
        "aft": make_aft,
        "hetero": make_heteroscedastic,
        "sine": make_sine,
        "dependent": make_dependent_censoring,
    }.items():
        data[name] = lambda repeats, settings, make=make: simulated_error(make, repeats, settings)
    pbc = load_pbc(complete_cases=True)
    boston = load_boston_housing(censored=True, random_state=0)
    tables = {"pbc": (pbc.X, pbc.y), "boston": (boston.X, boston.y)}
    tables.update(survival_tables())
    for name, table in tables.items():
        data[name] = lambda repeats, settings, table=table: held_out_loss(*table, repeats, settings)
    return data


def survival_tables() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Data sets of scikit-survival, if it is installed."""
    try:
        from sksurv import datasets
        from sksurv.preprocessing import OneHotEncoder
    except ImportError:
        return {}
    loaders = {
        "gbsg2": datasets.load_gbsg2,
        "whas500": datasets.load_whas500,
        "veteran": datasets.load_veterans_lung_cancer,
    }
    tables = {}
    for name, load in loaders.items():
        frame, y = load()
        frame = OneHotEncoder().fit_transform(frame)
        tables[name] = (frame.to_numpy(dtype=float), y)
    return tables


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--trees", type=int, default=300)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    data = list_data()
    width = max(map(len, VARIANTS))
    print(f"{'':{width}}", *(f"{name:>9}" for name in data), f"{'mean':>9}")
    base: dict[str, float] = {}
    for variant, settings in VARIANTS.items():
        settings = {"n_estimators": arguments.trees, **settings}
        figures = {name: figure(arguments.repeats, settings) for name, figure in data.items()}
        base = base or figures
        ratios = [figures[name] / base[name] for name in data]
        cells = (f"{ratio:9.3f}" for ratio in [*ratios, np.exp(np.mean(np.log(ratios)))])
        print(f"{variant:{width}}", *cells, flush=True)


if __name__ == "__main__":
    main()
