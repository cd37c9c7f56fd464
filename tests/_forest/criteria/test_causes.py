"""Labels with competing risks against their definition, in exact fractions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cqrf._forest.criteria import CRITERIA
from oracles.causes import labels_by_definition
from oracles.criteria import LEVELS
from support.labelling import make_rows, write_labels
from support.samples import MANY_LEVELS, samples, weights_of

OF_CAUSES = {"censored_quantile": "quantile", "logrank": "logrank"}


def place_of(chosen, n_causes):
    place = np.full(n_causes + 1, -1)
    place[list(chosen)] = np.arange(len(chosen))
    return place


def assert_labels_are_true(name, rows, chosen, n_causes, here=None, levels=LEVELS):
    time, cause, weight, entry = rows
    criterion = CRITERIA[name].of_causes.from_causes(levels, place_of(chosen, n_causes))
    here = np.arange(len(time), dtype=np.uint32) if here is None else here
    table = make_rows(time, cause > 0, weight, entry)._replace(cause=cause.astype(np.uint8))
    node = write_labels(criterion, table, here)
    own = tuple(None if each is None else each[here] for each in rows)
    truth = labels_by_definition(OF_CAUSES[name], own, levels, chosen, n_causes)
    assert node.can_be_split == (truth is not None)
    if truth is None:
        return
    labels, deviation = truth
    w = weights_of(own[2], len(here))
    assert node.mass == pytest.approx(w.sum())
    scale = np.divide(1, deviation, out=np.zeros_like(deviation), where=deviation > 1e-6)
    end = 1 + labels.shape[1]
    expected = labels * scale * w[:, None]
    np.testing.assert_allclose(node.labels[:, 1:end], expected, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(node.direction[:end], [0, *scale], rtol=1e-8)
    assert not node.labels[:, end:].any()


@pytest.mark.parametrize("name", OF_CAUSES)
@pytest.mark.parametrize("weighted", [False, True])
@given(st.data())
def test_labels_equal_their_definition(name, weighted, data):
    time, event, weight = data.draw(samples(weighted=weighted))
    n_causes = data.draw(st.integers(2, 3))
    cause = np.array([data.draw(st.integers(1, n_causes)) if each else 0 for each in event])
    chosen = data.draw(st.lists(st.integers(1, n_causes), min_size=1, unique=True).map(sorted))
    levels = data.draw(st.sampled_from(MANY_LEVELS))
    rows = time, cause, weight, None
    assert_labels_are_true(name, rows, chosen, n_causes, levels=levels)


@pytest.mark.parametrize("name", OF_CAUSES)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n", [12, 60])
def test_with_delayed_entry_a_row_is_at_risk_only_after_its_entry(name, weighted, n):
    rng = np.random.default_rng([2, weighted])
    for _ in range(20):
        time, cause = rng.integers(1, n // 2, n).astype(float), rng.integers(0, 3, n)
        order = np.lexsort((cause == 0, time))
        time, cause = time[order], cause[order]
        entry = np.where(rng.random(n) < 0.5, np.floor(rng.random(n) * time), -np.inf)
        weight = (rng.integers(1, 9, n) / 4).astype(np.float32) if weighted else None
        here = np.flatnonzero(rng.random(n) < 0.6).astype(np.uint32)
        assert_labels_are_true(name, (time, cause, weight, entry), [1, 2], 2, here)


def test_with_one_cause_the_labels_are_those_of_the_time_to_any_event_with_the_sign_turned():
    rng = np.random.default_rng(0)
    time, event = np.sort(rng.exponential(size=50)), rng.random(50) < 0.6
    rows = make_rows(time, event)
    criterion = CRITERIA["censored_quantile"].of_causes.from_causes(LEVELS, place_of([1], 1))
    of_cause = write_labels(criterion, rows._replace(cause=event.astype(np.uint8)))
    of_any = write_labels("censored_quantile", rows)
    # A cut lies at the first time at or beyond a level: the labels of any event are divided by the
    # standard deviation at the level, those of the cause by the one at the cut.
    reached = (of_any.direction[1:6] > 0) & (of_cause.direction[1:6] > 0)
    assert reached.any()
    raw, turned = (
        node.labels[:, 1:6][:, reached] / node.direction[1:6][reached]
        for node in (of_any, of_cause)
    )
    np.testing.assert_allclose(turned, -raw, atol=1e-12)
