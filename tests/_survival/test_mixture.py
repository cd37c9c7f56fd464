"""The mixture of curves: mapped, repeated, thinned and mixed, against plain loops over times."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cqrf._survival.curves import Steps, as_curves
from cqrf._survival.mixture import (
    MOST_ROOT_STEPS,
    Scale,
    make_scale,
    map_steps,
    mix_steps,
    repeat_steps,
    thin_root,
)
from cqrf._working_model.transform import WorkingModel

KNOTS, HAZARDS = np.array([1.0, 2.0, 4.0]), np.array([0.0, 1.0, 2.0])
SHARES = (0.375, 0.375, 0.25)


def make_steps(*curves):
    """Steps from (times, values, end) of each curve."""
    lengths = [len(times) for times, _, _ in curves]
    return Steps(
        np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        np.concatenate([np.asarray(times, float) for times, _, _ in curves]),
        np.concatenate([np.asarray(values, float) for _, values, _ in curves]),
        np.array([end for _, _, end in curves], float),
    )


def make_mapping(*factors, last_time=6.0):
    return Scale(KNOTS, HAZARDS, last_time, np.array(factors))


@st.composite
def curves(draw):
    """A falling curve on quarters, known up to its last step or later, or fallen to 0; or none."""
    places = sorted(draw(st.sets(st.integers(1, 24), max_size=6)))
    drops = [draw(st.integers(1, 4)) for _ in places]
    left = draw(st.integers(0, 4))
    if not places:
        return [], [], draw(st.sampled_from([-np.inf, 1.0, 5.0]))
    values = 1 - np.cumsum(drops) / (sum(drops) + left)
    values[-1] = left / (sum(drops) + left)
    times = np.array(places) / 4
    end = np.inf if left == 0 else times[-1] + draw(st.integers(0, 4)) / 4
    return times, values, end


def value_of(curve, t):
    value = 1.0
    for time, after in zip(curve[0], curve[1]):
        if time <= t:
            value = after
    return value


def end_of(parts, final):
    """When the mixture of (share, curve) ends: with its first curve, unless that falls to 0."""
    ends = [curve[2] for _, curve in parts]
    if final == 0:
        return np.inf
    finite = [end for end in ends if end < np.inf]
    return ends[0] if ends[0] < np.inf else max(finite, default=np.inf)


def follow(parts, t):
    """S(t) of a mixture of (share, curve); a curve that has ended falls as the others do."""
    value, ended, alive = 1.0, 0.0, list(parts)
    for step in sorted({step for _, curve in parts for step in curve[0] if step <= t}):
        ended += sum(share * value_of(c, c[2]) for share, c in alive if c[2] < step)
        alive = [part for part in alive if part[1][2] >= step]
        before = sum(share * value_of(curve, step - 0.01) for share, curve in alive)
        after = sum(share * value_of(curve, step) for share, curve in alive)
        ended *= after / before if before > 0 else 1.0
        value = ended + after
    return value


ROOTS = curves().filter(lambda curve: curve[2] > -np.inf)


@given(st.lists(st.tuples(curves(), curves(), ROOTS), min_size=1, max_size=3), st.booleans())
def test_the_mixture_is_the_mean_of_its_curves_at_every_time(queries, with_root):
    shares = SHARES if with_root else (0.5, 0.5, 0.0)
    direct, residual, root = (make_steps(*each) for each in zip(*queries))
    mixed = as_curves(mix_steps(direct, residual, root if with_root else None, shares), "right")
    for (of_direct, of_residual, of_root), curve in zip(queries, mixed):
        has_direct, has_residual = (each[2] > -np.inf for each in (of_direct, of_residual))
        if not has_direct and not has_residual:
            assert curve.end == -np.inf
            continue
        of_kind = shares[0] + shares[1]
        parts = [
            (shares[0] if has_residual else of_kind, of_direct),
            (shares[1] if has_direct else of_kind, of_residual),
        ]
        parts = [part for part, has in zip(parts, (has_direct, has_residual)) if has]
        parts += [(shares[2], of_root)] * with_root
        first_end = parts[0][1][2]
        assert curve.end == end_of(parts, follow(parts, first_end))
        for t in np.arange(0.0, 8.0, 0.125):
            if t <= curve.end:
                expected = follow(parts, min(t, first_end))
                assert curve(t) == pytest.approx(expected, abs=1e-12)
            else:
                assert np.isnan(curve(t))
        assert (curve.times <= curve.end).all()
        assert (np.diff(curve.times) > 0).all()


def test_steps_are_mapped_to_the_times_of_their_hazards():
    steps = make_steps(([0.5, 1.5], [0.5, 0.0], np.inf), ([0.5, 1.5], [0.5, 0.25], 1.5))
    mapped = map_steps(steps, make_mapping(1.0, 0.5))
    assert mapped.times.tolist() == [1.5, 3.0, 1.25, 1.75]
    assert mapped.end.tolist() == [np.inf, 1.75]
    np.testing.assert_array_equal(mapped.values, steps.values)


def test_steps_beyond_the_known_hazard_have_no_time():
    """A curve that falls to 0 there is known to the end of the follow-up, and no further."""
    steps = make_steps(([0.5, 3.0], [0.5, 0.0], np.inf), ([0.5, 2.0], [0.5, 0.0], np.inf))
    mapped = map_steps(steps, make_mapping(1.0, 1.0))
    assert mapped.times.tolist() == [1.5, np.inf, 1.5, 4.0]
    assert mapped.end.tolist() == [6.0, np.inf]
    assert as_curves(mapped, "right").first_at_most(0.1).tolist() == [np.inf, 4.0]


@pytest.mark.parametrize(("end", "known"), [(1.0, 2.0), (1.999, 3.998), (2.0, 6.0), (9.0, 6.0)])
def test_a_censored_curve_is_known_while_the_hazard_is_below_its_end(end, known):
    mapped = map_steps(make_steps(([0.5], [0.5], end)), make_mapping(1.0))
    assert mapped.end[0] == pytest.approx(known, rel=1e-12)


def test_a_curve_without_rows_is_known_nowhere():
    mapped = map_steps(make_steps(([], [], -np.inf)), make_mapping(2.0))
    assert mapped.end.tolist() == [-np.inf]


def test_a_hazard_that_jumps_past_the_end_is_unknown_from_there():
    scale = Scale(np.array([1.0, 2.0]), np.array([0.5, 1.0]), 2.0, np.ones(2))
    steps = make_steps(([0.25], [0.5], 0.25), ([0.25], [0.5], 0.5))
    mapped = map_steps(steps, scale)
    assert mapped.times.tolist() == [1.0, 1.0]
    assert mapped.end[0] < 1.0 == mapped.end[1]


@given(curves().filter(lambda curve: len(curve[0]) > 0), st.floats(-2, 2))
def test_a_mapped_curve_is_the_curve_of_residuals_at_the_residual_of_a_time(curve, predictor):
    working = WorkingModel(np.empty((0, 256)), KNOTS, HAZARDS, np.empty(0))
    scale = make_scale(working, 6.0, np.array([predictor]))
    mapped = as_curves(map_steps(make_steps(curve), scale), "right")[0]
    for t in np.linspace(1.01, 3.99, 40):
        residual = working.residuals(np.array([t]), np.array([predictor]))[0]
        if np.abs(np.asarray(curve[0]) - residual).min() > 1e-9:
            assert mapped(t, "extend") == value_of(curve, residual)


def test_a_curve_is_repeated():
    repeated = repeat_steps(make_steps(([1.0, 2.0], [0.5, 0.25], 3.0)), 3)
    assert repeated.offsets.tolist() == [0, 2, 4, 6]
    assert repeated.times.tolist() == [1.0, 2.0] * 3
    assert repeated.values.tolist() == [0.5, 0.25] * 3
    assert repeated.end.tolist() == [3.0] * 3


@pytest.mark.parametrize("last", [0.0, 0.4])
def test_a_thinned_root_is_close_to_the_whole(last):
    rng = np.random.default_rng(0)
    times = np.sort(rng.exponential(size=3000))
    drops = rng.exponential(size=3000)
    drops[1000] = 300.0
    values = 1 - (1 - last) * np.cumsum(drops) / drops.sum()
    whole = make_steps((times, values, 9.0))
    thin = thin_root(whole)
    assert len(thin.times) <= MOST_ROOT_STEPS
    assert np.isin(thin.times, times).all()
    assert (thin.times[-1], thin.values[-1]) == (times[-1], values[-1])
    assert thin.end.tolist() == [9.0]
    at = np.linspace(0, times[-1] + 1, 5000)
    excess = as_curves(thin, "right")(at, "extend") - as_curves(whole, "right")(at, "extend")
    assert excess.min() >= 0
    assert excess.max() <= (1 - last) / MOST_ROOT_STEPS


def test_a_short_root_is_left_alone():
    root = make_steps((np.arange(MOST_ROOT_STEPS), np.linspace(0.9, 0.1, MOST_ROOT_STEPS), 300.0))
    assert thin_root(root) is root
