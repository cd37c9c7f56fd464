"""Kernels: the instructions against plain Python."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

from cqrf._runtime import compiling as kernel


@njit
def add_row(table, at, source, row, pairs):
    kernel.add_row(table, at, source, row, pairs)


@njit
def bits_of_bytes(seen, word):
    return kernel.bits_of_bytes(seen, word)


@njit
def trailing_zeros(word):
    return kernel.trailing_zeros(word)


def make_table(rng, n_rows, width):
    return rng.normal(0, 10.0 ** rng.integers(-9, 9, (n_rows, width)))


@given(st.integers(1, 5), st.integers(1, 9), st.integers(1, 9), st.integers(0, 10**6))
def test_a_row_is_added_to_another_and_to_none_beside_it(n_pairs, n_to, n_from, seed):
    rng = np.random.default_rng(seed)
    table, source = make_table(rng, n_to, 2 * n_pairs), make_table(rng, n_from, 2 * n_pairs)
    at, row = int(rng.integers(n_to)), int(rng.integers(n_from))
    expected, unchanged = table.copy(), source.copy()
    for k in range(2 * n_pairs):
        expected[at, k] += source[row, k]
    add_row(table, at, source, row, (0,) * n_pairs)
    assert np.array_equal(table, expected)
    assert np.array_equal(source, unchanged)


@pytest.mark.parametrize("kind", [np.uint8, np.uint32, np.uint64, np.int64])
def test_a_place_may_be_of_any_integer_kind(kind):
    table, source = np.zeros((256, 4)), np.arange(12.0).reshape(3, 4)
    add_row(table, kind(200), source, kind(2), (0, 0))
    add_row(table, kind(255), source, kind(1), (0, 0))
    assert table[200].tolist() == [8, 9, 10, 11]
    assert table[255].tolist() == [4, 5, 6, 7]
    assert np.count_nonzero(table) == 8


def test_a_row_may_be_added_to_itself():
    table = np.arange(8.0).reshape(2, 4)
    add_row(table, 1, table, 1, (0, 0))
    assert table.tolist() == [[0, 1, 2, 3], [8, 10, 12, 14]]


def test_a_table_may_start_at_any_number():
    # Rows of a view lie at no multiple of the width of four numbers.
    numbers = np.arange(13.0)
    add_row(numbers[1:].reshape(3, 4), 0, numbers[1:].reshape(3, 4), 2, (0, 0))
    assert numbers.tolist() == [0, 10, 12, 14, 16, 5, 6, 7, 8, 9, 10, 11, 12]


@given(st.dictionaries(st.integers(0, 255), st.integers(1, 255)), st.integers(0, 3))
def test_each_byte_of_a_word_is_a_bit_and_is_cleared(marks, word):
    seen = np.zeros(256, np.uint8)
    for place, mark in marks.items():
        seen[place] = mark
    inside = [place for place in marks if place // 64 == word]
    expected = seen.copy()
    expected[inside] = 0
    assert int(bits_of_bytes(seen, word)) == sum(1 << (place % 64) for place in inside)
    assert np.array_equal(seen, expected)


@given(st.integers(1, 2**64 - 1))
def test_trailing_zeros_are_the_place_of_the_lowest_bit(word):
    assert trailing_zeros(np.uint64(word)) == (word & -word).bit_length() - 1


def test_trailing_zeros_of_every_power_of_two():
    assert [trailing_zeros(np.uint64(1 << k)) for k in range(64)] == list(range(64))


@njit
def prefetch(values, place):
    kernel.prefetch(values, place)


@pytest.mark.parametrize("place", [0, 5, 6, 10**9, -(10**9)])
def test_asking_for_any_place_changes_nothing(place):
    values = np.arange(6, dtype=np.int32)
    prefetch(values, place)
    assert values.tolist() == list(range(6))
