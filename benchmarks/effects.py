"""Effects of treatment on simulated data whose effects are known.

accuracy
    Root mean squared error of the effect of 2 000 new rows on the restricted mean and on a survival
    probability, and the share of 95 % intervals that cover the true effect, for n = 2 000 rows and
    2 000 trees. With --seeds 0, the default, on the data of `benchmarks/data/grf_effects.npz`,
    beside causal_survival_forest of R's grf 2.6.1 (defaults, 2 000 trees, seeds 1 and 2) on the
    same rows; otherwise on so many fresh data sets.
averages
    Share of 95 % intervals that cover the average effect, over many seeds, and the mean error in
    standard errors; the same for averages of scores with the true nuisances on the same rows; and
    how often the rank-weighted average (AUTOC) rejects "no heterogeneity" at the level of 5 %,
    one-sided.
truths
    The averages with the true nuisances alone, which need no forest.
nearness
    Average effects on the rows of grf's own results, and those of grf: by how many standard errors
    each differs from the average with the true nuisances on the same rows.
quantiles
    Root mean squared error of the effect on quartiles: read off the curves of the arms, and off two
    forests, one for each arm.
times
    Seconds of a fit, and of effects on all three targets for 2 000 rows; in brackets processor
    seconds, of all threads together, which other programs disturb less.

Run: python -m benchmarks.effects accuracy|averages|truths|nearness|quantiles|times
     [--seeds 50] [--first 1000] [--kinds type1 ...]
"""

from __future__ import annotations

import argparse
import csv
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from benchmarks.effect_truths import average_with_truths

from cqrf import CensoredQuantileForest, censored
from cqrf.datasets import make_treatment
from cqrf.datasets.treatment import DESIGNS as GENERATORS
from cqrf.datasets.treatment import TreatmentSimulation
from cqrf.effects import CensoredTreatmentForest

N_ROWS, N_TEST = 2000, 2000
FIRST_SEED = 1000


class Design(NamedTuple):
    """Horizon and time of the targets, and whether times are cut at the horizon."""

    horizon: float
    time: float
    is_cut: bool = True


DESIGNS = {
    "simple1": Design(1.0, 0.6),
    "type1": Design(1.5, 0.8),
    "type2": Design(2.0, 1.2),
    "type3": Design(15.0, 10.0),
    "type4": Design(3.0, 2.0),
    "type5": Design(2.0, 0.17),
    "confounded": Design(3.0, 1.5, is_cut=False),
    "spread": Design(5.0, 2.5, is_cut=False),
    "null": Design(3.0, 1.5, is_cut=False),
}
STORED = Path(__file__).parent / "data" / "grf_effects.npz"
STORED_AVERAGES = Path(__file__).parent / "data" / "grf_averages.csv"


class Trial(NamedTuple):
    """Training rows, new rows, their true effects (n, 2), and grf's estimates of these."""

    X: np.ndarray
    y: np.ndarray
    treatment: np.ndarray
    X_new: np.ndarray
    truth: np.ndarray
    grf: np.ndarray


def simulate(kind: str, seed: int, n: int = N_ROWS) -> TreatmentSimulation:
    """Training data of a design."""
    design = DESIGNS[kind]
    horizon = design.horizon if design.is_cut else None
    return make_treatment(kind, n, horizon=horizon, random_state=seed)


def error(estimate: np.ndarray, truth: np.ndarray) -> float:
    """Root mean squared error, over what is finite; NaN if nothing is."""
    known = np.isfinite(estimate)
    if not known.any():
        return np.nan
    return float(np.sqrt(np.mean((estimate[known] - truth[known]) ** 2)))


def targets_of(design: Design) -> list[dict[str, Any]]:
    """Arguments of the two targets."""
    return [
        {"target": "rmst", "horizon": design.horizon},
        {"target": "survival", "times": design.time},
    ]


def list_trials(kind: str, n_seeds: int) -> Iterator[Trial]:
    """The stored trials of a design, or fresh ones."""
    if n_seeds == 0:
        stored = np.load(STORED)
        for seed in (1, 2):
            X, y, X_new, effects = (
                stored[f"{kind}_{seed}_{name}"] for name in ("X", "y", "Xt", "t")
            )
            pair = censored(y[:, 0], y[:, 1] == 1)
            yield Trial(X, pair, y[:, 2], X_new, effects[:, :2], effects[:, 2:])
    for seed in range(FIRST_SEED, FIRST_SEED + n_seeds):
        data, new = simulate(kind, seed), simulate(kind, seed + 500_000, N_TEST)
        truth = [data.true_effect(new.X, **target) for target in targets_of(DESIGNS[kind])]
        unknown = np.full((N_TEST, 2), np.nan)
        yield Trial(data.X, data.y, data.treatment, new.X, np.column_stack(truth), unknown)


def print_accuracy(kinds: list[str], n_seeds: int) -> None:
    """Errors and coverage of effects of single rows."""
    print("               restricted mean               survival")
    print("            ours     grf   covers     ours     grf   covers")
    ratios, all_covers = [], []
    for kind in kinds:
        rows = []
        for trial in list_trials(kind, n_seeds):
            forest = CensoredTreatmentForest(random_state=0, n_jobs=-1)
            forest.fit(trial.X, trial.y, treatment=trial.treatment)
            row = []
            for k, target in enumerate(targets_of(DESIGNS[kind])):
                truth = trial.truth[:, k]
                low, high = forest.effect_interval(trial.X_new, **target).T
                row += [
                    error(forest.effect(trial.X_new, **target), truth),
                    error(trial.grf[:, k], truth),
                    ((low <= truth) & (truth <= high)).mean(),
                ]
            rows.append(row)
        mean = np.mean(rows, axis=0)
        ratios.append((mean[0] / mean[1], mean[3] / mean[4]))
        all_covers.append((mean[2], mean[5]))
        print(
            f"{kind:<10} {mean[0]:6.4f}  {mean[1]:6.4f}   {mean[2]:5.3f}   {mean[3]:6.4f}  "
            f"{mean[4]:6.4f}   {mean[5]:5.3f}",
            flush=True,
        )
    print("geometric mean of ours / grf:", np.exp(np.mean(np.log(ratios), axis=0)).round(3))
    print("mean coverage:", np.mean(all_covers, axis=0).round(3))


def scale_error(average: Any, truth: float) -> float:
    """Error of an average in standard errors."""
    return float((average.estimate - truth) / average.standard_error)


def true_averages(kind: str) -> list[float]:
    """Average effects in the population of a design."""
    population = make_treatment(kind, 100_000, random_state=0)
    targets = targets_of(DESIGNS[kind])
    return [float(population.true_effect(population.X, **target).mean()) for target in targets]


def averages_with_truths(kind: str, data: TreatmentSimulation) -> list[Any]:
    """Averages of both targets from the true nuisances."""
    design = DESIGNS[kind]
    cut_at = design.horizon if design.is_cut else None
    return [average_with_truths(data, cut_at, target) for target in targets_of(design)]


def describe(scaled: list[list[float]]) -> str:
    """Coverage of 95 % intervals and mean of scaled errors, for both targets."""
    cover = (np.abs(scaled) <= 1.96).mean(axis=0)  # NaN does not cover
    bias = np.nanmean(scaled, axis=0)
    return f"{cover[0]:5.3f} {bias[0]:5.2f}  {cover[1]:5.3f} {bias[1]:5.2f}"


def print_averages(kinds: list[str], seeds: range) -> None:
    """Coverage of average effects, and rejections by the rank-weighted average."""
    print("            mean: covers, error; survival    with true nuisances          AUTOC rejects")
    for kind in kinds:
        targets, truths = targets_of(DESIGNS[kind]), true_averages(kind)
        ours: list[list[float]] = []
        best: list[list[float]] = []
        rejects, unknown = [], 0
        for seed in seeds:
            data = simulate(kind, seed)
            forest = CensoredTreatmentForest(n_estimators=500, random_state=seed, n_jobs=-1)
            forest.fit(data.X, data.y, treatment=data.treatment)
            found = [forest.ate(**target) for target in targets]
            unknown += sum(np.isnan(average.estimate) for average in found)
            ours.append([scale_error(a, t) for a, t in zip(found, truths)])
            best.append(
                [scale_error(a, t) for a, t in zip(averages_with_truths(kind, data), truths)]
            )
            rate = forest.rate(**targets[0])
            rejects.append(rate.estimate > 1.645 * rate.standard_error)
        print(
            f"{kind:<10}  {describe(ours)}     {describe(best)}     {np.mean(rejects):5.2f}"
            f"   NaN: {unknown}",
            flush=True,
        )


def print_truths(kinds: list[str], seeds: range) -> None:
    """Coverage of averages with the true nuisances."""
    print("            mean: covers, error; survival")
    for kind in kinds:
        truths, scaled = true_averages(kind), []
        for seed in seeds:
            found = averages_with_truths(kind, simulate(kind, seed))
            scaled.append([scale_error(a, t) for a, t in zip(found, truths)])
        print(f"{kind:<10}  {describe(scaled)}", flush=True)


def read_grf_averages() -> dict[tuple[str, int, str], float]:
    """Average effects of grf by design, seed and target."""
    with STORED_AVERAGES.open(encoding="utf-8") as file:
        return {
            (row["kind"], int(row["seed"]), row["target"]): float(row["estimate"])
            for row in csv.DictReader(file)
        }


def print_nearness(kinds: list[str]) -> None:
    """Distances of averages from those with the true nuisances."""
    print(
        "                          ours     grf   true nuisances   ours - true  grf - true (in se)"
    )
    of_grf, distances = read_grf_averages(), []
    for kind in kinds:
        for seed, trial in enumerate(list_trials(kind, 0), start=1):
            arm = trial.treatment.astype(np.int64)
            propensity = GENERATORS[kind].propensity(trial.X)
            data = TreatmentSimulation(trial.X, trial.y, arm, propensity, kind)
            forest = CensoredTreatmentForest(random_state=0, n_jobs=-1)
            forest.fit(trial.X, trial.y, treatment=arm)
            best = averages_with_truths(kind, data)
            for average, target in zip(best, targets_of(DESIGNS[kind])):
                ours, grf = forest.ate(**target), of_grf[kind, seed, target["target"]]
                both = np.array([ours.estimate, grf])
                distance = (both - average.estimate) / ours.standard_error
                distances.append(distance)
                print(
                    f"{kind:<10} {seed} {target['target']:<9} {both[0]:7.4f} {both[1]:7.4f}   "
                    f"{average.estimate:7.4f}          {distance[0]:6.2f}       {distance[1]:6.2f}",
                    flush=True,
                )
    print("root mean square:", np.sqrt(np.mean(np.square(distances), axis=0)).round(2))


def print_quantiles(kinds: list[str], n_seeds: int) -> None:
    """Errors of effects on quartiles."""
    levels = [0.25, 0.5, 0.75]
    print("            ours (.25 .5 .75)          a forest for each arm")
    for kind in kinds:
        rows = []
        for seed in range(FIRST_SEED, FIRST_SEED + n_seeds):
            data = make_treatment(kind, N_ROWS, random_state=seed)
            new = make_treatment(kind, N_TEST, random_state=seed + 500_000)
            truth = data.true_effect(new.X, target="quantile", quantiles=levels)
            forest = CensoredTreatmentForest(random_state=seed, n_jobs=-1)
            forest.fit(data.X, data.y, treatment=data.treatment)
            ours = forest.effect(new.X, "quantile", quantiles=levels)
            arms = []
            for arm in (0, 1):
                own = data.treatment == arm
                single = CensoredQuantileForest(random_state=seed, n_jobs=-1)
                single.fit(data.X[own], data.y[own])
                arms.append(single.predict(new.X, levels))
            apart = arms[1] - arms[0]
            rows.append([error(e[:, k], truth[:, k]) for e in (ours, apart) for k in range(3)])
        mean = np.mean(rows, axis=0)
        print(f"{kind:<10}  {mean[:3].round(3)}   {mean[3:].round(3)}", flush=True)


def print_times(kinds: list[str]) -> None:
    """Seconds on two processors, after compilation, and processor seconds of all threads."""
    for round_ in range(2):
        for kind in kinds:
            data, new = simulate(kind, FIRST_SEED), simulate(kind, 1, N_TEST)
            design = DESIGNS[kind]
            marks = [read_clocks()]
            forest = CensoredTreatmentForest(random_state=0, n_jobs=-1)
            forest.fit(data.X, data.y, treatment=data.treatment)
            marks.append(read_clocks())
            forest.effect(new.X, "rmst", horizon=design.horizon)
            marks.append(read_clocks())
            forest.effect(new.X, "survival", times=[design.time])
            forest.effect(new.X, "quantile", quantiles=[0.25, 0.5, 0.75])
            marks.append(read_clocks())
            if round_ == 1:
                parts = ("fit", "one target", "the other two")
                spent = zip(parts, np.diff(marks, axis=0), strict=True)
                texts = [f"{part} {wall:.2f} ({cpu:.2f})" for part, (wall, cpu) in spent]
                print(f"{kind:<10} " + "  ".join(texts), flush=True)


def read_clocks() -> tuple[float, float]:
    """Seconds of the clock and of the processors."""
    return time.perf_counter(), time.process_time()


def main() -> None:
    """Print one of the tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "table", choices=["accuracy", "averages", "truths", "nearness", "quantiles", "times"]
    )
    parser.add_argument("--seeds", type=int, default=0)
    parser.add_argument("--first", type=int, default=FIRST_SEED)
    parser.add_argument("--kinds", nargs="+", choices=list(DESIGNS))
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    with_effect = [kind for kind in DESIGNS if kind != "null"]
    if arguments.table == "accuracy":
        print_accuracy(arguments.kinds or with_effect, arguments.seeds)
    elif arguments.table == "averages":
        seeds = range(arguments.first, arguments.first + (arguments.seeds or 50))
        print_averages(arguments.kinds or list(DESIGNS), seeds)
    elif arguments.table == "truths":
        seeds = range(arguments.first, arguments.first + (arguments.seeds or 1000))
        print_truths(arguments.kinds or list(DESIGNS), seeds)
    elif arguments.table == "nearness":
        near = ["confounded", "spread", "simple1", "type1", "type2"]
        print_nearness(arguments.kinds or near)
    elif arguments.table == "quantiles":
        kinds = arguments.kinds or ["confounded", "spread", "type1", "type2"]
        print_quantiles(kinds, arguments.seeds or 3)
    else:
        print_times(arguments.kinds or ["type1", "spread"])


if __name__ == "__main__":
    main()
