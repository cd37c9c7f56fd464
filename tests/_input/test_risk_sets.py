"""Risk sets: positions of ranks among the rows of a node."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from cqrf._input.risk_sets import first_position


@given(st.lists(st.integers(0, 20)), st.integers(0, 22))
def test_the_position_of_a_row_is_that_of_the_first_not_below_it(rows, first):
    expected = sum(row < first for row in rows)
    assert first_position(np.array(sorted(rows), np.uint32), first) == expected
