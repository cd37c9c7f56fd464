"""Quantile classes: labels with the gain of the classes' Gini impurity."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cqrf._forest.criteria.quantile import class_labels
from oracles.criteria import true_labels
from support.labelling import make_rows, write_labels
from support.samples import MANY_LEVELS, samples, weights_of


@given(st.lists(st.integers(-50, 50), min_size=1, max_size=9))
def test_labels_of_classes_have_the_length_of_one_label_for_each_class(excess):
    # What one side has too much of some classes it has too little of the others.
    excess = [*excess, -sum(excess)]
    of_class, direction = class_labels(len(excess) - 1)
    assert of_class.shape == (len(excess), len(excess) - 1)
    gini = sum(d * d for d in excess)
    assert ((np.array(excess) @ of_class) ** 2).sum() == pytest.approx(gini, rel=1e-12)
    assert np.diff(of_class @ direction) == pytest.approx(np.ones(len(excess) - 1))


@pytest.mark.parametrize("weighted", [False, True])
@given(st.data())
def test_label_sums_have_the_length_of_the_drop_in_gini_impurity(weighted, data):
    time, event, weight = data.draw(samples(weighted))
    levels = data.draw(st.sampled_from(MANY_LEVELS))
    truth = true_labels("quantile", time, event, weight, levels)
    if truth is None:
        return
    n = len(time)
    inside = np.array(data.draw(st.lists(st.booleans(), min_size=n, max_size=n)))
    excess = weights_of(weight, n)[inside] @ truth[0][inside]
    node = write_labels("quantile", make_rows(time, event, weight), levels=levels)
    sums = node.labels[inside].sum(axis=0)
    assert (sums[1:] ** 2).sum() == pytest.approx((excess**2).sum(), abs=1e-9)
