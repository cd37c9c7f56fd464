"""Evaluation: every measure is the one the metrics give, out of bag and on other rows."""

import numpy as np
import pytest

from cqrf import CensoredQuantileForest, censored, solve_quantiles
from cqrf.calibration import assess_calibration
from cqrf.datasets import make_aft
from cqrf.evaluation import evaluate, list_labels
from cqrf.metrics import (
    bootstrap_interval,
    censored_quantile_loss,
    concordance_index,
    crps,
    integrated_auc,
    integrated_brier_score,
    quantile_skill,
)

LEVELS = (0.25, 0.5, 0.75)


def make_table(n=200, seed=0):
    X, y, _, _ = make_aft(n, random_state=seed)
    return X, y


def fit(X, y, **settings):
    fit_settings = settings.pop("fit_settings", {})
    forest = CensoredQuantileForest(n_estimators=60, random_state=0, **settings)
    return forest.fit(X, y, **fit_settings)


def test_on_other_rows():
    (X, y), (X_test, y_test) = make_table(), make_table(seed=1)
    forest = fit(X, y)
    found = evaluate(forest, X_test, y_test)
    curves = forest.predict_survival(X_test)
    times = np.linspace(*np.quantile(y_test["time"], [0.1, 0.9]), 50)
    assert found["rows"] == 200
    assert found["concordance"] == concordance_index(
        y_test, forest.predict_mean(X_test, beyond="extend")
    )
    assert found["crps"] == crps(y_test, y_test, curves)
    assert found["auc"] == integrated_auc(y_test, y_test, curves)
    assert found["integrated_brier_score"] == pytest.approx(
        integrated_brier_score(y_test, y_test, curves, times)
    )
    predicted = forest.predict(X_test, LEVELS, unidentified="clip")
    losses = censored_quantile_loss(y_test, y_test, predicted, LEVELS)
    np.testing.assert_allclose([found[f"loss_{level}"] for level in LEVELS], losses)
    marginal = solve_quantiles(
        np.ones((1, 200)), y["time"], y["event"], LEVELS, unidentified="clip"
    )
    of_all = censored_quantile_loss(y_test, y_test, np.repeat(marginal, 200, axis=0), LEVELS)
    assert found["skill"] == pytest.approx(1 - losses.mean() / of_all.mean())
    calibration = assess_calibration(forest, X_test, y_test)
    assert found["calibration_distance"] == calibration.distance
    assert found["calibration_p_value"] == calibration.p_value


def test_rows_that_are_not_censored_are_judged_by_what_they_show():
    (X, y), rng = make_table(), np.random.default_rng(0)
    forest = fit(X, y)
    new = make_aft(400, random_state=1)
    time = new.y["time"] + rng.exponential(1, 400)  # all seen, whatever it is
    found = evaluate(forest, new.X, time)
    grid = np.linspace(*np.quantile(time, [0.1, 0.9]), 50)
    survival = forest.predict_survival(new.X, grid, beyond="extend")
    squared = ((time[:, np.newaxis] > grid) - survival) ** 2
    expected = np.trapezoid(squared.mean(axis=0), grid) / np.ptp(grid)
    assert found["integrated_brier_score"] == pytest.approx(expected)
    predicted = forest.predict(new.X, 0.5, unidentified="clip")
    loss = np.abs(time - predicted).mean() / 2
    assert found["loss_0.5"] == pytest.approx(loss)


def test_out_of_bag():
    X, y = make_table()
    forest = fit(X, y)
    found = evaluate(forest)
    assert found["skill"] == forest.score_oob()
    assert found["crps"] == pytest.approx(crps(y, y, forest.predict_survival_oob()))
    assert found["calibration_distance"] == assess_calibration(forest).distance
    assert found["concordance"] < evaluate(forest, X, y)["concordance"]


def test_rows_that_every_tree_has_drawn_do_not_count():
    X, y = make_table(60)
    forest = fit(X, y).set_params(n_estimators=3).fit(X, y)
    known = ~np.isnan(forest.predict_oob(0.5))
    assert 0 < known.sum() < 60
    found = evaluate(forest)
    assert found["rows"] == known.sum()
    curves = forest.predict_survival_oob()
    mean = curves.restricted_mean(forest.model_.follow_up, beyond="extend")
    assert found["concordance"] == pytest.approx(concordance_index(y[known], mean[known]))


def test_a_row_of_no_weight_does_not_count():
    X, y = make_table()
    weight = np.r_[np.ones(150), np.zeros(50)]
    some = evaluate(fit(X, y, fit_settings={"sample_weight": weight}))
    fewer = evaluate(fit(X[:150], y[:150]))
    assert some == pytest.approx(fewer)


def test_left_censoring_mirrors_right():
    X, y = make_table()
    right = evaluate(fit(X, y))
    left = evaluate(fit(X, censored(-y["time"], y["event"]), censoring="left"))
    for name in ("skill", "crps", "concordance", "loss_0.5", "integrated_brier_score"):
        assert left[name] == pytest.approx(right[name], rel=1e-6), name


def test_the_brier_score_is_known_where_most_rows_end_with_the_study():
    rng = np.random.default_rng(0)
    X, time = rng.normal(size=(400, 2)), rng.exponential(120, 400)
    forest = fit(X, censored(np.minimum(time, 5), time <= 5))
    found = evaluate(forest, X, censored(np.minimum(time, 5), time <= 5))
    times = np.linspace(*np.quantile(np.append(time[time < 5], 5), [0.1, 0.9]), 50)
    # Nobody is censored before the end: whether T > t is known of every row.
    squared = ((time[:, np.newaxis] > times) - forest.predict_survival(X, times)) ** 2
    expected = np.trapezoid(squared.mean(axis=0), times) / np.ptp(times)
    assert found["integrated_brier_score"] == pytest.approx(expected)


def test_what_these_rows_cannot_tell_is_nan():
    X, y = make_table()
    forest = fit(X, y)
    found = evaluate(forest, X[:1], y[:1])
    assert np.isnan(found["concordance"])
    assert np.isnan(found["integrated_brier_score"])
    assert np.isfinite(found["loss_0.5"])


def without_ends(found):
    return {name: value for name, value in found.items() if not name.endswith(("_lower", "_upper"))}


def test_intervals_are_those_of_the_bootstrap_over_rows_or_groups():
    (X, y), (X_test, y_test) = make_table(), make_table(seed=1)
    forest = fit(X, y)
    mean = forest.predict_mean(X_test, beyond="extend")
    predicted = forest.predict(X_test, LEVELS, unidentified="clip")
    marginal = solve_quantiles(
        np.ones((1, 200)), y["time"], y["event"], LEVELS, unidentified="clip"
    )
    for groups in (None, np.arange(200) // 4):
        found = evaluate(forest, X_test, y_test, confidence=0.9, groups=groups, random_state=7)
        options = {"groups": groups, "confidence": 0.9, "random_state": 7}
        ranked = bootstrap_interval(concordance_index, y_test, mean, **options)
        skilled = bootstrap_interval(
            quantile_skill, y_test, y_test, predicted, LEVELS, baseline=marginal[0], **options
        )
        for name, interval in (("concordance", ranked), ("skill", skilled)):
            ends = [found[name], found[f"{name}_lower"], found[f"{name}_upper"]]
            assert ends == pytest.approx(list(interval))
    assert without_ends(found) == evaluate(forest, X_test, y_test)
    assert list(found) == list(list_labels(confidence=0.9))
    assert all(isinstance(value, float) for value in found.values())


def test_intervals_out_of_bag_draw_the_groups_of_the_fit():
    X, y = make_table()
    copies = np.repeat(np.arange(50), 4)
    X, y = X[copies], y[copies]  # four copies of each row: there are 50 independent rows
    rows = evaluate(fit(X, y, fit_settings={"groups": np.arange(200)}), confidence=0.95)
    groups = evaluate(fit(X, y, fit_settings={"groups": copies}), confidence=0.95)
    width, wider = (
        found["concordance_upper"] - found["concordance_lower"] for found in (rows, groups)
    )
    assert wider > 1.5 * width
    assert groups["skill_lower"] < groups["skill"] < groups["skill_upper"]
    assert evaluate(fit(X, y), confidence=0.95) == evaluate(fit(X, y), confidence=0.95)


def test_intervals_of_rows_that_determine_nothing_are_nan():
    X, y = make_table()
    found = evaluate(fit(X, y), X[:1], y[:1], confidence=0.95)
    assert np.isnan([found["skill_lower"], found["concordance_upper"]]).all()


def test_mistakes_about_intervals_are_named():
    X, y = make_table(60)
    forest = fit(X, y)
    with pytest.raises(ValueError, match="confidence=95 must be a number between 0 and 1"):
        evaluate(forest, confidence=95)
    for given in ({"X": X}, {"y": y}):
        with pytest.raises(ValueError, match="give both X and y, or neither"):
            evaluate(forest, **given)
    with pytest.raises(ValueError, match="groups are those of X and y"):
        evaluate(forest, groups=np.arange(60))
    with pytest.raises(ValueError, match=r"groups has shape \(3,\)"):
        evaluate(forest, X, y, confidence=0.9, groups=[1, 2, 3])


def test_estimates_are_the_same_with_intervals():
    X, y = make_table(500)
    forest = fit(X, y)
    assert without_ends(evaluate(forest, confidence=0.95)) == evaluate(forest)
