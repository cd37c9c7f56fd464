"""Treatment forests that pictures are drawn of."""

from dataclasses import replace

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

mpl.use("Agg")
from matplotlib import pyplot as plt

from cqrf import censored
from cqrf.datasets import make_treatment
from support.effect_plots import HOSTILE, grow_treatment_forest


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="package")
def data():
    found = make_treatment("spread", n=300, random_state=0)
    return replace(found, X=np.round(found.X, 2))


@pytest.fixture(scope="package")
def forest(data):
    return grow_treatment_forest(data.X, data.y, data.treatment, propensity=0.5)


@pytest.fixture(scope="package")
def frame(data):
    level = np.array(["low", "mid", "high"])[np.digitize(data.X[:, 1], [0.5, 0.7])]
    return pd.DataFrame({HOSTILE: data.X[:, 0], "level": level, "rest": data.X[:, 2]})


@pytest.fixture(scope="package")
def named(data, frame):
    arm = np.where(data.treatment == 1, "new $drug$", "old")
    return grow_treatment_forest(frame, data.y, arm, control="old", propensity=0.5)


@pytest.fixture(scope="package")
def short(data):
    """The same data, followed up to the median time of all rows only."""
    end = np.median(data.y["time"])
    y = censored(np.minimum(data.y["time"], end), data.y["event"] & (data.y["time"] <= end))
    return grow_treatment_forest(data.X, y, data.treatment, propensity=0.5)
