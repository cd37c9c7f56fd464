"""Making a release: the edits of its script; what recipe, citation and package say alike."""

import datetime
import importlib.util
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PYPROJECT = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
PROJECT = tomllib.loads(PYPROJECT)["project"]
# Names of packages that conda knows by another.
CONDA_NAMES = {"matplotlib": "matplotlib-base"}


def load_tool(name):
    """A script of tools/ as a module."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    return tool


release = load_tool("release")
DATE = datetime.date(2027, 2, 3)


def test_the_version_is_set_in_its_one_place():
    text = '[project]\nname = "a"\nversion = "0.1.0.dev0"\npython_version = "3.11"\n'
    assert release.set_version(text, "1.0.0") == text.replace("0.1.0.dev0", "1.0.0")
    changed = tomllib.loads(release.set_version(PYPROJECT, "99.0.0"))
    before = tomllib.loads(PYPROJECT)
    assert changed.pop("project").pop("version") == "99.0.0"
    assert changed.keys() == before.keys() - {"project"}


@pytest.mark.parametrize("version", ["1.0", "v2.0.0", "1.0.0", "0.9", "", "2.0.0-rc1", "latest"])
def test_a_version_that_is_none_or_not_later_is_refused(version):
    text = 'version = "1.0"\n'
    with pytest.raises(release.ReleaseError, match=f"{version}.*(is not a version|is not later)"):
        release.set_version(text, version)


def test_two_versions_are_refused():
    with pytest.raises(release.ReleaseError, match="2 lines"):
        release.read_version('version = "1.0"\nversion = "2.0"\n')


def test_changes_get_a_version_and_a_date():
    text = "# Changelog\n\n## Unreleased\n\n### Added\n- One.\n\n## 0.9.0 - 2026-01-01\n- Old.\n"
    assert release.date_changes(text, "1.0.0", DATE) == (
        "# Changelog\n\n## Unreleased\n\n## 1.0.0 - 2027-02-03\n\n### Added\n- One.\n\n"
        "## 0.9.0 - 2026-01-01\n- Old.\n"
    )


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("# Changelog\n", "one heading"),
        ("## Unreleased\n- a\n## Unreleased\n- b\n", "one heading"),
        ("## Unreleased\n\n## 0.9.0 - 2026-01-01\n- Old.\n", "says nothing"),
        ("## Unreleased\n- a\n\n## 1.0.0 - 2026-01-01\n- Old.\n", "has 1.0.0 already"),
    ],
)
def test_a_changelog_that_cannot_be_dated_is_refused(text, why):
    with pytest.raises(release.ReleaseError, match=why):
        release.date_changes(text, "1.0.0", DATE)


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A small repository, in which the script works; building takes no time and may fail."""
    texts = {
        "pyproject.toml": 'version = "0.9"\n',
        "CHANGELOG.md": "## Unreleased\n- a\n",
        "CITATION.cff": "title: a\nversion: 0.8\ndate-released: 2026-01-02\ntype: software\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(release, "ROOT", tmp_path)
    for key, value in {"name": "a", "email": "a@example.org"}.items():
        for who in ("AUTHOR", "COMMITTER"):
            monkeypatch.setenv(f"GIT_{who}_{key.upper()}", value)
    git(tmp_path, "init", "-q", "-b", "main")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "start")
    monkeypatch.setattr(release, "build_and_check", lambda: (tmp_path / "dist").mkdir())
    return tmp_path


def git(folder, *arguments):
    done = subprocess.run(
        ["git", *arguments], cwd=folder, capture_output=True, text=True, check=True
    )
    return done.stdout


def describe(folder):
    """Commit, tags, and what differs from the commit."""
    asked = (["rev-parse", "HEAD"], ["tag"], ["status", "--porcelain"])
    return [git(folder, *arguments) for arguments in asked]


def test_a_release_is_a_commit_and_a_tag(checkout):
    release.release("1.0.0", "main", DATE)
    assert git(checkout, "log", "--format=%s") == "Release 1.0.0\nstart\n"
    assert git(checkout, "show", "v1.0.0:pyproject.toml") == 'version = "1.0.0"\n'
    assert "## 1.0.0 - 2027-02-03\n- a\n" in git(checkout, "show", "v1.0.0:CHANGELOG.md")
    assert git(checkout, "show", "v1.0.0:CITATION.cff") == (
        "title: a\ntype: software\nversion: 1.0.0\ndate-released: 2027-02-03\n"
    )
    assert git(checkout, "status", "--porcelain", "-uno") == ""


@pytest.mark.parametrize("error", [release.ReleaseError("failed"), KeyboardInterrupt()])
@pytest.mark.parametrize("last", ["build", "tag"])
def test_a_failure_leaves_the_checkout_as_it_was(checkout, monkeypatch, error, last):
    def fail():
        (checkout / "dist").mkdir()
        if last == "build":
            raise error

    run = release.run

    def run_or_fail(*command):
        if command[:2] == ("git", "tag") and "--annotate" in command:
            raise error
        return run(*command)

    monkeypatch.setattr(release, "build_and_check", fail)
    monkeypatch.setattr(release, "run", run_or_fail)
    before = describe(checkout)
    with pytest.raises(type(error)):
        release.release("1.0.0", "main", DATE)
    assert describe(checkout) == before
    assert not (checkout / "dist").exists()


def test_a_checkout_that_is_not_ready_is_refused(checkout):
    with pytest.raises(release.ReleaseError, match="branch 'main'"):
        release.release("1.0.0", "stable", DATE)
    git(checkout, "tag", "v1.0.0")
    with pytest.raises(release.ReleaseError, match=r"a tag v1\.0\.0"):
        release.release("1.0.0", "main", DATE)
    (checkout / "new").touch()
    with pytest.raises(release.ReleaseError, match="has changes"):
        release.release("1.1.0", "main", DATE)


def read_bounds(requirements):
    """Lower bound by name, of requirements as pyproject.toml has them."""
    bounds = {}
    for requirement in requirements:
        found = re.match(r"([\w-]+)(?:\[[\w,]+\])?>=([\w.]+)", requirement)
        if found:
            name, bound = found.groups()
            bounds[CONDA_NAMES.get(name, name)] = bound
    return bounds


def test_the_recipe_has_the_bounds_of_the_package():
    recipe = (ROOT / "recipe" / "recipe.yaml").read_text(encoding="utf-8")
    extras = PROJECT["optional-dependencies"]
    of_users = ("plots", "frames", "cli", "excel", "serve", "dask")
    assert extras["all"] == [f"cqrf[{','.join(of_users)}]"]
    wanted = [*PROJECT["dependencies"], *(one for name in of_users for one in extras[name])]
    bounds = re.findall(r"^    - ([\w-]+) >=([\w.]+)$", recipe, re.M)
    assert dict(bounds) == {
        **read_bounds(wanted),
        **read_bounds(tomllib.loads(PYPROJECT)["build-system"]["requires"]),
    }
    assert len(bounds) == len(dict(bounds))
    assert f'python_min: "{PROJECT["requires-python"].removeprefix(">=")}"' in recipe
    assert f"summary: {PROJECT['description'].rstrip('.').replace(':', ',')}" in recipe


def test_the_citation_is_that_of_the_readme():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    assert citation.startswith("cff-version: 1.2.0\n")
    assert "Li, A. H. and Bradic, J. (2020). Censored Quantile Regression Forest." in readme
    for part in ("family-names: Li", "family-names: Bradic", "year: 2020", "volume: 108"):
        assert part in citation
    assert f"license: {PROJECT['license']}\n" in citation
    assert f"url: {PROJECT['urls']['Paper']}\n" in citation


def test_the_citation_is_that_of_the_last_release():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    cited = re.findall(r"^version: (.*)\ndate-released: (.*)$", citation, re.M)
    assert cited == re.findall(r"^## (\d\S*) - (\S+)$", changelog, re.M)[:1]


def test_the_wheel_leaves_out_only_data_of_the_study():
    """What the exclusion names is there, is large, and is read by one experiment."""
    wheel = tomllib.loads(PYPROJECT)["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert wheel["exclude"] == ["/src/cqrf/study/paper_r/*.csv.gz"]
    left_out = sorted(ROOT.glob(wheel["exclude"][0][1:]))
    assert len(left_out) == 12
    assert sum(path.stat().st_size for path in left_out) > 2_000_000
