"""Write the model files of the newest formats, and what the models in them answer.

Run as ``python tests/data/models/make.py``. A file that is there is left as it is: these are the
files that every later version must read. Earlier ones were written by the versions of their time
(README.md in tests/data lists them).
"""

import json
from pathlib import Path

import numpy as np

from cqrf import CensoredQuantileForest, interval
from cqrf.conformal import ConformalForest
from cqrf.datasets import load_pbc
from cqrf.effects import CensoredTreatmentForest

FOLDER = Path(__file__).parent
N_QUERIES, LEVELS, TIMES = 5, [0.1, 0.25], [500, 2000]
DAYS_BETWEEN_VISITS = 400
SMALL = {"n_estimators": 12, "min_samples_leaf": 20, "random_state": 0}


def fit_intervals():
    """Deaths known to the interval between two visits; those of the first 100 rows, exactly."""
    pbc = load_pbc(as_frame=True)
    time, event = pbc.y["time"], pbc.y["event"]
    before = np.floor(time / DAYS_BETWEEN_VISITS) * DAYS_BETWEEN_VISITS
    exact = np.arange(len(time)) < 100
    lower = np.where(event & ~exact, before, time)
    upper = np.where(event, np.where(exact, time, before + DAYS_BETWEEN_VISITS), np.inf)
    forest = CensoredQuantileForest(**SMALL).fit(pbc.X, interval(lower, upper))
    X = pbc.X.iloc[:N_QUERIES]
    return forest, {
        "quantiles": forest.predict(X, LEVELS, unidentified="clip"),
        "survival": forest.predict_survival(X, TIMES, beyond="extend"),
    }


def fit_conformal():
    """A conformal forest with a forest of censoring times."""
    pbc = load_pbc(as_frame=True)
    forest = ConformalForest(CensoredQuantileForest(**SMALL), random_state=0).fit(pbc.X, pbc.y)
    X = pbc.X.iloc[:N_QUERIES]
    return forest, {"lower": forest.predict_lower(X), "interval": forest.predict_interval(X)}


def fit_treatment():
    """Effects of D-penicillamine in the 312 patients of the trial, with estimated propensities."""
    pbc = load_pbc(as_frame=True)
    in_trial = pbc.X["trt"].notna().to_numpy()
    X, treatment = pbc.X.drop(columns="trt")[in_trial], pbc.X["trt"][in_trial] == 1
    small = CensoredQuantileForest(n_estimators=4, min_samples_leaf=20)
    forest = CensoredTreatmentForest(n_estimators=8, nuisance_forest=small, random_state=0)
    forest.fit(X, pbc.y[in_trial], treatment=treatment)
    asked = X.iloc[:N_QUERIES]
    return forest, {
        "effect": forest.effect(asked, target="survival", times=TIMES),
        "average": forest.ate(horizon=TIMES[1]).estimate,
    }


FILES = {
    "format_4_intervals": fit_intervals,
    "conformal_1": fit_conformal,
    "treatment_1": fit_treatment,
}


def write_missing():
    """Fit what has no file yet, and write it."""
    for name, fit in FILES.items():
        path = FOLDER / f"{name}.cqrf"
        if path.exists():
            print(f"{path.name}: is there")
            continue
        model, answers = fit()
        model.save(path)
        plain = {key: np.asarray(value).tolist() for key, value in answers.items()}
        path.with_suffix(".json").write_text(json.dumps({"levels": LEVELS, **plain}) + "\n")
        print(f"{path.name}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    write_missing()
