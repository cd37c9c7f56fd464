"""Mixture of curves: those of direct trees, of residual trees, and of all residuals together.

Residual trees give a curve of U = phi_x(T) (see ``_working_model/transform.py``). As a curve of T
it has its steps at phi_x^{-1}(u). The marginal curve of all residuals, the *root*, is what a
residual tree without splits would give. The mixture is

    S(t | x) = (1 - a) (S_direct(t | x) + S_U(phi_x(t) | x)) / 2  +  a S_root(phi_x(t)).

It is known for as long as the direct trees are; without direct trees, for as long as the residual
trees are. A component that ends before that falls from then on in proportion to the others. Where
the direct trees fall to 0 and the mixture does not, it ends with the last of its components.

Quantiles do not need the whole curve. On the scale of the baseline hazard h = H0(t) the rows of all
components can be compared without mapping them to times, so that the crossing of 1 - tau is found
by bisection (``_survival/mixture_quantiles.py``).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cqrf._input.risk_sets import TOLERANCE
from cqrf._runtime.compiling import called, kernel
from cqrf._survival.curves import Steps
from cqrf._working_model.transform import WorkingModel, find_time

# The root has at most so many steps: each of them is a step of the curve of every query.
MOST_ROOT_STEPS = 256
NO_STEPS = Steps(np.zeros(2, np.int64), np.empty(0), np.empty(0), np.array([np.inf]))


class Scale(NamedTuple):
    """How the residual scale of each query maps to times.

    Attributes
    ----------
    knots, hazards : (n_knots,) float64
        Cumulative baseline hazard.
    last_time : float
        Last training time: beyond the last knot the hazard is flat up to here.
    factor : (n_queries,) float64
        exp(-l(x)): from a residual to the baseline hazard.
    """

    knots: NDArray[np.float64]
    hazards: NDArray[np.float64]
    last_time: float
    factor: NDArray[np.float64]


def make_scale(
    working: WorkingModel, last_time: float, linear_predictor: NDArray[np.float64]
) -> Scale:
    """The residual scale of queries with these linear predictors."""
    return Scale(working.knots, working.hazards, last_time, np.exp(-linear_predictor))


def thin_root(root: Steps) -> Steps:
    """The single curve with at most MOST_ROOT_STEPS steps, about the same drop at each."""
    if len(root.times) <= MOST_ROOT_STEPS:
        return root
    drop = (1.0 - root.values) / (1.0 - root.values[-1])
    kept = np.searchsorted(drop, np.arange(1, MOST_ROOT_STEPS + 1) / MOST_ROOT_STEPS - 1e-12)
    kept = np.unique(np.minimum(kept, len(drop) - 1))
    return Steps(np.array([0, len(kept)]), root.times[kept], root.values[kept], root.end)


def map_steps(steps: Steps, scale: Scale) -> Steps:
    """Curves on the residual scale as curves of time, one for each query.

    A step that is beyond the known baseline hazard is at infinity.
    """
    times, end = np.empty_like(steps.times), np.empty_like(steps.end)
    mapped = Steps(steps.offsets, times, steps.values, end)
    _map_steps(steps, scale, mapped)
    return mapped


def repeat_steps(steps: Steps, n: int) -> Steps:
    """A single curve, n times."""
    length = len(steps.times)
    return Steps(
        np.arange(n + 1) * length,
        np.tile(steps.times, n),
        np.tile(steps.values, n),
        np.tile(steps.end, n),
    )


def mix_steps(
    direct: Steps, residual: Steps, root: Steps | None, shares: tuple[float, float, float]
) -> Steps:
    """The mixture of two or three curves of time for every query, with these shares."""
    n_queries = len(direct.end)
    if root is None:
        root = repeat_steps(NO_STEPS, n_queries)
    parts = (direct, residual, root)
    times, values = np.empty((2, sum(len(part.times) for part in parts)))
    mixed = Steps(np.zeros(n_queries + 1, np.int64), times, values, np.empty(n_queries))
    work = MixWork(np.empty(3, np.int64), np.empty(3), np.empty(3))
    n = _mix(parts, np.array(shares), work, mixed)
    return mixed._replace(times=times[:n].copy(), values=values[:n].copy())


class MixWork(NamedTuple):
    """Work arrays with an entry for each component: next step, current value, share."""

    at: NDArray[np.int64]
    now: NDArray[np.float64]
    share: NDArray[np.float64]


@called
def map_end(end, last_step, scale):
    """Last time at which a curve is known, from the baseline hazard up to which it is.

    ``end`` is infinite if the curve falls to 0 at its last step, minus infinity if it is empty.
    """
    knots, hazards = scale.knots, scale.hazards
    most = hazards[hazards.shape[0] - 1]
    if end == np.inf and last_step <= most:
        return np.inf
    if end >= most:
        return scale.last_time
    if end == -np.inf:
        return end
    if end < hazards[0]:  # the hazard jumps past it at the first knot
        return np.nextafter(knots[0], -np.inf)
    return find_time(end, knots, hazards, 0)[0]


@kernel
def _map_steps(steps, scale, mapped):
    """Write the times of all steps and the ends of all curves; both arguments are Steps."""
    knots, hazards = scale.knots, scale.hazards
    for q in range(steps.end.shape[0]):
        factor, knot = scale.factor[q], 0
        first, last = steps.offsets[q], steps.offsets[q + 1]
        for i in range(first, last):
            mapped.times[i], knot = find_time(steps.times[i] * factor, knots, hazards, knot)
        last_step = steps.times[last - 1] * factor if first < last else -np.inf
        mapped.end[q] = map_end(steps.end[q] * factor, last_step, scale)


@called
def share_out(of_direct, of_residual, has_direct, has_residual):
    """Shares of direct and residual trees; a query without trees of one kind has the other's."""
    total = of_direct + of_residual
    if has_direct and has_residual:
        return of_direct, of_residual
    return (total if has_direct else 0.0), (total if has_residual else 0.0)


@called
def start_query(parts, shares, q, work):
    """Begin the curves of a query; return when the direct trees end, or residual ones if alone."""
    at, now, share = work.at, work.now, work.share
    has_direct, has_residual = parts[0].end[q] > -np.inf, parts[1].end[q] > -np.inf
    share[0], share[1] = share_out(shares[0], shares[1], has_direct, has_residual)
    share[2] = shares[2] if has_direct or has_residual else 0.0
    for c in range(3):
        at[c], now[c] = parts[c].offsets[q], 1.0
    return parts[0].end[q] if has_direct else parts[1].end[q]


@called
def last_end(parts, q, shares):
    """The last finite end of a component, infinity if there is none."""
    last = -np.inf
    for c in range(3):
        if shares[c] > 0.0 and parts[c].end[q] < np.inf:
            last = max(last, parts[c].end[q])
    return last if last > -np.inf else np.inf


@called
def next_time(parts, q, work):
    """Time of the next step of any component; infinity if there is none."""
    t = np.inf
    for c in range(3):
        if work.at[c] < parts[c].offsets[q + 1]:
            t = min(t, parts[c].times[work.at[c]])
    return t


@called
def end_components(parts, q, t, work):
    """Take the share from components that end before t; return what they still hold."""
    ended = 0.0
    for c in range(3):
        if work.share[c] > 0.0 and parts[c].end[q] < t:
            ended += work.share[c] * work.now[c]
            work.share[c] = 0.0
    return ended


@kernel
def _mix(parts, shares, work, mixed):
    """Write the steps of the mixture; return how many there are.

    parts : three Steps; shares : (3,) float64; work : MixWork; mixed : Steps, written
    """
    at, now, share = work.at, work.now, work.share
    n = 0
    for q in range(mixed.end.shape[0]):
        end = start_query(parts, shares, q, work)
        value, ended = 1.0, 0.0
        while end > -np.inf:
            t = next_time(parts, q, work)
            if t == np.inf or t > end:
                break
            ended += end_components(parts, q, t, work)
            before, after = 0.0, 0.0
            for c in range(3):
                before += share[c] * now[c]
                while at[c] < parts[c].offsets[q + 1] and parts[c].times[at[c]] == t:
                    now[c] = parts[c].values[at[c]]
                    at[c] += 1
                after += share[c] * now[c]
            if before > 0.0:
                ended *= after / before
            value = ended + after
            mixed.times[n], mixed.values[n] = t, value
            n += 1
        if end == np.inf and value > TOLERANCE:
            end = last_end(parts, q, shares)
        mixed.end[q] = end if value > TOLERANCE else np.inf
        mixed.offsets[q + 1] = n
    return n
