"""Versions of the dependencies, and what works without some of them."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

from support.check_extra import MODULES
from support.versions import FILTERS, PYTHONS

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]
CLASSIFIERS = "\n".join(PROJECT["classifiers"])
DIRECT, INDIRECT = (
    "# Dependencies of pyproject.toml:",
    "# What these bring, and the tools of the tests:",
)


def list_bounds():
    """Lower bound of each dependency of the core and of the extra ``all``."""
    (everything,) = EXTRAS["all"]
    lines = [*PROJECT["dependencies"]]
    for extra in Requirement(everything).extras:
        lines += EXTRAS[extra]
    bounds = {}
    for requirement in map(Requirement, lines):
        if requirement.name != "cqrf":
            (bound,) = requirement.specifier
            assert bound.operator == ">=", requirement
            bounds.setdefault(requirement.name, set()).add(Version(bound.version))
    return bounds


def test_the_lowest_versions_that_are_tested_are_the_bounds():
    text = (ROOT / "constraints-lowest.txt").read_text()
    direct = text.partition(DIRECT)[2].partition(INDIRECT)[0].split()
    tested = {name: {Version(version)} for name, _, version in (x.partition("==") for x in direct)}
    assert tested == list_bounds()


def test_the_pythons_that_are_named_are_those_that_are_tested():
    named = re.findall(r"^Programming Language :: Python :: (3\.\d+)$", CLASSIFIERS, re.M)
    assert tuple(named) == PYTHONS
    assert PROJECT["requires-python"] == f">={PYTHONS[0]}"


# What an extra brings; cqrf[serve] and cqrf[excel] contain cqrf[cli]. Narwhals is left out:
# scikit-learn imports it from 1.9 on. `make test-versions` checks extras in real environments.
BROUGHT = {
    "plots": ("matplotlib",),
    "frames": (),
    "cli": ("pyarrow", "rich", "typer"),
    "excel": ("openpyxl",),
    "serve": ("anyio", "fastapi", "httptools", "starlette", "uvicorn", "uvloop"),
    "dask": ("dask", "distributed", "pandas", "pyarrow"),
}
CONTAINS = {"excel": ("cli",), "serve": ("cli",), "all": tuple(BROUGHT)}


@pytest.mark.parametrize("extra", ["bare", *BROUGHT, "all"])
def test_each_public_module_works_or_names_the_extra_that_it_needs(extra):
    there = {
        package for name in (extra, *CONTAINS.get(extra, ())) for package in BROUGHT.get(name, ())
    }
    blocked = {package for packages in BROUGHT.values() for package in packages} - there
    check = ROOT / "tests" / "support" / "check_extra.py"
    run = subprocess.run(
        [sys.executable, check, extra, *sorted(blocked)],
        env=os.environ | {"NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr


def test_every_public_module_is_checked():
    from cqrf import _SUBMODULES

    assert {f"cqrf.{name}" for name in _SUBMODULES} <= set(MODULES)


OTHER = "import warnings\ndef warn(category): warnings.warn('of a dependency', category)\n"
TEST = """
import warnings
import other
import pytest

@pytest.mark.parametrize("category", [UserWarning, FutureWarning, RuntimeWarning])
def test_of_a_dependency(category):
    other.warn(category)

def test_announced():
    warnings.warn("in our code", DeprecationWarning)

def test_own():
    warnings.warn("our own", UserWarning)

def test_arithmetic():
    import numpy as np
    np.ones(1) / np.zeros(1)
"""


@pytest.mark.parametrize(("listed", "passed", "failed"), [(False, 0, 6), (True, 4, 2)])
def test_warnings_of_dependencies_can_be_listed_and_ours_stay_errors(
    tmp_path, listed, passed, failed
):
    (tmp_path / "other.py").write_text(OTHER)
    (tmp_path / "test_warnings.py").write_text(TEST)
    (tmp_path / "pytest.ini").write_text("[pytest]\nfilterwarnings = error\npythonpath = .\n")
    filters = ["-o", "filterwarnings=" + "\n".join(FILTERS)] if listed else []
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *filters, tmp_path],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    counts = {what: int(n) for n, what in re.findall(r"(\d+) (passed|failed)", run.stdout)}
    assert counts == {"passed": passed, "failed": failed} or counts == {"failed": failed}, (
        run.stdout
    )
    assert ("in our code" in run.stdout.partition("warnings summary")[2]) == listed
