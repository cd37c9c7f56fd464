"""Accuracy, calibration and fit time on real data sets, compared with other packages, in one run.

Five-fold cross-validation with the same folds for all methods. For other packages missing values
are imputed with medians and categories are one-hot encoded; our forests take the tables as they
are. All forests have the same number of trees. Our default is run with and without its working
model. scikit-survival's forest has its own defaults and, in a second line, our node sizes.
Concordance is Harrell's: of the mean survival time up to the last training time for our forests and
Weibull AFT, of the risk score for the others. The integrated Brier score covers the 10th to the
90th percentile of the test times. CRPS, up to the horizon, and the quantile losses at .25 .5 .75
are divided by the median time of the table. A quantile that a curve does not reach is set to the
last training time. Calibration is the distance over all folds pooled. Fit times are for one fold,
median over folds.

Run: python benchmarks/real_data.py [--data pbc rossi ...] (with pip install '.[bench]')
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from lifelines import WeibullAFTFitter
from lifelines.datasets import load_lung, load_rossi
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sksurv.datasets import load_flchain, load_gbsg2, load_veterans_lung_cancer, load_whas500
from sksurv.ensemble import RandomSurvivalForest
from sksurv.linear_model import CoxPHSurvivalAnalysis
from sksurv.util import Surv

from cqrf import CensoredQuantileForest, StepCurves, censored, tune
from cqrf._calibration.uniformity import transform
from cqrf._input.target import Target, read_target
from cqrf.calibration import compare
from cqrf.datasets import load_pbc
from cqrf.metrics import (
    censored_quantile_loss,
    concordance_index,
    crps,
    integrated_brier_score,
)

LEVELS = np.array([0.25, 0.5, 0.75])
# scikit-survival keeps a curve in every leaf: 500 trees of FLChain would not fit into memory.
TREES = {"flchain": 100}
FOLDS = 5


class Fitted(NamedTuple):
    """Curves of the test rows, a score that decreases with risk, and the seconds of the fit."""

    curves: StepCurves
    score: np.ndarray
    seconds: float


def load_sksurv(load: Callable, event: str, time_name: str) -> tuple[pd.DataFrame, np.ndarray]:
    X, y = load()
    return X, censored(y[time_name].astype(float), y[event])


def load_tables() -> dict[str, Callable[[], tuple[pd.DataFrame, np.ndarray]]]:
    def pbc():
        table = load_pbc(as_frame=True)
        return table.X, table.y

    def rossi():
        frame = load_rossi()
        y = censored(frame["week"].astype(float), frame["arrest"] == 1)
        return frame.drop(columns=["week", "arrest"]), y

    def lung():
        frame = load_lung()
        y = censored(frame["time"].astype(float), frame["status"] == frame["status"].max())
        return frame.drop(columns=["time", "status"]), y

    def flchain():
        X, y = load_sksurv(load_flchain, "death", "futime")
        positive = y["time"] > 0  # three patients have time 0, which no AFT model accepts
        return X[positive].drop(columns="chapter").reset_index(drop=True), y[positive]

    return {
        "pbc": pbc,
        "gbsg2": lambda: load_sksurv(load_gbsg2, "cens", "time"),
        "whas500": lambda: load_sksurv(load_whas500, "fstat", "lenfol"),
        "veteran": lambda: load_sksurv(load_veterans_lung_cancer, "Status", "Survival_in_days"),
        "rossi": rossi,
        "lung": lung,
        "flchain": flchain,
    }


def as_numbers(scale: bool = False) -> Any:
    """Median imputation of numbers, one-hot encoding of categories."""
    steps = [SimpleImputer(strategy="median")] + ([StandardScaler()] if scale else [])
    text = make_pipeline(
        SimpleImputer(strategy="most_frequent"),
        OneHotEncoder(drop="first", handle_unknown="ignore", sparse_output=False),
    )
    numbers = make_column_selector(dtype_include="number")
    return make_column_transformer(
        (make_pipeline(*steps), numbers), (text, make_column_selector(dtype_exclude="number"))
    )


def tidy(X: pd.DataFrame) -> pd.DataFrame:
    """Numbers as floats, all other columns as text."""
    return X.apply(lambda c: c.astype(float) if pd.api.types.is_numeric_dtype(c) else c.astype(str))


def common_grid_curves(times: np.ndarray, values: np.ndarray) -> StepCurves:
    """Curves with steps at the same times."""
    n = len(values)
    offsets = np.arange(n + 1) * len(times)
    return StepCurves(offsets, np.tile(times, n).astype(float), values.ravel(), np.ones(n))


def run_forest(make: Callable) -> Callable:
    def run(X, y, X_test, trees, seed):
        began = time.perf_counter()
        forest = make(X, y, trees, seed)
        seconds = time.perf_counter() - began
        return Fitted(
            forest.predict_survival(X_test), forest.predict_mean(X_test, beyond="extend"), seconds
        )

    return run


def fit_forest(X, y, trees, seed, **settings):
    return CensoredQuantileForest(n_estimators=trees, random_state=seed, n_jobs=2, **settings).fit(
        X, y
    )


def fit_tuned(X, y, trees, seed):
    start = CensoredQuantileForest(n_estimators=trees, random_state=seed, n_jobs=2)
    return tune(start, X, y, random_state=seed).forest


fit_paper_forest = partial(
    fit_forest, criterion="quantile", solver="argmin", max_samples=0.5, min_samples_leaf=1
)


def run_sksurv(make: Callable, scale: bool) -> Callable:
    """A model of scikit-survival; ``make`` takes the number of trees and a seed."""

    def run(X, y, X_test, trees, seed):
        numbers = as_numbers(scale).fit(X)
        train = numbers.transform(X), Surv.from_arrays(y["event"], y["time"])
        began = time.perf_counter()
        peer = make(trees, seed).fit(*train)
        seconds = time.perf_counter() - began
        test = numbers.transform(X_test)
        curves = peer.predict_survival_function(test, return_array=True)
        return Fitted(common_grid_curves(peer.unique_times_, curves), -peer.predict(test), seconds)

    return run


def survival_forest(trees, seed, **settings):
    return RandomSurvivalForest(n_estimators=trees, n_jobs=2, random_state=seed, **settings)


def run_weibull(X, y, X_test, trees, seed):
    numbers = as_numbers(scale=True).fit(X)
    names = [f"x{i}" for i in range(numbers.transform(X[:1]).shape[1])]
    train = pd.DataFrame(numbers.transform(X), columns=names)
    train["time"], train["event"] = y["time"], y["event"]
    began = time.perf_counter()
    peer = WeibullAFTFitter(penalizer=1e-2).fit(train, "time", "event")
    seconds = time.perf_counter() - began
    test = pd.DataFrame(numbers.transform(X_test), columns=names)
    times = np.unique(y["time"])
    curves = common_grid_curves(times, peer.predict_survival_function(test, times).T.to_numpy())
    return Fitted(curves, peer.predict_median(test).to_numpy(), seconds)


METHODS = {
    "cqrf, default": run_forest(fit_forest),
    "cqrf, working_model=None": run_forest(partial(fit_forest, working_model=None)),
    "cqrf, max_samples=.5": run_forest(partial(fit_forest, max_samples=0.5)),
    "cqrf, tuned": run_forest(fit_tuned),
    "cqrf, the paper's": run_forest(fit_paper_forest),
    "survival forest": run_sksurv(survival_forest, scale=False),
    "survival forest, our nodes": run_sksurv(
        partial(survival_forest, min_samples_leaf=5, min_samples_split=11), scale=False
    ),
    "Cox": run_sksurv(lambda trees, seed: CoxPHSurvivalAnalysis(alpha=1e-2), scale=True),
    "Weibull AFT": run_weibull,
}
COLUMNS = ("C-index", "IBS", "CRPS", "loss .25", "loss .5", "loss .75", "calibration", "fit s")


def evaluate(X: pd.DataFrame, y: np.ndarray, run: Callable, trees: int) -> list[float]:
    """Scores of one method on one table, in the order of COLUMNS."""
    rows, pooled = [], []
    unit = float(np.median(y["time"]))
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(X, y["event"])
    for seed, (train, test) in enumerate(folds):
        y_train, y_test = y[train], y[test]
        X_train, X_test = X.iloc[train].reset_index(drop=True), X.iloc[test]
        found = run(X_train, y_train, X_test.reset_index(drop=True), trees, seed)
        target = read_target(y_test)
        ends = [found.curves.first_at_most(1 - level) for level in LEVELS]
        quantiles = np.minimum(np.column_stack(ends), y_train["time"].max())
        losses = censored_quantile_loss(y_train, y_test, quantiles, LEVELS) / unit
        times = np.linspace(*np.quantile(y_test["time"], [0.1, 0.9]), 50)
        rows.append(
            [
                concordance_index(y_test, found.score),
                integrated_brier_score(y_train, y_test, found.curves, times),
                crps(y_train, y_test, found.curves) / unit,
                *losses,
                np.nan,
                found.seconds,
            ]
        )
        pooled.append(transform(found.curves, target))
    together = Target(*(np.concatenate([getattr(t, f) for t in pooled]) for f in ("time", "event")))
    calibration = compare(
        together, np.ones(len(together.time)), from_left=False, confidence=0.95, n_bins=10
    )
    figures = np.mean(rows, axis=0)
    figures[-2] = calibration.distance
    figures[-1] = np.median([row[-1] for row in rows])
    return figures.tolist()


def warm_up() -> None:
    """Compile every kernel, or read it from the cache, before timing."""
    table = load_pbc(as_frame=True)
    for make in (fit_forest, fit_paper_forest, fit_tuned):
        make(table.X, table.y, 9, 0).predict_survival(table.X)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="*", default=list(load_tables()))
    parser.add_argument("--trees", type=int, default=500)
    options = parser.parse_args()
    # Other packages warn that they do not converge; metrics warn of times beyond the horizon.
    warnings.simplefilter("ignore")
    warm_up()
    scores = {}
    print("| data | method | " + " | ".join(COLUMNS) + " |\n|---|---|" + "---|" * len(COLUMNS))
    for name in options.data:
        X, y = load_tables()[name]()
        X, trees = tidy(X), min(options.trees, TREES.get(name, options.trees))
        for method, run in METHODS.items():
            figures = evaluate(X, y, run, trees)
            scores[name, method] = figures
            cells = " | ".join(f"{value:.3f}" for value in figures)
            print(f"| {name} | {method} | {cells} |", flush=True)
    print_summary(scores, options.data)


def print_summary(scores: dict[tuple[str, str], list[float]], names: list[str]) -> None:
    """Means over tables, relative to the survival forest where they are losses or times."""
    print(
        "\nMeans over tables (C-index, calibration), geometric means of the ratio to the survival"
    )
    print("forest (losses), and its fit time over that of each method: geometric mean")
    print("over tables, and total over total:\n")
    print("| method | " + " | ".join(COLUMNS[:-1]) + " | times faster | all together |")
    print("|---|" + "---|" * (len(COLUMNS) + 1))
    for method in METHODS:
        own = np.array([scores[name, method] for name in names])
        peer = np.array([scores[name, "survival forest"] for name in names])
        ratios = np.exp(np.log(own / peer).mean(axis=0))
        cells = [own[:, 0].mean(), *ratios[1:6], own[:, 6].mean(), 1 / ratios[7]]
        cells.append(peer[:, 7].sum() / own[:, 7].sum())
        print(f"| {method} | " + " | ".join(f"{value:.3f}" for value in cells) + " |")


if __name__ == "__main__":
    main()
