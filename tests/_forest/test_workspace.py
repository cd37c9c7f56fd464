"""Work arrays: large enough, aligned, and None for what the rows do not have."""

import numpy as np
import pytest

from cqrf._forest.rows import Rows
from cqrf._forest.spec import Limits
from cqrf._forest.workspace import BLOCK_ROWS, COPIED_PER_CANDIDATE, LINE, make_workspace


def make_rows(n_features, weighted=False, late=False, n=10):
    return Rows(
        codes=np.zeros((n_features, n), np.uint8),
        categorical=np.zeros(n_features, bool),
        time=np.zeros(n),
        event=np.zeros(n, bool),
        weight=np.ones(n, np.float32) if weighted else None,
        first_at_risk=np.zeros(n, np.int32) if late else None,
    )


def make_work(n_features=2, n_rows=50, n_labels=1, n_candidates=1, leaf=1, **rows):
    limits = Limits(n_candidates, 9, 2, leaf, 0.0)
    return make_workspace(3, n_rows, make_rows(n_features, **rows), n_labels, limits)


def test_no_node_is_copied_if_few_of_many_features_are_tried():
    few, many = COPIED_PER_CANDIDATE, COPIED_PER_CANDIDATE + 1
    assert len(make_work(few, 5000).block_rows) == BLOCK_ROWS
    assert len(make_work(many, 5000).block_rows) == 0
    assert len(make_work(many, 5000, n_candidates=2).block_rows) == BLOCK_ROWS
    assert len(make_work(few, 50).block_rows) == 50


@pytest.mark.parametrize("leaf", [1, 3, 7])
def test_there_is_a_place_for_every_node_that_trees_can_have(leaf):
    # A tree of n rows has at most n / leaf leaves, and one split less.
    work = make_work(n_rows=50, leaf=leaf)
    assert len(work.nodes) >= 3 * (2 * (50 // leaf) - 1)
    assert len(work.subsets) >= 3 * (50 // leaf - 1)


@pytest.mark.parametrize("n_labels", [1, 2, 3, 4, 5])
def test_a_row_of_labels_has_an_even_number_of_columns_from_a_cache_line_on(n_labels):
    work = make_work(n_labels=n_labels)
    width = 2 * len(work.label.pairs)
    assert width - 2 < n_labels + 1 <= width
    for table in (work.label.labels, work.split.sums):
        assert table.shape[1] == width
        assert table.ctypes.data % LINE == 0
        assert not table.any()


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("late", [False, True])
def test_what_rows_do_not_have_is_none(weighted, late):
    work = make_work(weighted=weighted, late=late)
    for found in (work.tree.weight, work.block.weight, work.split.counts):
        assert (found is not None) == weighted
    for found in (work.tree.first_at_risk, work.block.first_at_risk, work.label.absent):
        assert (found is not None) == late
