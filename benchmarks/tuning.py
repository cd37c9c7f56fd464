"""Time and accuracy of tuning compared with the defaults.

Out-of-bag skill of the defaults and after ``cqrf.tune``, and the loss on new rows: quantile loss
against latent times where they are known, IPCW quantile loss on a held-out quarter of PBC,
at the levels of the scores.

Run: python benchmarks/tuning.py [--repeats 5]
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from cqrf import CensoredQuantileForest, tune
from cqrf.datasets import load_boston_housing, load_pbc, make_aft, make_heteroscedastic
from cqrf.metrics import censored_quantile_loss, quantile_loss


def split(table, seed):
    """Three quarters as training rows, the rest as test rows."""
    shuffled = np.random.default_rng(seed).permutation(len(table.y))
    n_test = len(shuffled) // 4
    train, test = shuffled[n_test:], shuffled[:n_test]
    latent = None if table.latent is None else table.latent[test]
    return table.X[train], table.y[train], table.X[test], table.y[test], latent


def draw(make, seed):
    train, test = make(random_state=seed), make(random_state=1000 + seed)
    return train.X, train.y, test.X, test.y, test.latent


DATA = {
    "PBC": lambda seed: split(load_pbc(), seed),
    "AFT": lambda seed: draw(make_aft, seed),
    "heteroscedastic": lambda seed: draw(make_heteroscedastic, seed),
    "Boston housing": lambda seed: split(
        load_boston_housing(censored=True, random_state=seed), seed
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args().repeats
    print("| data | fit, s | tune, s | skill | tuned | loss on new rows, tuned over default |")
    print("|---|---|---|---|---|---|")
    X, y, *_ = draw(make_aft, 0)
    tune(CensoredQuantileForest(n_estimators=30), X[:100], y[:100])  # compile, or read the cache
    for name, generate in DATA.items():
        rows = []
        for seed in range(repeats):
            X, y, X_test, y_test, latent = generate(seed)
            began = time.perf_counter()
            default = CensoredQuantileForest(random_state=seed, n_jobs=2).fit(X, y)
            fitted = time.perf_counter()
            found = tune(
                CensoredQuantileForest(random_state=seed, n_jobs=2), X, y, random_state=seed
            )
            tuned = time.perf_counter()
            losses, levels = [], np.array(default.model_.score_levels)
            for forest in (found.forest, default):
                q = forest.predict(X_test, levels, unidentified="clip")
                if latent is None:
                    losses.append(censored_quantile_loss(y, y_test, q, levels).mean())
                else:
                    losses.append(quantile_loss(latent[:, np.newaxis], q, levels).mean())
            last = [row["skill"] for row in found.trials if row["trial"] == 0][-1]
            skills = last, found.forest.score_oob()
            rows.append([fitted - began, tuned - fitted, *skills, losses[0] / losses[1]])
        fit, search, skill, better, ratio = np.mean(rows, axis=0)
        cells = f"{fit:.2f} | {search:.1f} | {skill:.3f} | {better:.3f} | {ratio:.3f}"
        print(f"| {name} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
