"""Calibration out of bag compared with calibration on held-out rows.

Each of 60 forests is fitted to 400 uncensored rows and checked out of bag and on 400 new rows.
Prints the mean distance and quantiles of the p-value of the D-calibration test.

Run: python benchmarks/calibration.py
"""

import numpy as np

from cqrf import CensoredQuantileForest
from cqrf.calibration import assess_calibration

REPEATS, N = 60, 400


def draw(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    X = rng.uniform(size=(N, 3))
    return X, np.exp(X[:, 0]) * rng.weibull(1.5, N)


def main() -> None:
    found = []
    for repeat in range(REPEATS):
        rng = np.random.default_rng(repeat)
        forest = CensoredQuantileForest(random_state=repeat, n_jobs=2).fit(*draw(rng))
        found.append([assess_calibration(forest), assess_calibration(forest, *draw(rng))])
    for name, each in zip(["out of bag", "held out"], zip(*found, strict=True), strict=True):
        distance = np.mean([calibration.distance for calibration in each])
        low, middle = np.quantile([calibration.p_value for calibration in each], [0.05, 0.5])
        print(f"{name}: distance {distance:.4f}, p-value: 5 % below {low:.2f}, half {middle:.2f}")


if __name__ == "__main__":
    main()
