"""Answers: the same as the forest's own methods give for the frame."""

import warnings

import numpy as np
import pytest

from cqrf import CensoredQuantileForest, censored
from cqrf.serve.answers import Question, describe_subjects, predict_rows, say_end
from cqrf.serve.served import prepare, read_data
from cqrf.serve.values import read_rows

LEVELS, TIMES = [0.1, 0.5, 0.95], [20.0, 150.0, 1e6]


def plain(times):
    """Times as numbers again, infinite where they are hidden."""
    sign = {"after_bound": np.inf, "before_bound": -np.inf, "open": -np.inf}
    return [sign[t["reason"]] if t["value"] is None else t["value"] for t in times]


def quietly(work, *arguments, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return work(*arguments, **options)


def test_rows_are_answered_as_the_forest_answers_them(served, forest, frame, rows):
    X = frame.head(len(rows))
    question = Question(LEVELS, TIMES, [0.8], 0.9)
    answers = predict_rows(served, read_rows(rows, served.kinds), question)
    found = [plain(answer["quantiles"]) for answer in answers]
    expected = quietly(forest.predict, X, LEVELS)
    np.testing.assert_array_equal(found, expected)
    assert np.isinf(expected).any()
    assert np.isfinite(expected).any()
    clipped = forest.predict(X, LEVELS, unidentified="clip")
    for answer, values in zip(answers, clipped, strict=True):
        for quantile, value in zip(answer["quantiles"], values, strict=True):
            assert (quantile["bound"] if quantile["value"] is None else quantile["value"]) == value
    ends = [plain([a["intervals"][0]["lower"], a["intervals"][0]["upper"]]) for a in answers]
    np.testing.assert_array_equal(ends, quietly(forest.predict_interval, X, 0.8))
    survival = [[chance["probability"] for chance in a["survival"]] for a in answers]
    np.testing.assert_array_equal(survival, forest.predict_survival(X, TIMES))
    sure = [
        [
            [c["confidence_interval"]["lower"], c["confidence_interval"]["upper"]]
            for c in a["survival"]
        ]
        for a in answers
    ]
    np.testing.assert_array_equal(sure, forest.survival_confidence_interval(X, TIMES, 0.9))
    sides = [
        [
            plain([q["confidence_interval"][side] for side in ("lower", "upper")])
            for q in a["quantiles"]
        ]
        for a in answers
    ]
    expected_sides = quietly(forest.quantile_confidence_interval, X, LEVELS, 0.9)
    np.testing.assert_array_equal(sides, expected_sides)
    limits = [answer["estimable"]["to_level"] for answer in answers]
    np.testing.assert_array_equal(limits, forest.max_quantile(X))


def test_the_page_sees_the_same_on_an_even_grid(served, forest, frame, rows):
    X = frame.head(2)
    subjects = describe_subjects(served, read_rows(rows[:2], served.kinds))
    assert np.ptp(np.diff(served.times)) < 1e-9
    np.testing.assert_allclose(
        [s["survival"] for s in subjects], forest.predict_survival(X, served.times), atol=1e-6
    )
    interval = forest.survival_confidence_interval(X, served.times, 0.95)
    np.testing.assert_allclose([s["lower"] for s in subjects], interval[..., 0], atol=1e-6)
    np.testing.assert_allclose([s["upper"] for s in subjects], interval[..., 1], atol=1e-6)


def test_the_rows_that_speak_are_the_loudest_of_the_training_table(
    served, forest, frame, target, rows
):
    (subject,) = describe_subjects(served, read_rows(rows[:1], served.kinds))
    weights = forest.weights(frame.head(1)).toarray()[0]
    loudest = np.argsort(-weights, kind="stable")[:12]
    assert [n["row"] - 1 for n in subject["neighbours"]] == loudest.tolist()
    assert subject["speaking"] == (weights > 0).sum()
    assert subject["effective"] == pytest.approx(1 / (weights**2).sum(), abs=0.06)
    for neighbour, row in zip(subject["neighbours"], loudest, strict=True):
        assert neighbour["weight"] == pytest.approx(weights[row], abs=1e-6)
        assert neighbour["time"] == target["time"][row]
        assert neighbour["event"] == target["event"][row]
        assert neighbour["label"] == f"p{row}"
        assert neighbour["values"]["colour"] == frame["colour"][row]


def test_without_the_table_no_training_row_is_told(alone, rows):
    (subject,) = describe_subjects(alone, read_rows(rows[:1], alone.kinds))
    assert subject["neighbours"] is None


def test_other_rows_are_not_taken_for_the_training_table(forest, frame, target):
    labels = [str(i) for i in range(len(frame))]
    same = read_data(forest, frame, target, labels, "x")
    assert same.training is not None
    turned = frame.iloc[::-1]
    assert read_data(forest, turned, target, labels, "x").training is None
    later = censored(target["time"] + 1, target["event"])
    assert read_data(forest, frame, later, labels, "x").training is None
    assert read_data(forest, frame, None, labels, "x").training is None


def test_a_forest_without_bags_says_why_it_is_not_sure(frame, target, rows):
    forest = CensoredQuantileForest(n_estimators=10, random_state=0).fit(frame, target)
    served = prepare(forest, "m")
    assert "bag_size" in served.no_errors
    matrix = read_rows(rows, served.kinds)
    (first, *_) = predict_rows(served, matrix, Question([0.5], [10.0], [], 0.9))
    assert first["quantiles"][0]["confidence_interval"] is None
    assert first["survival"][0]["confidence_interval"] is None
    assert describe_subjects(served, matrix)[0]["lower"] is None


def test_left_censoring_is_turned_around(frame, target):
    y = censored(500.0 - np.minimum(target["time"], 499), target["event"])
    forest = CensoredQuantileForest(n_estimators=40, censoring="left", random_state=0)
    forest.fit(frame, y)
    served = prepare(forest, "m", read_data(forest, frame, y, [""] * len(y), "x"))
    assert served.shows_training
    answers = predict_rows(served, served.data.matrix, Question([0.02, 0.5]))
    expected = quietly(forest.predict, frame, [0.02, 0.5])
    np.testing.assert_array_equal([plain(a["quantiles"]) for a in answers], expected)
    assert np.isneginf(expected).any()
    estimable = [a["estimable"] for a in answers]
    np.testing.assert_array_equal([e["from_level"] for e in estimable], forest.max_quantile(frame))
    assert {e["to_level"] for e in estimable} == {1.0}


def test_an_end_without_a_limit_is_open():
    hidden = {"value": None, "bound": 7.0, "reason": "after_bound"}
    assert say_end(np.inf, 7.0, "right") == hidden
    assert say_end(-np.inf, 7.0, "right") == {"value": None, "bound": None, "reason": "open"}
    assert say_end(-np.inf, 7.0, "left") == {**hidden, "reason": "before_bound"}
    assert say_end(np.inf, 7.0, "left") == {"value": None, "bound": None, "reason": "open"}
    assert say_end(3.0, 7.0, "left") == {"value": 3.0, "bound": None, "reason": None}
