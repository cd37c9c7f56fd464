"""Competing risks: accuracy and fit time, compared with other packages, in one run.

Accuracy: five-fold cross-validation, repeated with three seeds, with the same folds for all
methods. For each cause the integrated Brier score of its incidence over the 10th to the 90th
percentile of the test times, with Kaplan-Meier weights, and Wolbers' concordance of the time lost
to it over these times. In the simulation also the root mean squared error of the incidence itself,
over test rows and times. A ratio is the Brier score over that of comprisk with its defaults, the
mean over folds of one over the mean of the other; its standard error is that of the mean
difference over folds and seeds, as if folds were independent.

Forests have 500 trees and two threads. comprisk runs with its own defaults and, in a second line,
with our leaves: at least five rows, no limit of depth, all thresholds and 50 times in its splits.
For other packages missing values are imputed with medians and categories are one-hot encoded; our
forests take the tables as they are. SurvivalBoost, of hazardous, has its defaults. Aalen-Johansen
is the curve of all training rows, the same for every row.

Fit time: the simulation with 10 000 rows and 10 features, after a first fit that compiles; the
fastest of three, in seconds of the clock and of both cores together (CPU seconds), which other work
on the machine disturbs less.

Run: python -m benchmarks.competing_risks [--data mgus2 ...] [--skip SurvivalBoost] [--seeds 3]
(with pip install '.[bench]' and pip install --no-deps comprisk hazardous)
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
from benchmarks.survset import encode as encode_fold
from sklearn.model_selection import StratifiedKFold

from cqrf import CensoredQuantileForest, censored
from cqrf.datasets import load_mgus2, load_pbc, make_competing_risks
from cqrf.metrics import concordance_index, integrated_brier_score_incidence

FOLDS = 5
N_TIMES = 50
SIMULATED_ROWS, SPEED_ROWS = 1000, 10_000
LEAF_SIZE = 5  # the default of our forests
THREADS = 2
PEER = "comprisk"


class Fold(NamedTuple):
    """Training and test rows; causes are numbered from 1, and 0 is censored."""

    X: pd.DataFrame
    y: np.ndarray
    X_test: pd.DataFrame
    y_test: np.ndarray


class Table(NamedTuple):
    """A table, and the true incidence of its causes if it is known."""

    X: pd.DataFrame
    y: np.ndarray
    incidence: Callable[..., np.ndarray] | None = None


def number(y: np.ndarray) -> np.ndarray:
    """The target with causes as whole numbers from 1 on, in ascending order of their names."""
    names = [name for name in np.unique(y["cause"]) if name not in ("", 0)]
    code = sum((k * (y["cause"] == name) for k, name in enumerate(names, start=1)), np.zeros(1))
    return censored(y["time"], code.astype(int), censored=0)


def load_follic() -> Table:
    from SurvSet.data import SurvLoader

    frame = SurvLoader().load_dataset("follic")["df"]
    X = frame.drop(columns=["pid", "time", "event"])
    for column in X:
        X[column] = X[column].astype("category" if column.startswith("fac_") else float)
    return Table(X, censored(frame["time"].to_numpy(float), frame["event"].to_numpy(int)))


def load_frame(table: Any) -> Table:
    """One of our tables, with texts as categories."""
    X = table.X.apply(lambda c: c if c.dtype.kind in "fi" else c.astype("category"))
    return Table(X, number(table.y))


def simulate(n: int, seed: int) -> Table:
    simulation = make_competing_risks(n, random_state=seed)
    X = pd.DataFrame(simulation.X, columns=[f"x{i}" for i in range(1, 11)])
    return Table(X, simulation.y, simulation.incidence)


TABLES: dict[str, Callable[[], Table]] = {
    "mgus2": lambda: load_frame(load_mgus2(as_frame=True)),
    "follic": load_follic,
    "pbc": lambda: load_frame(load_pbc(as_frame=True, causes=True)),
    "simulation": lambda: simulate(SIMULATED_ROWS, 0),
}

# A method fits the training rows of a fold, and returns its incidences at times:
# (n_test, n_causes, n_times).
Predict = Callable[[np.ndarray], np.ndarray]


def fit_own(fold: Fold, trees: int, seed: int, **settings: Any) -> Predict:
    settings = {"n_estimators": trees, "random_state": seed, "n_jobs": THREADS} | settings
    forest = CensoredQuantileForest(min_samples_leaf=LEAF_SIZE, **settings).fit(fold.X, fold.y)
    return lambda times: forest.predict_incidence(fold.X_test, times, beyond="extend")


def fit_comprisk(fold: Fold, trees: int, seed: int, **settings: Any) -> Predict:
    from comprisk import CompetingRiskForest

    train, test = encode_fold(fold)
    forest = CompetingRiskForest(trees, random_state=seed, n_jobs=THREADS, **settings)
    forest.fit(train, fold.y["time"], fold.y["cause"].astype(np.int32))
    return lambda times: forest.predict_cif(test, times)


def fit_boosting(fold: Fold, trees: int, seed: int) -> Predict:
    from hazardous import SurvivalBoost

    train, test = encode_fold(fold)
    y = pd.DataFrame({"event": fold.y["cause"], "duration": fold.y["time"]})
    model = SurvivalBoost(random_state=seed, show_progressbar=False).fit(train, y)
    return lambda times: model.predict_cumulative_incidence(test, times)[:, 1:]


def fit_aalen_johansen(fold: Fold, trees: int, seed: int) -> Predict:
    from sksurv.nonparametric import cumulative_incidence_competing_risks

    steps, curves = cumulative_incidence_competing_risks(fold.y["cause"], fold.y["time"])

    def predict(times: np.ndarray) -> np.ndarray:
        before = np.searchsorted(steps, times, side="right")
        values = np.column_stack([np.zeros(len(curves)), curves])[1:, before]
        return np.tile(values, (len(fold.X_test), 1, 1))

    return predict


OUR_LEAVES = {
    "max_depth": None,
    "min_samples_leaf": LEAF_SIZE,
    "min_samples_split": 2 * LEAF_SIZE,
    "nsplit": 0,  # all thresholds
    "split_ntime": 50,  # as its documentation says for small tables
}
METHODS: dict[str, Callable[..., Predict]] = {
    "cqrf": fit_own,
    "cqrf, logrank": partial(fit_own, criterion="logrank"),
    PEER: fit_comprisk,
    "comprisk, our leaves": partial(fit_comprisk, **OUR_LEAVES),
    "SurvivalBoost": fit_boosting,
    "Aalen-Johansen": fit_aalen_johansen,
}


class Scores(NamedTuple):
    """Scores of a method on a fold, each with one entry per cause."""

    brier: list[float]
    concordance: list[float]
    error: list[float]


def score(fold: Fold, incidence: Callable[..., np.ndarray] | None, predict: Predict) -> Scores:
    times = np.linspace(*np.quantile(fold.y_test["time"], [0.1, 0.9]), N_TIMES)
    predicted = np.clip(predict(times), 0.0, 1.0)
    scores = Scores([], [], [])
    for place in range(predicted.shape[1]):
        cause, values = place + 1, predicted[:, place]
        scores.brier.append(
            integrated_brier_score_incidence(fold.y, fold.y_test, values, times, cause=cause)
        )
        lost = np.trapezoid(values, times, axis=1)
        scores.concordance.append(concordance_index(fold.y_test, -lost, cause=cause))
        true = np.nan if incidence is None else incidence(fold.X_test, times, cause=cause)
        scores.error.append(float(np.sqrt(np.mean((values - true) ** 2))))
    return scores


def cross_validate(
    table: Table, methods: list[str], trees: int, n_seeds: int
) -> dict[str, np.ndarray]:
    """Scores of each method, of shape (n_folds, 3, n_causes)."""
    found: dict[str, list[Scores]] = {method: [] for method in methods}
    for seed in range(n_seeds):
        folds = StratifiedKFold(FOLDS, shuffle=True, random_state=seed)
        for train, test in folds.split(table.X, table.y["cause"]):
            X, X_test = (table.X.iloc[rows].reset_index(drop=True) for rows in (train, test))
            fold = Fold(X, table.y[train], X_test, table.y[test])
            for method in methods:
                predict = METHODS[method](fold, trees, seed)
                found[method].append(score(fold, table.incidence, predict))
    return {method: np.array(scores) for method, scores in found.items()}


def print_accuracy(name: str, found: dict[str, np.ndarray]) -> None:
    for method, scores in found.items():
        for place in range(scores.shape[2]):
            brier, concordance, error = scores.mean(axis=0)[:, place]
            cells = [name, str(place + 1), method, f"{brier:.4f}"]
            if PEER in found:
                peer = found[PEER][:, 0, place]
                spread = (scores[:, 0, place] - peer).std(ddof=1) / np.sqrt(len(peer))
                cells.append(f"{brier / peer.mean():.3f} ± {spread / peer.mean():.3f}")
            else:
                cells.append("")
            cells += [f"{concordance:.3f}", "" if np.isnan(error) else f"{error:.4f}"]
            print("| " + " | ".join(cells) + " |", flush=True)


def measure_speed(methods: list[str], trees: int, rounds: int) -> None:
    """Fit times, fastest of some rounds, after a small fit that compiles."""
    print(f"\n| fit of {SPEED_ROWS} rows | seconds | over cqrf's | CPU seconds | over cqrf's |")
    print("|---|---|---|---|---|")
    small, large = (
        Fold(table.X, table.y, table.X[:10], table.y[:10])
        for table in (simulate(300, 1), simulate(SPEED_ROWS, 1))
    )
    own = np.full(2, np.nan)
    for method in methods:
        METHODS[method](small, 10, 0)
        seconds = []
        for _ in range(rounds):
            began = np.array([time.perf_counter(), time.process_time()])
            METHODS[method](large, trees, 0)
            seconds.append([time.perf_counter(), time.process_time()] - began)
        best = np.min(seconds, axis=0)
        own = best if method == "cqrf" else own
        (wall, cpu), ratios = best, best / own
        print(
            f"| {method} | {wall:.2f} | {ratios[0]:.1f} | {cpu:.2f} | {ratios[1]:.1f} |", flush=True
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="*", default=list(TABLES), choices=list(TABLES))
    parser.add_argument("--skip", nargs="*", default=[], choices=list(METHODS))
    parser.add_argument("--trees", type=int, default=500)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=3, help="fits of which the fastest counts")
    parser.add_argument("--no-speed", action="store_true", help="leave the fit times out")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # of times beyond the horizon, and the peers' own
    methods = [method for method in METHODS if method not in options.skip]
    if options.data:
        print("| data | cause | method | IBS | IBS over comprisk's | C | error of F |")
        print("|---|---|---|---|---|---|---|")
    for name in options.data:
        found = cross_validate(TABLES[name](), methods, options.trees, options.seeds)
        print_accuracy(name, found)
    if not options.no_speed:
        measure_speed([m for m in methods if m != "Aalen-Johansen"], options.trees, options.rounds)


if __name__ == "__main__":
    main()
