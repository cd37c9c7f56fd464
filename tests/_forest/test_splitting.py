"""Splitting: the kernel finds what trying every split finds."""

from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cqrf._forest import categories, splitting
from cqrf._forest.histograms import MANY_ROWS
from cqrf._forest.spec import MISSING, N_BINS
from cqrf._forest.splitting import Node
from cqrf._runtime.compiling import kernel
from oracles.criteria import CRITERIA, in_order
from oracles.splitting import (
    all_subsets,
    best_gain_by_force,
    cost_of_order,
    gain_of,
    make_table,
    node_truth,
    ordered_categories,
    sets_that_go_left,
)
from support.labelling import make_rows, write_labels
from support.splits import FoundSplit


@kernel
def best_cut(node, first, last, n_before, count_below, running):
    return splitting.best_cut(node, first, last, n_before, count_below, running)


@kernel
def order_by_label(bins, n_bins, sums, direction, score):
    categories.order_by_label(bins, n_bins, sums, direction, score)


def make_rng(criterion, *others):
    return np.random.default_rng([*others, CRITERIA.index(criterion)])


def make_node(rng, categorical, weighted=False, n=50, share=0.8, **table):
    """A table, and some of its rows as a node."""
    codes, time, event, weight = make_table(rng, n=n, n_features=len(categorical), **table)
    here = np.flatnonzero(rng.random(n) < share).astype(np.uint32)
    weight = weight if weighted else None
    return make_rows(time, event, weight, None, codes, np.array(categorical)), here


def make_column(column, time=None, event=None, weight=None):
    """A table with one numeric feature, by default without censoring."""
    time = np.arange(len(column), dtype=float) if time is None else time
    event = np.ones(len(column), bool) if event is None else event
    return make_rows(time, event, weight, codes=column.astype(np.uint8)[np.newaxis])


def truth_of(criterion, rows, here, entry=None):
    return node_truth(criterion, rows.time, rows.event, rows.weight, here, entry)


def cut_in_order(_, column):
    return sets_that_go_left(column)


def categories_of(rows):
    """Which features are categories; kernels take None where none is."""
    return [False] * len(rows.codes) if rows.categorical is None else rows.categorical


def assert_split_is_best(split, truth, w, min_child, candidates_of=cut_in_order):
    columns = split.rows.codes[:, split.here]
    costs = [
        cost_of_order(column, *truth, w, split.criterion == "quantile") if is_category else 0.0
        for column, is_category in zip(columns, categories_of(split.rows), strict=True)
    ]
    best = best_gain_by_force(columns, candidates_of, truth, w, min_child, costs)
    assert split.gain == pytest.approx(best, rel=1e-9, abs=1e-9)
    if best < 1e-9:
        return
    left = split.left()
    assert min(left.sum(), (~left).sum()) >= min_child
    assert gain_of(left, *truth, w) - costs[split.feature] == pytest.approx(best, rel=1e-9)
    assert split.saw_missing == (columns[split.feature] == MISSING).any()


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_no_split_of_numeric_features_is_better(criterion, weighted, missing):
    rng = make_rng(criterion, weighted, int(10 * missing))
    for min_child in (1, 1, 4, 9):
        rows, here = make_node(rng, [False] * 3, weighted, missing=missing)
        split = FoundSplit(criterion, rows, here, min_child)
        assert_split_is_best(split, *truth_of(criterion, rows, here), min_child)


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("weighted", [False, True])
def test_no_split_of_a_node_of_many_rows_is_better(criterion, weighted):
    # Their bins are not marked but known by their weight.
    rng = make_rng(criterion, 10, weighted)
    rows, here = make_node(
        rng, [False, True, False], weighted, n=MANY_ROWS + 150, share=0.9, missing=0.1
    )
    assert len(here) > MANY_ROWS
    truth, w = truth_of(criterion, rows, here)
    orders = [None] * 3
    orders[1] = ordered_categories(rows.codes[1, here], *truth, w, criterion == "quantile")
    for min_child in (1, 200):
        split = FoundSplit(criterion, rows, here, min_child)
        assert_split_is_best(
            split, truth, w, min_child, lambda j, c: sets_that_go_left(c, orders[j])
        )


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("weighted", [False, True])
def test_no_split_is_better_with_delayed_entry(criterion, weighted):
    rng = make_rng(criterion, 9, weighted)
    for min_child in (1, 5):
        codes, time, event, weight = make_table(rng, missing=0.2)
        entry = np.where(rng.random(50) < 0.7, np.floor(rng.random(50) * time) - 1, -np.inf)
        here = np.flatnonzero(rng.random(50) < 0.8).astype(np.uint32)
        rows = make_rows(time, event, weight if weighted else None, entry, codes)
        split = FoundSplit(criterion, rows, here, min_child)
        assert_split_is_best(split, *truth_of(criterion, rows, here, entry), min_child)


@pytest.mark.parametrize("criterion", ["variance", "logrank"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_no_two_sets_of_categories_are_better_for_one_label(criterion, weighted, missing):
    rng = make_rng(criterion, 7, weighted, int(10 * missing))
    for _ in range(4):
        rows, here = make_node(rng, [True] * 2, weighted, missing=missing, n_codes=6)
        split = FoundSplit(criterion, rows, here)
        truth, w = truth_of(criterion, rows, here)
        assert_split_is_best(split, truth, w, 1, lambda _, c: all_subsets(c))


@pytest.mark.parametrize("criterion", ["quantile", "censored_quantile"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_categories_are_cut_at_the_best_place_in_the_order_of_their_mean_label(
    criterion, weighted, missing
):
    rng = make_rng(criterion, 8, weighted, int(10 * missing))
    for min_child in (1, 1, 5):
        rows, here = make_node(rng, [True] * 2, weighted, missing=missing, n_codes=6)
        split = FoundSplit(criterion, rows, here, min_child)
        truth, w = truth_of(criterion, rows, here)
        orders = [
            ordered_categories(column, *truth, w, criterion == "quantile")
            for column in rows.codes[:, here]
        ]
        assert_split_is_best(
            split, truth, w, min_child, lambda j, c, o=orders: sets_that_go_left(c, o[j])
        )


@pytest.mark.parametrize("criterion", CRITERIA)
def test_the_best_of_numeric_features_and_categories_is_chosen(criterion):
    rng = make_rng(criterion)
    categorical = np.array([False, True, False, True])
    chosen = set()
    for i in range(12):
        rows, here = make_node(rng, categorical, share=1, missing=0.1, n_codes=5, driver=i % 4)
        split = FoundSplit(criterion, rows, here)
        # A feature is alone if all others do not vary.
        alone = []
        for j in range(4):
            codes = np.zeros_like(rows.codes)
            codes[j] = rows.codes[j]
            alone.append(FoundSplit(criterion, rows._replace(codes=codes), here))
        assert all(one.feature in (-1, j) for j, one in enumerate(alone))
        winner = alone[split.feature]
        assert split.gain == winner.gain == max(one.gain for one in alone)
        assert np.array_equal(split.left(), winner.left())
        chosen.add(bool(categorical[split.feature]))
    assert chosen == {False, True}


BINS = st.lists(st.tuples(st.integers(1, 5), st.integers(0, 9)), min_size=1, max_size=8)


def cut(score, mass_below, count_below, n, mass, min_child, open_end, n_before):
    """Call best_cut on these bins."""
    running = np.full((4, N_BINS), np.nan)
    for row, values in enumerate((mass_below, score, count_below)):
        running[row, : len(values)] = values
    node = Node(np.empty(n, np.uint32), None, float(mass), float(min_child))
    last = len(score) if open_end else len(score) - 1
    return best_cut(node, 0, last, n_before, running[2], running)


@given(BINS, st.integers(0, 4), st.integers(0, 4), st.integers(1, 9), st.booleans())
def test_a_sequence_of_bins_is_cut_at_its_best_place(bins, n_before, n_behind, min_child, weighted):
    # Each bin has some rows and a score; other rows are before the first and behind the last.
    weight = 3 if weighted else 1
    inside = np.cumsum([count for count, _ in bins])
    score = np.array([score for _, score in bins], float)
    n = int(inside[-1]) + n_before + n_behind
    mass_below, mass = weight * (inside + n_before), weight * n
    # Without weights the rows before the first bin are in the running weight already.
    count_below, before = (inside, n_before) if weighted else (mass_below, 0)
    allowed = {}
    for place, left in enumerate(inside + n_before):
        if min(left, n - left) >= min_child and (n_behind > 0 or place < len(bins) - 1):
            allowed[place] = mass * score[place] / (mass_below[place] * (mass - mass_below[place]))
    place, best = cut(score, mass_below, count_below, n, mass, min_child, n_behind > 0, before)
    assert best == pytest.approx(max([0.0, *allowed.values()]), rel=1e-12)
    if best > 0:
        assert allowed[place] == pytest.approx(best, rel=1e-12)


def test_of_two_places_that_are_as_good_the_first_is_taken():
    below, score = [2.0, 4, 6, 8], [3.0, 4, 3, 0]
    for worse, place in ((4.0, 0), (4.1, 1), (3.0, 0)):
        score[1] = worse
        found = cut(score, below, below, 8, 8, 1, False, 0)
        assert found == (place, 8 * max(3 / 12, worse / 16))


def test_a_side_whose_weight_is_lost_in_rounding_is_not_cut_off():
    # The second bin adds a weight that the sum of weights is too large to hold.
    assert cut([1.0, 1.0], [1.0, 1.0], [1, 2], 3, 1.0, 1, True, 0)[1] == 0.0


@given(st.sets(st.integers(0, 254), min_size=1), st.integers(1, 3), st.integers(0, 10**6))
def test_categories_are_ordered_by_mean_label_and_ties_by_code(codes, n_pairs, seed):
    rng = np.random.default_rng(seed)
    sums = rng.integers(-2, 3, (N_BINS, 2 * n_pairs)).astype(float)
    sums[:, 0] = rng.integers(1, 4, N_BINS)
    direction = rng.integers(-2, 3, 2 * n_pairs).astype(float)
    direction[0] = 0.0

    def mean_label(code):
        return Fraction(int(direction @ sums[code]), int(sums[code, 0]))

    bins = np.full(N_BINS + 1, 999, np.uint64)
    bins[: len(codes)] = sorted(codes)
    order_by_label(bins, len(codes), sums, direction, np.full(N_BINS, np.nan))
    expected = sorted(codes, key=lambda code: (mean_label(code), code))
    assert bins[: len(codes)].tolist() == expected


def test_categories_of_the_same_mean_class_are_ordered_by_code():
    # Classes of ten, twenty and ten rows; the mean class of each group of rows is the middle one.
    time, event, _ = in_order(range(40), [True] * 40)
    node = write_labels("quantile", make_rows(time, event), levels=(0.25, 0.75))
    groups = ([0, 30], [10], [11, 12], [1, 13, 31])
    for by_code in permutations(groups):
        sums = np.zeros((N_BINS, node.labels.shape[1]))
        for code, rows in enumerate(by_code):
            for row in rows:
                sums[code] += node.labels[row]
        bins = np.arange(N_BINS + 1, dtype=np.uint64)
        order_by_label(bins, 4, sums, node.direction, np.full(N_BINS, np.nan))
        assert bins[:4].tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("criterion", CRITERIA)
def test_missing_values_alone_may_be_split_from_the_rest(criterion):
    column = np.random.default_rng(0).integers(0, 5, 40)
    column[25:] = MISSING
    split = FoundSplit(criterion, make_column(column))
    assert np.array_equal(split.left(), np.arange(40) < 25)
    assert split.saw_missing
    assert not split.missing_left
    # Values larger than any in the node are not missing ones: they go left.
    assert split.code == MISSING - 1


@pytest.mark.parametrize("late", [True, False])
def test_missing_values_go_to_the_side_they_resemble(late):
    column = (np.arange(40) >= 20).astype(np.uint8)
    column[30:36] = MISSING
    if not late:
        column = column[::-1].copy()
        column[column < MISSING] = 1 - column[column < MISSING]
    split = FoundSplit("censored_quantile", make_column(column))
    assert np.array_equal(split.left(), np.arange(40) < 20)
    assert split.missing_left == (not late)


def test_a_threshold_lies_half_way_between_two_occupied_bins():
    for low, high, middle in ((3, 4, 3), (3, 5, 3), (3, 6, 4), (0, 254, 126), (10, 20, 14)):
        column = np.where(np.arange(20) < 10, low, high)
        assert FoundSplit("variance", make_column(column)).code == middle


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("weighted", [False, True])
def test_both_children_keep_enough_rows_or_there_is_no_split(criterion, weighted):
    # One row is far from all others: without the rule it would be cut off alone.
    target = in_order([*range(19), 10_000], [True] * 20, [0.25] * 19 + [2] if weighted else None)
    column = np.arange(20)
    column[12:15] = MISSING
    rows = make_column(column, *target)
    for min_child in range(1, 11):
        split = FoundSplit(criterion, rows, min_child=min_child)
        assert min_child <= split.left().sum() <= 20 - min_child
    too_many = FoundSplit(criterion, rows, min_child=11)
    assert too_many.feature == -1
    assert too_many.gain == 0


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("criterion", CRITERIA)
def test_features_that_do_not_vary_give_no_split(criterion, weighted):
    codes = np.repeat(np.array([[0], [9], [254], [MISSING]], np.uint8), 50, axis=1)
    for categorical in ([False] * 4, [True] * 4):
        rows, _ = make_node(np.random.default_rng(0), categorical, weighted)
        assert FoundSplit(criterion, rows._replace(codes=codes)).feature == -1


def test_a_feature_that_does_not_vary_is_not_a_candidate():
    rng = np.random.default_rng(1)
    rows, here = make_node(rng, [False] * 30, share=1)
    varying = rows.codes[17].copy()
    rows.codes[:] = rng.integers(0, 256, (30, 1))
    rows.codes[17] = varying
    for seed in range(40):
        assert FoundSplit("variance", rows, here, n_candidates=1, seed=seed).feature == 17


@pytest.mark.slow
def test_only_as_many_varying_features_are_tried_as_there_are_candidates():
    # Feature j is better than feature j - 1, so the one chosen is the best of those drawn. The
    # best of m drawn from p is the last in m / p of all draws.
    n, p = 60, 6
    rng = np.random.default_rng(2)
    codes = np.zeros((p, n), np.uint8)
    for j in range(p):
        codes[j] = np.arange(n) >= n // 2
        wrong = rng.choice(n, 4 * (p - 1 - j), replace=False)
        codes[j, wrong] = 1 - codes[j, wrong]
    rows = make_rows(np.arange(n, dtype=float), np.ones(n, bool), codes=codes)
    for m in (1, 2, 4, 6):
        chosen = np.zeros(p)
        for seed in range(1200):
            split = FoundSplit("variance", rows, n_candidates=m, seed=seed)
            chosen[split.feature] += 1
            assert sorted(split.work.features) == list(range(p))
        assert chosen[: m - 1].sum() == 0
        assert chosen[-1] / 1200 == pytest.approx(m / p, abs=0.05)


def test_the_random_word_changes_with_every_draw():
    rows, here = make_node(np.random.default_rng(3), [False] * 5, share=1)
    words = {
        int(FoundSplit("variance", rows, here, n_candidates=m, seed=4).random_word)
        for m in range(1, 6)
    }
    assert len(words) == 5
