"""Records: features that a forest splits on."""

import numpy as np

from cqrf._forest.spec import LEAF
from support.traversed import make_case, make_leaves_only


def test_split_features_are_those_that_some_node_splits_on():
    forest = make_case().forest
    expected = sorted(set(forest.feature.tolist()) - {LEAF})
    assert len(expected) == 4
    assert forest.split_features.tolist() == expected
    # A forest that never splits on two of them.
    forest.feature[np.isin(forest.feature, [1, 3])] = 2
    del forest.__dict__["split_features"]
    assert forest.split_features.tolist() == [0, 2]


def test_a_forest_without_splits_has_no_split_features():
    assert make_leaves_only([0, 1], [0]).split_features.tolist() == []
