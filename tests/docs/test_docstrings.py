"""The API reference: it has every public name, and docstrings say what a caller must know."""

import doctest
import importlib
import importlib.util
import inspect
import pkgutil
import re
import warnings
from pathlib import Path

import matplotlib as mpl
import pytest
from numpydoc.validate import validate

mpl.use("Agg")
from matplotlib import pyplot as plt

import cqrf

API = Path(__file__).resolve().parents[2] / "docs" / "api"
# Codes of numpydoc: a summary, every parameter, no other, what is returned, an example.
OF_FUNCTIONS = {"GL08", "SS01", "PR01", "PR02", "RT01", "EX01"}
OF_CLASSES = {"GL08", "SS01", "PR02", "EX01"}
WITHOUT = {
    "cqrf.calibration.Calibration": {"EX01"},  # assess_calibration makes one
    "cqrf.dask.DaskCensoredQuantileForest": {"PR02"},  # **settings are those of the plain forest
}
# Methods without an example: each would start a cluster, as the example of the class does.
METHODS_WITHOUT = "cqrf.dask.DaskCensoredQuantileForest."
RETURN_AXES = {"plot_arms", "plot_effect", "plot_overlap", "plot_subgroups", "plot_toc"}


def list_public():
    """Every public name: those of the package and of its public modules."""
    names = [f"cqrf.{name}" for name in cqrf.__all__]
    for module in cqrf._SUBMODULES:
        listed = getattr(importlib.import_module(f"cqrf.{module}"), "__all__", ())
        names += [f"cqrf.{module}.{name}" for name in listed]
    return names


def find_object(name):
    module, _, last = name.rpartition(".")
    return getattr(importlib.import_module(module), last)


def list_documented():
    """Names in the lists of docs/api/*.md."""
    names = set()
    for page in API.glob("*.md"):
        module = None
        for line in page.read_text(encoding="utf-8").splitlines():
            if found := re.match(r"\.\. currentmodule:: (\S+)", line):
                module = found[1]
            elif found := re.match(r"   (\w+)$|\.\. autodata:: (\w+)", line):
                names.add(f"{module}.{found[1] or found[2]}")
    return names


def test_every_module_says_what_is_public():
    silent = [
        module
        for module in cqrf._SUBMODULES
        if not hasattr(importlib.import_module(f"cqrf.{module}"), "__all__")
    ]
    assert silent == ["serve"]  # a program, with nothing to import


def test_every_module_without_underscore_is_public_or_named_here():
    found = {module.name for module in pkgutil.iter_modules(cqrf.__path__)}
    # The estimator's class is a name of the package; the others are run as commands.
    other = {"estimator", "cli", "demo", "study"}
    assert {name for name in found if not name.startswith("_")} == other | set(cqrf._SUBMODULES)


def test_every_public_name_is_in_the_reference():
    documented = list_documented()
    twice = {"cqrf.tuning.tune"}  # documented as cqrf.tune
    assert set(list_public()) - documented - twice == set()
    assert documented - set(list_public()) == set()


def list_subclasses(found):
    for each in found.__subclasses__():
        yield from (each, *list_subclasses(each))


def test_every_warning_can_be_filtered_by_a_public_name():
    for module in MODULES:
        importlib.import_module(module)
    public = [find_object(name) for name in list_public()]
    ours = [each for each in list_subclasses(Warning) if each.__module__.startswith("cqrf.")]
    assert len(ours) > 5
    assert [each.__name__ for each in ours if each not in public] == []


def list_linked(page):
    """Public names and their members that a page of the reference links to."""
    text = (API / page).read_text(encoding="utf-8")
    found = re.findall(r"\{(?:obj|meth|attr)\}`(?:~([\w.]+)|[^`]*<([\w.]+)>)`", text)
    return [short or long for short, long in found]


def test_the_first_page_links_to_every_public_name():
    named = set(list_public()) - {"cqrf.tuning.tune"}  # documented as cqrf.tune
    assert sorted(list_linked("index.md")) == sorted(named)


@pytest.mark.parametrize(
    ("page", "name"),
    [
        ("forest.md", "cqrf.CensoredQuantileForest"),
        ("effects.md", "cqrf.effects.CensoredTreatmentForest"),
    ],
)
def test_a_table_of_tasks_links_to_every_method(page, name):
    """The page of the class has the methods of this table, in its order, and no other."""
    found = find_object(name)
    properties = {
        f"{name}.{member}"
        for member in dir(found)
        if not member.startswith("_")
        and isinstance(value := inspect.getattr_static(found, member), property)
        and value.fget.__module__.startswith("cqrf")
    }
    assert sorted(list_linked(page)) == sorted({*list_members(name), *properties})


def list_members(name):
    """The public methods of a class that are our own."""
    found = find_object(name)
    for member in dir(found):
        method = inspect.getattr_static(found, member)
        method = getattr(method, "__func__", method)
        is_ours = (getattr(method, "__module__", None) or "").startswith("cqrf")
        if not member.startswith("_") and inspect.isfunction(method) and is_ours:
            yield f"{name}.{member}"


def find_summary(name):
    found = importlib.import_module("cqrf")
    for part in name.split(".")[1:]:
        found = getattr(found, part)
    return (inspect.getdoc(found) or "").split("\n")[0]


def find_faults(name, codes):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = validate(name)["errors"]
    return {code for code, _ in found} & codes


@pytest.mark.parametrize("name", list_public())
def test_a_docstring_says_what_a_caller_must_know(name):
    found = find_object(name)
    if inspect.isfunction(found):
        codes = OF_FUNCTIONS - ({"RT01"} if found.__name__ in RETURN_AXES else set())
        assert find_faults(name, codes) == set()
    elif inspect.isclass(found):
        is_warning = issubclass(found, Exception)
        codes = OF_CLASSES - WITHOUT.get(name, set()) - ({"EX01"} if is_warning else set())
        assert find_faults(name, codes) == set()
        for member in list_members(name):
            codes = OF_FUNCTIONS - ({"EX01"} if member.startswith(METHODS_WITHOUT) else set())
            assert find_faults(member, codes) == set(), member


def test_no_summary_has_three_dots():
    """The tables of the reference cut a summary at them."""
    members = [member for name in list_public() for member in (name, *list_members(name))]
    summaries = {name: find_summary(name) for name in members}
    assert {name: text for name, text in summaries.items() if "..." in text} == {}


def test_the_estimator_fits_a_screen_or_two():
    assert len(cqrf.CensoredQuantileForest.__doc__.splitlines()) < 80


def read_source(module):
    return Path(importlib.util.find_spec(module).origin).read_text(encoding="utf-8")


MODULES = [found.name for found in pkgutil.walk_packages(cqrf.__path__, "cqrf.")]
WITH_EXAMPLES = [module for module in MODULES if ">>> " in read_source(module)]


@pytest.mark.parametrize("module", WITH_EXAMPLES)
def test_examples_in_docstrings(module):
    found = doctest.testmod(importlib.import_module(module))
    assert found.attempted == read_source(module).count(">>> ")
    assert found.failed == 0
    plt.close("all")
