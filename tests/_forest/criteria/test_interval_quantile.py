"""Labels of interval-censored rows: P(T > c) from the node's own curve, on cells."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cqrf._forest.criteria.interval_quantile import EM_STEPS, IntervalQuantile
from support.labelling import make_rows, write_labels

LEVELS = (0.1, 0.3, 0.5, 0.7, 0.9)


def overlap(survival, left, right):
    """Share of each cell that lies between two places."""
    cells = np.arange(len(survival) - 1)
    return np.clip(np.minimum(right, cells + 1) - np.maximum(left, cells), 0, 1)


def fit_curve(survival, bounds, event, weight, n_steps):
    """EM for the hazards in plain loops: masses of the cells, from those of the whole table."""
    n_cells = len(survival) - 1
    survival = np.array(survival, dtype=float)
    for _ in range(n_steps):
        masses = -np.diff(survival)
        events, at_risk = np.zeros(n_cells), np.zeros(n_cells)
        for (left, right), is_event, w in zip(bounds, event, weight, strict=True):
            inside = overlap(survival, left, right) * masses
            share = w * inside / inside.sum()
            if is_event:
                events += share
                at_risk += np.cumsum(share[::-1])[::-1]
            else:  # spread over its own cell only: it is at risk no longer afterwards
                own = min(int(left), n_cells - 1)
                events[own] += share[own]
                at_risk[: own + 1] += w
        for j in range(n_cells - 1):
            hazard = events[j] / at_risk[j] if at_risk[j] > 0 else 0.0
            survival[j + 1] = survival[j] * (1 - hazard)
    return survival


def value_at(survival, place):
    return np.interp(place, np.arange(len(survival)), survival)


def true_labels(survival, n_finite, bounds, weight):
    """Clipped (S(max(c, L)) - S(R)) / (S(L) - S(R)), standardised and centred."""
    reached = 1 - survival[n_finite]
    shrink = reached if reached < LEVELS[0] else 1.0
    labels = np.zeros((len(bounds), len(LEVELS)))
    places = np.linspace(0, len(survival) - 1, 200_001)
    for k, level in enumerate(np.array(LEVELS) * shrink):
        if level > reached:
            continue
        cut = places[np.argmax(value_at(survival, places) <= 1 - level + 1e-12)]
        for i, (left, right) in enumerate(bounds):
            at_left, at_right = value_at(survival, left), value_at(survival, right)
            share = (value_at(survival, max(cut, left)) - at_right) / (at_left - at_right)
            labels[i, k] = np.clip(share, 0, 1) / np.sqrt(level * (1 - level))
    return labels - weight @ labels / weight.sum()


@st.composite
def nodes(draw):
    """Cells, and rows with places of their ends."""
    n_cells = draw(st.integers(2, 6))
    cuts = draw(st.lists(st.floats(0.05, 1), min_size=n_cells, max_size=n_cells).map(np.array))
    survival = np.append(1.0, 1 - np.cumsum(cuts) / cuts.sum())
    survival[-1] = 0.0
    rows = []
    for _ in range(draw(st.integers(2, 15))):
        left, right = sorted(draw(st.tuples(st.floats(0, n_cells), st.floats(0, n_cells))))
        left = min(left, n_cells - 0.25)
        if draw(st.booleans()):
            rows.append((left, max(right, left + 0.2), True))
        else:
            rows.append((left, float(n_cells), False))
    rows.sort(key=lambda row: row[1])
    rows.append((n_cells - 1.0, float(n_cells), True))  # some row ends behind the last cell
    weights = draw(st.lists(st.integers(1, 4), min_size=len(rows), max_size=len(rows)))
    return survival, rows, np.array(weights, np.float32), draw(st.booleans())


@given(nodes(), st.sampled_from([0, 1, EM_STEPS]))
def test_labels_equal_their_definition(node, n_steps):
    survival, rows, weight, has_infinite = node
    bounds = np.array([row[:2] for row in rows])
    event = np.array([row[2] for row in rows])
    n_finite = len(survival) - 2 if has_infinite else len(survival) - 1
    criterion = IntervalQuantile.from_levels(LEVELS).with_cells(survival, n_finite)
    assert criterion.n_steps == EM_STEPS
    time = np.arange(len(rows), dtype=float)
    table = make_rows(time, event, weight)._replace(bounds=bounds)
    found = write_labels(criterion._replace(n_steps=n_steps), table)
    curve = fit_curve(survival, bounds, event, weight.astype(float), n_steps)
    np.testing.assert_allclose(found.work.curve[0], curve, atol=1e-9)
    if 1 - curve[n_finite] <= 1e-12:
        assert not found.can_be_split
        return
    assert found.can_be_split
    assert found.mass == pytest.approx(weight.sum())
    expected = true_labels(curve, n_finite, bounds, weight.astype(float)) * weight[:, np.newaxis]
    np.testing.assert_allclose(found.labels[:, 1:], expected, atol=2e-3)
    np.testing.assert_allclose(found.labels[:, 1:].sum(axis=0), 0, atol=1e-6)


def test_many_em_steps_would_reach_the_maximum_likelihood():
    # Two rows in cell 0, one in cell 1, one over both: the maximum is (2/3, 1/3).
    survival, bounds = np.array([1.0, 0.5, 0.0]), [(0, 1), (0, 1), (1, 2), (0, 2)]
    curve = fit_curve(survival, bounds, [True] * 4, np.ones(4), 200)
    assert curve[1] == pytest.approx(1 / 3)
    few = fit_curve(survival, bounds, [True] * 4, np.ones(4), EM_STEPS)
    assert few[1] == pytest.approx(1 / 3, abs=1e-3)


def test_a_row_that_knows_nothing_has_the_mean_label():
    survival = np.array([1.0, 0.75, 0.5, 0.25, 0.0])
    bounds = np.array([(0.0, 1), (1, 2), (2, 3), (0, 4), (3, 4)])
    rows = make_rows(np.arange(5.0), np.ones(5, bool))._replace(bounds=bounds)
    node = write_labels(
        IntervalQuantile.from_levels(LEVELS).with_cells(survival, 4), rows, levels=LEVELS
    )
    np.testing.assert_allclose(node.labels[3, 1:], 0, atol=1e-9)
    assert (node.labels[0, 1:] < 0).all()
    assert (node.labels[4, 1:] > 0).all()
