"""What averaging over neighbours takes from effects, by plain loops over rows and trees."""

import numpy as np
import pytest

from cqrf._effects import smoothing
from cqrf._effects.targets import RestrictedMeans, SurvivalProbabilities
from cqrf._forest.sampling import in_bag_bits
from cqrf._forest.traversal import find_leaves
from cqrf._model.queries import Queries, training_codes
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


def neighbours(model, code):
    """Weights (W - e)^2 of the training rows around a query, by rank."""
    forest = model.effect.forest
    leaves, weights = find_leaves(forest, code[np.newaxis]), np.zeros(len(model.arm))
    for start, size in zip(leaves.starts[0], leaves.sizes[0]):
        inside = forest.leaf_rows[start : start + size]
        weights[inside] += model.weight[inside] / model.weight[inside].sum()
    return weights * model.nuisances.residual**2


def root_mean_squares(model, losses, codes):
    known = ~np.isnan(losses)
    weights = [neighbours(model, code)[known] for code in codes]
    return [np.sqrt(np.average(losses[known] ** 2, weights=weight)) for weight in weights]


def sizes_of(model, loss, target, codes):
    return loss.sizes(model.effect, Queries(codes), target.coefficients(loss.grid), None)


@pytest.fixture
def codes(model):
    return training_codes(model.effect)[:9]


def measure_whole(model, monkeypatch):
    """The loss at all times of the grid."""
    monkeypatch.setattr(smoothing, "MOST_TIMES", 10_000)
    return smoothing.measure_smoothing(model.effect, model.nuisances, model.weight)


def test_the_loss_is_that_of_plain_loops(model, codes, monkeypatch):
    found, grid = measure_whole(model, monkeypatch), model.grid
    mean = losses_by_loops(model, lambda curves: grid.means(curves, 1.5))
    sizes = sizes_of(model, found, RestrictedMeans(1.5), codes)
    assert sizes.shape == (9, 1)
    assert sizes[:, 0] == pytest.approx(root_mean_squares(model, mean, codes), rel=1e-9)
    assert sizes.max() > 1.2 * sizes.min()  # the size depends on x
    sizes = sizes_of(model, found, SurvivalProbabilities(np.array([0.1, 0.7]), False), codes)
    for k, column in enumerate(grid.columns(np.array([0.1, 0.7]))):
        at_time = losses_by_loops(model, lambda curves, column=column: curves[:, column])
        assert sizes[:, k] == pytest.approx(root_mean_squares(model, at_time, codes), rel=1e-9)


def test_some_of_the_times_and_rows_are_enough(model, codes, monkeypatch):
    whole, target = measure_whole(model, monkeypatch), RestrictedMeans(1.5)
    monkeypatch.undo()
    some = model.smoothing
    assert len(some.grid.times) <= smoothing.MOST_TIMES < len(whole.grid.times)
    sizes = sizes_of(model, whole, target, codes)
    # The integral over 40 times is a coarse sum.
    assert sizes_of(model, some, target, codes) == pytest.approx(sizes, rel=0.1)
    monkeypatch.setattr(smoothing, "MOST_ROWS", 150)
    fewer = smoothing.measure_smoothing(model.effect, model.nuisances, model.weight)
    assert len(fewer.ranks) <= 150 < len(some.ranks)
    of_fewer = sizes_of(model, fewer, target, codes)
    assert np.sqrt(np.mean(of_fewer**2)) == pytest.approx(np.sqrt(np.mean(sizes**2)), rel=0.25)


def test_without_neighbours_whose_loss_is_known_it_is_that_of_all_rows(model, codes):
    far = min(range(300), key=lambda rank: neighbours(model, codes[0])[rank])
    assert neighbours(model, codes[0])[far] == 0
    known = model.smoothing
    one = known._replace(ranks=np.array([far]), loss=known.loss[:1], mass=known.mass[:1])
    target = RestrictedMeans(1.5)
    expected = np.abs(one.loss @ target.coefficients(one.grid))
    assert sizes_of(model, one, target, codes[:1]) == pytest.approx(expected, rel=1e-12)


def test_nothing_is_lost_of_equal_differences(model):
    same = model.nuisances.survival.copy()
    same[1] = same[0] + 0.1
    nuisances = model.nuisances._replace(survival=same)
    found = smoothing.measure_smoothing(model.effect, nuisances, model.weight)
    assert np.abs(found.loss).max() < 1e-10


def test_rows_without_weight_are_left_out():
    data = make_data()
    weight = np.where(np.arange(300) % 3 == 0, 0.0, 1.0)
    model = fit_small(data, sample_weight=weight).model_
    assert (model.weight[model.smoothing.ranks] > 0).all()
    codes = training_codes(model.effect)
    sizes = sizes_of(model, model.smoothing, RestrictedMeans(1.5), codes)
    assert np.isfinite(sizes).all()
    assert (sizes > 0).all()
