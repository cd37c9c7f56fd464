"""Coverage of the bootstrap intervals of skill and concordance.

``python benchmarks/interval_coverage.py`` prints, for three sizes of the table, how often the 95 %
interval holds the value of the same forest on 20 000 new rows: for intervals from test rows, and
from the training rows out of bag.
"""

from __future__ import annotations

import argparse

import numpy as np

from cqrf import CensoredQuantileForest, solve_quantiles
from cqrf.datasets import make_aft
from cqrf.evaluation import evaluate
from cqrf.metrics import concordance_index, quantile_skill

N_TRUTH = 20_000
NAMES = ("skill", "concordance")


def draw(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of an accelerated failure time model, about 30 % of them censored."""
    table = make_aft(n, 5, censoring_rate=0.3, random_state=seed)
    return table.X, table.y


def find_truth(
    forest: CensoredQuantileForest, y_train: np.ndarray, X: np.ndarray, y: np.ndarray
) -> dict[str, float]:
    """Skill and concordance of a forest on many new rows."""
    levels = forest.model_.score_levels
    predicted = forest.predict(X, levels, unidentified="clip")
    mean = forest.predict_mean(X, beyond="extend")
    marginal = solve_quantiles(
        np.ones((1, len(y_train))), y_train["time"], y_train["event"], levels, unidentified="clip"
    )
    return {
        "skill": quantile_skill(y, y, predicted, levels, baseline=marginal[0]),
        "concordance": concordance_index(y, mean),
    }


def count_hits(n: int, n_runs: int, n_trees: int) -> dict[str, np.ndarray]:
    """Whether each interval of each run holds the truth: columns are NAMES."""
    large = draw(N_TRUTH, 10**6)
    hits: dict[str, list[list[bool]]] = {"test rows": [], "out of bag": []}
    for run in range(n_runs):
        X, y = draw(n, run)
        forest = CensoredQuantileForest(n_estimators=n_trees, random_state=run, n_jobs=-1)
        forest.fit(X, y)
        truth = find_truth(forest, y, *large)
        found = {
            "test rows": evaluate(forest, *draw(n, n_runs + run), confidence=0.95),
            "out of bag": evaluate(forest, confidence=0.95),
        }
        for kind, values in found.items():
            hits[kind].append(
                [values[f"{k}_lower"] <= truth[k] <= values[f"{k}_upper"] for k in NAMES]
            )
    return {kind: np.array(values) for kind, values in hits.items()}


def main() -> None:
    """Print a table of coverages."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--trees", type=int, default=100)
    options = parser.parse_args()
    print("| rows | intervals from | skill | concordance |\n|---|---|---|---|")
    for n in (100, 200, 500):
        for kind, hits in count_hits(n, options.runs, options.trees).items():
            skill, concordance = hits.mean(axis=0)
            print(f"| {n} | {kind} | {skill:.3f} | {concordance:.3f} |", flush=True)


if __name__ == "__main__":
    main()
