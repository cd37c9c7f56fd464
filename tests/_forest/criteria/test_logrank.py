"""Log-rank: labels that sum to the numerator of the two-sample test."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.labelling import make_rows, write_labels
from support.samples import samples, weights_of


def logrank_numerator(time, event, weight, inside):
    """Observed minus expected events of a subset, over the distinct event times."""
    total = 0.0
    for t in np.unique(time[event]):
        at_risk, died = weight[time >= t].sum(), weight[(time == t) & event].sum()
        at_risk_inside = weight[(time >= t) & inside].sum()
        died_inside = weight[(time == t) & event & inside].sum()
        total += died_inside - died * at_risk_inside / at_risk
    return total


@pytest.mark.parametrize("weighted", [False, True])
@given(st.data())
def test_labels_of_a_subset_sum_to_the_numerator_of_the_logrank_test(weighted, data):
    time, event, weight = data.draw(samples(weighted))
    n = len(time)
    inside = np.array(data.draw(st.lists(st.booleans(), min_size=n, max_size=n)))
    node = write_labels("logrank", make_rows(time, event, weight))
    assert node.can_be_split == event.any()
    expected = logrank_numerator(time, event, weights_of(weight, n), inside)
    assert node.labels[inside, 1].sum() == pytest.approx(expected, abs=1e-9)
