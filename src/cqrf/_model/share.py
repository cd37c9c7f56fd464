"""The share of the root: how much of a prediction is the working model's own curve.

The root is the survival curve of all residuals together: with it the working model alone predicts.
On many tables it is better than any forest; where the model is wrong it makes the forest's worse.
Its share a is therefore chosen by the integrated Brier score of the training rows out of bag,

    mixture = (1 - a) forest + a root,   score(a) = A a^2 - 2 b a + constant,

with inverse-probability-of-censoring weights. Scores of single tables are noisy, and on most real
tables a third is close to the best share. So the share is shrunk towards PRIOR_SHARE: relative to
the score of the forest alone,

    a = (b + c PRIOR_SHARE) / (A + c),  c = SHRINKAGE / number of events,  cut to [0, MOST_SHARE].

A working model that finds nothing cannot help: unless the root's score is lower than that of the
Kaplan-Meier curve by the fraction LEAST_GAIN, the root has no share.

Out of bag a row has few trees, so that its curve is noisier than the forest's. The noise of the
forest's square is left out: products are taken between two halves of the trees.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cqrf._forest.spec import Sampling
from cqrf._forest.traversal import Leaves, find_leaves
from cqrf._forest.weights import forest_weights
from cqrf._input.target import Target
from cqrf._model.fitted import Model
from cqrf._model.queries import Queries
from cqrf._model.residual import ResidualTrees
from cqrf._runtime.threads import thread_map
from cqrf._survival.curves import as_curves, compute_steps, step_curves
from cqrf._survival.mixture import Scale, make_scale, map_steps, repeat_steps
from cqrf.metrics.ipcw import EvaluationRows, marginal_weights, read_evaluation_rows
from cqrf.metrics.score_times import default_times

PRIOR_SHARE, SHRINKAGE = 1 / 3, 10.0
LEAST_GAIN = 0.01
MOST_SHARE = 0.5
# The score is computed from so many rows at most. With more units than these the root has no share:
# which trees have drawn a row would take too long to find, and a large forest needs no help.
MOST_ROWS, MOST_UNITS = 500, 100_000
FEWEST_ROWS = 20
# They are read in blocks of so many: arrays of more rows would come from new pages of memory.
BLOCK_ROWS = 128

Floats = NDArray[np.float64]


def can_have_root(sampling: Sampling) -> bool:
    """Whether the root may have a share in a forest that draws in this way.

    Not if trees come in little bags: their variance does not contain the error of the root.
    """
    return sampling.n_units <= MOST_UNITS and sampling.bag_size == 1


class Block(NamedTuple):
    """Some of the rows that are scored: those that have trees of either kind in either half."""

    leaves: tuple[Leaves, Leaves]
    """In direct and in residual trees."""
    linear_predictor: Floats


def choose_root_share(
    model: Model, queries: Queries, rank: NDArray[np.intp], n_jobs: int | None = None
) -> float:
    """Share of the root, from training rows out of bag and their ranks."""
    residual = model.residual_trees
    assert residual is not None
    some = [queries.take(slice(i, i + BLOCK_ROWS)) for i in range(0, len(rank), BLOCK_ROWS)]
    found = thread_map(_find_block, [(model, residual, each) for each in some], n_jobs)
    blocks, have_trees = zip(*found, strict=True)
    rank = rank[np.concatenate(have_trees)]
    if len(rank) < FEWEST_ROWS:
        return 0.0
    rows = model.rows
    every = Target(rows.time, rows.event)
    scored = read_evaluation_rows(
        every,
        every.take(rank),
        train_weight=rows.weight,
        sample_weight=None if rows.weight is None else rows.weight[rank],
    )
    times = default_times(scored)
    times = times[times < scored.horizon]
    if len(times) < 2:
        return 0.0
    tasks = [(model, residual, block, times) for block in blocks]
    parts = thread_map(_read_block, tasks, n_jobs)
    first, second, root = (np.concatenate(each) for each in zip(*parts, strict=True))
    marginal = step_curves(marginal_weights(rows.weight, len(rows.time)), model.ranked_target)
    curves = ScoredCurves(first, second, root, marginal(times, "extend")[0])
    return best_share(scored, curves, times)


class ScoredCurves(NamedTuple):
    """Survival probabilities of the scored rows, (n, n_times) each; the last for all rows."""

    first: Floats
    """From every other tree."""
    second: Floats
    """From the other trees."""
    root: Floats
    marginal: Floats
    """Kaplan-Meier curve of all training rows, (n_times,)."""


def best_share(scored: EvaluationRows, curves: ScoredCurves, times: Floats) -> float:
    """The share that minimises the score, shrunk towards PRIOR_SHARE."""
    is_past = scored.time[:, np.newaxis] <= times
    weight = ~is_past / scored.censoring_survival_at(times)
    had_event = is_past & scored.event[:, np.newaxis]
    weight += had_event / scored.censoring_survival_before(scored.time)[:, np.newaxis]
    weight *= scored.sample_weight[:, np.newaxis]
    # Errors: probability less outcome.
    first, second, root, marginal = (curve - ~is_past for curve in curves)
    root_score, marginal_score = np.sum(weight * root**2), np.sum(weight * marginal**2)
    if root_score >= (1.0 - LEAST_GAIN) * marginal_score:
        return 0.0
    forest = (first + second) / 2
    towards_root = root - forest
    # The square of the forest's error without the noise of its trees; the same noise is in A and,
    # with the opposite sign, in b.
    noise = np.sum(weight * (forest**2 - first * second))
    score = np.sum(weight * forest**2) - noise
    curvature = np.sum(weight * towards_root**2) - noise
    slope = -np.sum(weight * forest * towards_root) - noise
    if score <= 0:
        return 0.0
    shrinkage = SHRINKAGE / max(1, int(scored.event.sum()))
    share = (slope / score + shrinkage * PRIOR_SHARE) / (max(0.0, curvature / score) + shrinkage)
    return float(np.clip(share, 0.0, MOST_SHARE))


def _find_block(
    model: Model, residual: ResidualTrees, queries: Queries
) -> tuple[Block, NDArray[np.bool_]]:
    """The leaves of those queries that have trees, and which of the queries these are."""
    assert queries.linear_predictor is not None
    kinds = residual.split(find_leaves(model.forest, queries.codes, queries.in_bag))
    has_trees = np.all([_has_trees(half) for kind in kinds for half in _halves(kind)], axis=0)
    direct, on_residuals = (Leaves(each.starts[has_trees], each.sizes[has_trees]) for each in kinds)
    return Block((direct, on_residuals), queries.linear_predictor[has_trees]), has_trees


def _halves(leaves: Leaves) -> tuple[Leaves, Leaves]:
    """Every other tree."""
    even, odd = (Leaves(leaves.starts[:, k::2], leaves.sizes[:, k::2]) for k in (0, 1))
    return even, odd


def _has_trees(leaves: Leaves) -> NDArray[np.bool_]:
    return np.asarray((leaves.sizes > 0).any(axis=1))


def _read_block(
    model: Model, residual: ResidualTrees, block: Block, times: Floats
) -> tuple[Floats, Floats, Floats]:
    """Survival probabilities of either half of the trees and of the root, (n, n_times) each."""
    assert model.working is not None
    scale = make_scale(model.working, float(model.rows.time[-1]), block.linear_predictor)
    first, second = (
        _read_half(model, residual, half, scale, times)
        for half in zip(*map(_halves, block.leaves), strict=True)
    )
    repeated = repeat_steps(residual.root, len(block.linear_predictor))
    root = as_curves(map_steps(repeated, scale), "right")
    return first, second, root(times, "extend")


def _read_half(
    model: Model,
    residual: ResidualTrees,
    leaves: tuple[Leaves, Leaves],
    scale: Scale,
    times: Floats,
) -> Floats:
    """Survival probabilities of the mixture without the root, from half of the trees."""
    n_train, direct = len(model.order), model.ranked_target
    weights = forest_weights(leaves[0], model.forest.leaf_rows, n_train, direct.weight)
    on_times = as_curves(compute_steps(weights, direct), "right")
    weights = forest_weights(leaves[1], residual.leaf_rows, n_train, residual.target.weight)
    on_residuals = as_curves(map_steps(compute_steps(weights, residual.target), scale), "right")
    return (on_times(times, "extend") + on_residuals(times, "extend")) / 2
