"""Wide tables: integrated Brier score with honest direct trees and without, relative to no model.

From one feature per five rows on, ``honest="auto"`` grows direct trees that are not honest; with
``honest=True`` all trees are. Ratios to a forest without a working model, all of whose trees are
honest.

- tables: wide tables, few rows of another one, and tables with columns of random numbers added, so
  that most features are noise. Each time so many rows are drawn for training; of the others, at
  most MOST_TEST_ROWS are test rows. The mean of some draws.
- simulations: log T = location(x) + scale(x) N(0, 1), n rows and p features, uniform ones or, with
  "genes", correlated by eight factors; exponential censoring. The score is exact: the squared
  distance to the true survival curve, and what no curve can explain.

Run: python -m benchmarks.wide [tables simulations] [--repeats 5] [--trees 200]
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pandas as pd
from benchmarks.survset import load_table
from scipy.stats import norm

from cqrf import CensoredQuantileForest, censored
from cqrf.metrics import integrated_brier_score

SETTINGS = {
    "none": {"working_model": None},
    "honest": {"honest": True},
    "default": {},
}
# Name, training rows, columns of noise.
TABLES = [
    ("breast_cancer", 132, 0),
    ("nki70", 96, 0),
    ("wpbc", 132, 0),
    ("rhc", 150, 0),
    ("rhc", 240, 0),
    ("Aids2", 120, 40),
    ("dataDIVAT1", 150, 50),
    ("e1684", 120, 40),
    ("follic", 120, 40),
    ("grace", 150, 50),
    ("LeukSurv", 120, 40),
    ("Melanoma", 120, 40),
    ("Pbc3", 200, 60),
    ("rdata", 150, 50),
    ("retinopathy", 150, 50),
    ("uis", 120, 40),
]
MOST_TEST_ROWS = 1500
SIZES = [(100, 80), (200, 80), (200, 200)]

Floats = np.ndarray


class Effect(NamedTuple):
    """Location and scale of log T."""

    location: Callable[[Floats], Floats]
    scale: Callable[[Floats], Floats] = lambda X: np.full(len(X), 0.6)


def dense(X: Floats) -> Floats:
    """All features, with random coefficients."""
    coefficients = np.random.default_rng(7).normal(size=X.shape[1])
    return 0.8 * X @ (coefficients / np.sqrt(coefficients @ coefficients))


def sparse(X: Floats) -> Floats:
    """Three features."""
    return 0.6 * X[:, 0] - 0.5 * X[:, 1] + 0.4 * X[:, 2]


EFFECTS = {
    "no effect": Effect(lambda X: np.zeros(len(X))),
    "sparse": Effect(sparse),
    "dense": Effect(dense),
    "interaction": Effect(lambda X: 0.9 * X[:, 0] * X[:, 1] + 0.5 * (X[:, 2] > 0)),
    "steps": Effect(lambda X: 1.2 * (X[:, 0] > 0) + 0.8 * (X[:, 1] > 0.8)),
    "quadratic": Effect(lambda X: 0.8 * (X[:, 0] ** 2 - 1)),
    "heteroscedastic": Effect(
        lambda X: np.zeros(len(X)), lambda X: np.where(X[:, 0] > 0, 1.2, 0.4)
    ),
    "sparse, genes": Effect(sparse),
    "dense, genes": Effect(lambda X: dense(X) / np.sqrt(3)),
}


def draw_features(n: int, p: int, has_factors: bool, rng: np.random.Generator) -> Floats:
    """Features of variance 1."""
    if not has_factors:
        return rng.uniform(-np.sqrt(3), np.sqrt(3), (n, p))
    loadings = np.random.default_rng(5).normal(size=(8, p))
    loadings *= np.random.default_rng(6).random((8, p)) < 0.4
    X = rng.normal(size=(n, 8)) @ loadings / 1.5 + rng.normal(size=(n, p))
    return X / X.std(axis=0)


def fit(X: pd.DataFrame | Floats, y: Floats, name: str, trees: int) -> CensoredQuantileForest:
    """One of the forests."""
    settings = SETTINGS[name]
    return CensoredQuantileForest(n_estimators=trees, random_state=0, n_jobs=1, **settings).fit(
        X, y
    )


def draw_table(table: tuple[str, int, int], seed: int, trees: int) -> list[float]:
    """Scores of the forests on a random training sample of a table."""
    name, n, n_noise = table
    X, y = load_table(name)
    rng = np.random.default_rng([seed, n, n_noise])
    noise = pd.DataFrame(rng.normal(size=(len(y), n_noise))).add_prefix("noise")
    X = pd.concat([X.reset_index(drop=True), noise], axis=1)
    order = rng.permutation(len(y))
    train, test = order[:n], order[n : n + MOST_TEST_ROWS]
    return [
        integrated_brier_score(
            y[train],
            y[test],
            fit(X.iloc[train], y[train], name, trees).predict_survival(X.iloc[test]),
        )
        for name in SETTINGS
    ]


def draw_simulation(effect: str, n: int, p: int, seed: int, trees: int) -> list[float]:
    """Scores of the forests on simulated rows."""
    rng = np.random.default_rng([seed, n, p])
    X = draw_features(n + 1000, p, effect.endswith("genes"), rng)
    location, scale = (part(X) for part in EFFECTS[effect])
    latent = np.exp(location + scale * rng.normal(size=len(X)))[:n]
    limit = rng.exponential(3.0, n)
    y = censored(np.minimum(latent, limit), latent <= limit)
    times = np.linspace(*np.quantile(y["time"], [0.1, 0.9]), 30)
    z = (np.log(times) - location[n:, np.newaxis]) / scale[n:, np.newaxis]
    truth = norm.sf(z)
    unexplained = np.mean(truth * (1 - truth))
    scores = []
    for name in SETTINGS:
        found = fit(X[:n], y, name, trees).predict_survival(X[n:], times, beyond="extend")
        scores.append(np.mean((found - truth) ** 2) + unexplained)
    return scores


def show(cases: list[tuple[str, Callable[[int], list[float]]]], repeats: int) -> None:
    """Print the ratios of every case, and their geometric means."""
    ratios = []
    for label, draw in cases:
        none, honest, default = np.mean([draw(seed) for seed in range(repeats)], axis=0)
        ratios.append((honest / none, default / none))
        print(f"| {label} | {ratios[-1][0]:.3f} | {ratios[-1][1]:.3f} |", flush=True)
    mean = np.exp(np.log(ratios).mean(axis=0))
    print(f"| **geometric mean** | {mean[0]:.3f} | {mean[1]:.3f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", default=[], help="tables simulations")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--trees", type=int, default=200)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    parts = {
        "tables": [
            (
                f"{table[0]}, n {table[1]}" + (f", {table[2]} of noise" if table[2] else ""),
                lambda seed, table=table: draw_table(table, seed, options.trees),
            )
            for table in TABLES
        ],
        "simulations": [
            (
                f"{effect}, n {n}, p {p}",
                lambda seed, case=(effect, n, p): draw_simulation(*case, seed, options.trees),
            )
            for n, p in SIZES
            for effect in EFFECTS
        ],
    }
    for name in options.parts or list(parts):
        print(f"\n| {name} | honest=True | default |\n|---|---|---|", flush=True)
        show(parts[name], options.repeats)


if __name__ == "__main__":
    main()
