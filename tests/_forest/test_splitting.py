"""Splitting: the kernel finds what trying every split finds."""

from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from cqrf._forest.labels import CENSORED_QUANTILE, LOGRANK, QUANTILE, VARIANCE
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

from cqrf._forest import splitting as room
from cqrf._forest.histograms import MANY_ROWS, MISSING, N_BINS
from cqrf._forest.splitting import best_cut
from oracles.criteria import CRITERIA, in_order
from oracles.splitting import (
    all_subsets,
    best_gain_by_force,
    gain_of,
    left_rows,
    make_table,
    node_truth,
    ordered_categories,
    sets_that_go_left,
)
from support.labelling import write_labels


@njit
def find_split(*arguments):
    return room.find_split(*arguments)


@njit
def order_by_label(*arguments):
    room.order_by_label(*arguments)


class Split:
    """A call of find_split on a node, with scratch full of NaN where it may be."""

    def __init__(
        self, codes, categorical, time, event, weight, criterion, rows,
        min_child=1, n_candidates=None, seed=0, entry=None,
    ):  # fmt: skip
        node = write_labels(criterion, time, event, weight, rows, entry=entry)
        assert node.mixed
        width = node.labels.shape[1]
        self.seen = np.zeros(N_BINS, np.uint8)
        self.count = None if weight is None else np.zeros(N_BINS, np.int32)
        self.sums = np.zeros((N_BINS, width))
        self.features = np.arange(len(codes), dtype=np.int32)
        subsets = np.full((2, 4), 2**64 - 1, np.uint64)
        self.subset = subsets[1]
        (
            self.feature,
            self.code,
            self.missing_left,
            self.saw_missing,
            self.gain,
            self.random_word,
        ) = find_split(
            codes,
            categorical if categorical.any() else None,
            rows,
            node.labels,
            (0,) * (width // 2),
            node.direction,
            node.mass,
            float(min_child),
            self.features,
            len(codes) if n_candidates is None else n_candidates,
            np.uint64(seed),
            self.count,
            subsets,
            1,
            self.seen,
            self.sums,
            np.full(N_BINS + 1, 999, np.uint64),
            np.full((4, N_BINS), np.nan),
            np.full(width, np.nan),
        )
        self.categorical = categorical
        assert (subsets[0] == 2**64 - 1).all()

    def left_codes(self):
        if self.categorical[self.feature]:
            return [c for c in range(256) if (int(self.subset[c >> 6]) >> (c & 63)) & 1]
        return list(range(self.code + 1))

    def left(self, codes, rows):
        return left_rows(codes[self.feature, rows], self.left_codes(), self.missing_left)

    def is_clean(self):
        used = [self.seen, self.sums] + ([] if self.count is None else [self.count])
        return not any(array.any() for array in used)


def assert_split_is_best(
    split,
    codes,
    rows,
    truth,
    w,
    min_child,
    candidates_of=lambda _, column: sets_that_go_left(column),
):
    best = best_gain_by_force(codes[:, rows], candidates_of, truth, w, min_child)
    assert split.is_clean()
    assert split.gain == pytest.approx(best, rel=1e-9, abs=1e-9)
    if best < 1e-9:
        return
    left = split.left(codes, rows)
    assert min(left.sum(), (~left).sum()) >= min_child
    assert gain_of(left, *truth, w) == pytest.approx(best, rel=1e-9)
    assert split.saw_missing == (codes[split.feature, rows] == MISSING).any()


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_no_split_of_numeric_features_is_better(criterion, weighted, missing):
    rng = np.random.default_rng([criterion, weighted, int(10 * missing)])
    for min_child in (1, 1, 4, 9):
        codes, time, event, weight = make_table(rng, missing=missing)
        weight = weight if weighted else None
        # The node is part of a larger table.
        rows = np.flatnonzero(rng.random(50) < 0.8).astype(np.uint32)
        numeric = np.zeros(len(codes), bool)
        split = Split(codes, numeric, time, event, weight, criterion, rows, min_child)
        truth, w = node_truth(criterion, time, event, weight, rows)
        assert_split_is_best(split, codes, rows, truth, w, min_child)


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("weighted", [False, True])
def test_no_split_of_a_node_of_many_rows_is_better(criterion, weighted):
    # Their bins are not marked but known by their weight.
    rng = np.random.default_rng([10, criterion, weighted])
    n = MANY_ROWS + 150
    codes, time, event, weight = make_table(rng, n=n, missing=0.1)
    weight = weight if weighted else None
    rows = np.flatnonzero(rng.random(n) < 0.9).astype(np.uint32)
    assert len(rows) > MANY_ROWS
    truth, w = node_truth(criterion, time, event, weight, rows)
    categorical = np.array([False, True, False])
    orders = [None] * 3
    orders[1] = ordered_categories(codes[1, rows], *truth, w, criterion == QUANTILE)
    for min_child in (1, 200):
        split = Split(codes, categorical, time, event, weight, criterion, rows, min_child)
        assert_split_is_best(
            split, codes, rows, truth, w, min_child, lambda j, c: sets_that_go_left(c, orders[j])
        )


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("weighted", [False, True])
def test_no_split_is_better_where_rows_enter_late(criterion, weighted):
    rng = np.random.default_rng([9, criterion, weighted])
    for min_child in (1, 5):
        codes, time, event, weight = make_table(rng, missing=0.2)
        weight = weight if weighted else None
        entry = np.where(rng.random(50) < 0.7, np.floor(rng.random(50) * time) - 1, -np.inf)
        rows = np.flatnonzero(rng.random(50) < 0.8).astype(np.uint32)
        split = Split(
            codes, np.zeros(3, bool), time, event, weight, criterion, rows, min_child, entry=entry
        )
        truth, w = node_truth(criterion, time, event, weight, rows, entry)
        assert_split_is_best(split, codes, rows, truth, w, min_child)


@pytest.mark.parametrize("criterion", [VARIANCE, LOGRANK])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_no_two_sets_of_categories_are_better_for_a_mean(criterion, weighted, missing):
    rng = np.random.default_rng([7, criterion, weighted, int(10 * missing)])
    for _ in range(4):
        codes, time, event, weight = make_table(rng, missing=missing, n_features=2, n_codes=6)
        weight = weight if weighted else None
        rows = np.flatnonzero(rng.random(50) < 0.8).astype(np.uint32)
        categories = np.ones(len(codes), bool)
        split = Split(codes, categories, time, event, weight, criterion, rows)
        truth, w = node_truth(criterion, time, event, weight, rows)
        assert_split_is_best(split, codes, rows, truth, w, 1, lambda _, c: all_subsets(c))


@pytest.mark.parametrize("criterion", [QUANTILE, CENSORED_QUANTILE])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_categories_are_cut_at_the_best_place_in_the_order_of_their_mean_label(
    criterion, weighted, missing
):
    rng = np.random.default_rng([8, criterion, weighted, int(10 * missing)])
    for min_child in (1, 1, 5):
        codes, time, event, weight = make_table(rng, missing=missing, n_features=2, n_codes=6)
        weight = weight if weighted else None
        rows = np.flatnonzero(rng.random(50) < 0.8).astype(np.uint32)
        split = Split(codes, np.ones(2, bool), time, event, weight, criterion, rows, min_child)
        truth, w = node_truth(criterion, time, event, weight, rows)
        orders = [
            ordered_categories(column, *truth, w, criterion == QUANTILE)
            for column in codes[:, rows]
        ]
        assert_split_is_best(
            split, codes, rows, truth, w, min_child,
            lambda j, c, o=orders: sets_that_go_left(c, o[j]),
        )  # fmt: skip


@pytest.mark.parametrize("criterion", CRITERIA)
def test_numeric_features_and_categories_compete(criterion):
    rng = np.random.default_rng(criterion)
    chosen = set()
    for i in range(12):
        codes, time, event, _ = make_table(rng, missing=0.1, n_features=4, n_codes=5, driver=i % 4)
        categorical = np.array([False, True, False, True])
        rows = np.arange(50, dtype=np.uint32)
        split = Split(codes, categorical, time, event, None, criterion, rows)
        alone = [
            Split(codes[[j]], categorical[[j]], time, event, None, criterion, rows)
            for j in range(4)
        ]
        assert split.gain == max(one.gain for one in alone)
        assert split.gain == alone[split.feature].gain
        winner = alone[split.feature]
        assert np.array_equal(split.left(codes, rows), winner.left(codes[[split.feature]], rows))
        chosen.add(bool(categorical[split.feature]))
    assert chosen == {False, True}


BINS = st.lists(st.tuples(st.integers(1, 5), st.integers(0, 9)), min_size=1, max_size=8)


@given(BINS, st.integers(0, 4), st.integers(0, 4), st.integers(1, 9), st.booleans())
def test_a_sequence_is_cut_at_its_best_place(bins, n_before, n_behind, min_child, weighted):
    # Each bin has some rows and a score; other rows are before the first and behind the last.
    heavy = 3 if weighted else 1
    inside = np.cumsum([count for count, _ in bins]).astype(float)
    score = np.array([score for _, score in bins], float)
    n = inside[-1] + n_before + n_behind
    mass_below, mass = heavy * (inside + n_before), heavy * n
    count_below, before = (inside, n_before) if weighted else (mass_below, 0)
    allowed = {}
    for place, left in enumerate(inside + n_before):
        if min(left, n - left) >= min_child and (n_behind > 0 or place < len(bins) - 1):
            allowed[place] = mass * score[place] / (mass_below[place] * (mass - mass_below[place]))
    gain = np.full(N_BINS, np.nan)
    place, best = best_cut(
        len(bins), n, mass, min_child, n_behind > 0, before, mass_below, count_below, score, gain
    )
    assert best == pytest.approx(max([0.0, *allowed.values()]), rel=1e-12)
    if best > 0:
        assert allowed[place] == pytest.approx(best, rel=1e-12)


def test_of_two_places_that_are_as_good_the_first_is_taken():
    below, score = np.array([2.0, 4, 6, 8]), np.array([3.0, 4, 3, 0])
    for worse, place in ((4.0, 0), (4.1, 1), (3.0, 0)):
        score[1] = worse
        found = best_cut(4, 8.0, 8.0, 1.0, False, 0, below, below, score, np.full(4, np.nan))
        assert found == (place, 8 * max(3 / 12, worse / 16))


@given(st.sets(st.integers(0, 254), min_size=1), st.integers(1, 3), st.integers(0, 10**6))
def test_categories_stand_by_their_mean_label_and_ties_by_code(codes, n_pairs, seed):
    rng = np.random.default_rng(seed)
    sums = rng.integers(-2, 3, (N_BINS, 2 * n_pairs)).astype(float)
    sums[:, 0] = rng.integers(1, 4, N_BINS)
    direction = rng.integers(-2, 3, 2 * n_pairs).astype(float)

    def mean_label(code):
        return Fraction(int(direction @ sums[code]), int(sums[code, 0]))

    bins = np.full(N_BINS + 1, 999, np.uint64)
    bins[: len(codes)] = sorted(codes)
    order_by_label(bins, len(codes), sums, direction, np.full(N_BINS, np.nan))
    expected = sorted(codes, key=lambda code: (mean_label(code), code))
    assert bins[: len(codes)].tolist() == expected


def test_categories_of_the_same_mean_class_stand_by_code():
    # Classes of ten, twenty and ten rows; the mean class of each group of rows is the middle one.
    time, event, _ = in_order(range(40), [True] * 40)
    node = write_labels(QUANTILE, time, event, None, levels=(0.25, 0.75))
    groups = ([0, 30], [10], [11, 12], [1, 13, 31])
    for by_code in permutations(groups):
        sums = np.zeros((N_BINS, node.labels.shape[1]))
        for code, rows in enumerate(by_code):
            for row in rows:
                sums[code] += node.labels[row]
        bins = np.arange(N_BINS + 1, dtype=np.uint64)
        order_by_label(bins, 4, sums, node.direction, np.full(N_BINS, np.nan))
        assert bins[:4].tolist() == [0, 1, 2, 3]


def test_missing_values_alone_may_part_from_the_rest():
    time, event, _ = in_order(range(40), [True] * 40)
    column = np.random.default_rng(0).integers(0, 5, 40).astype(np.uint8)
    column[25:] = MISSING
    rows = np.arange(40, dtype=np.uint32)
    for criterion in CRITERIA:
        split = Split(column[None], np.zeros(1, bool), time, event, None, criterion, rows)
        assert np.array_equal(split.left(column[None], rows), np.arange(40) < 25)
        assert split.saw_missing
        assert not split.missing_left
        # Larger values than the node has seen are no missing ones.
        assert split.code == MISSING - 1


@pytest.mark.parametrize("late", [True, False])
def test_missing_values_join_the_side_they_resemble(late):
    time, event, _ = in_order(range(40), [True] * 40)
    column = (np.arange(40) >= 20).astype(np.uint8)
    column[30:36] = MISSING
    if not late:
        column = column[::-1].copy()
        column[column < MISSING] = 1 - column[column < MISSING]
    rows = np.arange(40, dtype=np.uint32)
    split = Split(column[None], np.zeros(1, bool), time, event, None, CENSORED_QUANTILE, rows)
    assert np.array_equal(split.left(column[None], rows), np.arange(40) < 20)
    assert split.missing_left == (not late)


def test_a_threshold_lies_half_way_between_two_occupied_bins():
    time, event, _ = in_order(range(20), [True] * 20)
    for low, high, middle in ((3, 4, 3), (3, 5, 3), (3, 6, 4), (0, 254, 126), (10, 20, 14)):
        column = np.where(np.arange(20) < 10, low, high).astype(np.uint8)
        rows = np.arange(20, dtype=np.uint32)
        split = Split(column[None], np.zeros(1, bool), time, event, None, VARIANCE, rows)
        assert split.code == middle


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("weighted", [False, True])
def test_both_children_keep_enough_rows_or_there_is_no_split(criterion, weighted):
    # One row is far from all others: without the rule it would be cut off alone.
    time, event, weight = in_order([*range(19), 10_000], [True] * 20, [0.25] * 19 + [2])
    weight = weight if weighted else None
    column = np.arange(20, dtype=np.uint8)
    column[12:15] = MISSING
    rows = np.arange(20, dtype=np.uint32)
    for min_child in range(1, 11):
        split = Split(
            column[None], np.zeros(1, bool), time, event, weight, criterion, rows, min_child
        )
        n_left = split.left(column[None], rows).sum()
        assert min_child <= n_left <= 20 - min_child
    too_many = Split(column[None], np.zeros(1, bool), time, event, weight, criterion, rows, 11)
    assert too_many.feature == -1
    assert too_many.gain == 0
    assert too_many.is_clean()


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("criterion", CRITERIA)
def test_features_that_do_not_vary_give_no_split(criterion, weighted):
    rng = np.random.default_rng(0)
    _, time, event, weight = make_table(rng)
    codes = np.repeat(np.array([[0], [9], [254], [MISSING]], np.uint8), 50, axis=1)
    for categorical in (np.zeros(4, bool), np.ones(4, bool)):
        split = Split(
            codes, categorical, time, event, weight if weighted else None, criterion,
            np.arange(50, dtype=np.uint32),
        )  # fmt: skip
        assert split.feature == -1
        assert split.is_clean()


def test_a_feature_that_does_not_vary_is_not_counted_as_drawn():
    rng = np.random.default_rng(1)
    codes, time, event, _ = make_table(rng, n_features=30)
    varying = codes[17].copy()
    codes[:] = rng.integers(0, 256, (30, 1))
    codes[17] = varying
    for seed in range(40):
        split = Split(
            codes, np.zeros(30, bool), time, event, None, VARIANCE,
            np.arange(50, dtype=np.uint32), n_candidates=1, seed=seed,
        )  # fmt: skip
        assert split.feature == 17


def test_only_as_many_varying_features_are_tried_as_asked():
    # Feature j beats feature j - 1, so the one chosen is the best of those drawn. The best of
    # m drawn from p is the last in m / p of all draws.
    n, p = 60, 6
    time, event, _ = in_order(range(n), [True] * n)
    rows = np.arange(n, dtype=np.uint32)
    rng = np.random.default_rng(2)
    codes = np.zeros((p, n), np.uint8)
    for j in range(p):
        codes[j] = np.arange(n) >= n // 2
        wrong = rng.choice(n, 4 * (p - 1 - j), replace=False)
        codes[j, wrong] = 1 - codes[j, wrong]
    for m in (1, 2, 4, 6):
        chosen = np.zeros(p)
        for seed in range(1200):
            split = Split(
                codes, np.zeros(p, bool), time, event, None, VARIANCE, rows,
                n_candidates=m, seed=seed,
            )  # fmt: skip
            chosen[split.feature] += 1
            assert sorted(split.features) == list(range(p))
        assert chosen[: m - 1].sum() == 0
        assert chosen[-1] / 1200 == pytest.approx(m / p, abs=0.05)


def test_the_random_word_moves_on_with_every_draw():
    rng = np.random.default_rng(3)
    codes, time, event, _ = make_table(rng, n_features=5)
    rows = np.arange(50, dtype=np.uint32)
    words = {
        m: int(
            Split(
                codes, np.zeros(5, bool), time, event, None, VARIANCE, rows,
                n_candidates=m, seed=4,
            ).random_word
        )
        for m in range(1, 6)
    }  # fmt: skip
    assert len(set(words.values())) == 5
