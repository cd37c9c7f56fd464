"""Quantiles of the mixture by bisection: plain loops, and those read off the mixed curve."""

from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cqrf._forest.weights import Weights
from cqrf._survival.curves import RankedTarget, Steps, as_curves, compute_steps
from cqrf._survival.mixture import Scale, map_steps, mix_steps, repeat_steps
from cqrf._survival.mixture_quantiles import make_mixture, mixture_quantiles
from cqrf._survival.quantiles import curve_quantiles
from cqrf._working_model.transform import WorkingModel
from oracles.mixture import Hazard, Part, mixture_quantile, share_out
from oracles.survival import CLOSE

LEVELS = np.array([0.9, 0.05, 0.25, 0.5, 0.6, 0.75])
POWERS = st.sampled_from([0.5, 1.0, 2.0])


class Problem(NamedTuple):
    """Rows of a table on both scales, and weights of some queries."""

    hazard: Hazard
    direct: RankedTarget
    residual: RankedTarget
    counts: Any
    """(n_queries, 2, n_train): whole weights by rank of either kind."""
    factor: Any
    shares: tuple[float, float, float]

    @property
    def scale(self):
        knots, hazards = np.array(self.hazard.knots), np.array(self.hazard.hazards)
        return Scale(knots, hazards, self.hazard.last_time, np.array(self.factor))

    @property
    def weights(self):
        return tuple(as_weights(self.counts[:, kind]) for kind in (0, 1))

    @property
    def root(self):
        n = len(self.residual.time)
        return compute_steps(as_weights(np.ones((1, n))), self.residual)

    def parts(self, query):
        """The components of a query, and their shares, for the oracle."""
        (direct, residual), factor = self.counts[query], self.factor[query]
        shares = share_out(self.shares, bool(direct.any()), bool(residual.any()))
        parts = [
            as_part(self.direct, direct, self.hazard, None),
            as_part(self.residual, residual, self.hazard, factor),
            as_part(self.residual, np.ones(len(direct)), self.hazard, factor),
        ]
        return parts, shares


def as_part(target, weight, hazard, factor):
    rows = zip(target.time.tolist(), target.event.tolist(), weight.astype(int).tolist())
    return Part(list(rows), hazard, factor) if weight.any() else None


def as_weights(counts):
    has_weight = counts > 0
    lengths = has_weight.sum(axis=1)
    values = counts[has_weight] / np.repeat(counts.sum(axis=1), lengths)
    ranks = np.nonzero(has_weight)[1].astype(np.int32)
    return Weights(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64), ranks, values)


@st.composite
def problems(draw):
    """Small tables whose times, hazards and factors are dyadic, so that nothing is rounded."""
    n = draw(st.integers(1, 12))
    gaps = draw(st.lists(st.tuples(POWERS, POWERS), min_size=1, max_size=4))
    starts = draw(st.sampled_from([0.0, 0.5])), draw(st.sampled_from([0.0, 0.5]))
    knots, hazards = (np.cumsum([start, *each]) for start, each in zip(starts, zip(*gaps)))
    last_time = knots[-1] + draw(st.sampled_from([0.0, 2.0]))
    n_times = int(2 * (last_time - knots[0]))
    # The knots may be those of a sample of the rows: some time may come before the first of them.
    steps = draw(st.lists(st.integers(-1, n_times), min_size=n, max_size=n))
    time = knots[0] + np.array(steps) / 2
    residual = np.array(draw(st.lists(st.integers(0, 40), min_size=n, max_size=n))) / 8
    event = np.array(draw(st.lists(st.booleans(), min_size=n, max_size=n)))
    by_time, by_residual = np.lexsort((~event, time)), np.lexsort((~event, residual))
    n_queries = draw(st.integers(1, 3))
    of_kind = st.lists(st.integers(0, 2), min_size=n, max_size=n)
    counts = [[draw(of_kind) for _ in range(2)] for _ in range(n_queries)]
    root_share = draw(st.sampled_from([0.0, 0.25, 0.5]))
    return Problem(
        Hazard(knots.tolist(), hazards.tolist(), float(last_time)),
        RankedTarget(time[by_time], event[by_time]),
        RankedTarget(residual[by_residual], event[by_residual]),
        np.array(counts, dtype=float),
        draw(st.lists(st.sampled_from([0.25, 1.0, 4.0]), min_size=n_queries, max_size=n_queries)),
        ((1 - root_share) / 2, (1 - root_share) / 2, root_share),
    )


def solve(problem, levels=LEVELS, censoring="right"):
    """Quantiles by bisection, beyond the first end of a part those of the curve."""
    solution, unfinished = bisect(problem, levels, censoring)
    whole = curve_quantiles(as_curves(mix(problem), "right"), levels, censoring)
    for found, read in zip(solution, whole):
        found[unfinished] = read[unfinished]
    return solution


def bisect(problem, levels=LEVELS, censoring="right"):
    knots, hazards = np.array(problem.hazard.knots), np.array(problem.hazard.hazards)
    working = WorkingModel(np.empty((0, 256)), knots, hazards, np.empty(0))
    hazard = working.hazard_places(problem.direct.time)
    mixture = make_mixture((problem.direct, problem.residual), hazard, problem.root, problem.shares)
    return mixture_quantiles(problem.weights, mixture, problem.scale, levels, censoring)


def mix(problem):
    scale = problem.scale
    direct, residual = (
        compute_steps(weights, target)
        for weights, target in zip(problem.weights, (problem.direct, problem.residual))
    )
    root = None
    if problem.shares[2]:
        root = map_steps(repeat_steps(problem.root, len(problem.factor)), scale)
    return mix_steps(direct, map_steps(residual, scale), root, problem.shares)


@given(problems())
def test_quantiles_are_those_of_plain_loops(problem):
    found = solve(problem).values
    for query in range(len(problem.factor)):
        parts, shares = problem.parts(query)
        if parts[0] is None and parts[1] is None:
            assert np.isnan(found[query]).all()
            continue
        expected = [mixture_quantile(parts, shares, tau) for tau in LEVELS]
        assert found[query].tolist() == expected


@given(problems(), st.sampled_from(["right", "left"]), st.integers(1, len(LEVELS)))
def test_quantiles_are_those_of_the_mixed_curve(problem, censoring, n_levels):
    levels = LEVELS[-n_levels:]
    found = solve(problem, levels, censoring)
    expected = curve_quantiles(as_curves(mix(problem), "right"), levels, censoring)
    np.testing.assert_array_equal(found.values, expected.values)
    np.testing.assert_array_equal(found.last_neighbor, expected.last_neighbor)


@given(problems())
def test_the_last_neighbour_is_the_end_of_the_curve_or_its_last_step(problem):
    """Whatever the levels, and though bisection stops at the first end of a component."""
    curves = as_curves(mix(problem), "right")
    found = bisect(problem, np.array([0.01]))[0].last_neighbor
    for curve, last in zip(curves, found):
        if curve.end == -np.inf:
            assert np.isnan(last)
        else:
            assert last == (curve.end if curve.end < np.inf else curve.times[-1])


@given(problems())
def test_a_quantile_that_is_not_identified_lies_beyond_a_finite_time(problem):
    found = solve(problem)
    is_beyond = np.isinf(found.values).any(axis=1)
    assert np.isfinite(found.last_neighbor[is_beyond]).all()
    lowest = np.where(np.isinf(found.values), -np.inf, found.values).max(axis=1)
    assert (lowest[is_beyond] <= found.last_neighbor[is_beyond]).all()


def make_problem(residual, event, factor, root_share, hazards=(0.0, 4.0)):
    """Times 1, 2, 3, 4 in direct trees; weights 1 for the first three rows of either kind."""
    n = len(residual)
    return Problem(
        Hazard([0.0, 4.0], list(hazards), 4.0),
        RankedTarget(np.arange(1.0, n + 1), np.array(event)),
        RankedTarget(np.array(residual, float), np.array(event)),
        np.array([[[1.0] * (n - 1) + [0.0]] * 2]),
        [factor],
        ((1 - root_share) / 2, (1 - root_share) / 2, root_share),
    )


def test_the_root_is_not_known_beyond_its_last_residual():
    """The trees fall to 0, but the root ends at its last residual, which is censored."""
    problem = make_problem([0.5, 1.0, 1.5, 2.0], [True, True, True, False], 1.0, 0.5)
    found, unfinished = bisect(problem, np.array([0.5, 0.7, 0.85]), "right")
    # S is 1/2 at time 1, 7/24 at 1.5 and 5/24 at 2, where the root ends.
    assert found.values.tolist() == [[1.0, 1.5, np.inf]]
    assert found.last_neighbor.tolist() == [3.0]
    assert unfinished.tolist() == [0]
    # From then on it falls as the direct trees do, which fall to 0 at 3.
    assert solve(problem, np.array([0.5, 0.7, 0.85])).values.tolist() == [[1.0, 1.5, 3.0]]


def test_without_trees_of_a_kind_the_other_has_its_share():
    problem = make_problem([1.0, 2.0, 3.0, 4.0], [True] * 4, 1.0, 0.0)
    without = problem._replace(counts=problem.counts * np.array([0, 1])[:, np.newaxis])
    assert solve(without, np.array([0.3, 0.6])).values.tolist() == [[1.0, 2.0]]
    halved = without._replace(factor=[0.5])
    assert solve(halved, np.array([0.3, 0.6])).values.tolist() == [[0.5, 1.0]]
    neither = problem._replace(counts=problem.counts * 0)
    assert np.isnan(solve(neither).values).all()
    assert np.isnan(solve(neither).last_neighbor).all()


@pytest.mark.parametrize("level", [0.25, 0.5, 0.75])
def test_a_level_that_a_step_reaches_exactly_is_at_that_step(level):
    problem = make_problem([1.0, 2.0, 3.0, 4.0, 5.0], [True] * 5, 1.0, 0.0)
    expected = 4 * level
    for shift in (-CLOSE / 10, 0.0, CLOSE / 10):
        assert solve(problem, np.array([level + shift])).values.tolist() == [[expected]]


def test_steps_of_a_curve_without_rows_are_none():
    nothing = Steps(np.zeros(2, np.int64), np.empty(0), np.empty(0), np.array([-np.inf]))
    mixed = mix_steps(nothing, nothing, None, (0.5, 0.5, 0.0))
    assert mixed.end.tolist() == [-np.inf]
    assert mixed.offsets.tolist() == [0, 0]
