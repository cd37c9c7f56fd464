"""Rows: what they leave out for kernels, and copies of some of them."""

import numpy as np
import pytest

from cqrf._forest import rows as module
from cqrf._forest.rows import Rows, empty_rows
from cqrf._runtime.compiling import kernel
from support.grown_tree import make_tree_rows


@kernel
def take_rows(rows, chosen, copy):
    module.take_rows(rows, chosen, copy)


@pytest.mark.parametrize("categorical", [[False, False], [False, True]])
def test_kernels_receive_none_if_no_feature_is_a_category(categorical):
    categorical = np.array(categorical)
    rows = Rows(np.zeros((2, 1), np.uint8), categorical, np.zeros(1), np.ones(1, bool))
    found = rows.for_kernels()
    assert (found.categorical is None) == (not categorical.any())
    assert found._replace(categorical=categorical) == rows


@pytest.mark.parametrize(("weighted", "late"), [(False, False), (True, True)])
@pytest.mark.parametrize("padding", [0, 7])
def test_some_rows_are_copied_and_enter_by_their_position_among_them(weighted, late, padding):
    rng = np.random.default_rng(0)
    rows, entry = make_tree_rows(rng, n=60, weighted=weighted, late=late)
    if weighted:
        scores, stratum = rng.normal(size=(60, 3)), rng.integers(0, 8, 60).astype(np.uint8)
        rows = rows._replace(scores=scores, stratum=stratum)
    # Some of them twice, as a bootstrap draws them.
    chosen = np.sort(rng.integers(0, 60, 40)).astype(np.uint32)
    copy = empty_rows(rows, 50, padding)
    assert copy.codes.shape == (4, 50 + padding)
    take_rows(rows, chosen, copy)
    for name in ("codes", "time", "event", "weight"):
        found, whole = getattr(copy, name), getattr(rows, name)
        if whole is None:
            assert found is None
        else:
            assert found.dtype == whole.dtype
            assert np.array_equal(found[..., :40], whole[..., chosen])
    assert (copy.scores is not None) == (copy.stratum is not None) == weighted
    if weighted:
        assert np.array_equal(copy.scores[:40], rows.scores[chosen])
        assert np.array_equal(copy.stratum[:40], rows.stratum[chosen])
        assert copy.stratum.dtype == np.uint8
    assert (copy.first_at_risk is not None) == late
    if late:
        time = rows.time[chosen]
        expected = [(time <= since).sum() for since in entry[chosen]]
        assert copy.first_at_risk[:40].tolist() == expected
