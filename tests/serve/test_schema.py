"""The OpenAPI document against the server: nothing undocumented, whatever is sent."""

import os

import numpy as np
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode
from schemathesis.specs.openapi.checks import positive_data_acceptance

from cqrf import CensoredQuantileForest, censored
from cqrf.serve.app import make_app
from cqrf.serve.model_view import make_view

EXAMPLES = int(os.environ.get("CQRF_FUZZ_REQUESTS", "25"))
OPERATIONS = [
    ("POST", "/predict"),
    ("POST", "/subjects"),
    ("GET", "/model"),
    ("GET", "/healthz"),
    ("GET", "/rows"),
    ("GET", "/rows/{row}"),
]


@pytest.fixture(scope="module")
def api(view):
    app = make_app(view, hosts=["testserver"])
    return schemathesis.openapi.from_asgi("/openapi.json", app)


# Nothing wrong can be sent to an operation that takes nothing.
TRIED = [
    pytest.param(method, path, mode, id=f"{path}-{mode.value}")
    for method, path in OPERATIONS
    for mode in GenerationMode
    if mode is GenerationMode.POSITIVE or path not in ("/model", "/healthz")
]


def has_times_for_other_rows(body):
    """Whether ``given`` has not one time for each row, which JSON Schema cannot say."""
    times = body.get("given") if isinstance(body, dict) else None
    return isinstance(times, list) and len(times) != len(body["rows"])


@pytest.mark.parametrize(("method", "path", "mode"), TRIED)
def test_every_operation_conforms_to_its_document(api, method, path, mode):
    check_operation(api[path][method], path, mode)


@pytest.mark.parametrize("mode", GenerationMode)
def test_effects_conform_to_their_document(effect_view, mode):
    app = make_app(effect_view, hosts=["testserver"])
    api = schemathesis.openapi.from_asgi("/openapi.json", app)
    check_operation(api["/effects"]["POST"], "/effects", mode)


@pytest.fixture(scope="module")
def forest_of_causes():
    rng = np.random.default_rng(0)
    y = censored(
        rng.exponential(5.0, 90), np.array(["", "death", "relapse"])[np.arange(90) % 3], censored=""
    )
    return CensoredQuantileForest(n_estimators=9, random_state=0).fit(rng.random((90, 2)), y)


@pytest.mark.parametrize("unit", [None, 0.5])
@pytest.mark.parametrize("path", ["/predict", "/subjects"])
@pytest.mark.parametrize("mode", GenerationMode)
def test_causes_and_rounded_times_conform_to_their_document(forest_of_causes, path, unit, mode):
    app = make_app(make_view(forest_of_causes, "m.cqrf", unit=unit), hosts=["testserver"])
    api = schemathesis.openapi.from_asgi("/openapi.json", app)
    check_operation(api[path]["POST"], path, mode)


def check_operation(operation, path, mode):
    """Send what the document allows, or what it does not, and check the responses."""
    statuses = set()

    @given(case=operation.as_strategy(generation_mode=mode))
    @settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
    def check(case):
        if mode is GenerationMode.POSITIVE and has_times_for_other_rows(case.body):
            response = case.call()
            case.validate_response(response, excluded_checks=[positive_data_acceptance])
            assert response.status_code == 422
            assert response.json()["problems"][0]["field"] == "given"
        else:
            statuses.add(case.call_and_validate().status_code)

    check()
    assert statuses
    if mode is GenerationMode.POSITIVE:
        assert 200 in statuses or path == "/rows/{row}"
    else:
        assert statuses & {404, 422}


def test_all_operations_are_tried(api):
    found = [operation.ok() for operation in api.get_all_operations()]
    assert {(each.method.upper(), each.path) for each in found} == set(OPERATIONS)


def test_the_document_has_the_columns_of_the_model(client, frame):
    found = client.get("/openapi.json")[1]
    row = found["components"]["schemas"]["Row"]
    assert list(row["properties"]) == list(frame.columns)
    assert row["properties"]["colour"]["examples"] == ["blue", "green", "red"]
    assert row["required"] == list(frame.columns)
    assert not row["additionalProperties"]
    assert set(found["paths"]) == {
        "/predict", "/subjects", "/model", "/healthz", "/rows", "/rows/{row}",
    }  # fmt: skip
    statuses = set(found["paths"]["/predict"]["post"]["responses"])
    assert statuses == {"200", "400", "413", "415", "422", "503"}
    example = found["components"]["schemas"]["PredictRequest"]["example"]
    assert client.post("/predict", example)[0] == 200
    example = found["components"]["schemas"]["SubjectsRequest"]["example"]
    assert client.post("/subjects", example)[0] == 200
