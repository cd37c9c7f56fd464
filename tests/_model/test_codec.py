"""The codec of leaves: what is encoded is decoded, and nothing else passes the check."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cqrf._model.codec import are_leaves, decode_leaves, decode_number, encode_leaves

N_TRAIN = 2**31 - 1
Leaf = st.lists(st.integers(0, N_TRAIN - 1), min_size=1, max_size=6).map(sorted)
LEAVES = st.lists(Leaf, min_size=1, max_size=8)


def encode_number(number):
    """Seven bits a byte, the lowest first; the top bit says that more follow."""
    encoded = []
    while number >= 128:
        encoded.append(128 + number % 128)
        number //= 128
    return [*encoded, number]


def encode_by_loops(leaves):
    stream = []
    for leaf in leaves:
        stream += encode_number(len(leaf))
        before = 0
        for rank in leaf:
            stream += encode_number(rank - before)
            before = rank
    return stream


def encode(leaves):
    sizes = np.array([len(leaf) for leaf in leaves], np.int64)
    return encode_leaves(sizes, np.array([rank for leaf in leaves for rank in leaf], np.int32))


def passes(stream, leaves, n_train=N_TRAIN):
    n_rows = sum(map(len, leaves))
    return are_leaves(np.array(stream, np.uint8), len(leaves), n_rows, n_train)


def test_a_small_stream_by_hand():
    assert encode([[3, 3, 200], [0]]).tolist() == [3, 3, 0, 128 | 69, 1, 1, 0]
    assert encode([[127], [128]]).tolist() == [1, 127, 1, 128, 1]


@given(LEAVES)
def test_leaves_are_encoded_as_plain_loops_do_and_decoded_again(leaves):
    stream = encode(leaves)
    assert stream.tolist() == encode_by_loops(leaves)
    assert passes(stream, leaves)
    sizes, rows = decode_leaves(stream, len(leaves), sum(map(len, leaves)))
    assert sizes.tolist() == [len(leaf) for leaf in leaves]
    assert rows.tolist() == [rank for leaf in leaves for rank in leaf]


@given(LEAVES, st.data())
def test_a_stream_that_is_cut_or_longer_is_refused(leaves, data):
    stream = encode(leaves).tolist()
    cut = data.draw(st.integers(0, len(stream) - 1))
    assert not passes(stream[:cut], leaves)
    assert not passes([*stream, 0], leaves)


@given(LEAVES)
def test_counts_have_to_be_those_of_the_stream(leaves):
    stream, n_rows = encode(leaves), sum(map(len, leaves))
    assert not are_leaves(stream, len(leaves) + 1, n_rows, N_TRAIN)
    assert not are_leaves(stream, len(leaves), n_rows + 1, N_TRAIN)
    largest = max(map(max, leaves))
    assert passes(stream, leaves, largest + 1)
    assert not passes(stream, leaves, largest)


@pytest.mark.parametrize(
    "stream",
    [
        [0],  # an empty leaf
        [1],  # no rank
        [1, 128],  # a number without an end
        [1, 128, 128, 128, 128, 8],  # 2**31
        [1, 128, 128, 128, 128, 128, 0],  # too many bytes
        [2, 5],  # one rank of two
    ],
)
def test_what_no_leaf_is_written_as_is_refused(stream):
    assert not are_leaves(np.array(stream, np.uint8), 1, 1, N_TRAIN)
    assert not are_leaves(np.array(stream, np.uint8), 1, 2, N_TRAIN)


def test_an_empty_leaf_is_refused_where_the_counts_fit():
    assert not are_leaves(np.array([0], np.uint8), 1, 0, N_TRAIN)
    assert not are_leaves(np.array([0, 2, 5, 1], np.uint8), 2, 2, N_TRAIN)
    assert not are_leaves(np.array([2, 5, 1, 0], np.uint8), 2, 2, N_TRAIN)


@pytest.mark.parametrize(
    ("stream", "number", "end"),
    [
        ([5, 9], 5, 1),
        ([128 | 5, 1, 9], 133, 2),
        ([255, 255, 255, 255, 7], 2**31 - 1, 5),
        ([128, 128, 128, 128, 8], -1, 5),  # 2**31
        ([128, 128, 128, 128, 128, 0], -1, 5),  # more bytes than such a number has
        ([128, 128], -1, 2),
        ([], -1, 0),
    ],
)
def test_a_number_has_at_most_31_bits(stream, number, end):
    assert decode_number(np.array(stream, np.uint8), 0) == (number, end)
    shifted = np.array([7, *stream], np.uint8)
    assert decode_number(shifted, 1) == (number, end + 1)
