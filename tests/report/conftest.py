"""A small forest on the PBC table, and a treatment forest on its trial, grown once."""

import numpy as np
import pytest

from cqrf import CensoredQuantileForest
from cqrf.datasets import load_pbc
from cqrf.effects import CensoredTreatmentForest


@pytest.fixture(scope="session")
def pbc():
    return load_pbc(as_frame=True)


@pytest.fixture(scope="session")
def forest(pbc):
    few = CensoredQuantileForest(n_estimators=60, max_samples=0.5, random_state=0)
    return few.fit(pbc.X, pbc.y)


@pytest.fixture(scope="session")
def trial(pbc):
    """Covariates, outcomes and arms of the randomised patients."""
    randomised = pbc.X["trt"].notna().to_numpy()
    X = pbc.X[randomised].drop(columns="trt")
    arm = np.where(pbc.X["trt"][randomised] == 1, "drug", "placebo")
    return X, pbc.y[randomised], arm


@pytest.fixture(scope="session")
def fit_treatment(trial):
    """Fit a small treatment forest to the trial."""

    def fit(**arguments):
        nuisance = CensoredQuantileForest(n_estimators=80)
        forest = CensoredTreatmentForest(
            n_estimators=40,
            nuisance_forest=nuisance,
            time_unit="days",
            event_name="death",
            random_state=0,
        )
        X, y, arm = trial
        return forest.fit(X, y, arm, control="placebo", **arguments)

    return fit


@pytest.fixture(scope="session")
def treatment_forest(fit_treatment):
    return fit_treatment()
