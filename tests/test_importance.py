"""Permutation importance out of bag: its definition in loops, its errors, tables of every kind."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from cqrf import CensoredQuantileForest, censored
from cqrf._forest.sampling import in_bag_bits
from cqrf.inspection import PermutationImportance, permutation_importance_oob
from cqrf.metrics import quantile_skill


def make_table(n=200, seed=0):
    """Two columns that matter, the first more, and two that do not."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, 4))
    time = np.exp(3 * X[:, 0] + X[:, 2] + 0.3 * rng.normal(size=n))
    end = rng.exponential(3 * time.mean(), n)
    return X, censored(np.minimum(time, end), time <= end)


def grow(X, y, weight=None, groups=None, **settings):
    few = {"n_estimators": 60, "max_samples": 0.5, "random_state": 0}
    return CensoredQuantileForest(**{**few, **settings}).fit(X, y, weight, groups)


@pytest.fixture(scope="module")
def table():
    return make_table()


@pytest.fixture(scope="module", params=["auto", None], ids=["working model", "plain"])
def forest(request, table):
    return grow(*table, working_model=request.param)


def permuted_columns(X, column, n_repeats, seed, weight=None):
    """The table of each repeat: one column permuted among the rows that have weight."""
    rows = np.arange(len(X)) if weight is None else np.flatnonzero(weight)
    drawn = int(np.random.RandomState(seed).randint(2**31 - 1))
    for repeat in range(n_repeats):
        changed = X.copy()
        rng = np.random.default_rng((drawn, column, repeat))
        if isinstance(X, pd.DataFrame):
            values = changed.iloc[rows, column].to_numpy()
            changed.iloc[rows, column] = values[rng.permutation(len(rows))]
        else:
            changed[rows, column] = changed[rows, column][rng.permutation(len(rows))]
        yield changed


def leave_out(forest, row):
    """The forest of the trees that did not draw a training row; None if there is none."""
    model = forest.model_
    n_trees = len(model.forest.roots)
    unit = model.sampling.unit_of_row[model.ranks[row]]
    unit = -2 - unit if unit < -1 else unit  # a row of weight 0 in a group
    bits = in_bag_bits(model.sampling, model.tree_numbers, model.seed)[unit]
    is_drawn = np.unpackbits(bits, bitorder="little")[:n_trees].astype(bool)
    if is_drawn.all():
        return None
    fewer = CensoredQuantileForest(**forest.get_params())
    fewer.__dict__.update(forest.__dict__)
    some = replace(model.forest, roots=model.forest.roots[~is_drawn])
    fewer.model_ = replace(model, forest=some)
    if model.working is not None:
        fewer.model_ = replace(fewer.model_, working=leave_out_fold(model, row))
        residual = model.residual_trees
        n_direct = np.count_nonzero(~is_drawn[: residual.n_direct])
        fewer.model_.__dict__["residual_trees"] = residual._replace(n_direct=n_direct)
    return fewer


def leave_out_fold(model, row):
    """The working model, with an intercept that makes the row's predictor the cross-fitted one."""
    working, rank = model.working, model.ranks[row]
    scores = working.scores.copy()
    codes = model.rows.codes[:, rank]
    of_row = sum(of_bins[code] for of_bins, code in zip(scores, codes, strict=True))
    scores[0] += working.linear_predictor[rank] - of_row
    return working._replace(scores=scores)


def loop_importance(forest, X, y, column, n_repeats, *, seed=0, weight=None, rows=None):
    """Skill before minus skill after, by predictions of the forests without each row's trees."""
    levels, side = forest.model_.score_levels, forest.censoring
    rows = np.arange(len(X)) if rows is None else rows
    others = {row: leave_out(forest, row) for row in rows}
    rows = [row for row in rows if others[row] is not None]
    weights = {} if weight is None else {"train_weight": weight, "sample_weight": weight[rows]}

    def skill(table):
        one = [table.iloc[[row]] if hasattr(table, "iloc") else table[[row]] for row in rows]
        predicted = np.vstack(
            [
                others[row].predict(x, levels, unidentified="clip")
                for row, x in zip(rows, one, strict=True)
            ]
        )
        return quantile_skill(y, y[rows], predicted, levels, censoring=side, **weights)

    tables = permuted_columns(X, column, n_repeats, seed, weight)
    return skill(X) - np.mean([skill(table) for table in tables])


def test_it_is_its_definition_in_loops(forest, table):
    X, y = table
    found = permutation_importance_oob(forest, n_repeats=2, random_state=0)
    expected = [loop_importance(forest, X, y, column, 2) for column in range(4)]
    np.testing.assert_allclose(found.importances, expected, atol=1e-12)
    assert found.skill == pytest.approx(forest.score_oob(), abs=1e-12)
    assert found.names == [f"feature {i}" for i in range(4)]
    assert (found.n_rows, found.n_repeats) == (200, 2)


def test_left_censoring_sample_weights_and_categories():
    rng = np.random.default_rng(1)
    X, y = make_table(120, 1)
    X[rng.uniform(size=X.shape) < 0.1] = np.nan
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    frame["group"] = np.where(y["time"] > np.median(y["time"]), "late", "early")
    frame.loc[rng.uniform(size=120) < 0.2, "group"] = None
    weight = rng.integers(0, 4, 120).astype(float)
    turned = censored(-y["time"], y["event"])
    forest = grow(frame, turned, weight, censoring="left")
    weighted = np.flatnonzero(weight)
    found = permutation_importance_oob(forest, features=["group", 0], n_repeats=2, random_state=3)
    for k, column in enumerate((4, 0)):
        expected = loop_importance(
            forest, frame, turned, column, 2, seed=3, weight=weight, rows=weighted
        )
        assert found.importances[k] == pytest.approx(expected, abs=1e-6)  # weights are float32
    assert found.names == ["group", "a"]
    assert found.n_rows == len(weighted)


def test_standard_errors_are_those_of_a_ratio_over_rows_and_groups(table):
    """Against the delete-one jackknife over rows, and over groups of them."""
    X, y = table
    for groups in (None, np.repeat(np.arange(40), 5)):
        forest = grow(X, y, groups=groups)
        found = permutation_importance_oob(forest, features=0, n_repeats=1, random_state=0)
        levels = forest.model_.score_levels
        before = forest.predict_oob(levels, unidentified="clip")
        (changed,) = permuted_columns(X, 0, 1, 0)
        after = np.vstack(
            [
                leave_out(forest, row).predict(changed[[row]], levels, unidentified="clip")
                for row in range(200)
            ]
        )
        units = np.arange(200) if groups is None else groups
        left_out = []
        for unit in np.unique(units):
            weight = (units != unit).astype(float)
            one, two = (
                quantile_skill(y, y, each, levels, sample_weight=weight) for each in (before, after)
            )
            left_out.append(one - two)
        n = len(left_out)
        jackknife = np.sqrt((n - 1) / n * np.sum((left_out - np.mean(left_out)) ** 2))
        assert found.standard_errors[0] == pytest.approx(jackknife, rel=0.05)


def test_the_order_is_that_of_the_effects():
    found = permutation_importance_oob(grow(*make_table(500, 2)), random_state=0)
    importances, errors = found.importances, found.standard_errors
    assert importances[0] > importances[2] > 3 * errors[2]
    assert importances[0] - importances[2] > 3 * (errors[0] + errors[2])
    for column in (1, 3):
        assert 0 < errors[column] < 0.02
        assert abs(importances[column]) < 3 * errors[column]


def test_importances_without_effect_are_zero_within_their_errors():
    scores = []
    for seed in range(60):
        X, y = make_table(200, seed)
        found = permutation_importance_oob(grow(X, y), features=[1, 3], random_state=seed)
        scores += list(found.importances / found.standard_errors)
    assert abs(np.mean(scores)) < 3 / np.sqrt(len(scores))
    assert 0.7 < np.std(scores) < 1.3


def test_a_feature_without_a_split_has_an_importance_of_zero(table):
    X, y = table
    forest = grow(np.column_stack([X, np.ones(200)]), y)
    found = permutation_importance_oob(forest, random_state=0)
    assert (found.importances[4], found.standard_errors[4]) == (0, 0)
    stump = grow(X, y, min_samples_split=10**6, working_model=None)
    assert not permutation_importance_oob(stump).importances.any()


def test_a_feature_of_the_working_model_alone_has_an_importance(table):
    X, y = table
    stump = grow(X, y, min_samples_split=10**6)
    assert len(stump.model_.forest.split_features) == 0
    found = permutation_importance_oob(stump, features=0, n_repeats=2, random_state=0)
    assert found.importances[0] > 5 * found.standard_errors[0] > 0
    expected = loop_importance(stump, X, y, 0, 2)
    assert found.importances[0] == pytest.approx(expected, abs=1e-12)


def test_results_depend_on_the_seed_alone(forest, table):
    one = permutation_importance_oob(forest, random_state=5)
    threads = CensoredQuantileForest(**forest.get_params()).set_params(n_jobs=2).fit(*table)
    two = permutation_importance_oob(threads, random_state=np.random.RandomState(5))
    np.testing.assert_array_equal(one.importances, two.importances)
    np.testing.assert_array_equal(one.standard_errors, two.standard_errors)
    alone = permutation_importance_oob(forest, features=2, random_state=5)
    assert alone.importances == one.importances[2]
    other = permutation_importance_oob(forest, random_state=6)
    assert (other.importances[[0, 2]] != one.importances[[0, 2]]).all()


def test_rows_of_no_weight_change_nothing(table):
    X, y = table
    weight = np.r_[np.ones(150), np.zeros(50)]
    some = permutation_importance_oob(grow(X, y, weight), random_state=0)
    fewer = permutation_importance_oob(grow(X[:150], y[:150]), random_state=0)
    np.testing.assert_allclose(some.importances, fewer.importances, atol=1e-12)
    np.testing.assert_allclose(some.standard_errors, fewer.standard_errors, atol=1e-12)


def test_some_rows_are_scored(forest, table):
    X, y = table
    found = permutation_importance_oob(forest, features=0, n_repeats=2, n_rows=20, random_state=0)
    rows = np.linspace(0, 199, 20).round().astype(int)
    expected = loop_importance(forest, X, y, 0, 2, rows=rows)
    assert found.importances == pytest.approx([expected], abs=1e-12)
    assert found.n_rows == 20


def test_rows_that_every_tree_has_drawn_are_not_scored(table):
    X, y = table
    forest = grow(X, y, n_estimators=4)
    known = np.flatnonzero(~np.isnan(forest.predict_oob(0.5, unidentified="clip")))
    found = permutation_importance_oob(forest, n_repeats=1, random_state=0)
    assert found.n_rows == len(known) < 200
    assert found.importances[0] == pytest.approx(loop_importance(forest, X, y, 0, 1), abs=1e-12)


def test_equal_times_have_no_skill_to_lose(table):
    forest = grow(table[0], np.full(200, 2.0))
    found = permutation_importance_oob(forest)
    assert not found.importances.any()
    assert found.skill == 0


def test_it_reads_in_one_line_and_as_a_frame():
    importances, errors = np.array([0.1, 0.3, 0.0, 0.2]), np.array([0.01, 0.02, 0.0, 0.03])
    found = PermutationImportance(["a", "b", "c", "d"], importances, errors, 0.5, 80, 5)
    assert repr(found) == (
        "PermutationImportance(b 0.300 ± 0.020, d 0.200 ± 0.030, a 0.100 ± 0.010, ...; "
        "skill 0.500, 80 rows)"
    )
    frame = found.to_frame()
    assert frame.index.tolist() == ["b", "d", "a", "c"]
    assert frame.index.name == "feature"
    assert frame["importance"].tolist() == [0.3, 0.2, 0.1, 0.0]
    assert frame["standard_error"].tolist() == [0.02, 0.03, 0.01, 0.0]


def test_a_forest_without_training_features_is_refused(forest):
    lost = CensoredQuantileForest(**forest.get_params())
    lost.__dict__.update(forest.__dict__)
    rows = forest.model_.rows
    lost.model_ = replace(forest.model_, rows=rows._replace(codes=rows.codes[:, :0]))
    with pytest.raises(ValueError, match="a forest grown on Dask does not keep"):
        permutation_importance_oob(lost)


def test_mistakes_are_named(forest, table):
    with pytest.raises(NotFittedError):
        permutation_importance_oob(CensoredQuantileForest())
    with pytest.raises(ValueError, match="forest must be a CensoredQuantileForest; found str"):
        permutation_importance_oob("forest")
    with pytest.raises(ValueError, match="feature=7 must be a name or a number from 0 to 3"):
        permutation_importance_oob(forest, features=[0, 7])
    with pytest.raises(ValueError, match="n_repeats=0"):
        permutation_importance_oob(forest, n_repeats=0)
    with pytest.raises(ValueError, match="n_rows=0"):
        permutation_importance_oob(forest, n_rows=0)
    with pytest.raises(ValueError, match="no row is out of bag"):
        permutation_importance_oob(grow(*table, max_samples=None))
