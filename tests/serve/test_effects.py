"""The API of a treatment forest: its effects are those of Python, its errors those of /predict."""

import warnings

import numpy as np
import pytest

from cqrf import CensoredQuantileForest
from cqrf._views.effects import describe_assumptions
from cqrf.effects import CensoredTreatmentForest
from cqrf.serve.app import make_app
from cqrf.serve.effect_schema import EffectModelDescription, EffectsResponse
from cqrf.serve.effect_view import make_effect_view
from cqrf.serve.schema import Limits


def collect(found, kind):
    """Values and both ends, (n_rows, n_outputs, 3), NaN where they are null."""
    names = ("value", "lower", "upper")
    return np.array(
        [[[each[name] for name in names] for each in row[kind]] for row in found["rows"]],
        dtype=np.float64,
    )


def expected_effects(forest, X, target, confidence, **wanted):
    """What Python says, in the same shape."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        value = forest.effect(X, target, **wanted)
        ends = forest.effect_interval(X, target, confidence=confidence, **wanted)
    value = np.where(np.isfinite(value), value, np.nan)
    return np.concatenate([value[..., np.newaxis], ends], axis=-1)


@pytest.mark.parametrize("control", ["usual", "new"])
def test_effects_are_those_of_the_forest(
    treatment_forest, arms, effect_rows, make_client, start_server, control
):
    X, y, arm = arms
    forest = treatment_forest
    if control == "new":
        forest = CensoredTreatmentForest(
            n_estimators=8, nuisance_forest=CensoredQuantileForest(n_estimators=80), random_state=0
        ).fit(X, y, arm, control="new")
    times, levels, horizons = [30.0, 120.5, 5000.0], [0.25, 0.5, 0.97], [50.0, 200.0]
    question = {
        "rows": effect_rows,
        "times": times,
        "quantiles": levels,
        "horizons": horizons,
        "confidence": 0.8,
    }
    with start_server(make_app(make_effect_view(forest, "e.cqrf"))) as address:
        status, found = make_client(address).post("/effects", question)
    assert status == 200
    EffectsResponse.model_validate(found, strict=True)
    assert found["arms"] == {
        "control": control,
        "treatment": {"usual": "new"}.get(control, "usual"),
    }
    head = X.head(len(effect_rows))
    gained = np.stack(
        [expected_effects(forest, head, "rmst", 0.8, horizon=each) for each in horizons], axis=1
    )
    np.testing.assert_array_equal(collect(found, "time_gained"), gained)
    survival = expected_effects(forest, head, "survival", 0.8, times=times)
    np.testing.assert_array_equal(collect(found, "survival"), survival)
    assert np.isfinite(survival[:, :2]).all()
    assert np.isnan(survival[:, 2]).all()
    quantile = expected_effects(forest, head, "quantile", 0.8, quantiles=levels)
    np.testing.assert_allclose(collect(found, "quantiles"), quantile, rtol=1e-12)
    assert np.isfinite(quantile[:, 0]).any()
    for number, name in enumerate(("control", "treatment")):
        curves = forest.predict_survival(head, found["times"], arm=number)
        given = np.array([row["curves"][name] for row in found["rows"]], dtype=np.float64)
        np.testing.assert_allclose(given, curves, atol=5e-7)
        assert np.isnan(given).any()


def test_what_is_not_known_is_null_with_a_reason(effect_client, treatment_forest, effect_rows):
    question = {"rows": effect_rows[:1], "times": [9000], "quantiles": [0.99], "horizons": [9000]}
    status, found = effect_client.post("/effects", question)
    assert status == 200
    (row,) = found["rows"]
    end = float(treatment_forest.model_.ends.min())
    empty = {"value": None, "lower": None, "upper": None}
    assert row["survival"] == [{"time": 9000, **empty, "bound": end, "reason": "after_bound"}]
    assert row["time_gained"] == [{"horizon": 9000, **empty, "bound": end, "reason": "after_bound"}]
    (quantile,) = row["quantiles"]
    assert quantile["value"] is None
    assert quantile["reason"] == "not_identifiable"
    assert {quantile["control"]["reason"], quantile["treatment"]["reason"]} == {"after_bound"}


def test_extreme_times_are_answered(arms, effect_rows, start_server, make_client):
    X, y, arm = arms
    forest = CensoredTreatmentForest(
        n_estimators=8, nuisance_forest=CensoredQuantileForest(n_estimators=80), random_state=0
    ).fit(X, y["time"], arm)
    assert np.isinf(forest.model_.ends).all()  # without censoring all times are known
    question = {
        "rows": effect_rows[:1],
        "times": [-1.7e308, 1.7e308],
        "horizons": [1e-300, 1.7e308],
        "quantiles": [5e-324, 1 - 2**-53],
        "confidence": 0.9999,
    }
    with start_server(make_app(make_effect_view(forest, "e.cqrf"))) as address:
        status, found = make_client(address).post("/effects", question)
    assert status == 200
    EffectsResponse.model_validate(found, strict=True)
    assert found["rows"][0]["survival"][0]["value"] == 0


def test_the_default_is_the_time_gained_and_the_median(
    effect_client, treatment_forest, effect_rows
):
    status, found = effect_client.post("/effects", {"rows": effect_rows[:1]})
    assert status == 200
    (row,) = found["rows"]
    assert [each["horizon"] for each in row["time_gained"]] == [treatment_forest.model_.follow_up]
    assert [each["level"] for each in row["quantiles"]] == [0.5]
    assert row["survival"] == []
    assert found["confidence"] == 0.95
    status, found = effect_client.post("/effects", {"rows": effect_rows[:1], "curves": False})
    assert found["times"] is None
    assert found["rows"][0]["curves"] is None
    nothing = {"rows": effect_rows[:1], "curves": False, "horizons": [], "quantiles": []}
    status, found = effect_client.post("/effects", nothing)
    assert status == 200
    assert found["rows"][0]["time_gained"] == found["rows"][0]["quantiles"] == []


def test_without_the_table_curves_do_not_show_training_times(effect_client, arms, effect_rows):
    _, found = effect_client.post("/effects", {"rows": effect_rows[:1]})
    assert np.ptp(np.diff(found["times"])) < 1e-9
    assert not set(found["times"]) & set(arms[1]["time"].tolist())


BAD = {
    "no rows": ({"rows": []}, "rows", None),
    "unknown column": ({"rows": [{"shape": 1}]}, "rows[0]", "shape"),
    "text for a number": ({"rows": [{"age": "old"}]}, "rows[0]", "age"),
    "a time that is infinite": ({"times": [float("inf")]}, "times[0]", None),
    "a quantile of 1": ({"quantiles": [1]}, "quantiles[0]", None),
    "a horizon of 0": ({"horizons": [5, 0]}, "horizons[1]", None),
    "a confidence of 2": ({"confidence": 2}, "confidence", None),
    "a number for curves": ({"curves": 1}, "curves", None),
    "another field": ({"given": 3}, "given", None),
    "too many horizons": ({"horizons": [5] * 11}, "horizons", None),
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_wrong_is_named(effect_client, effect_rows, case):
    question, field, column = BAD[case]
    rows = [{**effect_rows[0], **each} for each in question.get("rows", [{}])]
    status, found = effect_client.post("/effects", {**question, "rows": rows})
    assert status == 422
    assert found["error"] == found["problems"][0]["message"]
    assert found["problems"][0]["field"] == field
    assert found["problems"][0]["column"] == column


def test_an_unseen_level_is_noted_or_refused(
    effect_client, effect_view, effect_rows, start_server, make_client
):
    question = {"rows": [{**effect_rows[0], "colour": "pink"}]}
    status, found = effect_client.post("/effects", question)
    assert status == 200
    assert "'pink'" in found["rows"][0]["notes"][0]
    with start_server(make_app(effect_view, strict=True)) as address:
        status, found = make_client(address).post("/effects", question)
    assert status == 422
    assert found["problems"][0]["column"] == "colour"


def test_requests_have_limits(effect_view, effect_rows, start_server, make_client):
    limits = Limits(rows=3, bytes=5000, values=700)
    with start_server(make_app(effect_view, limits=limits)) as address:
        client = make_client(address)
        assert client.post("/effects", {"rows": effect_rows[:2]})[0] == 200
        status, found = client.post("/effects", {"rows": effect_rows[:3]})
        assert status == 422
        assert '"curves": false' in found["error"]
        assert client.post("/effects", {"rows": effect_rows[:3], "curves": False})[0] == 200
        status, found = client.post("/effects", {"rows": effect_rows[:4], "curves": False})
        assert (status, found["problems"][0]["field"]) == (422, "rows")
        assert client.post("/effects", b" " * 6000)[0] == 413
        status, *_ = client.ask("POST", "/effects", b"{}", **{"Content-Type": "text/plain"})
        assert status == 415


def test_other_endpoints_say_what_to_use(effect_client, effect_rows):
    for path in ("/predict", "/subjects"):
        status, found = effect_client.post(path, {"rows": effect_rows})
        assert status == 404
        assert found["error"] == "this server has a treatment forest: send rows to POST /effects."
    assert effect_client.get("/curves.js")[0] == 404


def test_the_model_is_described(effect_client, effect_view, arms, treatment_forest):
    status, found = effect_client.get("/model")
    assert status == 200
    EffectModelDescription.model_validate(found, strict=True)
    X, y, arm = arms
    for each, name in zip(found["arms"], ("usual", "new"), strict=True):
        inside = arm == name
        expected = {
            "name": name,
            "rows": int(inside.sum()),
            "events": int(y["event"][inside].sum()),
        }
        assert each == expected
    assert [column["name"] for column in found["columns"]] == list(X.columns)
    assert sum(column["importance"] for column in found["columns"]) == pytest.approx(1)
    assert found["settings"]["nuisance_forest__n_estimators"] == 80
    assert not found["by_design"]
    assert "no unmeasured confounding" in found["assumption"]
    assert all(0 < time <= found["horizon"] for time in found["times"])
    assert 2 <= len(found["times"]) <= 4
    assert found["data"]["training"]
    assert effect_client.get("/rows/3")[1]["label"] == "p2"


def test_a_known_propensity_is_named(treatment_forest, arms):
    X, y, arm = arms
    forest = CensoredTreatmentForest(
        n_estimators=8, nuisance_forest=CensoredQuantileForest(n_estimators=80), random_state=0
    ).fit(X, y, arm, propensity=0.5)
    assert describe_assumptions(forest).startswith("Treatment was assigned by design")
    assert describe_assumptions(treatment_forest).startswith("Treatment was not assigned by design")


def test_the_document_describes_the_routes(effect_client, effect_rows):
    status, document = effect_client.get("/openapi.json")
    assert status == 200
    assert set(document["paths"]) == {"/effects", "/model", "/healthz", "/rows", "/rows/{row}"}
    request = document["components"]["schemas"]["EffectsRequest"]
    assert request["properties"]["rows"]["maxItems"] == 1000
    assert list(document["components"]["schemas"]["Row"]["properties"]) == list(effect_rows[0])
    assert effect_client.post("/effects", request["example"])[0] == 200
    errors = document["paths"]["/effects"]["post"]["responses"]
    assert {"200", "400", "413", "415", "422", "503"} <= set(errors)
