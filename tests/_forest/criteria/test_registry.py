"""The registry: a new criterion is a record, a label kernel and one entry.

This is the recipe of CONTRIBUTING.md. The criterion defined here splits by the rate of events: its
label is the event indicator minus its mean in the node.
"""

from typing import NamedTuple

import numpy as np
import pytest
from numba.core.caching import NullCache

from cqrf import CensoredQuantileForest, censored
from cqrf._forest.criteria import CRITERIA, Criterion
from cqrf._forest.grower import grow_trees
from cqrf._forest.spec import LEAF
from cqrf._runtime.compiling import called
from oracles.splitting import best_gain_by_force, gain_of, sets_that_go_left
from support.forests import list_nodes, rows_of_leaf


class EventRate(NamedTuple):
    """Parameters: none but the number of labels."""

    n_labels: int = 1

    @classmethod
    def from_levels(cls, levels):
        """It uses no levels."""
        return cls()

    def scaled_to(self, largest_time):
        """Times do not matter."""
        return self


@called
def label_event_rate(criterion, rows, here, work):
    """Write the event indicator minus its mean, for rows without weights."""
    n, n_events = here.shape[0], 0
    for i in range(n):
        n_events += rows.event[here[i]]
    work.direction[0], work.direction[1] = 0.0, 1.0
    for i in range(n):
        work.labels[i, 0] = 1.0
        work.labels[i, 1] = rows.event[here[i]] - n_events / n
    return 0 < n_events < n, np.float64(n)


@pytest.fixture
def event_rate(monkeypatch):
    monkeypatch.setitem(CRITERIA, "event_rate", Criterion(EventRate, label_event_rate))
    # Processes that do not know this class could not read the cache of kernels that take it.
    monkeypatch.setattr(grow_trees, "_cache", NullCache())


def make_sample(n=120):
    """Times depend on the first feature, the rate of events on the second."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 6, (n, 3)).astype(float)
    time = np.exp(X[:, 0]) + rng.random(n)
    return X, censored(time, rng.random(n) < (X[:, 1] + 0.5) / 6)


def ranks_below(forest, node):
    leaves = [leaf for leaf in list_nodes(forest, node) if forest.feature[leaf] == LEAF]
    return np.sort(np.concatenate([rows_of_leaf(forest, leaf) for leaf in leaves]))


def test_a_registered_criterion_grows_a_forest_and_its_splits_are_the_best(event_rate):
    X, y = make_sample()
    settings = {
        "n_estimators": 1, "honest": False, "max_samples": None, "max_features": None,
        "max_depth": 3, "min_samples_split": 10, "min_samples_leaf": 5, "min_child_fraction": 0.0,
        "random_state": 0,
    }  # fmt: skip
    fitted = CensoredQuantileForest(criterion="event_rate", **settings).fit(X, y)
    forest = fitted.model_.forest
    order = np.lexsort((~y["event"], y["time"]))
    # The values are the codes, for there is one of each in a table of six.
    codes, event = X[order].T.astype(int), y["event"][order].astype(float)
    assert forest.feature[0] == 1
    n_checked, gains = 0, np.zeros(3)
    for node in np.flatnonzero(forest.feature != LEAF):
        rows, left_rows = ranks_below(forest, node), ranks_below(forest, forest.left[node])
        labels = (event[rows] - event[rows].mean())[:, np.newaxis], np.ones(1)
        ones = np.ones(len(rows))
        best = best_gain_by_force(
            codes[:, rows],
            lambda _, column: sets_that_go_left(column),
            labels,
            ones,
            5,
            np.zeros(3),
        )
        gain = gain_of(np.isin(rows, left_rows), *labels, ones)
        assert gain == pytest.approx(best, rel=1e-9)
        gains[forest.feature[node]] += gain / len(X)
        n_checked += 1
    assert n_checked >= 3
    np.testing.assert_allclose(forest.importance, gains)
    assert np.isfinite(fitted.predict(X, 0.5, unidentified="clip")).all()


def test_a_criterion_that_is_not_registered_is_refused_with_the_names_of_those_that_are():
    X, y = make_sample()
    with pytest.raises(ValueError, match="censored_quantile, quantile, variance, logrank"):
        CensoredQuantileForest(criterion="event_rate").fit(X, y)


def test_every_criterion_has_what_the_registry_asks_for():
    for entry in CRITERIA.values():
        levels = entry.default_levels
        record = entry.parameters.from_levels(levels)
        assert record._fields[0] == "n_labels"
        assert record.n_labels == max(1, len(levels))
        assert type(record.scaled_to(3.0)) is entry.parameters
