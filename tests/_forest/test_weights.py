"""Weights: the average over trees of one leaf each, by plain loops."""

from types import SimpleNamespace

import numpy as np
import pytest

from cqrf import CensoredQuantileForest
from cqrf._forest import weights as module
from cqrf._forest.sampling import in_bag_bits
from cqrf._forest.traversal import Leaves, find_leaves
from cqrf._forest.weights import chunk_queries, forest_weights
from support.forests import find_node, rows_of_leaf
from support.traversed import N_TRAIN, N_TREES, SEED, make_case, make_leaves_only

cases = pytest.fixture(
    scope="module",
    params=[(b, h) for b in (False, True) for h in (False, True)],
    ids=lambda p: f"bootstrap={p[0]}, honest={p[1]}",
)(lambda request: make_case(*request.param))
case = pytest.fixture(scope="module")(lambda: make_case())


@pytest.fixture(autouse=True, params=[module.MANY_ROWS, 0], ids=["dense", "sparse"])
def both_ways(request, monkeypatch):
    monkeypatch.setattr(module, "MANY_ROWS", request.param)


def find_weights(forest, queries, n_train=N_TRAIN, sample_weight=None, in_bag=None):
    leaves = find_leaves(forest, queries, in_bag)
    return forest_weights(leaves, forest.leaf_rows, n_train, sample_weight)


def weights_by_loops(forest, queries, sample_weight=None, in_bag=None):
    """Average over trees, dense; a row is zero if every tree is left out."""
    s = np.ones(N_TRAIN) if sample_weight is None else sample_weight.astype(float)
    dense = np.zeros((len(queries), N_TRAIN))
    for q, query in enumerate(queries):
        used = 0
        for t, root in enumerate(forest.roots):
            if in_bag is not None and (in_bag[q, t // 8] >> (t % 8)) & 1:
                continue
            rows = rows_of_leaf(forest, find_node(forest, root, query))
            if len(rows) == 0:
                continue
            used += 1
            for rank in rows:
                dense[q, rank] += s[rank] / s[rows].sum()
        if used:
            dense[q] /= used
    return dense


def to_dense(weights):
    dense = np.zeros((len(weights.offsets) - 1, N_TRAIN))
    for q in range(len(dense)):
        row = slice(weights.offsets[q], weights.offsets[q + 1])
        dense[q, weights.ranks[row]] = weights.values[row]
    return dense


def assert_sparse_rows(weights):
    """Offsets fit, ranks ascend strictly, values are positive, rows sum to 1 or are empty."""
    assert weights.offsets[0] == 0
    assert weights.offsets[-1] == len(weights.ranks) == len(weights.values)
    for q in range(len(weights.offsets) - 1):
        row = slice(weights.offsets[q], weights.offsets[q + 1])
        assert (np.diff(weights.ranks[row]) > 0).all()
        assert (weights.values[row] > 0).all()
        if row.stop > row.start:
            assert weights.values[row].sum() == pytest.approx(1, abs=1e-13)


def make_sample_weight(rng):
    return (rng.integers(1, 9, N_TRAIN) / 4).astype(np.float32)


def test_weights_are_the_average_over_trees(cases):
    found = find_weights(cases.forest, cases.queries)
    assert_sparse_rows(found)
    expected = weights_by_loops(cases.forest, cases.queries)
    np.testing.assert_allclose(to_dense(found), expected, atol=1e-13)
    # Only the rows that share a leaf are listed.
    assert len(found.ranks) == (expected > 0).sum()


def test_sample_weights_share_out_each_leaf(cases):
    sample_weight = make_sample_weight(np.random.default_rng(1))
    found = find_weights(cases.forest, cases.queries, sample_weight=sample_weight)
    assert_sparse_rows(found)
    expected = weights_by_loops(cases.forest, cases.queries, sample_weight)
    np.testing.assert_allclose(to_dense(found), expected, atol=1e-13)


def test_equal_sample_weights_change_nothing(case):
    plain = find_weights(case.forest, case.queries)
    equal = find_weights(case.forest, case.queries, sample_weight=np.full(N_TRAIN, 3, np.float32))
    assert np.array_equal(plain.ranks, equal.ranks)
    np.testing.assert_allclose(plain.values, equal.values, rtol=1e-12)


def test_trees_that_drew_a_query_are_left_out(cases):
    in_bag = np.random.default_rng(2).integers(0, 256, (30, 3)).astype(np.uint8)
    found = find_weights(cases.forest, cases.queries, in_bag=in_bag)
    assert_sparse_rows(found)
    expected = weights_by_loops(cases.forest, cases.queries, in_bag=in_bag)
    np.testing.assert_allclose(to_dense(found), expected, atol=1e-13)


def test_a_query_that_every_tree_drew_has_an_empty_row(case):
    in_bag = np.zeros((30, 3), np.uint8)
    in_bag[[0, 7, 29]] = 255
    found = find_weights(case.forest, case.queries, in_bag=in_bag)
    assert_sparse_rows(found)
    lengths = np.diff(found.offsets)
    assert np.flatnonzero(lengths == 0).tolist() == [0, 7, 29]
    whole = to_dense(find_weights(case.forest, case.queries))
    whole[[0, 7, 29]] = 0
    np.testing.assert_array_equal(to_dense(found), whole)


def test_no_row_has_a_weight_on_itself_out_of_bag(cases):
    in_bag = in_bag_bits(cases.sampling, range(N_TREES), SEED)
    found = find_weights(cases.forest, cases.train_queries, in_bag=in_bag)
    own_rank = np.argsort(cases.sampling.unit_of_row)
    assert not to_dense(found)[np.arange(N_TRAIN), own_rank].any()
    whole = find_weights(cases.forest, cases.train_queries)
    assert to_dense(whole)[np.arange(N_TRAIN), own_rank].any()


def test_a_query_has_the_same_weights_alone_as_with_others(case):
    whole = to_dense(find_weights(case.forest, case.queries))
    for q in range(30):
        alone = find_weights(case.forest, case.queries[[q]])
        np.testing.assert_array_equal(to_dense(alone)[0], whole[q])


def test_no_queries_have_no_weights(case):
    found = find_weights(case.forest, case.queries[:0])
    assert found.offsets.tolist() == [0]
    assert len(found.ranks) == len(found.values) == 0
    assert chunk_queries(case.forest, case.queries[:0], N_TRAIN) == []


def test_weights_by_hand():
    # Ranks 63 and 64 are in different words of bits; a row drawn twice counts twice.
    forest = make_leaves_only([0, 2, 6], [0, 64, 63, 64, 64, 127])
    found = find_weights(forest, np.zeros((1, 1), np.uint8), 128)
    assert found.ranks.tolist() == [0, 63, 64, 127]
    assert found.values == pytest.approx([1 / 4, 1 / 8, 1 / 4 + 1 / 4, 1 / 8])


@pytest.mark.parametrize("n_train", [63, 64, 65, 4095, 4096, 4097, 400_000])
def test_ranks_in_any_word(n_train):
    rng = np.random.default_rng(n_train)
    leaves = [np.sort(rng.integers(0, n_train, size)) for size in (5, 1, 40, 90)]
    leaves[1][:] = n_train - 1
    rows = np.concatenate(leaves)
    forest = make_leaves_only([0, 5, 6, 46, 136], rows)
    found = find_weights(forest, np.zeros((3, 1), np.uint8), n_train)
    expected = np.zeros(n_train)
    for leaf in leaves:
        np.add.at(expected, leaf, 1 / len(leaf) / 4)
    for q in range(3):
        row = slice(found.offsets[q], found.offsets[q + 1])
        assert found.ranks[row].tolist() == np.unique(rows).tolist()
        assert found.values[row] == pytest.approx(expected[np.unique(rows)])


def test_an_empty_leaf_is_skipped_in_the_average():
    forest = make_leaves_only([0, 2, 2, 3], [4, 5, 5])
    found = find_weights(forest, np.zeros((2, 1), np.uint8), 6)
    assert found.ranks.tolist() == [4, 5, 4, 5]
    assert found.values == pytest.approx([1 / 4, 3 / 4] * 2)


@pytest.mark.parametrize("with_bag", [False, True])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_the_size_of_a_chunk_changes_nothing(case, monkeypatch, with_bag, n_jobs):
    rng = np.random.default_rng(4)
    in_bag = rng.integers(0, 256, (30, 3)).astype(np.uint8) if with_bag else None
    sample_weight = make_sample_weight(rng)
    expected = find_weights(case.forest, case.queries, N_TRAIN, sample_weight, in_bag)
    n_chunks = set()
    for most in (1, 3 * N_TRAIN, 7 * N_TRAIN, 10**9):
        monkeypatch.setattr(module, "CHUNK_WEIGHTS", most)
        chunks = chunk_queries(case.forest, case.queries, N_TRAIN, in_bag, n_jobs)
        n_chunks.add(len(chunks))
        # Every query is in one chunk, in its place.
        assert np.concatenate([np.arange(30)[rows] for rows in chunks]).tolist() == list(range(30))
        parts = []
        for rows in chunks:
            bag = None if in_bag is None else in_bag[rows]
            parts.append(find_weights(case.forest, case.queries[rows], N_TRAIN, sample_weight, bag))
        lengths = np.concatenate([np.diff(part.offsets) for part in parts])
        assert np.array_equal(lengths, np.diff(expected.offsets))
        for name in ("ranks", "values"):
            joined = np.concatenate([getattr(part, name) for part in parts])
            assert np.array_equal(joined, getattr(expected, name))
    assert max(n_chunks) == 30
    assert min(n_chunks) == n_jobs


def test_a_chunk_is_no_larger_where_most_rows_are_alike(monkeypatch):
    """Queries reach the few large leaves, and not those of average size."""
    rng = np.random.default_rng(0)
    X = np.where(np.arange(4000) % 10, 0.0, rng.uniform(1, 2, 4000))[:, np.newaxis]
    estimator = CensoredQuantileForest(n_estimators=20, min_samples_split=2, random_state=0)
    forest = estimator.fit(X, rng.exponential(size=4000)).model_.forest
    sizes = np.diff(forest.leaf_offsets)
    assert sizes.max() > 100 * np.median(sizes)
    monkeypatch.setattr(module, "CHUNK_WEIGHTS", 20_000)
    # The value 0, the smallest, has the code 0.
    queries = np.zeros((300, 1), np.uint8)
    chunks = chunk_queries(forest, queries, 4000, n_jobs=1)
    lengths = [len(find_weights(forest, queries[rows], 4000).ranks) for rows in chunks]
    assert len(lengths) > 10
    assert max(lengths) <= 20_000 + 4000


@pytest.mark.parametrize("with_bag", [False, True])
@pytest.mark.parametrize("largest", [0, 20, 39, 63])
def test_the_largest_of_the_probes_decides_the_size_of_a_chunk(monkeypatch, largest, with_bag):
    """One of 64 queries has many neighbours: it counts only if it is one of the 16 probes."""
    asked = []

    def fake_leaves(forest, queries, in_bag=None):
        assert (in_bag is None) is not with_bag
        asked.append(queries[:, 0].tolist())
        if with_bag:  # the bits are those of the same queries
            assert in_bag[:, 0].tolist() == queries[:, 0].tolist()
        sizes = np.where(queries == largest, 50, 2).astype(np.int32)
        return Leaves(np.zeros((len(queries), 2), np.int64), np.repeat(sizes, 2, axis=1))

    monkeypatch.setattr(module, "find_leaves", fake_leaves)
    monkeypatch.setattr(module, "CHUNK_WEIGHTS", 200)
    queries = np.arange(64, dtype=np.uint8)[:, np.newaxis]
    in_bag = queries.copy() if with_bag else None
    for n_train in (1000, 80, 3):
        asked.clear()
        forest = SimpleNamespace(roots=np.zeros(2))
        chunks = chunk_queries(forest, queries, n_train, in_bag, n_jobs=1)
        if 64 * n_train <= 200:
            assert asked == []
            continue
        assert asked == [list(range(0, 64, 4))]
        neighbors = min(n_train, 100 if largest in asked[0] else 4)
        n_chunks = -(-64 * neighbors // 200)
        assert max(rows.stop - rows.start for rows in chunks) == -(-64 // n_chunks)


def test_few_weights_are_one_chunk_without_probes(monkeypatch):
    monkeypatch.setattr(module, "find_leaves", None)
    monkeypatch.setattr(module, "CHUNK_WEIGHTS", 64 * 3)
    queries, forest = np.zeros((64, 1), np.uint8), SimpleNamespace(roots=np.zeros(2))
    assert chunk_queries(forest, queries, 3, n_jobs=1) == [slice(0, 64)]
    assert chunk_queries(forest, queries[:0], 3, n_jobs=1) == []


def test_a_chunk_holds_few_leaves_whatever_the_number_of_trees(case, monkeypatch):
    n_trees = len(case.forest.roots)
    for per_chunk in (1, 3, 10):
        monkeypatch.setattr(module, "CHUNK_LEAVES", per_chunk * n_trees)
        chunks = chunk_queries(case.forest, case.queries, N_TRAIN, n_jobs=1)
        assert max(rows.stop - rows.start for rows in chunks) <= per_chunk
        assert np.concatenate([np.arange(30)[rows] for rows in chunks]).tolist() == list(range(30))
