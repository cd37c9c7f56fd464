"""Missing values: the forest compared with complete cases and with imputation.

PBC: a fit on all 418 patients and a fit on the 276 complete cases, both scored out of bag on those
276 by the skill of ``score_oob`` and by Harrell's concordance of the predicted quantiles, with the
standard error of the difference (paired bootstrap over patients). Informative missingness: rows
with one missing column live longer; error to the true quantiles, compared with pipelines that use
scikit-learn's SimpleImputer.

Run: python benchmarks/missing.py [--repeats 8] [--trees 500]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
from scipy.special import ndtri
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline

from cqrf import CensoredQuantileForest
from cqrf._input.target import read_target
from cqrf._model.skill import compute_skill
from cqrf.datasets import load_pbc
from cqrf.metrics import concordance_index

LEVELS = np.array([0.25, 0.5, 0.75])
BOOTSTRAPS = 200
STRATEGIES = (None, "mean", "median", "most_frequent")


def compare_on_pbc(repeats: int, trees: int) -> None:
    table = load_pbc()
    complete = ~np.isnan(table.X).any(axis=1)
    rows_of = {
        "complete rows": (table.X, complete),
        "all rows": (table.X, np.full(len(complete), True)),
        "all rows, medians": (
            SimpleImputer(strategy="median").fit_transform(table.X),
            np.full(len(complete), True),
        ),
    }
    scored = read_target(table.y[complete])
    predicted: dict[str, list[np.ndarray]] = {name: [] for name in rows_of}
    for seed in range(repeats):
        for name, (X, rows) in rows_of.items():
            forest = CensoredQuantileForest(n_estimators=trees, random_state=seed, n_jobs=2)
            forest.fit(X[rows], table.y[rows])
            quantiles = forest.predict_oob(LEVELS, unidentified="clip")
            predicted[name].append(quantiles[complete[rows]])
            if name == "complete rows":
                reference = forest.model_

    def skill(quantiles: np.ndarray, rows: np.ndarray) -> float:
        return compute_skill(reference, quantiles[rows], scored.take(rows), LEVELS)

    def concordance(column: Callable) -> Callable:
        return lambda quantiles, rows: concordance_index(scored.take(rows), column(quantiles)[rows])

    measures = {
        "skill": skill,
        "C of .25": concordance(lambda q: q[:, 0]),
        "C of .5": concordance(lambda q: q[:, 1]),
        "C of their mean": concordance(lambda q: q.mean(axis=1)),
    }
    all_rows = np.arange(len(scored.time))
    rng = np.random.default_rng(0)
    samples = [rng.choice(all_rows, len(all_rows)) for _ in range(BOOTSTRAPS)]
    print("| PBC, out of bag on the complete rows | " + " | ".join(measures) + " |")
    print("|---|" + "---|" * len(measures))
    for name in rows_of:
        cells = []
        for measure in measures.values():
            mean = np.mean([measure(q, all_rows) for q in predicted[name]])
            cell = f"{mean:.4f}"
            if name != "complete rows":
                q, base = (np.mean(predicted[n], axis=0) for n in (name, "complete rows"))
                differences = [measure(q, rows) - measure(base, rows) for rows in samples]
                cell += f" (± {np.std(differences):.4f})"
            cells.append(cell)
        print(f"| {name} | " + " | ".join(cells) + " |")


def compare_informative_missingness(repeats: int, trees: int, n: int = 1000) -> None:
    print(
        "\n| features, share missing, values | " + " | ".join(s or "own" for s in STRATEGIES) + " |"
    )
    print("|---|" + "---|" * len(STRATEGIES))
    for p in (5, 20):
        for share in (0.1, 0.3):
            for values in ("normal", "0 or 1"):
                errors = []
                for seed in range(repeats):
                    rng = np.random.default_rng(seed)
                    late = rng.uniform(size=(2, n)) < share
                    latent = np.exp(1.5 * late + 0.3 * rng.normal(size=late.shape))
                    X = rng.normal(size=(2, n, p))
                    if values == "0 or 1":
                        X = (X > 0).astype(float)
                    X[late, 0] = np.nan
                    censoring = rng.exponential(8.0, n)
                    y = np.minimum(latent[0], censoring), latent[0] <= censoring
                    truth = np.exp(1.5 * late[1][:, np.newaxis] + 0.3 * ndtri(LEVELS))
                    errors.append([])
                    for strategy in STRATEGIES:
                        forest = CensoredQuantileForest(
                            n_estimators=trees, random_state=seed, n_jobs=2
                        )
                        steps = [] if strategy is None else [SimpleImputer(strategy=strategy)]
                        model = make_pipeline(*steps, forest).fit(X[0], np.column_stack(y))
                        found = model.predict(X[1], quantiles=LEVELS, unidentified="clip")
                        errors[-1].append(np.abs(found - truth).mean())
                cells = " | ".join(f"{error:.3f}" for error in np.mean(errors, axis=0))
                print(f"| {p}, {share:.0%}, {values} | {cells} |", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=8)
    parser.add_argument("--trees", type=int, default=500)
    options = parser.parse_args()
    compare_on_pbc(options.repeats, options.trees)
    compare_informative_missingness(options.repeats, options.trees)
