"""Predictions of the server: the same as the forest's own methods give for the frame."""

import warnings

import numpy as np
import pytest

from cqrf import CensoredQuantileForest, censored
from cqrf.serve import data_rows
from cqrf.serve.data_rows import read_data_rows, row_values
from cqrf.serve.model_view import make_view
from cqrf.serve.predictions import PredictionRequest, describe_subjects, end_content, predict_rows
from cqrf.serve.values import RowsRead, read_rows

LEVELS, TIMES = [0.1, 0.5, 0.95], [20.0, 150.0, 1e6]


def plain(times):
    """Times as numbers again, infinite where they are not identifiable."""
    sign = {"after_bound": np.inf, "before_bound": -np.inf, "open": -np.inf}
    return [sign[t["reason"]] if t["value"] is None else t["value"] for t in times]


def or_nan(value):
    return np.nan if value is None else value


def quietly(work, *arguments, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return work(*arguments, **options)


def test_rows_are_predicted_as_the_forest_predicts_them(view, forest, frame, rows):
    X = frame.head(len(rows))
    request = PredictionRequest(LEVELS, TIMES, [0.8], 0.9)
    predictions = predict_rows(view, read_rows(rows, view.columns), request)
    found = [plain(prediction["quantiles"]) for prediction in predictions]
    expected = quietly(forest.predict, X, LEVELS)
    np.testing.assert_array_equal(found, expected)
    assert np.isinf(expected).any()
    assert np.isfinite(expected).any()
    clipped = forest.predict(X, LEVELS, unidentified="clip")
    for prediction, values in zip(predictions, clipped, strict=True):
        for quantile, value in zip(prediction["quantiles"], values, strict=True):
            assert (quantile["bound"] if quantile["value"] is None else quantile["value"]) == value
    ends = [plain([a["intervals"][0]["lower"], a["intervals"][0]["upper"]]) for a in predictions]
    np.testing.assert_array_equal(ends, quietly(forest.predict_interval, X, 0.8))
    survival = [[or_nan(each["probability"]) for each in a["survival"]] for a in predictions]
    np.testing.assert_array_equal(survival, quietly(forest.predict_survival, X, TIMES))
    sure = [
        [
            [or_nan((c["confidence_interval"] or {}).get(end)) for end in ("lower", "upper")]
            for c in a["survival"]
        ]
        for a in predictions
    ]
    expected = quietly(forest.survival_confidence_interval, X, TIMES, 0.9)
    np.testing.assert_array_equal(sure, expected)
    assert np.isnan(expected).any()
    sides = [
        [
            plain([q["confidence_interval"][side] for side in ("lower", "upper")])
            for q in a["quantiles"]
        ]
        for a in predictions
    ]
    expected_sides = quietly(forest.quantile_confidence_interval, X, LEVELS, 0.9)
    np.testing.assert_array_equal(sides, expected_sides)
    limits = [prediction["estimable"]["to_level"] for prediction in predictions]
    np.testing.assert_array_equal(limits, forest.max_quantile(X))


def test_the_page_gets_the_same_on_an_even_grid(view, forest, frame, rows):
    X = frame.head(2)
    subjects = describe_subjects(view, read_rows(rows[:2], view.columns).matrix)
    assert np.ptp(np.diff(view.times)) < 1e-9
    expected = quietly(forest.predict_survival, X, view.times)
    assert np.isnan(expected).any()
    interval = quietly(forest.survival_confidence_interval, X, view.times, 0.95)
    for name, values in (
        ("survival", expected),
        ("lower", interval[..., 0]),
        ("upper", interval[..., 1]),
    ):
        found = [[or_nan(value) for value in subject[name]] for subject in subjects]
        np.testing.assert_allclose(found, values, atol=1e-6)


def test_values_of_a_row_are_written_once_and_of_few_rows_kept(forest, frame, monkeypatch):
    data = read_data_rows(forest, frame, None, [str(i) for i in range(len(frame))], "patients.csv")
    columns = make_view(forest, "forest").columns
    monkeypatch.setattr(data_rows, "MAX_WRITTEN", 3)
    written = [row_values(data, row, columns) for row in (5, 6, 5, 7, 8, 5)]
    assert written[2] is written[0]
    assert written[5] == written[0] is not written[5]  # the fourth row took the place of all
    assert sorted(data.written) == [5, 8]
    for row, values in zip((5, 6, 5, 7, 8, 5), written, strict=True):
        treated, seen = frame.loc[row, ["treated", "seen"]]
        assert (values["treated"], values["seen"]) == (treated, seen.date().isoformat())


def test_neighbours_are_the_training_rows_of_largest_weight(view, forest, frame, target, rows):
    (subject,) = describe_subjects(view, read_rows(rows[:1], view.columns).matrix)
    weights = forest.weights(frame.head(1)).toarray()[0]
    largest = np.argsort(-weights, kind="stable")[:12]
    assert [n["row"] - 1 for n in subject["neighbours"]] == largest.tolist()
    assert subject["n_neighbours"] == (weights > 0).sum()
    assert subject["effective_sample_size"] == pytest.approx(1 / (weights**2).sum(), abs=0.06)
    for neighbour, row in zip(subject["neighbours"], largest, strict=True):
        assert neighbour["weight"] == pytest.approx(weights[row], abs=1e-6)
        assert neighbour["time"] == target["time"][row]
        assert neighbour["event"] == target["event"][row]
        assert neighbour["label"] == f"p{row}"
        assert neighbour["values"]["colour"] == frame["colour"][row]


def test_without_the_table_no_training_row_is_shown(lone_view, rows):
    (subject,) = describe_subjects(lone_view, read_rows(rows[:1], lone_view.columns).matrix)
    assert subject["neighbours"] is None


def test_other_rows_are_not_taken_for_the_training_table(forest, frame, target):
    labels = [str(i) for i in range(len(frame))]
    same = read_data_rows(forest, frame, target, labels, "x")
    assert same.training is not None
    turned = frame.iloc[::-1]
    assert read_data_rows(forest, turned, target, labels, "x").training is None
    later = censored(target["time"] + 1, target["event"])
    assert read_data_rows(forest, frame, later, labels, "x").training is None
    assert read_data_rows(forest, frame, None, labels, "x").training is None


def test_a_forest_without_bags_gives_the_reason_for_no_intervals(frame, target, rows):
    forest = CensoredQuantileForest(n_estimators=10, random_state=0).fit(frame, target)
    view = make_view(forest, "m")
    assert "bag_size" in view.no_errors_reason
    read = read_rows(rows, view.columns)
    (first, *_) = predict_rows(view, read, PredictionRequest([0.5], [10.0], [], 0.9))
    assert first["quantiles"][0]["confidence_interval"] is None
    assert first["survival"][0]["confidence_interval"] is None
    assert describe_subjects(view, read.matrix)[0]["lower"] is None


def test_left_censoring_has_a_smallest_level(frame, target):
    y = censored(500.0 - np.minimum(target["time"], 499), target["event"])
    forest = CensoredQuantileForest(n_estimators=40, censoring="left", random_state=0)
    forest.fit(frame, y)
    view = make_view(forest, "m", read_data_rows(forest, frame, y, [""] * len(y), "x"))
    assert view.data.training is not None
    predictions = predict_rows(
        view, RowsRead(view.data.matrix, [[] for _ in y]), PredictionRequest([0.02, 0.5])
    )
    expected = quietly(forest.predict, frame, [0.02, 0.5])
    np.testing.assert_array_equal([plain(a["quantiles"]) for a in predictions], expected)
    assert np.isneginf(expected).any()
    estimable = [a["estimable"] for a in predictions]
    np.testing.assert_array_equal([e["from_level"] for e in estimable], forest.max_quantile(frame))
    assert {e["to_level"] for e in estimable} == {1.0}


def test_an_end_without_a_limit_is_open():
    unidentified = {"value": None, "bound": 7.0, "reason": "after_bound"}
    assert end_content(np.inf, 7.0, "right") == unidentified
    assert end_content(-np.inf, 7.0, "right") == {"value": None, "bound": None, "reason": "open"}
    assert end_content(-np.inf, 7.0, "left") == {**unidentified, "reason": "before_bound"}
    assert end_content(np.inf, 7.0, "left") == {"value": None, "bound": None, "reason": "open"}
    assert end_content(3.0, 7.0, "left") == {"value": 3.0, "bound": None, "reason": None}
