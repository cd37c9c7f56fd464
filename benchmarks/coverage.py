"""Coverage of conformal lower bounds (nominal 90 %) under heavy dependent censoring.

T = exp(x1 + N(0, .3^2)), and C is exponential with mean b exp(a (x1 - 1)). With a < 0 long times
are censored most, with a > 0 short times. Prints the share of new latent times at or above the
bound, with its standard error over repeats, and the share at or above the forest's .1 quantile.

Run: python benchmarks/coverage.py [--repeats 10] [--rows 800]
"""

from __future__ import annotations

import argparse

import numpy as np

from cqrf import CensoredQuantileForest, censored
from cqrf.conformal import ConformalForest

SETTINGS = ((-1.5, 4.0), (-2.0, 3.0), (1.5, 2.0), (2.0, 1.5))


def draw(n: int, seed: int, a: float, b: float):
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 2, (n, 10))
    latent = np.exp(X[:, 0] + 0.3 * rng.normal(size=n))
    c = b * np.exp(a * (X[:, 0] - 1)) * rng.exponential(size=n)
    return X, censored(np.minimum(latent, c), latent <= c), latent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--rows", type=int, default=800)
    options = parser.parse_args()
    names = (
        "a, b",
        "censored",
        "coverage of the bound",
        "standard error",
        "coverage of the .1 quantile",
    )
    print(f"| {' | '.join(names)} |\n|---|---|---|---|---|")
    for a, b in SETTINGS:
        rows = []
        for seed in range(options.repeats):
            X, y, _ = draw(options.rows, seed, a, b)
            X_test, _, latent = draw(1000, 500 + seed, a, b)
            forest = CensoredQuantileForest(n_estimators=100, n_jobs=2, random_state=seed)
            bound = ConformalForest(forest, random_state=seed).fit(X, y).predict_lower(X_test)
            plain = forest.fit(X, y).predict(X_test, 0.1, unidentified="clip")
            shares = [(latent >= found).mean() for found in (bound, plain)]
            rows.append([1 - y["event"].mean(), *shares])
        share, held, alone = np.mean(rows, axis=0)
        error = np.std(rows, axis=0, ddof=1)[1] / np.sqrt(len(rows))
        print(
            f"| {a:g}, {b:g} | {share:.0%} | {held:.3f} | {error:.3f} | {alone:.3f} |", flush=True
        )


if __name__ == "__main__":
    main()
