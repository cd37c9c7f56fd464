"""A small forest on the PBC table, grown once."""

import pytest

from cqrf import CensoredQuantileForest
from cqrf.datasets import load_pbc


@pytest.fixture(scope="session")
def pbc():
    return load_pbc(as_frame=True)


@pytest.fixture(scope="session")
def forest(pbc):
    few = CensoredQuantileForest(n_estimators=60, max_samples=0.5, random_state=0)
    return few.fit(pbc.X, pbc.y)
