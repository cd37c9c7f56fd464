"""Whether a table is the training table."""

import numpy as np
import pytest

from cqrf import CensoredQuantileForest
from cqrf._input.target import read_target
from cqrf._model.queries import encode_all
from cqrf._views.training_table import (
    count_training_rows,
    is_training_table,
    is_training_target,
)
from cqrf.datasets import load_pbc

PBC = load_pbc()


@pytest.fixture(scope="module")
def forest():
    return CensoredQuantileForest(n_estimators=5, random_state=0).fit(PBC.X, PBC.y)


def test_the_training_table_is_known_by_its_times_and_events(forest):
    target = read_target(PBC.y)
    assert is_training_target(forest.model_, target)
    assert not is_training_target(forest.model_, target.take(np.arange(417)))
    assert not is_training_target(forest.model_, target.take(np.arange(418)[::-1]))
    later, other = target.time.copy(), ~target.event
    later[5] += 1
    assert not is_training_target(forest.model_, target._replace(time=later))
    assert not is_training_target(forest.model_, target._replace(event=other))
    assert not is_training_target(forest.model_, target._replace(entry=target.time - 1))
    assert is_training_target(forest.model_, target._replace(entry=np.full(418, -np.inf)))


def test_features_count_up_to_bins(forest):
    model, target = forest.model_, read_target(PBC.y)
    codes = encode_all(model, PBC.X)
    assert is_training_table(model, target, codes)
    assert count_training_rows(model, target, codes) == 418
    changed = PBC.X.copy()
    changed[7] = changed[8]
    assert not is_training_table(model, target, encode_all(model, changed))
    assert count_training_rows(model, target, encode_all(model, changed)) == 417
