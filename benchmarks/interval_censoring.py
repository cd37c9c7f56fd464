"""Forests of intervals beside the usual makeshifts, and what they cost.

- accuracy: mean absolute error to the true quantiles at .1 .25 .5 .75 .9 of 500 new rows, and its
  mean over repeats. Log-normal times, four of ten features matter; a subject is seen at
  5, 10 or 20 visits, uniform on (0, 12). All forests have the defaults and 200 trees: of intervals;
  of the midpoints of these; of their right ends; of the exact times, which no one knows. Quantiles
  that some forest cannot identify are left out for all. ``--working-model none``: all without one.
  ``--regular``: gaps between visits are Gamma(4) with mean 12 / visits, about equally long.
- labels: how many EM steps a node's curve is given before it labels rows. 0: the curve of the whole
  table; 50: all but the node's own maximum likelihood estimate. Error as above, without a working
  model, and processor seconds of the fits.
- cost: processor seconds of fit (10 000 rows, 20 features, 500 trees) and of predict (1000 rows,
  three levels), of intervals and of the same rows as right-censored at their right ends; best of
  rounds in turns, two threads.

Run: python -m benchmarks.interval_censoring [accuracy labels cost] [--rows 2000] [--repeats 5]
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from cqrf import CensoredQuantileForest, censored, interval
from cqrf._forest.criteria import interval_quantile

LEVELS = [0.1, 0.25, 0.5, 0.75, 0.9]
VISITS = (5, 10, 20)
STEPS = (0, 1, 5, 50)
HORIZON = 12.0
Floats = NDArray[np.float64]


class Sample(NamedTuple):
    """Features, latent times, ends of intervals, and true quantiles at a level."""

    X: Floats
    latent: Floats
    lower: Floats
    upper: Floats
    quantile: Callable[[float], Floats]


def simulate(
    n: int, n_visits: int, seed: int, n_features: int = 10, is_regular: bool = False
) -> Sample:
    """Times that are known to lie between two visits."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, n_features))
    location = -0.2 + X[:, 0] + 0.7 * (X[:, 1] > 0.5) + 0.8 * np.sin(3 * X[:, 2])
    scale = 0.25 + 0.35 * X[:, 3]
    latent = np.exp(location + scale * rng.normal(size=n))
    visits = np.sort(rng.uniform(0, HORIZON, (n, n_visits)), axis=1)
    if is_regular:
        visits = np.cumsum(rng.gamma(4, HORIZON / n_visits / 4, (n, n_visits)), axis=1)
    visits = np.column_stack([np.zeros(n), visits, np.full(n, np.inf)])
    behind = (visits < latent[:, np.newaxis]).sum(axis=1)
    rows = np.arange(n)
    return Sample(
        X,
        latent,
        visits[rows, behind - 1],
        visits[rows, behind],
        lambda tau: np.exp(location + scale * norm.ppf(tau)),
    )


def targets(sample: Sample) -> dict[str, NDArray[np.void]]:
    """What each forest is told of the times."""
    event = np.isfinite(sample.upper)
    middle = np.where(event, (sample.lower + sample.upper) / 2, sample.lower)
    right = np.where(event, sample.upper, sample.lower)
    return {
        "intervals": interval(sample.lower, sample.upper),
        "midpoints": censored(middle, event),
        "right ends": censored(right, event),
        "exact times": censored(sample.latent, np.ones(len(event), bool)),
    }


def compare_accuracy(n: int, n_repeats: int, working_model: str | None, is_regular: bool) -> None:
    """Print the error of every forest at each number of visits."""
    print(f"accuracy: {n} rows, {n_repeats} repeats, working_model={working_model}")
    for n_visits in VISITS:
        errors: dict[str, list[Floats]] = {}
        for repeat in range(n_repeats):
            sample = simulate(n, n_visits, 2 * repeat, is_regular=is_regular)
            test = simulate(500, n_visits, 2 * repeat + 1)
            truth = np.column_stack([test.quantile(tau) for tau in LEVELS])
            found = {}
            for name, y in targets(sample).items():
                forest = CensoredQuantileForest(
                    n_estimators=200, working_model=working_model, random_state=repeat
                ).fit(sample.X, y)
                found[name] = forest.predict(test.X, LEVELS, unidentified="nan")
            known = ~np.isnan(np.stack(list(found.values()))).any(axis=0)
            for name, values in found.items():
                off = np.where(known, np.abs(values - truth), np.nan)
                errors.setdefault(name, []).append(np.nanmean(off, axis=0))
        for name, each in errors.items():
            means = np.mean(each, axis=0)
            print(
                f"  {n_visits:2} visits  {name:12}  {means.mean():.3f}   at the levels "
                + " ".join(f"{mean:.3f}" for mean in means),
                flush=True,
            )


def compare_labels(n: int, n_repeats: int) -> None:
    """Print the error and the seconds of fits for several numbers of EM steps in a node."""
    default = interval_quantile.EM_STEPS
    print(f"labels: {n} rows, {n_repeats} repeats, EM steps in a node (default {default})")
    small = simulate(200, 5, 0)
    CensoredQuantileForest(n_estimators=2, working_model=None).fit(  # compiles
        small.X, interval(small.lower, small.upper)
    )
    for n_visits in VISITS:
        errors: dict[int, list[float]] = {}
        seconds: dict[int, float] = {}
        for repeat in range(n_repeats):
            sample = simulate(n, n_visits, 2 * repeat)
            test = simulate(500, n_visits, 2 * repeat + 1)
            truth = np.column_stack([test.quantile(tau) for tau in LEVELS])
            found = {}
            for n_steps in STEPS:
                interval_quantile.EM_STEPS = n_steps
                forest = CensoredQuantileForest(
                    n_estimators=200, working_model=None, random_state=repeat
                )
                began = time.process_time()
                forest.fit(sample.X, interval(sample.lower, sample.upper))
                seconds[n_steps] = seconds.get(n_steps, 0.0) + time.process_time() - began
                found[n_steps] = forest.predict(test.X, LEVELS, unidentified="nan")
            known = ~np.isnan(np.stack(list(found.values()))).any(axis=0)
            for n_steps, values in found.items():
                errors.setdefault(n_steps, []).append(float(np.abs(values - truth)[known].mean()))
        for n_steps, each in errors.items():
            mean, spread = np.mean(each), np.std(np.subtract(each, errors[default]), ddof=1)
            print(
                f"  {n_visits:2} visits  {n_steps:2} steps  {mean:.4f}   difference from the "
                f"default {mean - np.mean(errors[default]):+.4f} ± {spread / n_repeats**0.5:.4f}   "
                f"fit {seconds[n_steps] / n_repeats:.2f} s",
                flush=True,
            )
    interval_quantile.EM_STEPS = default


def compare_cost(n_rounds: int) -> None:
    """Print processor seconds of fit and predict."""
    sample = simulate(10_000, 10, 0, n_features=20)
    known = {name: y for name, y in targets(sample).items() if name in ("intervals", "right ends")}
    seconds: dict[str, list[tuple[float, float]]] = {name: [] for name in known}
    for measured in range(n_rounds + 1):
        for name, y in known.items():
            n_trees, n = (500, len(y)) if measured else (10, 300)  # the first round compiles
            forest = CensoredQuantileForest(n_estimators=n_trees, random_state=0, n_jobs=2)
            began = time.process_time()
            forest.fit(sample.X[:n], y[:n])
            fitted = time.process_time()
            forest.predict(sample.X[:1000], [0.1, 0.5, 0.9], unidentified="nan")
            if measured:
                seconds[name].append((fitted - began, time.process_time() - fitted))
    best = {name: np.min(each, axis=0) for name, each in seconds.items()}
    print("cost: processor seconds of fit and predict")
    for name, (fit, predict) in best.items():
        print(f"  {name:12}  fit {fit:.2f}  predict {predict:.2f}")
    ratio = best["intervals"] / best["right ends"]
    print(f"  ratio         fit {ratio[0]:.1f}   predict {ratio[1]:.1f}")


def main() -> None:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("parts", nargs="*", default=["accuracy", "cost"])
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--working-model", default="auto", choices=["auto", "none"])
    parser.add_argument("--regular", action="store_true")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    if "accuracy" in chosen.parts:
        working_model = None if chosen.working_model == "none" else chosen.working_model
        compare_accuracy(chosen.rows, chosen.repeats, working_model, chosen.regular)
    if "labels" in chosen.parts:
        compare_labels(chosen.rows, chosen.repeats)
    if "cost" in chosen.parts:
        compare_cost(n_rounds=3)


if __name__ == "__main__":
    main()
