"""Traversal: the leaves that a plain traversal of each tree finds."""

from dataclasses import replace

import numpy as np
import pytest

from cqrf._forest.traversal import PAIRS_TOGETHER, find_leaves
from support.forests import find_node
from support.traversed import N_TREES, make_case, make_leaves_only


@pytest.fixture(scope="module")
def case():
    return make_case()


def leaves_by_loops(forest, queries, in_bag=None):
    """Starts and sizes of the leaves; 0 for trees that are left out."""
    starts, sizes = np.zeros((2, len(queries), len(forest.roots)), int)
    for q, query in enumerate(queries):
        for t, root in enumerate(forest.roots):
            if in_bag is None or not (in_bag[q, t // 8] >> (t % 8)) & 1:
                leaf = forest.left[find_node(forest, root, query)]
                starts[q, t] = forest.leaf_offsets[leaf]
                sizes[q, t] = forest.leaf_offsets[leaf + 1] - starts[q, t]
    return starts, sizes


def assert_leaves(forest, queries, in_bag=None):
    found = find_leaves(forest, queries, in_bag)
    for array, expected in zip(found, leaves_by_loops(forest, queries, in_bag), strict=True):
        assert np.array_equal(array, expected)
    assert (found.starts.dtype, found.sizes.dtype) == (np.int64, np.int32)


@pytest.mark.parametrize("bootstrap", [False, True])
@pytest.mark.parametrize("honest", [False, True])
def test_each_query_reaches_the_leaf_of_a_plain_traversal(bootstrap, honest):
    case = make_case(bootstrap, honest)
    assert_leaves(case.forest, case.queries)


def test_trees_whose_bit_is_set_are_left_out(case):
    in_bag = np.random.default_rng(2).integers(0, 256, (30, 3)).astype(np.uint8)
    in_bag[7] = 255
    assert_leaves(case.forest, case.queries, in_bag)


def test_a_forest_without_categories_compares_every_code(case):
    # The same splits, read as numeric ones: kernels are compiled once more for them.
    numeric = replace(case.forest, categorical=np.zeros(4, bool))
    assert numeric.nodes.categorical is None
    assert_leaves(numeric, case.queries)


def test_more_pairs_than_take_a_step_together(case):
    copies = 1 + 3 * PAIRS_TOGETHER // (30 * N_TREES)
    found = find_leaves(case.forest, np.tile(case.queries, (copies, 1)))
    once = find_leaves(case.forest, case.queries)
    for many, few in zip(found, once, strict=True):
        assert np.array_equal(many, np.tile(few, (copies, 1)))


def test_a_query_reaches_the_same_leaves_alone_as_with_others(case):
    together = find_leaves(case.forest, case.queries)
    for q in range(30):
        alone = find_leaves(case.forest, case.queries[[q]])
        assert np.array_equal(alone.starts[0], together.starts[q])


def test_no_queries_have_no_leaves(case):
    assert find_leaves(case.forest, case.queries[:0]).sizes.shape == (0, N_TREES)


def test_trees_without_splits_have_one_leaf():
    found = find_leaves(make_leaves_only([0, 2, 2, 3], [4, 5, 5]), np.zeros((2, 1), np.uint8))
    assert found.starts.tolist() == [[0, 2, 2]] * 2
    assert found.sizes.tolist() == [[2, 0, 1]] * 2
