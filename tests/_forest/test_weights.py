"""Weights: the average over trees of one leaf each, by plain loops."""

from typing import NamedTuple

import numpy as np
import pytest
from cqrf._forest.labels import CENSORED_QUANTILE

from cqrf import CensoredQuantileForest
from cqrf._forest import weights as weights_room
from cqrf._forest.grower import LEAF
from cqrf._forest.training import Forest, Growing, Rows, Sampling, grow_forest, in_bag_bits
from cqrf._forest.traversal import ABREAST
from cqrf._forest.weights import Weights, forest_weights, map_weights

LEVELS = (0.1, 0.3, 0.5, 0.7, 0.9)
MISSING = 255
N_TRAIN, N_TREES, SEED = 130, 21, 5


class Case(NamedTuple):
    forest: Forest
    queries: np.ndarray
    sampling: Sampling
    train_queries: np.ndarray


def make_case(bootstrap=False, honest=True):
    """A forest with a category and missing values, and queries with codes of all kinds."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 12, (4, N_TRAIN)).astype(np.uint8)
    time = np.sort(rng.exponential(size=N_TRAIN))
    event = rng.random(N_TRAIN) < 0.7
    codes[0] = np.clip(codes[0] // 3 + 3 * time, 0, 11)
    codes[rng.random(codes.shape) < 0.08] = MISSING
    rows = Rows(codes, np.array([False, True, False, False]), time, event, None)
    order = rng.permutation(N_TRAIN).astype(np.int32)
    sampling = Sampling(order, N_TRAIN, 70, bootstrap, honest)
    growing = Growing(CENSORED_QUANTILE, LEVELS, 2, 1000, 6, 2, 0.05)
    forest = grow_forest(rows, sampling, growing, N_TREES, SEED, 1)
    queries = rng.integers(0, 14, (30, 4)).astype(np.uint8)
    queries[rng.random(queries.shape) < 0.1] = MISSING
    train_queries = np.empty((N_TRAIN, 4), np.uint8)
    train_queries[order] = codes.T
    return Case(forest, queries, sampling, train_queries)


cases = pytest.fixture(
    scope="module",
    params=[(b, h) for b in (False, True) for h in (False, True)],
    ids=lambda p: f"bootstrap={p[0]}, honest={p[1]}",
)(lambda request: make_case(*request.param))
case = pytest.fixture(scope="module")(lambda: make_case())


@pytest.fixture(autouse=True, params=[weights_room.MANY_ROWS, 0], ids=["few training rows", "many"])
def both_ways(request, monkeypatch):
    monkeypatch.setattr(weights_room, "MANY_ROWS", request.param)


def rows_of_leaf(forest, root, query):
    node = int(root)
    while forest.feature[node] != LEAF:
        split = forest.feature[node]
        code, at = int(query[split]), int(forest.code[node])
        if code == MISSING:
            left = bool(forest.missing_left[node])
        elif forest.categorical[split]:
            left = bool((int(forest.subsets[at, code // 64]) >> (code % 64)) & 1)
        else:
            left = code <= at
        node = int(forest.left[node]) + (not left)
    leaf = int(forest.left[node])
    return forest.leaf_rows[forest.leaf_offsets[leaf] : forest.leaf_offsets[leaf + 1]]


def weights_twin(forest, queries, n_train, sample_weight=None, in_bag=None):
    """Average over trees, dense; a row stays zero if no tree is left for it."""
    s = np.ones(n_train) if sample_weight is None else sample_weight.astype(float)
    dense = np.zeros((len(queries), n_train))
    for q, query in enumerate(queries):
        used = 0
        for t, root in enumerate(forest.roots):
            if in_bag is not None and (in_bag[q, t // 8] >> (t % 8)) & 1:
                continue
            rows = rows_of_leaf(forest, root, query)
            if len(rows) == 0:
                continue
            used += 1
            for rank in rows:
                dense[q, rank] += s[rank] / s[rows].sum()
        if used:
            dense[q] /= used
    return dense


def to_dense(weights, n_train):
    dense = np.zeros((len(weights.offsets) - 1, n_train))
    for q in range(len(dense)):
        row = slice(weights.offsets[q], weights.offsets[q + 1])
        dense[q, weights.ranks[row]] = weights.values[row]
    return dense


def assert_sparse_rows(weights):
    """Offsets fit, ranks ascend strictly, values are positive."""
    assert weights.offsets[0] == 0
    assert weights.offsets[-1] == len(weights.ranks) == len(weights.values)
    for q in range(len(weights.offsets) - 1):
        row = slice(weights.offsets[q], weights.offsets[q + 1])
        assert (np.diff(weights.ranks[row]) > 0).all()
        assert (weights.values[row] > 0).all()


def sums(weights):
    return to_dense(weights, N_TRAIN).sum(axis=1)


def test_weights_are_the_average_over_trees(cases):
    found = forest_weights(cases.forest, cases.queries, N_TRAIN)
    assert_sparse_rows(found)
    expected = weights_twin(cases.forest, cases.queries, N_TRAIN)
    np.testing.assert_allclose(to_dense(found, N_TRAIN), expected, atol=1e-13)
    assert sums(found) == pytest.approx(np.ones(30), abs=1e-13)
    # Only the rows that share a leaf are listed.
    assert len(found.ranks) == (expected > 0).sum()


def test_sample_weights_share_out_each_leaf(cases):
    sample_weight = (np.random.default_rng(1).integers(1, 9, N_TRAIN) / 4).astype(np.float32)
    found = forest_weights(cases.forest, cases.queries, N_TRAIN, sample_weight)
    assert_sparse_rows(found)
    expected = weights_twin(cases.forest, cases.queries, N_TRAIN, sample_weight)
    np.testing.assert_allclose(to_dense(found, N_TRAIN), expected, atol=1e-13)
    assert sums(found) == pytest.approx(np.ones(30), abs=1e-13)


def test_equal_sample_weights_change_nothing(case):
    plain = forest_weights(case.forest, case.queries, N_TRAIN)
    equal = forest_weights(case.forest, case.queries, N_TRAIN, np.full(N_TRAIN, 3, np.float32))
    assert np.array_equal(plain.ranks, equal.ranks)
    np.testing.assert_allclose(plain.values, equal.values, rtol=1e-12)


def test_trees_in_the_bag_are_left_out(cases):
    in_bag = np.random.default_rng(2).integers(0, 256, (30, 3)).astype(np.uint8)
    found = forest_weights(cases.forest, cases.queries, N_TRAIN, None, in_bag)
    assert_sparse_rows(found)
    expected = weights_twin(cases.forest, cases.queries, N_TRAIN, None, in_bag)
    np.testing.assert_allclose(to_dense(found, N_TRAIN), expected, atol=1e-13)
    assert sums(found) == pytest.approx(np.ones(30), abs=1e-13)


def test_a_query_that_no_tree_is_left_for_has_an_empty_row(case):
    in_bag = np.zeros((30, 3), np.uint8)
    in_bag[[0, 7, 29]] = 255
    found = forest_weights(case.forest, case.queries, N_TRAIN, None, in_bag)
    assert_sparse_rows(found)
    lengths = np.diff(found.offsets)
    assert np.flatnonzero(lengths == 0).tolist() == [0, 7, 29]
    whole = to_dense(forest_weights(case.forest, case.queries, N_TRAIN), N_TRAIN)
    whole[[0, 7, 29]] = 0
    np.testing.assert_array_equal(to_dense(found, N_TRAIN), whole)


def test_no_row_has_a_weight_on_itself_out_of_bag(cases):
    in_bag = in_bag_bits(cases.sampling, N_TREES, SEED)
    found = forest_weights(cases.forest, cases.train_queries, N_TRAIN, None, in_bag)
    own_rank = np.argsort(cases.sampling.unit_of_row)
    assert not to_dense(found, N_TRAIN)[np.arange(N_TRAIN), own_rank].any()
    whole = forest_weights(cases.forest, cases.train_queries, N_TRAIN)
    assert to_dense(whole, N_TRAIN)[np.arange(N_TRAIN), own_rank].any()


def test_a_query_is_answered_alone_as_in_company(case):
    whole = to_dense(forest_weights(case.forest, case.queries, N_TRAIN), N_TRAIN)
    for q in range(30):
        alone = forest_weights(case.forest, case.queries[[q]], N_TRAIN)
        np.testing.assert_array_equal(to_dense(alone, N_TRAIN)[0], whole[q])


def test_more_queries_than_walk_abreast(case):
    copies = 1 + 3 * ABREAST // (30 * N_TREES)
    found = forest_weights(case.forest, np.tile(case.queries, (copies, 1)), N_TRAIN)
    once = forest_weights(case.forest, case.queries, N_TRAIN)
    assert np.array_equal(found.ranks, np.tile(once.ranks, copies))
    assert np.array_equal(found.values, np.tile(once.values, copies))


def test_no_query_has_no_rows(case):
    found = forest_weights(case.forest, case.queries[:0], N_TRAIN)
    assert found.offsets.tolist() == [0]
    assert len(found.ranks) == len(found.values) == 0
    assert map_weights(lambda w: w, case.forest, case.queries[:0], N_TRAIN) == []


def stump(offsets, rows):
    """A forest of single leaves."""
    n = len(offsets) - 1
    return Forest(
        roots=np.arange(n),
        feature=np.full(n, LEAF, np.int32),
        code=np.zeros(n, np.int32),
        missing_left=np.zeros(n, bool),
        left=np.arange(n, dtype=np.int32),
        subsets=np.empty((0, 4), np.uint64),
        categorical=np.zeros(1, bool),
        leaf_offsets=np.array(offsets),
        leaf_rows=np.array(rows, np.int32),
        importance=np.zeros(1),
    )


def test_weights_by_hand():
    # Ranks 0 and 64 straddle a word of bits; a row drawn twice counts twice.
    forest = stump([0, 2, 6], [0, 64, 63, 64, 64, 127])
    found = forest_weights(forest, np.zeros((1, 1), np.uint8), 128)
    assert found.ranks.tolist() == [0, 63, 64, 127]
    assert found.values == pytest.approx([1 / 4, 1 / 8, 1 / 4 + 1 / 4, 1 / 8])


@pytest.mark.parametrize("n_train", [63, 64, 65, 4095, 4096, 4097, 400_000])
def test_ranks_in_any_word(n_train):
    rng = np.random.default_rng(n_train)
    leaves = [np.sort(rng.integers(0, n_train, size)) for size in (5, 1, 40, 90)]
    leaves[1][:] = n_train - 1
    rows = np.concatenate(leaves)
    forest = stump([0, 5, 6, 46, 136], rows)
    found = forest_weights(forest, np.zeros((3, 1), np.uint8), n_train)
    expected = np.zeros(n_train)
    for leaf in leaves:
        np.add.at(expected, leaf, 1 / len(leaf) / 4)
    for q in range(3):
        row = slice(found.offsets[q], found.offsets[q + 1])
        assert found.ranks[row].tolist() == np.unique(rows).tolist()
        assert found.values[row] == pytest.approx(expected[np.unique(rows)])


def test_an_empty_leaf_is_skipped_in_the_average():
    forest = stump([0, 2, 2, 3], [4, 5, 5])
    found = forest_weights(forest, np.zeros((2, 1), np.uint8), 6)
    assert found.ranks.tolist() == [4, 5, 4, 5]
    assert found.values == pytest.approx([1 / 4, 3 / 4] * 2)


@pytest.mark.parametrize("with_bag", [False, True])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_the_size_of_a_chunk_changes_nothing(case, monkeypatch, with_bag, n_jobs):
    rng = np.random.default_rng(4)
    in_bag = rng.integers(0, 256, (30, 3)).astype(np.uint8) if with_bag else None
    sample_weight = (rng.integers(1, 9, N_TRAIN) / 4).astype(np.float32)
    expected = forest_weights(case.forest, case.queries, N_TRAIN, sample_weight, in_bag)
    n_chunks = set()
    for budget in (1, 3 * N_TRAIN, 7 * N_TRAIN, 10**9):
        monkeypatch.setattr(weights_room, "CHUNK_WEIGHTS", budget)
        parts = map_weights(
            lambda w: w, case.forest, case.queries, N_TRAIN, sample_weight, in_bag, n_jobs
        )
        n_chunks.add(len(parts))
        lengths = np.concatenate([np.diff(part.offsets) for part in parts])
        assert np.array_equal(lengths, np.diff(expected.offsets))
        for name in ("ranks", "values"):
            joined = np.concatenate([getattr(part, name) for part in parts])
            assert np.array_equal(joined, getattr(expected, name))
    assert max(n_chunks) == 30
    assert min(n_chunks) == n_jobs


def test_each_chunk_is_read_once_and_in_order(case, monkeypatch):
    monkeypatch.setattr(weights_room, "CHUNK_WEIGHTS", 1)

    def read(weights):
        assert isinstance(weights, Weights)
        return len(weights.ranks)

    lengths = map_weights(read, case.forest, case.queries, N_TRAIN, n_jobs=2)
    expected = forest_weights(case.forest, case.queries, N_TRAIN)
    assert lengths == np.diff(expected.offsets).tolist()


def test_a_chunk_is_no_larger_where_most_rows_are_alike(monkeypatch):
    """Queries go to the few large leaves, and not to those of average size."""
    rng = np.random.default_rng(0)
    X = np.where(np.arange(4000) % 10, 0.0, rng.uniform(1, 2, 4000))[:, np.newaxis]
    forest = CensoredQuantileForest(n_estimators=20, min_samples_split=2, random_state=0)
    model = forest.fit(X, rng.exponential(size=4000)).model_
    sizes = np.diff(model.forest.leaf_offsets)
    assert sizes.max() > 100 * np.median(sizes)
    monkeypatch.setattr(weights_room, "CHUNK_WEIGHTS", 20_000)
    queries = model.queries(np.zeros((300, 1))).codes
    lengths = map_weights(lambda w: len(w.ranks), model.forest, queries, 4000, n_jobs=1)
    assert len(lengths) > 10
    assert max(lengths) <= 20_000 + 4000
