"""Random numbers: keyed permutations are bijections and pass tests of uniform draws."""

import math
from itertools import pairwise, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2

from cqrf._runtime import random
from cqrf._runtime.compiling import kernel
from cqrf._runtime.random import derive, draw_without_replacement

WORD = 2**64
seeds = st.integers(0, WORD - 1).map(np.uint64)

# Draws are fixed by these seeds, so a test passes always or never; a fair source stays
# above this bound in 999 of 1000 choices of the seed.
FAIR = 1e-3


@kernel
def mix(word):
    return random.mix(word)


@kernel
def below(word, n):
    return random.below(word, n)


def mix_by_integers(x: int) -> int:
    x = (x + 0x9E3779B97F4A7C15) % WORD
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 % WORD
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB % WORD
    return x ^ (x >> 31)


def uniform_p_value(counts: np.ndarray) -> float:
    """P-value of the chi-square test that all cells are equally likely."""
    expected = counts.sum() / counts.size
    return float(chi2.sf(((counts - expected) ** 2 / expected).sum(), counts.size - 1))


def tree_seeds(n: int) -> list[np.uint64]:
    """Seeds as the forest derives them: those of numbered trees, from a small seed."""
    return list(derive(derive(0, np.arange(n)), 0))


def test_mix_gives_the_published_output_of_splitmix64():
    # The first three outputs of the generator started at 0: its state grows by a constant.
    states = [0, 0x9E3779B97F4A7C15, 2 * 0x9E3779B97F4A7C15 % WORD]
    expected = [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]
    assert [int(mix(np.uint64(state))) for state in states] == expected


@given(seeds, st.integers(0, 2**40))
def test_derive_matches_plain_integers(seed, number):
    assert int(mix(seed)) == mix_by_integers(int(seed))
    assert int(derive(seed, number)) == mix_by_integers(mix_by_integers(int(seed)) ^ number)
    many = derive(np.array([seed, 0, 5], np.uint64)[:, np.newaxis], [number, 7])
    expected = [
        [mix_by_integers(mix_by_integers(int(s)) ^ k) for k in (number, 7)] for s in (seed, 0, 5)
    ]
    assert many.tolist() == expected


def test_derived_seeds_do_not_collide():
    children = {int(derive(np.uint64(s), t)) for s in range(100) for t in range(100)}
    assert len(children) == 100 * 100


@given(seeds, st.integers(1, 2**32 - 1))
def test_below_stays_below(word, n):
    assert below(word, n) == ((int(word) >> 32) * n) >> 32
    assert 0 <= below(word, n) < n


@given(seeds, st.integers(1, 600))
def test_the_keyed_permutation_is_a_bijection(seed, n):
    assert sorted(draw_without_replacement(seed, n, n).tolist()) == list(range(n))


@given(seeds, st.integers(1, 600))
def test_the_keyed_permutation_is_that_of_plain_integers(seed, n):
    bits = max(8, math.ceil(math.log2(n)))
    words = [mix_by_integers(mix_by_integers(int(seed)) ^ k) for k in range(12)]

    def image(x):
        for r in range(6):
            x = (x * (words[2 * r] | 1) + words[2 * r + 1]) % 2**bits
            x ^= x >> ((bits + 1) // 2)
        return x if x < n else image(x)

    drawn = draw_without_replacement(seed, n, min(n, 20))
    assert drawn.tolist() == [image(i) for i in range(min(n, 20))]


@pytest.mark.parametrize("n", [*range(1, 40), 255, 256, 257, 511, 512, 513, 4095, 4096, 4097])
def test_drawing_everything_draws_each_row_once(n):
    for seed in range(20):
        assert sorted(draw_without_replacement(np.uint64(seed), n, n)) == list(range(n))


def test_a_large_permutation_is_a_bijection():
    n = (1 << 20) + 7
    drawn = draw_without_replacement(np.uint64(3), n, n)
    assert np.array_equal(np.sort(drawn), np.arange(n))


@given(seeds, st.integers(1, 500), st.data())
def test_a_smaller_draw_is_the_start_of_a_larger_one(seed, n, data):
    small = data.draw(st.integers(0, n))
    whole = draw_without_replacement(seed, n, n)
    assert np.array_equal(draw_without_replacement(seed, n, small), whole[:small])


@given(seeds, st.integers(1, 300), st.integers(0, 300))
def test_the_same_seed_draws_the_same(seed, n, size):
    rows = draw_without_replacement(seed, n, min(size, n))
    assert np.array_equal(rows, draw_without_replacement(int(seed), n, min(size, n)))
    assert ((rows >= 0) & (rows < n)).all()


def test_different_seeds_draw_differently():
    drawn = {tuple(draw_without_replacement(seed, 100, 50).tolist()) for seed in range(2000)}
    assert len(drawn) == 2000


def test_every_order_of_four_is_equally_likely():
    orders = {order: i for i, order in enumerate(permutations(range(4)))}
    counts = np.zeros(len(orders))
    for seed in tree_seeds(24_000):
        counts[orders[tuple(draw_without_replacement(seed, 4, 4).tolist())]] += 1
    assert uniform_p_value(counts) > FAIR


@pytest.mark.parametrize("n", [2, 3, 7, 10, 16])
def test_ordered_pairs_of_places_are_equally_likely(n):
    # Two places of a permutation: each ordered pair of different rows is equally likely.
    orders = np.array([draw_without_replacement(seed, n, n) for seed in tree_seeds(12_000)])
    for first, second in {(0, 1), (0, n - 1), (n // 2, n - 1), (n // 2 - 1, n // 2)}:
        if first == second:
            continue
        counts = np.zeros((n, n))
        np.add.at(counts, (orders[:, first], orders[:, second]), 1)
        assert not np.diag(counts).any()
        assert uniform_p_value(counts[~np.eye(n, dtype=bool)]) > FAIR


@pytest.mark.parametrize(("n", "size"), [(5, 2), (10, 5), (20, 10), (60, 38), (300, 150)])
def test_rows_and_pairs_of_rows_are_drawn_equally_often(n, size):
    repeats = 6000
    drawn = np.zeros((repeats, n))
    for r, seed in enumerate(tree_seeds(repeats)):
        drawn[r, draw_without_replacement(seed, n, size)] = 1
    together = drawn.T @ drawn

    share = size / n
    single = np.diag(together)
    # A draw's size is fixed, so the counts' covariance has rank n - 1 and this scale.
    scale = repeats * share * (1 - share) * n / (n - 1)
    assert chi2.sf(((single - repeats * share) ** 2 / scale).sum(), n - 1) > FAIR

    share = size * (size - 1) / (n * (n - 1))
    pairs = together[np.triu_indices(n, 1)]
    z = (pairs - repeats * share) / math.sqrt(repeats * share * (1 - share))
    # No pair deviates more than the largest of so many normal deviates would.
    assert len(z) * math.erfc(np.abs(z).max() / math.sqrt(2)) > FAIR


def test_numbers_below_n_from_one_seed_are_uniform_and_independent():
    n, words = 12, derive(8, np.arange(60_000))
    drawn = [int(below(word, n)) for word in words]
    assert uniform_p_value(np.bincount(drawn, minlength=n)) > FAIR
    after = np.zeros((n, n))
    for first, second in pairwise(drawn):
        after[first, second] += 1
    assert uniform_p_value(after) > FAIR
