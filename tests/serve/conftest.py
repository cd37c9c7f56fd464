"""A small table of every kind of column, a forest on it, and a server for any forest."""

import http.client
import json

import numpy as np
import pandas as pd
import pytest

from cqrf import CensoredQuantileForest, censored
from cqrf.effects import CensoredTreatmentForest
from cqrf.serve.app import make_app
from cqrf.serve.data_rows import read_data_rows
from cqrf.serve.effect_view import make_effect_view
from cqrf.serve.model_view import make_view
from support.server import running

SETTINGS = {"n_estimators": 40, "bag_size": 2, "random_state": 0}


def make_frame(n=120, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.normal(50, 9, n).round(1),
            "colour": rng.choice(["red", "green", "blue"], n),
            "treated": rng.choice([0.0, 1.0], n),
            "seen": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), "D"),
            "stay": pd.to_timedelta(rng.integers(1, 400, n), "h"),
        }
    )
    frame.loc[rng.random(n) < 0.1, "age"] = np.nan
    frame.loc[rng.random(n) < 0.1, "colour"] = None
    return frame


def make_target(frame, seed=1):
    rng = np.random.default_rng(seed)
    risk = np.exp((frame["age"].fillna(50) - 50) / 9 + (frame["colour"] == "red"))
    latent = rng.exponential(300 / risk).round(1) + 1
    ends = rng.uniform(50, 400, len(frame)).round(1)
    return censored(np.minimum(latent, ends), latent <= ends)


@pytest.fixture(scope="session")
def frame():
    return make_frame()


@pytest.fixture(scope="session")
def target(frame):
    return make_target(frame)


@pytest.fixture(scope="session")
def forest(frame, target):
    forest = CensoredQuantileForest(**SETTINGS).fit(frame, target)
    forest.notes_ = {"time": "days", "source": "patients.csv"}
    return forest


@pytest.fixture(scope="session")
def view(forest, frame, target):
    """The forest with its training table."""
    labels = [f"p{i}" for i in range(len(frame))]
    return make_view(
        forest, "m.cqrf", read_data_rows(forest, frame, target, labels, "patients.csv")
    )


@pytest.fixture(scope="session")
def lone_view(forest):
    """The forest without a table."""
    return make_view(forest, "m.cqrf")


class Client:
    """Plain requests to a server."""

    def __init__(self, address):
        self.address = address.removeprefix("http://")

    def ask(self, method, path, body=None, **headers):
        """Status, headers and bytes."""
        connection = http.client.HTTPConnection(self.address, timeout=60)
        try:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read()
        finally:
            connection.close()

    def get(self, path):
        """Status and JSON."""
        status, _, content = self.ask("GET", path)
        return status, read_strictly(content)

    def post(self, path, question):
        """Status and JSON of a question in JSON, or in bytes."""
        body = question if isinstance(question, bytes) else json.dumps(question).encode()
        status, _, content = self.ask("POST", path, body, **{"Content-Type": "application/json"})
        return status, read_strictly(content)


def read_strictly(content):
    """JSON without NaN or infinity."""

    def refuse(name):
        raise AssertionError(f"the answer holds {name}")

    return json.loads(content, parse_constant=refuse)


@pytest.fixture(scope="session")
def start_server():
    return running


@pytest.fixture(scope="session")
def client(view):
    with running(make_app(view)) as address:
        yield Client(address)


@pytest.fixture(scope="session")
def lone_client(lone_view):
    with running(make_app(lone_view)) as address:
        yield Client(address)


@pytest.fixture(scope="session")
def make_client():
    return Client


@pytest.fixture
def rows(frame):
    """Some rows of the table as JSON has them."""
    return [to_json(row) for _, row in frame.head(6).iterrows()]


def to_json(row):
    stay = row["stay"] / pd.Timedelta(days=1)
    return {
        "age": None if np.isnan(row["age"]) else row["age"],
        "colour": None if pd.isna(row["colour"]) else row["colour"],
        "treated": row["treated"],
        "seen": row["seen"].isoformat(),
        "stay": stay,
    }


@pytest.fixture(scope="session")
def arms():
    """Covariates, outcomes and arms of a table, most of whose times are censored late."""
    frame = make_frame(n=260, seed=3)
    arm = frame.pop("treated").map({0.0: "usual", 1.0: "new"}).to_numpy()
    rng = np.random.default_rng(4)
    risk = np.exp((frame["age"].fillna(50) - 50) / 9 - 0.8 * (arm == "new"))
    latent = rng.exponential(300 / risk).round(1) + 1
    ends = rng.uniform(50, 400, len(frame)).round(1)
    return frame, censored(np.minimum(latent, ends), latent <= ends), arm


@pytest.fixture(scope="session")
def treatment_forest(arms):
    X, y, arm = arms
    forest = CensoredTreatmentForest(
        n_estimators=40,
        nuisance_forest=CensoredQuantileForest(n_estimators=80),
        random_state=0,
    )
    forest.fit(X, y, arm, control="usual")
    forest.notes_ = {"time": "days", "source": "patients.csv"}
    return forest


@pytest.fixture(scope="session")
def effect_view(treatment_forest, arms):
    """The treatment forest with its training table."""
    X, y, _ = arms
    labels = [f"p{i}" for i in range(len(X))]
    data = read_data_rows(treatment_forest, X, y, labels, "patients.csv")
    return make_effect_view(treatment_forest, "e.cqrf", data)


@pytest.fixture(scope="session")
def effect_client(effect_view):
    with running(make_app(effect_view)) as address:
        yield Client(address)


@pytest.fixture
def effect_rows(arms):
    """Some rows of the table of both arms as JSON has them."""
    X = arms[0].head(5).assign(treated=0.0)
    rows = [to_json(row) for _, row in X.iterrows()]
    return [{name: row[name] for name in arms[0].columns} for row in rows]
