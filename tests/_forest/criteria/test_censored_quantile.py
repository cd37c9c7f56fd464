"""Censored quantiles: labels that are survival probabilities at the node's quantiles."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracles.criteria import LEVELS, in_order
from support.labelling import make_criterion, make_label_work, make_rows, write_labels
from support.samples import samples, weights_of


def label_sample(time, event, weight=None):
    return write_labels("censored_quantile", make_rows(time, event, weight))


def survivals(node, event):
    """P(T > c) of each row at each cut: an event before all cuts has 0 throughout."""
    reached = node.direction > 0
    labels = node.labels[:, reached] / node.labels[:, :1] / node.direction[reached]
    return labels - labels[event.argmax()]


@pytest.mark.parametrize("weighted", [False, True])
@given(st.data())
def test_the_mean_label_is_the_survival_of_the_node(weighted, data):
    # The Kaplan-Meier curve is self-consistent: the expected labels of the censored rows and
    # those of the others add up to the curve itself.
    time, event, weight = data.draw(samples(weighted))
    node = label_sample(time, event, weight)
    if not node.can_be_split:
        return
    w = weights_of(weight, len(time))
    steps = [w[(time == t) & event].sum() / w[time >= t].sum() for t in np.unique(time)]
    curve = np.cumprod(1 - np.array(steps))
    shrunk = 1.0 if curve[-1] <= 1 - LEVELS[0] + 1e-9 else 1 - curve[-1]
    means = w @ survivals(node, event) / w.sum()
    for level, mean in zip(LEVELS, means, strict=False):
        survival = curve[curve <= 1 - level * shrunk + 1e-9][0]
        assert mean == pytest.approx(survival, abs=1e-10)


def test_without_censoring_labels_say_which_rows_lie_beyond_each_quantile():
    time, event, _ = in_order(range(1, 11), [True] * 10)
    node = label_sample(time, event)
    beyond = np.array([[float(t > c) for c in (1, 3, 5, 7, 9)] for t in range(1, 11)])
    np.testing.assert_allclose(survivals(node, event), beyond, atol=1e-12)
    level = np.array(LEVELS)
    expected = (beyond - (1 - level)) / np.sqrt(level * (1 - level))
    np.testing.assert_allclose(node.labels[:, 1:], expected, atol=1e-12)


def test_a_censored_row_has_the_conditional_survival_given_its_own_time():
    # Events at 1 2 4 5, censored at 3: S is 4/5, 3/5, then 3/10, 0.
    time, event, _ = in_order([1, 2, 3, 4, 5], [1, 1, 0, 1, 1])
    node = label_sample(time, event)
    censored = (3 / 10) / (3 / 5)
    np.testing.assert_allclose(survivals(node, event)[2], [1, 1, censored, censored, 0], atol=1e-12)


def test_a_level_that_survival_does_not_reach_is_left_out():
    # Events at 1 2 3 of ten rows: S ends at .7, which is the level .3, reached exactly.
    time, event, _ = in_order([1, 2, 3] + [9] * 7, [1] * 3 + [0] * 7)
    node = label_sample(time, event)
    assert node.can_be_split
    assert node.direction[1:3] == pytest.approx([0.09**-0.5, 0.21**-0.5])
    assert node.direction[3:].tolist() == [0, 0, 0]
    assert not node.labels[:, 3:].any()
    assert survivals(node, event) == pytest.approx(
        np.array([[0, 0]] + [[1, 0]] * 2 + [[1, 1]] * 7), abs=1e-12
    )


def scale_of(levels):
    return 1 / np.sqrt(levels * (1 - levels))


@pytest.mark.parametrize("weighted", [False, True])
def test_under_heavy_censoring_levels_shrink_to_what_survival_reaches(weighted):
    # Two events of forty rows: S ends at 19/20, above every level.
    n = 40
    time, event = np.arange(n, dtype=float), np.zeros(n, bool)
    event[[0, 1]] = True
    node = label_sample(time, event, np.ones(n, np.float32) if weighted else None)
    assert node.can_be_split
    assert node.direction[1:] == pytest.approx(scale_of(np.array(LEVELS) / 20))
    found = survivals(node, event)
    assert found.mean(axis=0) == pytest.approx([39 / 40] * 3 + [38 / 40] * 2)
    assert found[1] == pytest.approx([1, 1, 1, 0, 0], abs=1e-12)


def test_shrunken_levels_do_not_stay_for_the_next_node():
    time, event = np.arange(60.0), np.arange(60) < 31
    rows, criterion = make_rows(time, event), make_criterion("censored_quantile")
    work = make_label_work(30, rows, criterion.n_labels)
    for here, n_events in ((np.arange(30, 60), 1), (np.arange(30), 30), (np.arange(30, 60), 1)):
        node = write_labels(criterion, rows, here.astype(np.uint32), work=work)
        assert node.direction[1:] == pytest.approx(scale_of(np.array(LEVELS) * n_events / 30))
    assert criterion.levels.tolist() == list(LEVELS)
