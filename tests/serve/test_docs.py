"""docs/how_to/serving.md: its commands run, its answers are answers, its tests exist."""

import ast
import json
import re
import shlex
from pathlib import Path

import pytest

from cqrf import CensoredQuantileForest
from cqrf.datasets import load_pbc
from cqrf.serve.app import MAX_BYTES, MAX_ROWS, MAX_VALUES, make_app
from cqrf.serve.computing import MAX_WAITING
from cqrf.serve.model_view import make_view
from cqrf.serve.schema import MAX_INTERVALS, MAX_LEVELS, MAX_TIMES

HERE = Path(__file__).parent
PAGE = (HERE.parents[1] / "docs" / "how_to" / "serving.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(sh|json)\n(.*?)```", PAGE, re.S)


@pytest.fixture(scope="module")
def pbc(start_server, make_client):
    """The demo's forest, view."""
    table = load_pbc(as_frame=True)
    forest = CensoredQuantileForest(random_state=0, bag_size=2).fit(table.X, table.y)
    with start_server(make_app(make_view(forest, "pbc.cqrf"))) as address:
        yield make_client(address)


def run(command, client):
    """Status and JSON of a curl command."""
    words = shlex.split(command)
    assert words[:2] == ["curl", "-s"]
    path = words[2].removeprefix("http://127.0.0.1:8000")
    if len(words) == 3:
        return client.get(path)
    assert words[3:6] == ["-H", "Content-Type: application/json", "-d"]
    return client.post(path, words[6].encode())


def split_commands(block):
    return re.split(r"\n(?=curl )", block.strip())


def alike(one, two):
    """The same keys and texts, and numbers to the digits that are shown."""
    if isinstance(one, dict):
        return one.keys() == two.keys() and all(alike(one[key], two[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(two) and all(map(alike, one, two))
    if isinstance(one, float) and isinstance(two, float):
        return one == pytest.approx(two, rel=1e-3)
    return one == two


def test_the_commands_answer_as_the_page_says(pbc):
    (_, first), (_, answer), (_, second), (_, refusal) = BLOCKS
    *plain, predict = split_commands(first)
    assert len(plain) == 2
    for command in plain:
        assert run(command, pbc)[0] == 200
    status, found = run(predict, pbc)
    assert status == 200
    assert alike(found, json.loads(answer))
    status, found = run(second, pbc)
    assert status == 422
    assert alike({**found, "problems": found["problems"][:2]}, json.loads(refusal))


def test_the_limits_are_those_of_the_server():
    for limit in (MAX_BYTES, MAX_VALUES):
        assert f"{limit:,}".replace(",", " ") in PAGE
    assert f"`--max-rows` ({MAX_ROWS})" in PAGE
    assert f"{MAX_LEVELS} quantiles, {MAX_TIMES} times or {MAX_INTERVALS} intervals" in PAGE
    assert f"more than {MAX_WAITING} requests wait" in PAGE


def test_the_tests_of_safety_exist():
    named = re.findall(r"`(test_\w+\.py)::(\w+)`", PAGE)
    assert len(named) == 18
    for file, name in named:
        tree = ast.parse((HERE / file).read_text(encoding="utf-8"))
        assert name in [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
