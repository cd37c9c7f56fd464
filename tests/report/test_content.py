"""Content of the report: against direct calls of the forest and the metrics."""

import json
import math
import re
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from cqrf import CensoredQuantileForest, censored
from cqrf._views.curves import SHOWN_LEVELS
from cqrf._views.numbers import format_number, format_percent, round_number
from cqrf.calibration import assess_calibration
from cqrf.datasets import make_aft
from cqrf.evaluation import evaluate, list_labels
from cqrf.inspection import partial_dependence
from cqrf.metrics import censored_quantile_loss, concordance_index, crps, integrated_brier_score
from cqrf.report.content import build_content, choose_level
from cqrf.report.data import histogram_edges
from cqrf.report.evaluation import describe_skill
from cqrf.report.predictions import space_rows
from cqrf.report.rows import MAX_STEPS, SURVIVAL_UNIT
from cqrf.report.words import Words

LABEL, TIME, EVENT, QUANTILES, MAX_LEVEL, LAST_NEIGHBOUR, INITIAL, STEPS, SURVIVAL = range(9)


def build(forest, X, y, **options):
    """Content, checked to be plain JSON without a word that a reader should not see."""
    content = build_content(forest, X, y, title="t", **options)
    assert json.loads(json.dumps(content, allow_nan=False)) == content
    shown = {name: part for name, part in content.items() if name != "about"}
    shown["about"] = content["about"]["items"]  # settings are shown as they are, such as inf
    text = json.dumps(shown)
    assert not re.search(r"\b([Nn]a[Nn]|[Ii]nf|[Ii]nfinity|undefined|None)\b", text)
    return content


@pytest.fixture(scope="module")
def content(forest, pbc):
    return build(forest, pbc.X, pbc.y)


@pytest.fixture(scope="module")
def scores(content):
    return {each["name"]: each for each in content["evaluation"]["scores"]}


def number(text):
    return float(text.replace("−", "-").replace(",", ""))


def close(text, value):
    assert number(text) == pytest.approx(value, rel=6e-3)


def test_times_whose_span_is_no_number_are_refused():
    time = 1e308 * np.linspace(-1, 1, 50)
    X, y = np.arange(50.0)[:, np.newaxis], censored(time, np.ones(50, bool))
    forest = CensoredQuantileForest(n_estimators=10, working_model=None, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match=r"time: .* from -1e\+308 to 1e\+308, .* larger unit"):
        build_content(forest, X, y, title="t")


def test_other_features_are_not_the_training_table(forest, pbc):
    changed = pbc.X.assign(bili=pbc.X["bili"].to_numpy()[::-1])
    assert not build(forest, changed, pbc.y)["evaluation"]["out_of_bag"]


def test_rows_are_the_out_of_bag_predictions(content, forest, pbc):
    rows = content["rows"]["rows"]
    expected = forest.predict_oob(SHOWN_LEVELS, unidentified="nan")
    clipped = forest.predict_oob(0.9, unidentified="clip")
    curves = forest.predict_survival_oob()
    assert [row[LABEL] for row in rows] == list(range(1, 419))
    np.testing.assert_array_equal([row[TIME] for row in rows], pbc.y["time"])
    np.testing.assert_array_equal([row[EVENT] for row in rows], pbc.y["event"])
    for row, values, last, curve in zip(rows, expected, clipped, curves, strict=True):
        ours = [math.nan if value is None else value for value in row[QUANTILES]]
        np.testing.assert_allclose(ours, values, rtol=1e-3)
        if row[QUANTILES][-1] is None:
            assert row[LAST_NEIGHBOUR] == pytest.approx(last, rel=1e-3)
        assert len(row[STEPS]) <= MAX_STEPS
        times = np.array(content["rows"]["times"])[row[STEPS]]
        survival = np.array(row[SURVIVAL]) / SURVIVAL_UNIT
        earlier, later = times * (1 - 5e-4), times * (1 + 5e-4)  # times have four digits
        assert (survival <= curve(earlier, beyond="extend") + 1e-4).all()
        assert (survival >= curve(later, beyond="extend") - 1e-4).all()
        assert row[SURVIVAL][-1] == round(curve.values[-1] * SURVIVAL_UNIT)
        assert row[MAX_LEVEL] == pytest.approx(1 - curve.values[-1], abs=2e-4)


def test_scores_are_those_of_the_metrics_out_of_bag(scores, forest, pbc):
    y, levels = pbc.y, (0.15, 0.3, 0.45)
    predicted, curves = (
        forest.predict_oob(levels, unidentified="clip"),
        forest.predict_survival_oob(),
    )
    times = np.linspace(*np.quantile(y["time"], [0.1, 0.9]), 50)
    close(scores["Skill"]["forest"], forest.score_oob())
    close(scores["Concordance (Harrell's C)"]["forest"], evaluate(forest)["concordance"])
    close(scores["CRPS, in units of time"]["forest"], crps(y, y, curves))
    brier = integrated_brier_score(y, y, curves, times)
    close(scores["Integrated Brier score"]["forest"], brier)
    losses = censored_quantile_loss(y, y, predicted, levels)
    for level, loss in zip(levels, losses, strict=True):
        close(scores[f"Quantile loss at {level}"]["forest"], loss)


def test_levels_other_than_the_usual_are_explained(content, pbc):
    """PBC shows less than .6 of the distribution, uncensored times all of it."""
    text = " ".join(content["evaluation"]["text"])
    assert "scored at the levels 0.15, 0.3, 0.45 instead of 0.25, 0.5, 0.75" in text
    time = pbc.y["time"]
    forest = CensoredQuantileForest(n_estimators=20, random_state=0).fit(pbc.X, time)
    assert "instead of" not in " ".join(build(forest, pbc.X, time)["evaluation"]["text"])


def test_skill_is_what_the_losses_save(scores):
    losses = [each for name, each in scores.items() if name.startswith("Quantile loss")]
    ours, theirs = (sum(number(each[whose]) for each in losses) for whose in ("forest", "baseline"))
    assert number(scores["Skill"]["forest"]) == pytest.approx(1 - ours / theirs, abs=0.01)


def test_another_table_is_scored_by_plain_predictions(pbc):
    train, test = np.arange(0, 418, 2), np.arange(1, 418, 2)
    X, y = pbc.X.iloc[test], pbc.y[test]
    forest = CensoredQuantileForest(n_estimators=30, random_state=0)
    forest.fit(pbc.X.iloc[train], pbc.y[train])
    content = build(forest, X, y, max_rows=50)
    assert not content["evaluation"]["out_of_bag"]
    assert "has none of these rows" in content["evaluation"]["text"][0]
    assert "On new rows" in content["summary"]
    scores = {each["name"]: each for each in content["evaluation"]["scores"]}
    expected = evaluate(forest, X, y)
    close(scores["Skill"]["forest"], expected["skill"])
    mean = forest.predict_mean(X)
    close(scores["Concordance (Harrell's C)"]["forest"], concordance_index(y, mean))
    close(scores["Concordance (Harrell's C)"]["forest"], expected["concordance"])
    close(scores["Integrated Brier score"]["forest"], expected["integrated_brier_score"])
    close(scores["CRPS, in units of time"]["forest"], expected["crps"])
    chosen = np.array([row[LABEL] for row in content["rows"]["rows"]]) - 1
    np.testing.assert_array_equal(chosen, np.arange(209))
    drawn = [row[LABEL] - 1 for row in content["rows"]["rows"] if len(row) > INITIAL]
    np.testing.assert_array_equal(drawn, space_rows(209, 50))
    ours = [
        [math.nan if q is None else q for q in row[QUANTILES]] for row in content["rows"]["rows"]
    ]
    expected = forest.predict(X.iloc[chosen], SHOWN_LEVELS, unidentified="nan")
    np.testing.assert_allclose(ours, expected, rtol=1e-3)
    limits = [row[MAX_LEVEL] for row in content["rows"]["rows"]]
    np.testing.assert_allclose(limits, forest.max_quantile(X.iloc[chosen]), rtol=1e-3)
    assert content["rows"]["text"][-1].startswith("50 of 209 rows, evenly spaced, have a curve")
    assert "the search finds the others" in content["rows"]["text"][-1]


def test_training_rows_in_another_table_are_counted(forest, pbc):
    content = build(forest, pbc.X.iloc[:20], pbc.y[:20])
    assert content["evaluation"]["text"][0].startswith("All of these rows are training rows")
    mixed = pbc.y[:20].copy()
    mixed["time"][:5] += 0.5
    content = build(forest, pbc.X.iloc[:20], mixed)
    assert content["evaluation"]["text"][0].startswith("15 of these 20 may be training rows")


def test_calibration_is_assessed_on_the_same_rows(content, forest, pbc):
    expected = assess_calibration(forest)
    ours = [math.nan if value is None else value for value in content["calibration"]["observed"]]
    np.testing.assert_allclose(ours, expected.observed, atol=1e-4)
    assert format_number(100 * expected.distance, 2) in content["calibration"]["text"][1]
    assert expected.p_value > 0.05
    assert "look at the curve" in content["calibration"]["text"][2]
    half = build(forest, pbc.X.iloc[::2], pbc.y[::2])["calibration"]
    expected = assess_calibration(forest, pbc.X.iloc[::2], pbc.y[::2])
    ours = [math.nan if value is None else value for value in half["observed"]]
    np.testing.assert_allclose(ours, expected.observed, atol=1e-4)


def test_of_many_rows_some_curves_are_scored(content, forest, pbc, monkeypatch):
    monkeypatch.setattr("cqrf.report.predictions.MAX_EVALUATED", 300)
    some = build(forest, pbc.X, pbc.y)
    assert "use 300 rows, evenly spaced" in some["evaluation"]["text"][-1]
    whole, part = (
        np.array(each["calibration"]["observed"][:60], float) for each in (content, some)
    )
    np.testing.assert_allclose(part, whole, atol=0.1)


def test_importance_and_dependence_are_those_of_the_forest(content, forest, pbc):
    shares = forest.feature_importances_
    bars = content["importance"]["bars"]
    assert len(bars) == 16
    assert sum(bar["share"] for bar in bars) == pytest.approx(1, abs=1e-3)
    assert [bar["share"] for bar in bars[:15]] == sorted(
        (round_number(x) for x in shares), reverse=True
    )[:15]
    assert bars[-1]["name"] == "2 others"
    panels = content["dependence"]["panels"]
    assert [panel["name"] for panel in panels] == [bar["name"] for bar in bars[:4]]
    expected = partial_dependence(forest, pbc.X, bars[0]["name"], SHOWN_LEVELS)
    ours = np.array(panels[0]["values"], dtype=float).T
    np.testing.assert_allclose(ours, expected.values, rtol=1e-3)
    np.testing.assert_allclose(panels[0]["grid"], expected.grid, rtol=1e-4)


def test_panels_are_spaced_by_rank(content, pbc):
    panel = next(each for each in content["dependence"]["panels"] if each["name"] == "bili")
    column = pbc.X["bili"].to_numpy()
    for value, place in [*zip(panel["grid"], panel["places"], strict=True)]:
        rank = (np.sum(column < value - 1e-6) + np.sum(column <= value + 1e-6)) / 2
        assert place == pytest.approx(rank / len(column), abs=1e-4)
    ticks = np.quantile(column, [0, 0.25, 0.5, 0.75, 1], method="nearest")
    np.testing.assert_allclose([value for _, value in panel["ticks"]], ticks)


def test_a_column_of_few_values_is_drawn_as_points():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"treated": rng.choice([0, 1], 200), "dose": rng.uniform(size=200)})
    y = censored(np.exp(2 * X["treated"] + rng.normal(size=200) / 4), rng.uniform(size=200) < 0.8)
    forest = CensoredQuantileForest(n_estimators=20, random_state=0).fit(X, y)
    panels = {panel["name"]: panel for panel in build(forest, X, y)["dependence"]["panels"]}
    assert panels["treated"]["labels"] == ["0", "1"]
    assert "labels" not in panels["dose"]


@pytest.mark.parametrize("side", ["right", "left"])
def test_rows_at_risk_are_counted(pbc, side):
    time = pbc.y["time"] if side == "right" else 5000.0 - pbc.y["time"]
    entry = 0.3 * time if side == "right" else None
    y = censored(time, pbc.y["event"], entry)
    forest = CensoredQuantileForest(n_estimators=5, censoring=side, random_state=0).fit(pbc.X, y)
    risk = build(forest, pbc.X, y)["data"]["at_risk"]
    assert risk["step"] == 100
    for i, count in enumerate(risk["counts"]):
        t = risk["start"] + i * risk["step"]
        expected = np.sum((time >= t) & (entry < t)) if side == "right" else np.sum(time <= t)
        assert count == expected
    assert risk["start"] + risk["step"] * len(risk["counts"]) > time.max()


def test_times_have_their_unit_and_the_event_its_name(forest, pbc):
    plain = build(forest, pbc.X, pbc.y)
    assert plain["words"] == {
        "time": "time",
        "unit": "",
        "event": "event",
        "survival": "survival probability",
    }
    named = CensoredQuantileForest(n_estimators=20, random_state=0)
    named.time_unit, named.event_name = "days", "death"
    named.fit(pbc.X, pbc.y).notes_ = {"time": "followed"}
    content = build(named, pbc.X, pbc.y)
    assert content["words"] == {
        "time": "followed (days)",
        "unit": "days",
        "event": "death",
        "survival": "probability without death",
    }
    assert "median follow-up is 2,365\u00a0days" in content["summary"]
    assert "161 events (death)" in content["data"]["text"][0]
    assert "\u00a0days" in content["limits"]["text"][0]


@pytest.mark.parametrize(
    ("name", "unit", "title"),
    [
        ("week", "weeks", "time (weeks)"),
        ("Days", "days", "time (days)"),
        ("stay", "days", "stay (days)"),
        ("stay", None, "stay"),
    ],
)
def test_the_unit_is_not_said_twice(name, unit, title):
    assert Words(unit, name).time_title == title


def test_curves_of_the_data_end_with_their_follow_up(forest, pbc):
    """A table that was followed for a shorter time than the training table."""
    time, event = np.minimum(pbc.y["time"], 2000.0), pbc.y["event"] & (pbc.y["time"] < 2000)
    content = build(forest, pbc.X, censored(time, event))
    assert content["time_range"][1] == 4795
    assert content["data"]["event_curve"]["end"] == 2000
    assert content["data"]["event_curve"]["values"][-1] > 0.5
    assert content["data"]["censoring_curve"]["values"][-1] == 0
    assert content["data"]["censoring_curve"]["end"] is None  # it has reached 0


@pytest.mark.parametrize("skill", [-0.05, 0.001, -0.001])
def test_without_skill_the_page_advises_to_tune(skill):
    sentence = describe_skill(skill)
    assert sentence.endswith("Tune the forest (cqrf tune), or try honest=False.")
    assert "Tune" not in describe_skill(0.2)


def test_rows_beyond_the_limit_are_left_out(forest, pbc, monkeypatch):
    monkeypatch.setattr("cqrf.report.predictions.MAX_LISTED", 100)
    content = build(forest, pbc.X, pbc.y, max_rows=30)
    rows = content["rows"]["rows"]
    assert 100 <= len(rows) <= 130
    assert sum(len(row) > INITIAL for row in rows) == 30
    assert f"{len(rows)} of 418 rows are on this page, evenly spaced." in content["rows"]["text"]


def test_limits_count_the_hidden_quantiles(content, forest, pbc):
    with pytest.warns(UserWarning, match="cannot be estimated"):
        hidden = np.isinf(forest.predict_oob(SHOWN_LEVELS)).sum(axis=0)
    for each, n_hidden in zip(content["limits"]["shares"], hidden, strict=True):
        assert each["share"] == round_number(n_hidden / 418)
        assert each["label"].startswith(f"{n_hidden} of 418" if n_hidden else "none")
    assert format_number(pbc.y["time"][pbc.y["event"]].max()) in content["limits"]["text"][0]


@pytest.mark.parametrize(
    ("shares", "opening"),
    [
        ((0.0, 0.0, 0.2, 0.9, 1.0), 2),
        ((0.0, 0.0, 0.0, 0.0, 0.0), 2),
        ((0.0, 0.1, 0.3, 0.9, 1.0), 1),
        ((0.0, 0.3, 0.6, 0.9, 1.0), 0),
        ((0.2, 0.7, 0.9, 1.0, 1.0), 0),
        ((0.8, 0.9, 1.0, 1.0, 1.0), 0),
        ((1.0, 0.9, 0.6, 0.1, 0.0), 3),
        ((1.0, 1.0, 1.0, 1.0, 1.0), 2),
    ],
)
def test_the_page_opens_at_a_level_that_most_rows_have(shares, opening):
    unidentified = np.arange(10)[:, np.newaxis] < 10 * np.array(shares)
    # Rows without a prediction are not counted.
    unidentified = np.vstack([unidentified, np.zeros((30, 5), bool)])
    subject = SimpleNamespace(unidentified=unidentified, has_prediction=np.arange(40) < 10)
    assert choose_level(subject) == opening


def test_without_a_prediction_the_page_opens_at_the_median():
    subject = SimpleNamespace(unidentified=np.zeros((3, 5), bool), has_prediction=np.zeros(3, bool))
    assert choose_level(subject) == 2


def test_the_data_are_counted(content, pbc):
    histogram = content["data"]["histogram"]
    assert sum(histogram["events"]) == pbc.y["event"].sum()
    assert sum(histogram["censored"]) == (~pbc.y["event"]).sum()
    columns = {name: rest for name, *rest in content["data"]["columns"]}
    assert columns["sex"] == ["category", "none", "f (89\u00a0%), m (11\u00a0%)"]
    assert columns["bili"] == ["number", "none", "0.3 to 28"]
    assert columns["chol"][1] == format_percent(pbc.X["chol"].isna().mean())
    assert "161 events" in content["summary"]
    assert "Out of bag" in content["summary"]


def test_left_censoring_is_told_the_other_way_round(pbc):
    y = censored(5000.0 - pbc.y["time"], pbc.y["event"])
    forest = CensoredQuantileForest(n_estimators=30, censoring="left", random_state=0)
    content = build(forest.fit(pbc.X, y), pbc.X, y)
    shares = [each["share"] for each in content["limits"]["shares"]]
    assert shares == sorted(shares, reverse=True)
    assert shares[0] > 0
    assert "earlier than" in content["limits"]["text"][1]
    expected = forest.predict_oob(SHOWN_LEVELS, unidentified="nan")
    for row, values in zip(content["rows"]["rows"], expected, strict=True):
        ours = [math.nan if value is None else value for value in row[QUANTILES]]
        np.testing.assert_allclose(ours, values, rtol=1e-3)
        assert row[MAX_LEVEL] == pytest.approx(1 - row[INITIAL] / SURVIVAL_UNIT, abs=2e-4)
    assert not any("cannot be" in each["forest"] for each in content["evaluation"]["scores"])


def test_rows_that_enter_late(pbc):
    y = censored(pbc.y["time"], pbc.y["event"], pbc.y["time"] * np.linspace(0, 0.5, 418) - 1)
    forest = CensoredQuantileForest(n_estimators=30, random_state=0).fit(pbc.X, y)
    content = build(forest, pbc.X, y)
    assert content["evaluation"]["out_of_bag"]
    assert "418 rows entered observation late" in content["data"]["text"][1]
    assert not any("cannot be" in each["forest"] for each in content["evaluation"]["scores"])
    assert not build(forest, pbc.X, pbc.y)["evaluation"]["out_of_bag"]


def test_frames_of_categories_dates_and_missing_values():
    rng = np.random.default_rng(0)
    n = 150
    color = rng.choice(["red", "blue", None], n)
    start = np.datetime64("2020-01-01") + rng.integers(0, 900, n).astype("timedelta64[D]")
    X = pd.DataFrame(
        {
            "colour": pd.Series(color, dtype=object),
            "start": start.astype("datetime64[us]"),
            "stay": rng.integers(1, 30, n).astype("timedelta64[D]").astype("timedelta64[s]"),
            "empty": np.full(n, np.nan),
        }
    )
    shift = np.where(color == "red", 1.0, 0.0) + (start > np.datetime64("2021-03-01"))
    y = censored(np.exp(shift + rng.normal(size=n) / 3), rng.uniform(size=n) < 0.7)
    forest = CensoredQuantileForest(n_estimators=30, random_state=0).fit(X, y)
    content = build(forest, X, y)
    columns = {name: rest for name, *rest in content["data"]["columns"]}
    assert columns["colour"][0] == "category"
    assert columns["start"][2].startswith("2020-01-")
    assert columns["stay"][2] == "1 day to 29 days"
    assert columns["empty"][1:] == ["100\u00a0%", "no values"]
    panels = {panel["name"]: panel for panel in content["dependence"]["panels"]}
    assert panels["colour"]["grid"] == ["blue", "red"]
    day = np.datetime64("2020-01-01").astype("datetime64[s]").astype(int)
    assert min(panels["start"]["grid"]) >= day
    assert "empty" not in panels
    other = X.assign(colour="green")
    with pytest.warns(UserWarning, match="not in the training table"):
        build(forest, other, y)


def test_what_cannot_be_computed_says_why():
    X, y, _, _ = make_aft(60, 2, random_state=0)
    every = CensoredQuantileForest(n_estimators=5, max_samples=None, random_state=0).fit(X, y)
    content = build(every, X, y)
    assert "no row is out of bag" in content["evaluation"]["scores"][0]["forest"]
    assert content["calibration"]["levels"] is None
    assert all(row[STEPS] == [] for row in content["rows"]["rows"])
    forest = CensoredQuantileForest(n_estimators=5, random_state=0).fit(X, y)
    unseen = build(forest, X, censored(y["time"], np.zeros(60, bool)))
    assert unseen["data"]["event_curve"] is None
    assert any("cannot be computed" in each["forest"] for each in unseen["evaluation"]["scores"])
    one = build(forest, X[:1] + 1, y[:1])
    assert len(one["rows"]["rows"]) == 1


@pytest.mark.parametrize("weights", [None, "some"])
def test_weights_of_the_fit_count_out_of_bag(weights):
    X, y, _, _ = make_aft(100, 2, random_state=0)
    weight = None if weights is None else np.linspace(0.5, 2, 100)
    forest = CensoredQuantileForest(n_estimators=50, random_state=0).fit(X, y, weight)
    scores = build(forest, X, y)["evaluation"]["scores"]
    close(scores[0]["forest"], forest.score_oob())
    mean = forest.predict_survival_oob().restricted_mean(forest.model_.follow_up, beyond="extend")
    close(scores[1]["forest"], concordance_index(y, mean, sample_weight=weight))


def test_rows_are_put_in_order_where_every_median_is_hidden():
    X, y, _, _ = make_aft(400, 2, random_state=0)
    end = np.quantile(y["time"], 0.12)
    y = censored(np.minimum(y["time"], end), y["event"] & (y["time"] < end))
    forest = CensoredQuantileForest(
        n_estimators=30, max_samples=0.5, min_samples_leaf=20, random_state=0
    ).fit(X, y)
    assert np.isnan(forest.predict_oob(0.5, unidentified="nan")).all()
    scores = build(forest, X, y)["evaluation"]["scores"]
    assert number(scores[1]["forest"]) > 0.8
    close(scores[1]["forest"], evaluate(forest)["concordance"])


def test_the_page_says_of_which_trees_the_gain_is(content, pbc):
    assert "splits of the trees that are grown on times." in content["importance"]["text"][0]
    plain = CensoredQuantileForest(n_estimators=20, random_state=0, working_model=None)
    found = build(plain.fit(pbc.X, pbc.y), pbc.X, pbc.y)
    assert "splits of all trees." in found["importance"]["text"][0]


def test_ids_are_labels(forest, pbc):
    labels = [f"p{i}" for i in range(20)]
    labels[3:9] = [None, math.nan, pd.NA, 7.0, 2**60, True]
    rows = build(forest, pbc.X.iloc[:20], pbc.y[:20], ids=labels)["rows"]["rows"]
    expected = ["p2", "no id", "no id", "no id", 7, str(2**60), "True", "p9"]
    assert [row[LABEL] for row in rows][2:10] == expected
    with pytest.raises(ValueError, match="one label for each of 20 rows"):
        build(forest, pbc.X.iloc[:20], pbc.y[:20], ids=["a"])


def test_wrong_arguments_are_refused(forest, pbc):
    with pytest.raises(ValueError, match="max_rows"):
        build(forest, pbc.X, pbc.y, max_rows=0)
    with pytest.raises(ValueError, match="must be a CensoredQuantileForest"):
        build("forest", pbc.X, pbc.y)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        build(forest, pbc.X, pbc.y[:5])


@pytest.mark.parametrize("high", [5e-324, 1e-310])
def test_a_span_without_round_numbers_is_one_bar(high):
    assert histogram_edges(0.0, high).tolist() == [0.0, high]


def test_histogram_edges_are_round():
    edges = histogram_edges(0.0, 4795.0)
    assert edges[0] == 0
    assert edges[-1] >= 4795
    assert 12 <= len(edges) <= 30


def test_scores_have_the_labels_and_the_order_of_evaluate(content, forest):
    names = [score["name"].casefold() for score in content["evaluation"]["scores"]]
    labels = [
        label.casefold() for label in list(list_labels(forest.model_.score_levels).values())[2:-2]
    ]
    assert names == ["skill", *labels]
    assert content["evaluation"]["scores"][1]["baseline"] == "0.5"
