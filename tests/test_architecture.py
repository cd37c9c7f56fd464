"""The architecture: layers, sizes, and records that are passed whole.

Lower layers never import higher ones, no file or function grows beyond what a reader can hold,
and ``import cqrf`` loads nothing heavy.
"""

import subprocess
import sys

import pytest

from support.architecture import (
    PAGE,
    SOURCE,
    count_outcome_files,
    draw_graph,
    find_cycles,
    find_dead_references,
    find_unlisted,
    find_wrong_imports,
    list_modules,
    read_graph,
)
from support.source_code import SourceTree

MOST_LINES = 400
MOST_LINES_OF_A_FUNCTION = 60
MOST_ARGUMENTS = 8

# Functions that may have more arguments, and why.
MANY_ARGUMENTS = {
    "_runtime.intrinsics.sum_rows": "Numba: the typing context comes before the eight arguments",
    "estimator.CensoredQuantileForest.__init__": "scikit-learn: every setting is an argument",
    "effects.CensoredTreatmentForest.__init__": "scikit-learn: every setting is an argument",
    "_survival.quantiles.solve_quantiles": "public: all that the equation needs, by name",
    "tuning.tune": "public: all that a search needs, by name",
    "cli.model_commands.evaluate": "Typer: every option is an argument",
    "cli.fit_commands.fit": "Typer: every option is an argument",
    "cli.fit_commands.tune": "Typer: every option is an argument",
    "cli.fit_commands.conformal": "Typer: every option is an argument",
    "cli.fit_commands.effects": "Typer: every option is an argument",
    "cli.model_commands.predict": "Typer: every option is an argument",
    "cli.model_commands.report": "Typer: every option is an argument",
    "cli.model_commands.serve": "Typer: every option is an argument",
}

HEAVY = ("numba", "sklearn", "pandas", "matplotlib")


@pytest.fixture(scope="module")
def tree():
    return SourceTree(SOURCE)


@pytest.fixture
def make_tree(tmp_path):
    """A package of these files: a text for each path."""

    def write(files):
        source = tmp_path / "cqrf"
        for name, text in files.items():
            path = source / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return SourceTree(source)

    return write


def test_every_module_has_a_layer(tree):
    assert sorted(set(tree.modules) - list_modules()) == [], "give them a place in LAYERS"
    assert sorted(list_modules() - set(tree.modules)) == [], "LAYERS lists what does not exist"


def test_lower_layers_do_not_import_higher_ones(tree):
    assert find_wrong_imports(tree) == []


def test_no_modules_of_a_layer_import_each_other_in_a_circle(tree):
    assert find_cycles(tree) == []


def test_no_file_is_too_long(tree):
    sizes = {module.file: module.n_lines for module in tree.modules.values()}
    assert {file: n for file, n in sizes.items() if n > MOST_LINES} == {}


def list_functions(tree):
    return [function for module in tree.modules.values() for function in module.functions]


def test_no_function_is_too_long(tree):
    sizes = {function.name: function.n_lines for function in list_functions(tree)}
    assert {name: n for name, n in sizes.items() if n > MOST_LINES_OF_A_FUNCTION} == {}


def test_no_function_has_too_many_arguments(tree):
    sizes = {function.name: function.n_arguments for function in list_functions(tree)}
    many = {name: n for name, n in sizes.items() if n > MOST_ARGUMENTS}
    assert {name: n for name, n in many.items() if name not in MANY_ARGUMENTS} == {}
    assert set(MANY_ARGUMENTS) <= set(many), "these need no exception"


def test_no_record_is_spread_over_arguments(tree):
    assert tree.find_splats() == []


def test_contributing_lists_every_module_of_internal_packages():
    assert find_unlisted() == []


def test_what_contributing_names_is_there(tree):
    assert find_dead_references(tree) == []


def test_contributing_counts_the_files_of_a_kind_of_outcome():
    text = " ".join(PAGE.read_text(encoding="utf-8").split())
    new, others, of_dask = count_outcome_files()
    assert f"{new} new files, and lines in {others} others and in {of_dask} of Dask" in text


def test_the_graph_in_contributing_is_that_of_the_source(tree):
    assert read_graph() == draw_graph(tree), "run `make graph`"


def test_importing_the_package_loads_nothing_heavy():
    program = f"import sys, cqrf; print(*(name for name in {HEAVY} if name in sys.modules))"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert run.stdout.split() == []


# The checks themselves, on small packages.


@pytest.mark.parametrize(
    ("file", "text", "imported"),
    [
        ("_forest/binning.py", "from .._survival import curves", "cqrf._survival.curves"),
        ("_forest/binning.py", "from .._survival.curves import step", "cqrf._survival.curves"),
        ("_forest/binning.py", "import numpy, cqrf._survival.curves", "cqrf._survival.curves"),
        ("_forest/binning.py", "from cqrf import tuning", "cqrf.tuning"),
        ("_forest/binning.py", "from cqrf import CensoredQuantileForest", "cqrf"),
        ("_forest/binning.py", "import cqrf", "cqrf"),
        ("_forest/binning.py", "from cqrf.unlisted import thing", "cqrf.unlisted"),
        ("_forest/binning.py", "def late():\n    from cqrf.tuning import tune", "cqrf.tuning"),
        ("_forest/__init__.py", "from cqrf._model.file import write", "cqrf._model.file"),
        ("_runtime/files.py", "from cqrf._input import target", "cqrf._input"),
        ("estimator.py", "from cqrf.plots import draw", "cqrf.plots"),
        (
            "metrics/quantile.py",
            "from typing import TYPE_CHECKING\n"
            "if TYPE_CHECKING:\n    from cqrf.estimator import CensoredQuantileForest",
            "cqrf.estimator",
        ),
    ],
)
def test_an_import_of_a_higher_layer_is_found(make_tree, file, text, imported):
    tree = make_tree({file: text, "_survival/curves.py": "", "_model/file.py": "", "tuning.py": ""})
    (wrong,) = find_wrong_imports(tree)
    assert wrong.startswith(f"{file}:")
    assert wrong.endswith(f" imports {imported}")


def test_imports_of_lower_layers_pass(make_tree):
    files = {
        "__init__.py": "from cqrf.estimator import CensoredQuantileForest",
        "_runtime/random.py": "import numba\nfrom cqrf._runtime.compiling import kernel",
        "_forest/grower.py": "from cqrf._forest import binning\nfrom .._runtime import random",
        "_model/fit.py": "from cqrf._survival.curves import step\nimport cqrf._forest.grower",
        "plots.py": "from cqrf.estimator import CensoredQuantileForest",
        "demo.py": "from cqrf import CensoredQuantileForest",
    }
    assert find_wrong_imports(make_tree(files)) == []


@pytest.mark.parametrize(
    "files",
    [
        {"plots.py": "import cqrf.tuning", "tuning.py": "def f():\n    import cqrf.plots"},
        {"_forest/a.py": "from . import b", "_forest/b.py": "from .a import thing"},
        {"_forest/__init__.py": "from .a import thing", "_forest/a.py": "from cqrf import _forest"},
    ],
)
def test_a_circle_is_found(make_tree, files):
    (cycle,) = find_cycles(make_tree(files))
    first, *_, last = cycle.split(" <- ")
    assert first == last


IMPORTS = "from cqrf.b import grow, Rows\nfrom cqrf import b\n"


@pytest.mark.parametrize(
    "text",
    [
        "def f(rows, limits): return grow(1, *rows[2:], *limits, 3)",
        "def f(labelling): return b.grow(*labelling)",
        "def f(self): return grow(*self.rows)",
        "def f(rows): return Rows(*rows)",
        "def f(growing):\n    criterion, *limits = growing\n    return local(*limits)",
        "def f(sampling): return local(*sampling[1:])",
    ],
)
def test_a_record_spread_over_arguments_is_found(make_tree, text):
    text = f"{IMPORTS}def local(one, two): ...\n{text}"
    tree = make_tree({"a.py": text, "b.py": "def grow(one, two): ...\nclass Rows: ..."})
    (found,) = tree.find_splats()
    assert found.startswith("a.py:")


@pytest.mark.parametrize(
    "text",
    [
        "def f(rows): return grow(rows, rows.time)",
        "def f(*arguments): return grow(*arguments)",
        "def f(lines): return grow(**lines)",
        "def f(work, arguments): return work(*arguments)",
        "def f(lines): print(*lines[1:])",
        "def f(lines): return add(*lines[1:])",
        "def f(pairs): return Pair(*pairs)",
        "def f(names):\n    first, *others = names\n    return grow(first, others)",
    ],
)
def test_other_calls_pass(make_tree, text):
    text = f"{IMPORTS}from cqrf.b import add\nclass Pair: ...\n{text}"
    files = {
        "a.py": text,
        "b.py": "def grow(one, two): ...\ndef add(*numbers): ...\nclass Rows: ...",
    }
    assert make_tree(files).find_splats() == []


def test_functions_are_measured(make_tree):
    text = "class A:\n    def f(self, a, *b, c=1, **d):\n        return 1\n\n\ndef g():\n    pass\n"
    (f, g) = make_tree({"m.py": text}).modules["m"].functions
    assert (f.name, f.n_lines, f.n_arguments) == ("m.A.f", 2, 4)
    assert (g.name, g.n_lines, g.n_arguments) == ("m.g", 2, 0)
