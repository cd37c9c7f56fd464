"""What averaging over neighbours takes from effects, by plain loops over rows and trees."""

import numpy as np
import pytest

from cqrf._effects import smoothing
from cqrf._effects.targets import RestrictedMeans, SurvivalProbabilities
from cqrf._forest.sampling import in_bag_bits
from cqrf._forest.traversal import find_leaves
from cqrf._model.queries import training_codes
from support.treated import fit_small, make_data


@pytest.fixture(scope="module", params=[False, True])
def model(request):
    data = make_data()
    weight = np.random.default_rng(0).integers(1, 5, 300) / 2 if request.param else None
    return fit_small(data, sample_weight=weight).model_


def losses_by_loops(model, of_target):
    """g - K g of each training row, by rank, for a target of curves on the whole grid."""
    nuisances, effect = model.nuisances, model.effect
    g = of_target(nuisances.survival[1]) - of_target(nuisances.survival[0])
    forest, n = effect.forest, len(g)
    leaves = find_leaves(forest, training_codes(effect))
    bits = in_bag_bits(effect.sampling, effect.tree_numbers, effect.seed)
    drawn = np.unpackbits(bits, axis=1, bitorder="little")[effect.sampling.unit_of_row] == 1
    found = np.full(n, np.nan)
    for rank in range(n):
        row, top, bottom, n_trees = effect.order[rank], 0.0, 0.0, 0
        for tree in range(len(forest.roots)):
            if drawn[rank, tree]:
                continue
            start, size = leaves.starts[row, tree], leaves.sizes[row, tree]
            inside = forest.leaf_rows[start : start + size]
            share = model.weight[inside] / model.weight[inside].sum()
            squared = nuisances.residual[inside] ** 2
            top += share @ (squared * g[inside])
            bottom += share @ squared
            n_trees += 1
        if n_trees:
            found[rank] = g[rank] - top / bottom
    return found


def root_mean_square(model, losses):
    known = ~np.isnan(losses)
    return np.sqrt(np.average(losses[known] ** 2, weights=model.weight[known]))


def measure_whole(model, monkeypatch):
    """The loss at all times of the grid."""
    monkeypatch.setattr(smoothing, "MOST_TIMES", 10_000)
    return smoothing.measure_smoothing(model.effect, model.nuisances, model.weight)


def test_the_loss_is_that_of_plain_loops(model, monkeypatch):
    found, grid = measure_whole(model, monkeypatch), model.grid
    targets = [RestrictedMeans(1.5), SurvivalProbabilities(np.array([0.1, 0.7]), False)]
    mean = losses_by_loops(model, lambda curves: grid.means(curves, 1.5))
    expected = [root_mean_square(model, mean)]
    for time in (0.1, 0.7):
        column = grid.columns(np.array([time]))[0]
        at_time = losses_by_loops(model, lambda curves, column=column: curves[:, column])
        expected.append(root_mean_square(model, at_time))
    sizes = np.concatenate([found.size(target.coefficients(found.grid)) for target in targets])
    assert sizes == pytest.approx(expected, rel=1e-9)


def test_some_of_the_times_and_rows_are_enough(model, monkeypatch):
    whole, target = measure_whole(model, monkeypatch), RestrictedMeans(1.5)
    monkeypatch.undo()
    some = model.smoothing
    assert len(some.grid.times) <= smoothing.MOST_TIMES < len(whole.grid.times)
    size = whole.size(target.coefficients(whole.grid))
    # The integral over 40 times is a coarse sum.
    assert some.size(target.coefficients(some.grid)) == pytest.approx(size, rel=0.1)
    monkeypatch.setattr(smoothing, "MOST_ROWS", 150)
    fewer = smoothing.measure_smoothing(model.effect, model.nuisances, model.weight)
    assert fewer.size(target.coefficients(fewer.grid)) == pytest.approx(size, rel=0.25)
    assert not np.array_equal(fewer.products, some.products)


def test_nothing_is_lost_of_equal_differences(model):
    same = model.nuisances.survival.copy()
    same[1] = same[0] + 0.1
    nuisances = model.nuisances._replace(survival=same)
    found = smoothing.measure_smoothing(model.effect, nuisances, model.weight)
    assert np.abs(found.products).max() < 1e-20
