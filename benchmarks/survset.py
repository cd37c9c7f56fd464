"""Accuracy on twenty real tables of SurvSet, relative to a forest without working model.

Three-fold cross-validation, folds stratified by event and the same for all methods, 200 trees. For
each table the integrated Brier score (10th to 90th percentile of the test times, Kaplan-Meier
weights) and Harrell's concordance of the restricted mean; for Cox of the linear predictor. Cox is a
ridge model, its penalty chosen by five-fold cross-validated partial likelihood. Other packages get
medians for missing values and one column for each level of a category. The last lines give the
geometric mean of the ratios, the worst table, how many tables are better, and the mean difference
of the concordance.

These tables are for development. The other tables of SurvSet are for checking the result: do not
look at them here.

Run: python -m benchmarks.survset [--data uis nki70 ...] [--trees 200] [--skip rsf] [--seed 0]
(--data breast_cancer: a wide table of scikit-survival)
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.model_selection import StratifiedKFold
from SurvSet.data import SurvLoader

from cqrf import CensoredQuantileForest, StepCurves, censored
from cqrf.metrics import concordance_index, integrated_brier_score

TABLES = [
    "e1684",
    "prostate",
    "LeukSurv",
    "Melanoma",
    "pharmacoSmoking",
    "nki70",
    "actg",
    "rdata",
    "grace",
    "dataDIVAT1",
    "uis",
    "follic",
    "Aids2",
    "wpbc",
    "smarto",
    "retinopathy",
    "Pbc3",
    "scania",
    "rott2",
    "rhc",
]
# A small, wide table of scikit-survival (198 rows, 80 columns), only if asked for by its name.
WIDE = "breast_cancer"
FOLDS = 3
BASELINE = "no working model"


class Fold(NamedTuple):
    """Training and test rows of a fold."""

    X: pd.DataFrame
    y: np.ndarray
    X_test: pd.DataFrame
    y_test: np.ndarray


class Prediction(NamedTuple):
    """Curves of the test rows, and a score that decreases with risk."""

    curves: StepCurves
    score: np.ndarray


def load_table(name: str) -> tuple[pd.DataFrame, np.ndarray]:
    """Features, categories as such, and the target of a table."""
    if name == WIDE:
        from sksurv.datasets import load_breast_cancer

        X, y = load_breast_cancer()
        return X, censored(y["t.tdm"].astype(float), y["e.tdm"])
    table = SurvLoader().load_dataset(name)["df"]
    y = censored(table["time"].to_numpy(float), table["event"].to_numpy() == 1)
    X = table.drop(columns=["pid", "time", "time2", "event"], errors="ignore")
    for column in X:
        is_category = column.startswith("fac_")
        X[column] = X[column].astype("category" if is_category else float)
    return X, y


def fit_forest(fold: Fold, trees: int, **settings: Any) -> Prediction:
    """One of our forests."""
    forest = CensoredQuantileForest(n_estimators=trees, random_state=0, n_jobs=-1, **settings)
    forest.fit(fold.X, fold.y)
    curves = forest.predict_survival(fold.X_test)
    return Prediction(curves, forest.predict_mean(fold.X_test, beyond="extend"))


def encode(fold: Fold) -> tuple[np.ndarray, np.ndarray]:
    """Training and test rows as numbers without gaps, for other packages."""
    both = pd.concat([fold.X, fold.X_test])
    numbers = both.select_dtypes("number")
    filled = numbers.fillna(fold.X[numbers.columns].median()).fillna(0.0)
    categories = both.select_dtypes("category")
    if len(categories.columns):
        filled = pd.concat([filled, pd.get_dummies(categories)], axis=1)
    values = filled.to_numpy(float)
    return values[: len(fold.X)], values[len(fold.X) :]


def as_curves(survival: np.ndarray, times: np.ndarray) -> StepCurves:
    """Step curves from survival probabilities of shape (n, n_times)."""
    n, n_times = survival.shape
    offsets = np.arange(n + 1) * n_times
    return StepCurves(offsets, np.tile(times, n), survival.ravel(), np.ones(n))


def fit_survival_forest(fold: Fold, trees: int) -> Prediction:
    """scikit-survival's random survival forest."""
    from sksurv.ensemble import RandomSurvivalForest
    from sksurv.util import Surv

    train, test = encode(fold)
    y = Surv.from_arrays(fold.y["event"], fold.y["time"])
    forest = RandomSurvivalForest(trees, n_jobs=-1, random_state=0).fit(train, y)
    curves = as_curves(
        forest.predict_survival_function(test, return_array=True), forest.unique_times_
    )
    return Prediction(curves, curves.restricted_mean(fold.y["time"].max(), beyond="extend"))


def fit_cox(fold: Fold, trees: int) -> Prediction:
    """Ridge Cox model; the penalty by cross-validated partial likelihood."""
    from cqrf._working_model.cox import baseline_hazard, evaluate, make_rows, maximise

    train, test = encode(fold)
    mean, deviation = train.mean(axis=0), train.std(axis=0)
    varies = deviation > 0
    train, test = ((x[:, varies] - mean[varies]) / deviation[varies] for x in (train, test))
    order = np.lexsort((~fold.y["event"], fold.y["time"]))
    train, time, event = train[order], fold.y["time"][order], fold.y["event"][order]
    n = len(time)
    part = np.random.default_rng(0).permutation(n) % 5
    whole = make_rows(time, event, np.ones(n), None)
    scores = {}
    for multiple in (1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001):
        scores[multiple] = 0.0
        for k in range(5):
            kept = part != k
            rows = make_rows(time[kept], event[kept], np.ones(kept.sum()), None)
            found = maximise(rows, train[kept], multiple * kept.sum(), np.zeros(train.shape[1]))
            predicted = train @ found
            scores[multiple] += evaluate(whole, predicted).log_likelihood
            scores[multiple] -= evaluate(rows, predicted[kept]).log_likelihood
    best = max(scores, key=scores.__getitem__)
    found = maximise(whole, train, best * n, np.zeros(train.shape[1]))
    hazard = np.cumsum(baseline_hazard(whole, train @ found))
    times, last = np.unique(time[event][::-1], return_index=True)
    hazard = hazard[len(hazard) - 1 - last]
    risk = np.exp(test @ found)
    return Prediction(as_curves(np.exp(-np.outer(risk, hazard)), times), -risk)


METHODS: dict[str, Callable[..., Prediction]] = {
    BASELINE: lambda fold, trees: fit_forest(fold, trees, working_model=None),
    "default": lambda fold, trees: fit_forest(fold, trees, working_model="cox"),
    "cox": fit_cox,
    "rsf": fit_survival_forest,
}


def measure(name: str, methods: list[str], trees: int, seed: int) -> dict[str, np.ndarray]:
    """Integrated Brier score and concordance of each method, means over folds."""
    X, y = load_table(name)
    found: dict[str, list[tuple[float, float]]] = {method: [] for method in methods}
    splitter = StratifiedKFold(FOLDS, shuffle=True, random_state=seed)
    for train, test in splitter.split(X, y["event"]):
        fold = Fold(X.iloc[train], y[train], X.iloc[test], y[test])
        for method in methods:
            curves, score = METHODS[method](fold, trees)
            ibs = integrated_brier_score(fold.y, fold.y_test, curves)
            found[method].append((ibs, concordance_index(fold.y_test, score)))
    return {method: np.mean(values, axis=0) for method, values in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--data", nargs="+", default=TABLES, metavar="TABLE", choices=[*TABLES, WIDE]
    )
    parser.add_argument("--skip", nargs="+", default=[], choices=list(METHODS)[1:])
    parser.add_argument("--trees", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0, help="seed of the folds")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    methods = [method for method in METHODS if method not in options.skip]
    print(f"{'table':16s}" + "".join(f"{method:>20s}" for method in methods), flush=True)
    ratios, differences = [], []
    for name in options.data:
        scores = measure(name, methods, options.trees, options.seed)
        ratios.append([scores[m][0] / scores[BASELINE][0] for m in methods])
        differences.append([scores[m][1] - scores[BASELINE][1] for m in methods])
        cells = "".join(f"{r:12.3f} {d:+7.3f}" for r, d in zip(ratios[-1], differences[-1]))
        print(f"{name:16s}{cells}", flush=True)
    table = np.array(ratios)
    print(f"{'geometric mean':16s}" + "".join(f"{m:20.4f}" for m in np.exp(np.log(table).mean(0))))
    print(f"{'worst':16s}" + "".join(f"{m:20.3f}" for m in table.max(axis=0)))
    print(f"{'better':16s}" + "".join(f"{m:20d}" for m in (table < 1).sum(axis=0)))
    print(f"{'concordance':16s}" + "".join(f"{m:+20.4f}" for m in np.mean(differences, axis=0)))


if __name__ == "__main__":
    main()
