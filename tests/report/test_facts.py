"""Facts: against direct calls of the forest and the metrics."""

import json
import math
import re
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from cqrf import CensoredQuantileForest, StepCurve, censored
from cqrf._input.target import read_target
from cqrf.calibration import assess_calibration
from cqrf.datasets import make_aft
from cqrf.evaluation import evaluate
from cqrf.inspection import partial_dependence
from cqrf.metrics import censored_quantile_loss, concordance_index, crps, integrated_brier_score
from cqrf.report.data import nice_edges, time_range
from cqrf.report.facts import choose_opening, gather_facts
from cqrf.report.numbers import evenly, plain, say, say_share, thin
from cqrf.report.rows import MOST_STEPS, UNIT
from cqrf.report.subject import LEVELS, is_training_table

LABEL, TIME, EVENT, QUANTILES, LIMIT, LAST, INITIAL, STEPS, SURVIVAL = range(9)


def gather(forest, X, y, **options):
    """Facts, checked to be plain JSON without a word that a reader should not see."""
    facts = gather_facts(forest, X, y, title="t", **options)
    text = json.dumps(facts, allow_nan=False)
    assert json.loads(text) == facts
    assert not re.search(r"\b([Nn]a[Nn]|[Ii]nf|[Ii]nfinity|undefined|None)\b", text)
    return facts


@pytest.fixture(scope="module")
def facts(forest, pbc):
    return gather(forest, pbc.X, pbc.y)


@pytest.fixture(scope="module")
def measures(facts):
    return {each["name"]: each for each in facts["quality"]["measures"]}


def number(text):
    return float(text.replace("−", "-").replace(",", ""))


def close(text, value):
    assert number(text) == pytest.approx(value, rel=6e-3)


def test_the_training_table_is_known_by_its_times_and_events(forest, pbc):
    target = read_target(pbc.y)
    assert is_training_table(forest, target)
    assert not is_training_table(forest, target.take(np.arange(417)))
    assert not is_training_table(forest, target.take(np.arange(418)[::-1]))
    later, other = target.time.copy(), ~target.event
    later[5] += 1
    assert not is_training_table(forest, target._replace(time=later))
    assert not is_training_table(forest, target._replace(event=other))
    assert not is_training_table(forest, target._replace(entry=target.time - 1))
    assert is_training_table(forest, target._replace(entry=np.full(418, -np.inf)))


def test_other_features_are_not_the_training_table(forest, pbc):
    changed = pbc.X.assign(bili=pbc.X["bili"].to_numpy()[::-1])
    assert not gather(forest, changed, pbc.y)["quality"]["out_of_bag"]


def test_rows_are_the_out_of_bag_predictions(facts, forest, pbc):
    rows = facts["rows"]["rows"]
    expected = forest.predict_oob(LEVELS, unidentified="nan")
    clipped = forest.predict_oob(0.9, unidentified="clip")
    curves = forest.predict_survival_oob()
    assert [row[LABEL] for row in rows] == list(range(1, 419))
    np.testing.assert_array_equal([row[TIME] for row in rows], pbc.y["time"])
    np.testing.assert_array_equal([row[EVENT] for row in rows], pbc.y["event"])
    for row, values, last, curve in zip(rows, expected, clipped, curves, strict=True):
        ours = [math.nan if value is None else value for value in row[QUANTILES]]
        np.testing.assert_allclose(ours, values, rtol=1e-3)
        if row[QUANTILES][-1] is None:
            assert row[LAST] == pytest.approx(last, rel=1e-3)
        assert len(row[STEPS]) <= MOST_STEPS
        times = np.array(facts["rows"]["times"])[row[STEPS]]
        np.testing.assert_allclose(np.array(row[SURVIVAL]) / UNIT, curve(times), atol=1e-4)
        assert row[SURVIVAL][-1] == round(curve.values[-1] * UNIT)
        assert row[LIMIT] == pytest.approx(1 - curve.values[-1], abs=2e-4)


def test_measures_are_those_of_the_metrics_out_of_bag(measures, forest, pbc):
    y, levels = pbc.y, (0.25, 0.5, 0.75)
    predicted, curves = (
        forest.predict_oob(levels, unidentified="clip"),
        forest.predict_survival_oob(),
    )
    times = np.linspace(*np.quantile(y["time"], [0.1, 0.9]), 50)
    close(measures["Skill"]["forest"], forest.score_oob())
    close(measures["Concordance"]["forest"], evaluate(forest)["concordance"])
    close(measures["CRPS"]["forest"], crps(y, y, curves))
    brier = integrated_brier_score(y, y, curves, times)
    close(measures["Integrated Brier score"]["forest"], brier)
    losses = censored_quantile_loss(y, y, predicted, levels)
    for level, loss in zip(("25", "50", "75"), losses, strict=True):
        close(measures[f"Loss of the {level}\u00a0% quantile"]["forest"], loss)


def test_skill_is_what_the_losses_save(measures):
    losses = [each for name, each in measures.items() if name.startswith("Loss")]
    ours, theirs = (sum(number(each[whose]) for each in losses) for whose in ("forest", "baseline"))
    assert number(measures["Skill"]["forest"]) == pytest.approx(1 - ours / theirs, abs=0.01)


def test_a_table_that_was_not_trained_on_is_judged_by_plain_predictions(pbc):
    train, test = np.arange(0, 418, 2), np.arange(1, 418, 2)
    X, y = pbc.X.iloc[test], pbc.y[test]
    forest = CensoredQuantileForest(n_estimators=30, random_state=0)
    forest.fit(pbc.X.iloc[train], pbc.y[train])
    facts = gather(forest, X, y, max_rows=50)
    assert not facts["quality"]["out_of_bag"]
    assert "not grown from any" in facts["quality"]["text"][0]
    assert "has not seen" in facts["summary"]
    measures = {each["name"]: each for each in facts["quality"]["measures"]}
    expected = evaluate(forest, X, y)
    close(measures["Skill"]["forest"], expected["skill"])
    mean = forest.predict_mean(X)
    close(measures["Concordance"]["forest"], concordance_index(y, mean))
    close(measures["Concordance"]["forest"], expected["concordance"])
    close(measures["Integrated Brier score"]["forest"], expected["integrated_brier_score"])
    close(measures["CRPS"]["forest"], expected["crps"])
    chosen = np.array([row[LABEL] for row in facts["rows"]["rows"]]) - 1
    np.testing.assert_array_equal(chosen, evenly(209, 50))
    ours = [[math.nan if q is None else q for q in row[QUANTILES]] for row in facts["rows"]["rows"]]
    expected = forest.predict(X.iloc[chosen], LEVELS, unidentified="nan")
    np.testing.assert_allclose(ours, expected, rtol=1e-3)
    limits = [row[LIMIT] for row in facts["rows"]["rows"]]
    np.testing.assert_allclose(limits, forest.max_quantile(X.iloc[chosen]), rtol=1e-3)
    assert "50 are listed" in facts["rows"]["text"][-1]


def test_rows_that_were_trained_on_are_counted(forest, pbc):
    facts = gather(forest, pbc.X.iloc[:20], pbc.y[:20])
    assert facts["quality"]["text"][0].startswith("All of these rows are among those")
    mixed = pbc.y[:20].copy()
    mixed["time"][:5] += 0.5
    facts = gather(forest, pbc.X.iloc[:20], mixed)
    assert facts["quality"]["text"][0].startswith("15 of these 20 rows may be")


def test_calibration_is_assessed_on_the_same_rows(facts, forest, pbc):
    expected = assess_calibration(forest)
    ours = [math.nan if value is None else value for value in facts["calibration"]["observed"]]
    np.testing.assert_allclose(ours, expected.observed, atol=1e-4)
    assert say(100 * expected.distance, 2) in facts["calibration"]["text"][1]
    assert expected.p_value > 0.05
    assert "look at the curve" in facts["calibration"]["text"][2]
    half = gather(forest, pbc.X.iloc[::2], pbc.y[::2])["calibration"]
    expected = assess_calibration(forest, pbc.X.iloc[::2], pbc.y[::2])
    ours = [math.nan if value is None else value for value in half["observed"]]
    np.testing.assert_allclose(ours, expected.observed, atol=1e-4)


def test_of_many_rows_some_curves_are_judged(facts, forest, pbc, monkeypatch):
    monkeypatch.setattr("cqrf.report.quality.MOST_JUDGED", 300)
    some = gather(forest, pbc.X, pbc.y)
    assert "from 300 rows, evenly spaced" in some["quality"]["text"][-1]
    whole, part = (np.array(each["calibration"]["observed"][:60], float) for each in (facts, some))
    np.testing.assert_allclose(part, whole, atol=0.1)


def test_importance_and_dependence_are_those_of_the_forest(facts, forest, pbc):
    shares = forest.feature_importances_
    bars = facts["importance"]["bars"]
    assert len(bars) == 16
    assert sum(bar["share"] for bar in bars) == pytest.approx(1, abs=1e-3)
    assert [bar["share"] for bar in bars[:15]] == sorted((plain(x) for x in shares), reverse=True)[
        :15
    ]
    assert bars[-1]["name"] == "the 2 others together"
    panels = facts["dependence"]["panels"]
    assert [panel["name"] for panel in panels] == [bar["name"] for bar in bars[:4]]
    expected = partial_dependence(forest, pbc.X, bars[0]["name"], LEVELS)
    ours = np.array(panels[0]["values"], dtype=float).T
    np.testing.assert_allclose(ours, expected.values, rtol=1e-3)
    np.testing.assert_allclose(panels[0]["grid"], expected.grid, rtol=1e-4)


def test_limits_count_the_hidden_quantiles(facts, forest, pbc):
    with pytest.warns(UserWarning, match="cannot be estimated"):
        hidden = np.isinf(forest.predict_oob(LEVELS)).sum(axis=0)
    for each, n_hidden in zip(facts["limits"]["shares"], hidden, strict=True):
        assert each["share"] == plain(n_hidden / 418)
        assert each["said"].startswith(f"{n_hidden} of 418" if n_hidden else "none")
    assert say(pbc.y["time"][pbc.y["event"]].max()) in facts["limits"]["text"][0]


@pytest.mark.parametrize(
    ("shares", "opening"),
    [
        ((0.0, 0.0, 0.5, 0.9, 1.0), 2),
        ((0.0, 0.3, 0.6, 0.9, 1.0), 1),
        ((0.2, 0.7, 0.9, 1.0, 1.0), 0),
        ((0.8, 0.9, 1.0, 1.0, 1.0), 0),
        ((1.0, 0.9, 0.6, 0.1, 0.0), 3),
        ((1.0, 1.0, 1.0, 1.0, 1.0), 2),
    ],
)
def test_the_page_opens_at_a_level_that_most_rows_have(shares, opening):
    hidden = np.arange(10)[:, np.newaxis] < 10 * np.array(shares)
    # Rows that no tree speaks for have no hidden quantile, and do not count.
    hidden = np.vstack([hidden, np.zeros((30, 5), bool)])
    subject = SimpleNamespace(hidden=hidden, known=np.arange(40) < 10)
    assert choose_opening(subject) == opening


def test_without_a_row_that_a_tree_speaks_for_the_page_opens_at_the_median():
    subject = SimpleNamespace(hidden=np.zeros((3, 5), bool), known=np.zeros(3, bool))
    assert choose_opening(subject) == 2


def test_the_data_are_counted(facts, pbc):
    histogram = facts["data"]["histogram"]
    assert sum(histogram["events"]) == pbc.y["event"].sum()
    assert sum(histogram["censored"]) == (~pbc.y["event"]).sum()
    columns = {name: rest for name, *rest in facts["data"]["columns"]}
    assert columns["sex"] == ["category", "none", "f (89\u00a0%), m (11\u00a0%)"]
    assert columns["bili"] == ["number", "none", "0.3 to 28"]
    assert columns["chol"][1] == say_share(pbc.X["chol"].isna().mean())
    assert "161 events" in facts["summary"]
    assert "Out of bag" in facts["summary"]


def test_left_censoring_is_told_the_other_way_round(pbc):
    y = censored(5000.0 - pbc.y["time"], pbc.y["event"])
    forest = CensoredQuantileForest(n_estimators=30, censoring="left", random_state=0)
    facts = gather(forest.fit(pbc.X, y), pbc.X, y)
    shares = [each["share"] for each in facts["limits"]["shares"]]
    assert shares == sorted(shares, reverse=True)
    assert shares[0] > 0
    assert "earlier than" in facts["limits"]["text"][1]
    expected = forest.predict_oob(LEVELS, unidentified="nan")
    for row, values in zip(facts["rows"]["rows"], expected, strict=True):
        ours = [math.nan if value is None else value for value in row[QUANTILES]]
        np.testing.assert_allclose(ours, values, rtol=1e-3)
        assert row[LIMIT] == pytest.approx(1 - row[INITIAL] / UNIT, abs=2e-4)
    assert not any("cannot be" in each["forest"] for each in facts["quality"]["measures"])


def test_rows_that_enter_late(pbc):
    y = censored(pbc.y["time"], pbc.y["event"], pbc.y["time"] * np.linspace(0, 0.5, 418) - 1)
    forest = CensoredQuantileForest(n_estimators=30, random_state=0).fit(pbc.X, y)
    facts = gather(forest, pbc.X, y)
    assert facts["quality"]["out_of_bag"]
    assert "418 rows came under observation late" in facts["data"]["text"][1]
    assert not any("cannot be" in each["forest"] for each in facts["quality"]["measures"])
    assert not gather(forest, pbc.X, pbc.y)["quality"]["out_of_bag"]


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
    facts = gather(forest, X, y)
    columns = {name: rest for name, *rest in facts["data"]["columns"]}
    assert columns["colour"][0] == "category"
    assert columns["start"][2].startswith("2020-01-")
    assert columns["stay"][2] == "1 day to 29 days"
    assert columns["empty"][1:] == ["100\u00a0%", "no values"]
    panels = {panel["name"]: panel for panel in facts["dependence"]["panels"]}
    assert panels["colour"]["grid"] == ["blue", "red"]
    day = np.datetime64("2020-01-01").astype("datetime64[s]").astype(int)
    assert min(panels["start"]["grid"]) >= day
    assert "empty" not in panels
    other = X.assign(colour="green")
    with pytest.warns(UserWarning, match="not in the training table"):
        gather(forest, other, y)


def test_what_cannot_be_computed_says_why():
    X, y, _, _ = make_aft(60, 2, random_state=0)
    every = CensoredQuantileForest(n_estimators=5, max_samples=None, random_state=0).fit(X, y)
    facts = gather(every, X, y)
    assert "no row is out of bag" in facts["quality"]["measures"][0]["forest"]
    assert facts["calibration"]["levels"] is None
    assert all(row[STEPS] == [] for row in facts["rows"]["rows"])
    forest = CensoredQuantileForest(n_estimators=5, random_state=0).fit(X, y)
    unseen = gather(forest, X, censored(y["time"], np.zeros(60, bool)))
    assert unseen["data"]["events"] is None
    assert any("cannot be computed" in each["forest"] for each in unseen["quality"]["measures"])
    one = gather(forest, X[:1] + 1, y[:1])
    assert len(one["rows"]["rows"]) == 1


@pytest.mark.parametrize("weights", [None, "some"])
def test_weights_of_the_fit_count_out_of_bag(weights):
    X, y, _, _ = make_aft(100, 2, random_state=0)
    weight = None if weights is None else np.linspace(0.5, 2, 100)
    forest = CensoredQuantileForest(n_estimators=50, random_state=0).fit(X, y, weight)
    measures = gather(forest, X, y)["quality"]["measures"]
    close(measures[0]["forest"], forest.score_oob())
    mean = forest.predict_survival_oob().restricted_mean(y["time"].max())
    close(measures[1]["forest"], concordance_index(y, mean, sample_weight=weight))


def test_rows_are_put_in_order_where_every_median_is_hidden():
    X, y, _, _ = make_aft(400, 2, random_state=0)
    early = y["time"] < np.quantile(y["time"], 0.2)
    y = censored(np.minimum(y["time"], np.quantile(y["time"], 0.2)), y["event"] & early)
    forest = CensoredQuantileForest(
        n_estimators=30, max_samples=0.5, min_samples_leaf=20, random_state=0
    ).fit(X, y)
    assert np.isnan(forest.predict_oob(0.5, unidentified="nan")).all()
    measures = gather(forest, X, y)["quality"]["measures"]
    assert number(measures[1]["forest"]) > 0.8
    close(measures[1]["forest"], evaluate(forest)["concordance"])


def test_ids_are_labels(forest, pbc):
    labels = [f"p{i}" for i in range(20)]
    labels[3:9] = [None, math.nan, pd.NA, 7.0, 2**60, True]
    rows = gather(forest, pbc.X.iloc[:20], pbc.y[:20], ids=labels)["rows"]["rows"]
    expected = ["p2", "no id", "no id", "no id", 7, str(2**60), "True", "p9"]
    assert [row[LABEL] for row in rows][2:10] == expected
    with pytest.raises(ValueError, match="one label for each of 20 rows"):
        gather(forest, pbc.X.iloc[:20], pbc.y[:20], ids=["a"])


def test_wrong_arguments_are_refused(forest, pbc):
    with pytest.raises(ValueError, match="max_rows"):
        gather(forest, pbc.X, pbc.y, max_rows=0)
    with pytest.raises(ValueError, match="must be a CensoredQuantileForest"):
        gather("forest", pbc.X, pbc.y)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        gather(forest, pbc.X, pbc.y[:5])


def test_a_thinned_curve_stays_close():
    times = np.arange(1.0, 1001.0)
    curve = StepCurve(times, np.exp(-times / 300))
    kept = thin(curve, 60)
    assert len(kept.times) <= 60
    assert kept.times[0] == 1
    assert kept.times[-1] == 1000
    assert np.abs(kept(times) - curve(times)).max() < 1 / 50
    assert thin(curve, 1000) is curve


@pytest.mark.parametrize(
    ("value", "kept", "said"),
    [
        (0.0, 0, "0"),
        (1234.56, 1235, "1,235"),
        (98765.4, 98765, "98,765"),
        (0.0123456, 0.01235, "0.01235"),
        (-2.5, -2.5, "−2.5"),
        (1e-7, 1e-7, "1e−07"),
        (math.nan, None, "not known"),
        (-math.inf, None, "not known"),
    ],
)
def test_numbers_keep_four_digits(value, kept, said):
    assert plain(value) == kept
    assert say(value) == said


@pytest.mark.parametrize(
    ("share", "said"),
    [(0, "0"), (0.0004, "under 0.1"), (0.012, "1.2"), (0.615, "62"), (0.985, "98.5"), (1, "100")],
)
def test_shares_are_percentages(share, said):
    assert say_share(share) == f"{said}\u00a0%"


def test_axes_of_time_have_some_length():
    assert time_range(np.array([3.0, 9.0])) == (0.0, 9.0)
    assert time_range(np.array([1e9, 1e9 + 5])) == (1e9, 1e9 + 5)
    assert time_range(np.array([4.0])) == (2.0, 6.0)
    edges = nice_edges(0.0, 4795.0)
    assert edges[0] == 0
    assert edges[-1] >= 4795
    assert 12 <= len(edges) <= 30
