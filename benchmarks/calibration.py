"""Calibration out of bag compared with held-out rows, and how often tests of calibration reject.

Each of 60 forests is fitted to 400 uncensored rows and checked out of bag and on 400 new rows, with
the default working model and without one. Prints the mean distance and quantiles of the p-value.

Then levels U = F(T|x) of 200 rows are drawn, of a right model and of one whose times are too short,
and are censored in several ways. Prints how often our test and the D-calibration test (Haider et
al. 2020) reject at the level .05.

With --tables: the distance on the twenty real tables of survset.py, with the default working model
and without one. Three-fold cross-validation, the same folds for both, all folds pooled, 200 trees.

Run: python -m benchmarks.calibration [--tables]
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
import pandas as pd
from scipy.stats import chi2
from sklearn.model_selection import StratifiedKFold

from cqrf import CensoredQuantileForest
from cqrf._calibration.uniformity import transform
from cqrf._input.target import Target, read_target
from cqrf.calibration import assess_calibration, compare

MODELS = ("auto", None)
REPEATS, N = 60, 400
TESTS, N_TESTED, N_BINS = 2000, 200, 10
WRONG = 1.5  # power of 1 - U in the wrong model: its hazard is lower by this factor
CENSORINGS = {
    "none": lambda rng, n: np.full(n, 2.0),
    "at level .3": lambda rng, n: np.full(n, 0.3),
    "at levels .05 to .5": lambda rng, n: rng.uniform(0.05, 0.5, n),
    "half, at random": lambda rng, n: rng.uniform(size=n),
    "three quarters, at random": lambda rng, n: 1 - rng.uniform(size=n) ** (1 / 3),
}


def draw(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    X = rng.uniform(size=(N, 3))
    return X, np.exp(X[:, 0]) * rng.weibull(1.5, N)


def compare_rows() -> None:
    """Distance and p-value out of bag and on held-out rows."""
    print("| working_model | rows | distance | 5 % of p-values below | half below |")
    print("|---|---|---|---|---|")
    for model in MODELS:
        found = []
        for repeat in range(REPEATS):
            rng = np.random.default_rng(repeat)
            forest = CensoredQuantileForest(working_model=model, random_state=repeat, n_jobs=2)
            forest.fit(*draw(rng))
            found.append([assess_calibration(forest), assess_calibration(forest, *draw(rng))])
        for name, each in zip(["out of bag", "held out"], zip(*found, strict=True), strict=True):
            distance = np.mean([calibration.distance for calibration in each])
            low, middle = np.quantile([calibration.p_value for calibration in each], [0.05, 0.5])
            print(f"| {model} | {name} | {distance:.4f} | {low:.2f} | {middle:.2f} |", flush=True)


def test_d_calibration(target: Target) -> float:
    """p-value of D-calibration: a censored row is spread evenly over the bins that may be its."""
    edges, survival = np.linspace(0, 1, N_BINS + 1), 1 - target.time
    counts, _ = np.histogram(survival[target.event], edges)
    above = survival[~target.event, np.newaxis]
    counts = counts + (np.clip(above - edges[:-1], 0, 1 / N_BINS) / above).sum(axis=0)
    expected = len(survival) / N_BINS
    return float(chi2.sf(((counts - expected) ** 2 / expected).sum(), N_BINS - 1))


def compare_tests() -> None:
    """Share of rejections of both tests, for a right and for a wrong model."""
    print("| censoring | right: ours | right: D-calibration | wrong: ours | wrong: D-calibration |")
    print("|---|---|---|---|---|")
    options = {"from_left": False, "confidence": 0.95, "n_bins": N_BINS}
    for name, censor in CENSORINGS.items():
        rng, cells = np.random.default_rng(0), []
        for power in (1.0, WRONG):
            found = []
            for _ in range(TESTS):
                u, c = 1 - rng.uniform(size=N_TESTED) ** power, censor(rng, N_TESTED)
                target = Target(np.minimum(u, c), u <= c)
                ours = compare(target, np.ones(N_TESTED), **options).p_value
                found.append([ours < 0.05, test_d_calibration(target) < 0.05])
            cells += [f"{share:.3f}" for share in np.mean(found, axis=0)]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


def pool(X: pd.DataFrame, y: np.ndarray, model: str | None) -> float:
    """Distance of a table, from the levels of the test rows of all folds together."""
    levels = []
    for train, test in StratifiedKFold(3, shuffle=True, random_state=0).split(X, y["event"]):
        forest = CensoredQuantileForest(
            n_estimators=200, working_model=model, random_state=0, n_jobs=2
        )
        forest.fit(X.iloc[train].reset_index(drop=True), y[train])
        curves = forest.predict_survival(X.iloc[test].reset_index(drop=True))
        levels.append(transform(curves, read_target(y[test])))
    together = Target(*(np.concatenate([getattr(t, f) for t in levels]) for f in ("time", "event")))
    ones = np.ones(len(together.time))
    return compare(together, ones, from_left=False, confidence=0.95, n_bins=N_BINS).distance


def compare_tables() -> None:
    """Distance on real tables, with and without the working model."""
    from benchmarks.survset import TABLES, load_table

    warnings.simplefilter("ignore")
    print("| table | auto | None |\n|---|---|---|")
    rows = []
    for name in TABLES:
        X, y = load_table(name)
        rows.append([pool(X, y, model) for model in MODELS])
        print(f"| {name} | {rows[-1][0]:.4f} | {rows[-1][1]:.4f} |", flush=True)
    table = np.array(rows)
    print(f"| mean | {table[:, 0].mean():.4f} | {table[:, 1].mean():.4f} |")
    difference = table[:, 0] - table[:, 1]
    error = difference.std(ddof=1) / np.sqrt(len(rows))
    print(f"difference {difference.mean():+.4f}, standard error {error:.4f}; ", end="")
    print(f"smaller on {(difference < 0).sum()} of {len(rows)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", action="store_true")
    if parser.parse_args().tables:
        compare_tables()
        return
    compare_rows()
    compare_tests()


if __name__ == "__main__":
    main()
