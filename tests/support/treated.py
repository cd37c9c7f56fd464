"""Small treatment forests for tests."""

import csv
import gzip
from pathlib import Path

import numpy as np

from cqrf import CensoredQuantileForest
from cqrf.datasets import make_treatment
from cqrf.effects import CensoredTreatmentForest

GOLDEN = Path(__file__).parents[1] / "data" / "effects"


def make_data(n=300, kind="type2", seed=0):
    """Rows of two arms; treatment depends on x, but no propensity is extreme."""
    return make_treatment(kind, n=n, random_state=seed)


def make_forest(n_estimators=80, **settings):
    """A forest that grows in a fraction of a second, with splits in spite of few rows."""
    settings = {"min_samples_arm": 5, "random_state": 0} | settings
    settings.setdefault("nuisance_forest", CensoredQuantileForest(n_estimators=80))
    return CensoredTreatmentForest(n_estimators=n_estimators, **settings)


def fit_small(data, treatment=None, forest=None, **fit):
    """Fit such a forest to some data, or to another treatment of its rows."""
    treatment = data.treatment if treatment is None else treatment
    forest = make_forest() if forest is None else forest
    return forest.fit(data.X, data.y, treatment, **fit)


def read_golden(name):
    """Columns of a file of numbers from R, as arrays by name."""
    path = GOLDEN / name
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as file:
        header, *rows = csv.reader(file)
    columns = dict(zip(header, map(np.array, zip(*rows, strict=True)), strict=True))
    texts = ("dgp", "target", "priority", "metric")
    return {k: v if k in texts else v.astype(float) for k, v in columns.items()}
