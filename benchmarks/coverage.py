"""Coverage of conformal lower bounds (nominal 90 %), with the default working model and without.

T = exp(x1 + N(0, .3^2)), and C is exponential with mean b exp(a (x1 - 1)). With a < 0 long times
are censored most, with a > 0 short times. Prints the share of new latent times at or above the
bound, with its standard error over repeats, and the share at or above the forest's .1 quantile.

With --tables: coverage on the twenty real tables of survset.py. Two thirds of the rows fit the
forest and calibrate the bound; the other third is tested. Latent times are not known there: the
share of misses is the sum of the IPCW weights of events before their bound over the number of test
rows, with the Kaplan-Meier estimate of G of all rows. The standard error of the difference is over
tables, of their means over repeats.

Run: python -m benchmarks.coverage [--tables] [--repeats 10] [--rows 800]
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
from sklearn.model_selection import train_test_split

from cqrf import CensoredQuantileForest, censored
from cqrf.conformal import ConformalForest
from cqrf.metrics.ipcw import as_target, estimate_censoring_survival

SETTINGS = ((-1.5, 4.0), (-2.0, 3.0), (1.5, 2.0), (2.0, 1.5))
MODELS = ("auto", None)


def draw(n: int, seed: int, a: float, b: float):
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 2, (n, 10))
    latent = np.exp(X[:, 0] + 0.3 * rng.normal(size=n))
    c = b * np.exp(a * (X[:, 0] - 1)) * rng.exponential(size=n)
    return X, censored(np.minimum(latent, c), latent <= c), latent


def make_forest(model: str | None, seed: int) -> CensoredQuantileForest:
    return CensoredQuantileForest(
        n_estimators=100, working_model=model, n_jobs=2, random_state=seed
    )


def simulate(repeats: int, n: int) -> None:
    """Coverage of latent times under heavy dependent censoring."""
    names = (
        "a, b",
        "censored",
        "working_model",
        "coverage of the bound",
        "standard error",
        "coverage of the .1 quantile",
    )
    print(f"| {' | '.join(names)} |\n|---|---|---|---|---|---|")
    for a, b in SETTINGS:
        for model in MODELS:
            rows = []
            for seed in range(repeats):
                X, y, _ = draw(n, seed, a, b)
                X_test, _, latent = draw(1000, 500 + seed, a, b)
                forest = make_forest(model, seed)
                bound = ConformalForest(forest, random_state=seed).fit(X, y).predict_lower(X_test)
                plain = forest.fit(X, y).predict(X_test, 0.1, unidentified="clip")
                shares = [(latent >= found).mean() for found in (bound, plain)]
                rows.append([1 - y["event"].mean(), *shares])
            share, held, alone = np.mean(rows, axis=0)
            error = np.std(rows, axis=0, ddof=1)[1] / np.sqrt(len(rows))
            cells = f"{share:.0%} | {model} | {held:.3f} | {error:.3f} | {alone:.3f}"
            print(f"| {a:g}, {b:g} | {cells} |", flush=True)


def compare_tables(repeats: int) -> None:
    """Coverage on real tables, estimated with censoring weights."""
    from benchmarks.survset import TABLES, load_table

    warnings.simplefilter("ignore")
    print("| table | auto | None |\n|---|---|---|")
    means = []
    for name in TABLES:
        X, y = load_table(name)
        G = estimate_censoring_survival(as_target(y))
        weight = y["event"] / G(np.nextafter(y["time"], -np.inf), beyond="extend")
        rows = []
        for seed in range(repeats):
            train, test = train_test_split(
                np.arange(len(y)), test_size=1 / 3, stratify=y["event"], random_state=seed
            )
            X_train, X_test = (X.iloc[part].reset_index(drop=True) for part in (train, test))
            held = []
            for model in MODELS:
                bounds = ConformalForest(make_forest(model, seed), random_state=seed)
                bound = bounds.fit(X_train, y[train]).predict_lower(X_test)
                missed = np.where(y["time"][test] < bound, weight[test], 0.0)
                held.append(1 - missed.mean())
            rows.append(held)
        means.append(np.mean(rows, axis=0))
        print(f"| {name} | {means[-1][0]:.3f} | {means[-1][1]:.3f} |", flush=True)
    auto, plain = np.mean(means, axis=0)
    difference = np.subtract(*np.transpose(means))
    error = difference.std(ddof=1) / np.sqrt(len(means))
    print(f"| mean | {auto:.3f} | {plain:.3f} |")
    print(f"difference {difference.mean():+.4f}, standard error {error:.4f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", action="store_true")
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--rows", type=int, default=800)
    options = parser.parse_args()
    if options.tables:
        compare_tables(options.repeats)
    else:
        simulate(options.repeats, options.rows)


if __name__ == "__main__":
    main()
