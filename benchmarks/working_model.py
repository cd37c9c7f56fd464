"""What the working model changes: error, noise categories, intervals and time, with and without it.

- simulations: mean absolute error to the true quantiles at .1 .3 .5 .7 .9, divided by that without
  a working model; three repeats, 300 trees, 1000 test rows.
- r: the same on the data of ``cqrf/study/paper_r``, 1000 trees, as a share of the error of R's
  crf_generalized: with our default node size, of R's mean over its node sizes; and with each of
  R's node sizes, of R's error at that size.
- noise: GBSG2 with a random text column of so many levels; out-of-bag concordance, skill, and the
  share of that column in ``feature_importances_``; mean of three seeds.
- coverage: 90 % confidence intervals of survival probabilities and medians on the AFT model (800
  rows, 3 features, 600 trees, bag_size=4), and the standard error over the standard deviation.
- times: seconds of fit and predict (1000 rows, three levels), the median of rounds in turns;
  p = 20, two threads.

Run: python -m benchmarks.working_model [simulations r noise coverage times]
"""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import norm

from cqrf import CensoredQuantileForest, censored
from cqrf.datasets import make_aft, make_dependent_censoring, make_heteroscedastic, make_sine
from cqrf.datasets.generators import Simulation
from cqrf.metrics import concordance_index
from cqrf.study.references import FOLDER, NODE_SIZES, QUANTILE_OF, R_REPEATS, read_split

LEVELS = [0.1, 0.3, 0.5, 0.7, 0.9]
MODELS = {"without": None, "with": "cox"}


def make_interaction(n: int = 1000, random_state: int = 0) -> Simulation:
    """log T = 2 x1 x2 + x4 1(x3 > 0) + N(0, .4^2), ten covariates, exponential censoring."""
    rng = np.random.default_rng(random_state)
    X = rng.uniform(-1, 1, (n, 10))

    def location(X):
        return 2 * X[:, 0] * X[:, 1] + (X[:, 2] > 0) * X[:, 3]

    latent = np.exp(location(X) + 0.4 * rng.normal(size=n))
    limit = rng.exponential(5, n)
    y = censored(np.minimum(latent, limit), latent <= limit)
    return Simulation(
        X, y, latent, lambda X, tau: np.exp(location(X)[:, None] + 0.4 * norm.ppf(np.asarray(tau)))
    )


SIMULATIONS = {
    "AFT": make_aft,
    "heteroscedastic": make_heteroscedastic,
    "sine": make_sine,
    "dependent censoring": make_dependent_censoring,
    "interaction": make_interaction,
}


def simulations() -> None:
    """Print the ratio of the errors, and the share of the model's own curve."""
    print("| data | without | with | ratio | root share |\n|---|---|---|---|---|")
    for name, make in SIMULATIONS.items():
        errors, shares = {each: [] for each in MODELS}, []
        for repeat in range(3):
            train, test = make(random_state=repeat), make(random_state=1000 + repeat)
            X = test.X[:1000]
            for each, model in MODELS.items():
                forest = CensoredQuantileForest(
                    n_estimators=300, working_model=model, random_state=repeat, n_jobs=2
                ).fit(train.X, train.y)
                predicted = forest.predict(X, LEVELS, unidentified="clip")
                errors[each].append(np.abs(predicted - test.quantile(X, LEVELS)).mean())
            shares.append(forest.model_.working.root_share)
        without, with_model = (np.mean(errors[each]) for each in MODELS)
        ratio = with_model / without
        print(
            f"| {name} | {without:.3f} | {with_model:.3f} | {ratio:.2f} | {np.mean(shares):.2f} |",
            flush=True,
        )


def error_on_r_data(data: str, **settings: Any) -> float:
    """Mean absolute error to the true quantiles on the data that R was run on."""
    errors = []
    for repeat in R_REPEATS:
        split = read_split(data, repeat)
        forest = CensoredQuantileForest(
            n_estimators=1000, random_state=repeat, n_jobs=2, **settings
        ).fit(split.train.X, split.train.y)
        predicted = forest.predict(split.X_test, LEVELS, unidentified="clip")
        errors.append(np.abs(predicted - QUANTILE_OF[data](split.X_test, LEVELS)).mean())
    return float(np.mean(errors))


def r() -> None:
    """Print the error beside that of R's crf_generalized."""
    table = pd.read_csv(FOLDER.joinpath("results.csv"))
    table = table[table["method"] == "crf_generalized"]
    print("| data | node size | error of R | without | ratio | with | ratio |")
    print("|---|---|---|---|---|---|---|")
    for data, sizes in NODE_SIZES.items():
        of_data = table[table["data"] == data].groupby("node_size")["error_to_true_quantile"]
        of_size = of_data.mean()
        for size in (None, *sizes):
            of_r = of_size.mean() if size is None else of_size[size]
            # R does not split nodes of so many rows.
            settings = {} if size is None else {"min_samples_split": size + 1}
            cells = [f"{data} | {size or 'default'} | {of_r:.3f}"]
            for model in MODELS.values():
                error = error_on_r_data(data, working_model=model, **settings)
                cells.append(f"{error:.3f} | {error / of_r:.2f}")
            print(f"| {' | '.join(cells)} |", flush=True)


def noise() -> None:
    """Print what a column of random levels does."""
    from sksurv.datasets import load_gbsg2

    X, y = load_gbsg2()
    y = censored(y["time"], y["cens"])
    print("| model | levels | concordance | skill | importance |\n|---|---|---|---|---|")
    for each, model in MODELS.items():
        for n_levels in (0, 30, 100, 250):
            rows = []
            for seed in range(3):
                table = X.copy()
                if n_levels:
                    levels = np.random.default_rng(seed).integers(0, n_levels, len(X)).astype(str)
                    table["noise"] = pd.Series(levels, dtype="category")
                forest = CensoredQuantileForest(
                    working_model=model, random_state=seed, n_jobs=2
                ).fit(table, y)
                curves = forest.predict_survival_oob()
                mean = curves.restricted_mean(forest.model_.follow_up, beyond="extend")
                share = forest.feature_importances_[-1] if n_levels else 0.0
                rows.append((concordance_index(y, mean), forest.score_oob(), share))
            c, skill, share = np.mean(rows, axis=0)
            print(f"| {each} | {n_levels} | {c:.4f} | {skill:.4f} | {share:.3f} |", flush=True)


def coverage() -> None:
    """Print the coverage of confidence intervals, and how large standard errors are."""
    X = np.ones((3, 3))
    X[:, 0] = [0.7, 1.0, 1.3]
    times = np.exp(X[1, 0]) * np.array([0.8, 1.0, 1.3])
    truth = 1 - norm.cdf((np.log(times) - X[:, :1]) / 0.3)
    inside = (truth > 0.05) & (truth < 0.95)
    for each, model in MODELS.items():
        survival, medians, errors, estimates = [], [], [], []
        for seed in range(60):
            data = make_aft(800, 3, random_state=seed)
            forest = CensoredQuantileForest(
                n_estimators=600, bag_size=4, working_model=model, random_state=seed, n_jobs=2
            ).fit(data.X, data.y)
            ends = forest.survival_confidence_interval(X, times, 0.9)
            survival.append(((ends[..., 0] <= truth) & (truth <= ends[..., 1]))[inside])
            ends, median = forest.quantile_confidence_interval(X, 0.5, 0.9), data.quantile(X, 0.5)
            medians.append((ends[:, 0] <= median) & (median <= ends[:, 1]))
            errors.append(forest.survival_standard_error(X, times)[inside])
            estimates.append(forest.predict_survival(X, times)[inside])
        ratio = np.mean(errors, axis=0) / np.std(estimates, axis=0, ddof=1)
        print(
            f"{each}: survival {np.mean(survival):.3f}, median {np.mean(medians):.3f}, standard "
            f"error {np.mean(errors):.3f}, over the standard deviation {ratio.mean():.2f}",
            flush=True,
        )


def times() -> None:
    """Print seconds of fit and predict, the median of some rounds."""
    print("| n, trees | fit without | with | ratio | predict without | with | ratio |")
    print("|---|---|---|---|---|---|---|")
    for n, trees, rounds in ((1_000, 500, 25), (10_000, 500, 9), (100_000, 100, 5)):
        data, test = make_aft(n, random_state=0), make_aft(1000, random_state=1)
        seconds = {each: [] for each in MODELS}
        for _ in range(rounds):
            for each, model in MODELS.items():
                forest = CensoredQuantileForest(
                    n_estimators=trees, working_model=model, random_state=0, n_jobs=2
                )
                start = time.perf_counter()
                forest.fit(data.X, data.y)
                fitted = time.perf_counter()
                forest.predict(test.X[:2], LEVELS)  # what is made once per forest
                asked = time.perf_counter()
                forest.predict(test.X, [0.1, 0.5, 0.9])
                seconds[each].append((fitted - start, time.perf_counter() - asked))
        a, b = (np.median(seconds[each], axis=0) for each in MODELS)
        print(
            f"| {n}, {trees} | {a[0]:.3f} | {b[0]:.3f} | {b[0] / a[0]:.2f} | {a[1]:.4f} | "
            f"{b[1]:.4f} | {b[1] / a[1]:.2f} |",
            flush=True,
        )


PARTS = {f.__name__: f for f in (simulations, r, noise, coverage, times)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", default=[], help=" ".join(PARTS))
    chosen = parser.parse_args().parts or list(PARTS)
    warnings.simplefilter("ignore")
    for name in chosen:
        print(f"\n{name}", flush=True)
        PARTS[name]()


if __name__ == "__main__":
    main()
