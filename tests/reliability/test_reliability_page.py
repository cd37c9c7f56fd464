"""docs/background/reliability.md promises nothing without a test that exists."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "background" / "reliability.md"


def test_every_promise_names_tests_that_exist():
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| ")][1:]
    promises = [row.split("|") for row in rows if "tests/" in row]
    assert len(promises) > 20
    for _, promise, tests, result, _ in promises:
        named = re.findall(r"`(tests/\S+?\.py)(?:::(\w+))?`", tests)
        assert named, f"no test holds up: {promise}"
        assert result.strip(), f"no result for: {promise}"
        for file, name in named:
            tree = ast.parse((ROOT / file).read_text())
            functions = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
            assert not name or name in functions, f"{file} has no {name}"


def test_every_test_of_reliability_is_on_the_page():
    page = PAGE.read_text()
    for path in sorted((ROOT / "tests" / "reliability").glob("test_*.py")):
        if path.name != Path(__file__).name:
            assert f"tests/reliability/{path.name}" in page
