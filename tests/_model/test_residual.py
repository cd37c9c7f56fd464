"""Residual trees: ranks on the residual scale, leaves, and the curve of all residuals."""

from itertools import pairwise

import lifelines
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cqrf import CensoredQuantileForest, censored
from cqrf._forest.traversal import find_leaves
from cqrf._input.target import Target
from cqrf._model.queries import encode_queries
from cqrf._model.residual import count_direct, rank_residuals, residual_growing
from cqrf._model.settings import read_growing
from cqrf._survival.curves import as_curves
from cqrf._working_model.transform import WorkingModel
from cqrf.datasets import make_aft


def make_working(linear_predictor, knots=(1.0, 3.0, 5.0), hazards=(0.0, 1.0, 4.0)):
    predictor = np.array(linear_predictor, float)
    return WorkingModel(np.empty((0, 256)), np.array(knots), np.array(hazards), predictor)


@pytest.fixture(scope="module")
def model():
    data = make_aft(150, 3, random_state=0)
    forest = CensoredQuantileForest(n_estimators=21, working_model="cox", random_state=0)
    weight = np.random.default_rng(0).integers(1, 5, 150)
    return forest.fit(data.X, data.y, sample_weight=weight).model_


@pytest.mark.parametrize(("n_trees", "n_direct"), [(2, 1), (3, 2), (10, 5), (21, 11)])
def test_half_of_the_trees_are_direct(n_trees, n_direct):
    assert count_direct(n_trees) == n_direct


@st.composite
def targets(draw):
    n = draw(st.integers(1, 10))
    time = np.array(draw(st.lists(st.integers(1, 7), min_size=n, max_size=n)), float)
    event = np.array(draw(st.lists(st.booleans(), min_size=n, max_size=n)))
    gaps = st.sampled_from([0.5, 1.0, 3.0, np.inf])
    entry = time - np.array(draw(st.lists(gaps, min_size=n, max_size=n)))
    order = np.lexsort((~event, time))
    predictor = draw(st.lists(st.sampled_from([-1.0, 0.0, 0.0, 2.0]), min_size=n, max_size=n))
    entry = draw(st.sampled_from([None, entry[order]]))
    return Target(time[order], event[order], entry), make_working(predictor)


@given(targets())
def test_residuals_are_ranked_with_events_first(case):
    target, working = case
    ranked, order = rank_residuals(target, working)
    residual = [
        np.interp(t, working.knots, working.hazards) * np.exp(own)
        for t, own in zip(target.time, working.linear_predictor)
    ]
    expected = sorted(range(len(residual)), key=lambda i: (residual[i], not target.event[i], i))
    assert order.tolist() == expected
    np.testing.assert_allclose(ranked.time, np.array(residual)[order], rtol=1e-12)
    np.testing.assert_array_equal(ranked.event, target.event[order])


@given(targets())
def test_a_row_is_at_risk_at_its_own_residual_and_after_those_of_its_entry(case):
    target, working = case
    ranked, order = rank_residuals(target, working)
    if target.entry is None:
        assert ranked.entry is None
        return
    assert (ranked.entry < ranked.time).all()
    for place, row in enumerate(order):
        entry, predictor = target.entry[row], working.linear_predictor[row]
        if entry < working.knots[0]:
            assert ranked.entry[place] == -np.inf
            continue
        hazard = np.interp(entry, working.knots, working.hazards) * np.exp(predictor)
        assert ranked.entry[place] == pytest.approx(min(hazard, ranked.time[place]), rel=1e-12)


def test_leaves_of_residual_trees_hold_the_same_rows_by_residual_rank(model):
    trees = model.residual_trees
    _, order = rank_residuals(Target(model.rows.time, model.rows.event), model.working)
    first = trees.first_leaf_row
    np.testing.assert_array_equal(order[trees.leaf_rows], model.forest.leaf_rows[first:])
    np.testing.assert_array_equal(trees.target.weight, model.rows.weight[order])
    assert (np.diff(trees.target.time) >= 0).all()


def test_all_leaves_are_in_time_order(model):
    forest = model.forest
    for start, end in pairwise(forest.leaf_offsets):
        assert (np.diff(forest.leaf_rows[start:end]) > 0).all()
    n_leaves = np.searchsorted(forest.leaf_offsets, model.residual_trees.first_leaf_row)
    assert forest.leaf_offsets[n_leaves] == model.residual_trees.first_leaf_row
    assert 20 < n_leaves < len(forest.leaf_offsets) - 20


def test_leaves_of_queries_are_split_by_kind(model):
    data = make_aft(150, 3, random_state=0)
    leaves = find_leaves(model.forest, encode_queries(model, data.X[:7]).codes)
    direct, residual = model.residual_trees.split(leaves)
    assert direct.sizes.shape == (7, 11)
    assert residual.sizes.shape == (7, 10)
    _, order = rank_residuals(Target(model.rows.time, model.rows.event), model.working)
    for query in range(7):
        for tree in range(10):
            start, size = residual.starts[query, tree], residual.sizes[query, tree]
            found = order[model.residual_trees.leaf_rows[start : start + size]]
            start = leaves.starts[query, 11 + tree]
            assert found.tolist() == model.forest.leaf_rows[start : start + size].tolist()


@pytest.mark.parametrize("late", [False, True])
def test_the_root_is_the_kaplan_meier_curve_of_all_residuals(late):
    data = make_aft(150, 3, random_state=1)
    time, event = data.y["time"], data.y["event"]
    rng = np.random.default_rng(1)
    entry = np.where(rng.random(150) < 0.3, 0.7 * time * rng.random(150), 0.0) if late else None
    weight = rng.integers(1, 5, 150)
    forest = CensoredQuantileForest(n_estimators=4, working_model="cox", random_state=0)
    model = forest.fit(data.X, censored(time, event, entry=entry), sample_weight=weight).model_
    working, trees = model.working, model.residual_trees
    predictor = working.linear_predictor[model.ranks]
    residual = working.residuals(time, predictor)
    peer = lifelines.KaplanMeierFitter()
    entered = None
    if late:
        entered = np.where(entry < time.min(), -1.0, working.residuals(entry, predictor))
    peer.fit(residual, event, weights=weight, entry=entered)
    at = np.linspace(0, residual.max(), 77)
    found = as_curves(trees.root, "right")(at, "extend")[0]
    np.testing.assert_allclose(found, peer.predict(at), atol=1e-9)


@pytest.mark.parametrize(
    ("n", "smallest"), [(50, 16), (1019, 16), (1020, 17), (1500, 25), (2000, 33), (10**6, 33)]
)
def test_residual_nodes_grow_with_the_table(n, smallest):
    """A sixtieth of the rows, between 1.5 and 3 times the 11 rows of direct trees."""
    growing = read_growing(CensoredQuantileForest(), 5)
    found = residual_growing(growing, n)
    assert found.limits.min_samples_split == smallest
    assert found.limits._replace(min_samples_split=11) == growing.limits
    assert found.criterion == growing.criterion
