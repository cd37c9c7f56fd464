"""Risk sets: positions of ranks among the rows of a node."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from cqrf._input.risk_sets import first_at_risk, first_position
from cqrf._input.target import pair, rank_target


@given(st.lists(st.integers(0, 20)), st.integers(0, 22))
def test_the_position_of_a_row_is_that_of_the_first_not_below_it(rows, first):
    expected = sum(row < first for row in rows)
    assert first_position(np.array(sorted(rows), np.uint32), first) == expected


def test_a_row_is_at_risk_from_the_first_time_after_its_entry():
    target, _ = rank_target(pair([1, 2, 2, 3, 5], [1, 1, 0, 0, 1], [0, 1, 1.5, 2, 2.5]), "right")
    assert first_at_risk(target).tolist() == [0, 1, 1, 3, 3]
    assert first_at_risk(target).dtype == np.int32
    assert first_at_risk(target._replace(entry=None)) is None
