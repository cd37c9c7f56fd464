"""Records: what they leave out for kernels, and what they derive."""

import numpy as np
import pytest

from cqrf._forest.rows import Rows
from cqrf._forest.spec import LEAF
from support.traversed import make_case, make_leaves_only


@pytest.mark.parametrize("categorical", [[False, False], [False, True]])
def test_kernels_receive_none_if_no_feature_is_a_category(categorical):
    categorical = np.array(categorical)
    rows = Rows(np.zeros((2, 1), np.uint8), categorical, np.zeros(1), np.ones(1, bool))
    found = rows.for_kernels()
    assert (found.categorical is None) == (not categorical.any())
    assert found._replace(categorical=categorical) == rows


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
