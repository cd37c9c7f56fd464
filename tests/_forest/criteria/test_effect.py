"""Effects: labels by definition; splits and trees that keep rows of every stratum."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cqrf._forest.criteria.effect import Effect
from cqrf._forest.spec import LEAF, N_STRATA
from oracles.splitting import (
    cost_of_order,
    gain_of,
    left_rows,
    ordered_categories,
    sets_that_go_left,
)
from support.grown_tree import Tree, make_tree_rows
from support.labelling import make_rows, write_labels
from support.splits import FoundSplit


def with_scores(rng, rows, n_labels=3):
    """Rows with residuals of a treatment and of outcomes, and with strata."""
    n = len(rows.time)
    treatment = rng.uniform(0.1, 0.9, n) - rng.integers(0, 2, n)
    outcome = rng.normal(size=(n, n_labels)) + treatment[:, None] * (rows.codes[0] > 10)[:, None]
    scores = np.column_stack([treatment**2, treatment[:, None] * outcome])
    stratum = np.where(treatment > 0, 1, 2) | np.where(rng.random(n) < 0.5, 4, 0)
    return rows._replace(scores=scores, stratum=stratum.astype(np.uint8))


def labels_by_loops(scores, weight):
    """Distance of each row from the effect of the node, times its weight."""
    n, n_columns = scores.shape
    labels = np.empty((n, n_columns))
    for i in range(n):
        labels[i, 0] = weight[i] * scores[i, 0]
    mass = sum(labels[:, 0])
    for k in range(1, n_columns):
        effect = sum(weight[i] * scores[i, k] for i in range(n)) / mass
        for i in range(n):
            labels[i, k] = weight[i] * (scores[i, k] - scores[i, 0] * effect)
    return labels, mass


@pytest.mark.parametrize("weighted", [False, True])
@given(st.integers(0, 10**6), st.integers(1, 9))
def test_labels_are_distances_from_the_effect_of_the_node(weighted, seed, n_labels):
    rng = np.random.default_rng(seed)
    weight = (rng.integers(1, 9, 30) / 4).astype(np.float32) if weighted else None
    rows = make_rows(np.arange(30.0), np.ones(30, bool), weight)
    rows = with_scores(rng, rows, n_labels)
    here = np.flatnonzero(rng.random(30) < 0.6).astype(np.uint32)
    node = write_labels(Effect(n_labels), rows, here)
    w = np.ones(30) if weight is None else weight.astype(float)
    expected, mass = labels_by_loops(rows.scores[here], w[here])
    assert node.can_be_split == (mass > 0)
    assert node.mass == pytest.approx(mass)
    if mass == 0:
        return
    end = n_labels + 1
    np.testing.assert_allclose(node.labels[:, :end], expected, atol=1e-12)
    np.testing.assert_allclose(node.labels[:, 1:end].sum(axis=0), 0.0, atol=1e-10)
    assert node.direction[:end].tolist() == [0.0] + [1.0] * n_labels
    assert not node.labels[:, end:].any()


def test_rows_without_scores_are_not_split():
    rows = make_rows(np.arange(6.0), np.ones(6, bool))
    node = write_labels(Effect(2), rows)
    assert (node.can_be_split, node.mass) == (False, 0.0)


def test_there_is_one_label_for_each_level_in_any_unit_of_time():
    assert Effect.from_levels((0.2, 0.5)) == Effect(2)
    assert Effect(2).scaled_to(1e9) == Effect(2)


def best_by_force(rows, here, min_child, min_stratum):
    """Best gain over all splits whose children keep enough rows, also of each stratum."""
    w = np.ones(len(here)) if rows.weight is None else rows.weight[here].astype(float)
    weighted, _ = labels_by_loops(rows.scores[here], w)
    mass = weighted[:, 0]
    labels, precision = weighted[:, 1:] / mass[:, None], np.ones(weighted.shape[1] - 1)
    best = 0.0
    for j, column in enumerate(rows.codes[:, here]):
        is_category = rows.categorical is not None and rows.categorical[j]
        truth = (labels, precision, mass, False)
        order = ordered_categories(column, *truth) if is_category else None
        cost = cost_of_order(column, *truth) if is_category else 0.0
        for codes, missing_left in sets_that_go_left(column, order):
            left = left_rows(column, codes, missing_left)
            if fits(left, rows.stratum[here], min_child, min_stratum):
                best = max(best, gain_of(left, labels, precision, mass) - cost)
    return best


def fits(left, stratum, min_child, min_stratum):
    for side in (left, ~left):
        counts = [((stratum[side] >> s) & 1).sum() for s in range(N_STRATA)]
        if side.sum() < max(1, min_child) or min(counts) < min_stratum:
            return False
    return True


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("categorical", [(0, 0, 0), (0, 1, 0)])
@pytest.mark.parametrize("min_stratum", [0, 2, 5, 9])
def test_no_split_that_keeps_rows_of_each_stratum_is_better(weighted, categorical, min_stratum):
    rng = np.random.default_rng([weighted, sum(categorical), min_stratum])
    found = 0
    for min_child in (1, 6, 12):
        rows, _ = make_tree_rows(rng, n=70, weighted=weighted, categorical=categorical)
        rows = with_scores(rng, rows)
        here = np.flatnonzero(rng.random(70) < 0.9).astype(np.uint32)
        split = FoundSplit(Effect(3), rows, here, min_child, min_stratum=min_stratum)
        best = best_by_force(rows, here, min_child, min_stratum)
        assert split.gain == pytest.approx(best, rel=1e-9, abs=1e-9)
        if best > 1e-9:
            assert fits(split.left(), rows.stratum[here], min_child, min_stratum)
            found += 1
    assert found or min_stratum > 5


def test_without_enough_rows_of_a_stratum_there_is_no_split():
    rng = np.random.default_rng(0)
    rows, _ = make_tree_rows(rng, n=60)
    rows = with_scores(rng, rows)
    rare = rows._replace(stratum=np.where(np.arange(60) < 3, 7, 3).astype(np.uint8))
    assert FoundSplit(Effect(3), rare, min_stratum=1).feature >= 0
    assert FoundSplit(Effect(3), rare, min_stratum=2).feature == LEAF


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("min_stratum", [1, 4, 10])
def test_every_child_of_a_tree_keeps_rows_of_each_stratum(weighted, min_stratum):
    n_nodes = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        rows, _ = make_tree_rows(rng, n=200, weighted=weighted)
        rows = with_scores(rng, rows)
        tree = Tree(rows, Effect(3), seed=seed, min_samples_stratum=min_stratum)
        n_nodes.append(tree.n_nodes)
        for inside in tree.rows_of_nodes():
            counts = [((rows.stratum[inside] >> s) & 1).sum() for s in range(N_STRATA)]
            assert min(counts) >= min_stratum
        best = best_by_force(rows, np.arange(200, dtype=np.uint32), 1, min_stratum)
        assert (tree.feature[0] != LEAF) == (best > 1e-9)
    assert max(n_nodes) > 5
