"""Intrinsics: compiled and in plain Python, against their definition and each other."""

import inspect

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cqrf._runtime import intrinsics, plain_intrinsics
from cqrf._runtime.compiling import kernel

NAMES = ("add_row", "bits_of_bytes", "count_bits", "prefetch", "sum_rows", "trailing_zeros")


class Compiled:
    """Kernels that call one intrinsic each."""

    @staticmethod
    @kernel
    def add_row(table, at, source, row, pairs):
        intrinsics.add_row(table, at, source, row, pairs)

    @staticmethod
    @kernel
    def sum_rows(table, rows, n_rows, start, keep, first, squares, pairs):
        intrinsics.sum_rows(table, rows, n_rows, start, keep, first, squares, pairs)

    @staticmethod
    @kernel
    def bits_of_bytes(seen, word):
        return intrinsics.bits_of_bytes(seen, word)

    @staticmethod
    @kernel
    def trailing_zeros(word):
        return intrinsics.trailing_zeros(word)

    @staticmethod
    @kernel
    def count_bits(word):
        return intrinsics.count_bits(word)


forms = pytest.mark.parametrize("form", [Compiled, plain_intrinsics], ids=["compiled", "plain"])


def make_table(rng, n_rows, width):
    """Numbers of all sizes, so that the order of additions shows."""
    return rng.normal(0, 10.0 ** rng.integers(-9, 9, (n_rows, width)))


def test_every_intrinsic_has_a_plain_form_with_the_same_arguments():
    def public(module):
        return {
            name
            for name, value in vars(module).items()
            if callable(value)
            and getattr(value, "__module__", None) == module.__name__
            and not name.startswith("_")
        }

    assert public(plain_intrinsics) == set(NAMES)
    for name in NAMES:
        compiled = inspect.signature(getattr(intrinsics, name)._defn)
        plain = inspect.signature(getattr(plain_intrinsics, name))
        # The first argument of an intrinsic is the compiler's.
        assert list(compiled.parameters)[1:] == list(plain.parameters), name


@forms
@given(st.integers(1, 5), st.integers(1, 9), st.integers(1, 9), st.integers(0, 10**6))
def test_a_row_is_added_to_another_and_to_none_beside_it(form, n_pairs, n_to, n_from, seed):
    rng = np.random.default_rng(seed)
    table, source = make_table(rng, n_to, 2 * n_pairs), make_table(rng, n_from, 2 * n_pairs)
    at, row = int(rng.integers(n_to)), int(rng.integers(n_from))
    expected, unchanged = table.copy(), source.copy()
    for k in range(2 * n_pairs):
        expected[at, k] += source[row, k]
    form.add_row(table, at, source, row, (0,) * n_pairs)
    assert np.array_equal(table, expected)
    assert np.array_equal(source, unchanged)


@forms
@pytest.mark.parametrize("kind", [np.uint8, np.uint32, np.uint64, np.int64])
def test_a_place_may_be_of_any_integer_kind(form, kind):
    table, source = np.zeros((256, 4)), np.arange(12.0).reshape(3, 4)
    form.add_row(table, kind(200), source, kind(2), (0, 0))
    form.add_row(table, kind(255), source, kind(1), (0, 0))
    assert table[200].tolist() == [8, 9, 10, 11]
    assert table[255].tolist() == [4, 5, 6, 7]
    assert np.count_nonzero(table) == 8


@forms
def test_a_row_may_be_added_to_itself(form):
    table = np.arange(8.0).reshape(2, 4)
    form.add_row(table, 1, table, 1, (0, 0))
    assert table.tolist() == [[0, 1, 2, 3], [8, 10, 12, 14]]


@forms
def test_a_table_may_start_at_any_number(form):
    # Rows of this view are not aligned to four numbers.
    numbers = np.arange(13.0)
    form.add_row(numbers[1:].reshape(3, 4), 0, numbers[1:].reshape(3, 4), 2, (0, 0))
    assert numbers.tolist() == [0, 10, 12, 14, 16, 5, 6, 7, 8, 9, 10, 11, 12]


@given(st.integers(1, 5), st.integers(0, 12), st.booleans(), st.integers(0, 10**6))
def test_running_sums_have_the_same_bits_compiled_and_plain(n_pairs, n_rows, keep, seed):
    rng = np.random.default_rng(seed)
    table, start = make_table(rng, 20, 2 * n_pairs), make_table(rng, 1, 2 * n_pairs)[0]
    # Some rows in any order; one may be left out and none is twice.
    rows = rng.permutation(20)[:15].astype(np.uint64)
    found = []
    for form in (Compiled, plain_intrinsics):
        own_table, first, squares = table.copy(), np.full(15, np.nan), np.full(15, np.nan)
        form.sum_rows(own_table, rows, n_rows, start.copy(), keep, first, squares, (0,) * n_pairs)
        found.append((own_table, first, squares))
    for compiled, plain in zip(*found, strict=True):
        assert np.array_equal(compiled, plain, equal_nan=True)
    assert np.isfinite(found[0][1][:n_rows]).all()


@forms
@given(st.dictionaries(st.integers(0, 255), st.integers(1, 255)), st.integers(0, 3))
def test_each_byte_of_a_word_is_a_bit_and_is_cleared(form, marks, word):
    seen = np.zeros(256, np.uint8)
    for place, mark in marks.items():
        seen[place] = mark
    inside = [place for place in marks if place // 64 == word]
    expected = seen.copy()
    expected[inside] = 0
    assert int(form.bits_of_bytes(seen, word)) == sum(1 << (place % 64) for place in inside)
    assert np.array_equal(seen, expected)


@forms
@given(st.integers(1, 2**64 - 1))
def test_bits_of_a_word_are_counted_and_the_lowest_found(form, word):
    assert form.trailing_zeros(np.uint64(word)) == (word & -word).bit_length() - 1
    assert form.count_bits(np.uint64(word)) == word.bit_count()


@forms
def test_every_power_of_two_has_one_bit_at_its_place(form):
    words = [np.uint64(1 << k) for k in range(64)]
    assert [form.trailing_zeros(word) for word in words] == list(range(64))
    assert [form.count_bits(word) for word in words] == [1] * 64
    assert form.count_bits(np.uint64(0)) == 0
