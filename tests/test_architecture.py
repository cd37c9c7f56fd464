"""The shape of the house: rooms look only up the flow, and the front door is light."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[1] / "src" / "cqrf"

# A row of data walks through these in order; a room may import only rooms before it.
ROOMS = (
    "target",
    "sample_weight",
    "table",
    "binning",
    "growing",
    "forest",
    "leaves",
    "weights",
    "curves",
    "equation",
    "quantiles",
    "uncertainty",
    "metrics",
)
# The same rule inside a room.
FLOORS = {
    "growing": ("sampling", "labels", "histograms", "splitting", "scratch", "tree", "settling"),
    "metrics": ("censoring", "quantile", "concordance", "survival", "scorers"),
}
# Everyone may stand on these; they import no room.
GROUND = ("kernel", "arguments", "chance", "threads", "files")
JOINERS = (
    "progress",
    "settings",
    "model",
    "packing",
    "model_file",
    "memory",
    "estimator",
    "calibration",
    "conformal",
    "evaluation",
    "tuning",
    "inspection",
)  # import rooms, and no door
DOORS = ("plots", "datasets", "demo", "cli", "report", "serve", "study", "dask")

HEAVY = ("numba", "sklearn", "pandas", "matplotlib")

Module = tuple[str, ...]  # the dotted name below the package: () is the package itself


def name_module(path: Path, source: Path) -> Module:
    parts = path.relative_to(source).with_suffix("").parts
    return parts[:-1] if parts[-1] == "__init__" else parts


def list_modules(source: Path) -> set[Module]:
    """Every module on disk, with those that have a place in the house but no file yet."""
    planned = {(name,) for name in (*GROUND, *ROOMS, *JOINERS, *DOORS)}
    planned |= {(room, name) for room, names in FLOORS.items() for name in names}
    return planned | {name_module(path, source) for path in source.rglob("*.py")}


def list_imports(path: Path, source: Path, modules: set[Module]) -> set[tuple[int, Module]]:
    """Line and module of each import from the package, wherever in the file it stands."""
    package = path.relative_to(source).parent.parts
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            dotted = [tuple(alias.name.split(".")) for alias in node.names]
            found |= {(node.lineno, name[1:]) for name in dotted if name[0] == source.name}
        elif isinstance(node, ast.ImportFrom):
            start = tuple(node.module.split(".")) if node.module else ()
            if node.level:
                start = package[: len(package) - (node.level - 1)] + start
            elif start[0] == source.name:
                start = start[1:]
            else:
                continue
            for alias in node.names:
                inner = (*start, alias.name)
                found.add((node.lineno, inner if inner in modules else start))
    return found


def may_import(importer: Module, imported: Module) -> bool:
    """Whether the house lets one module import another of the package."""
    if not importer:
        return True
    top = importer[0]
    flow = (*GROUND, *ROOMS, *JOINERS)
    if top not in flow:
        return True
    if not imported or imported[0] not in flow[: flow.index(top) + 1]:
        return False
    floors = FLOORS.get(top, ())
    if imported[0] != top or len(importer) == 1 or importer[1] not in floors:
        return True
    return len(imported) > 1 and imported[1] in floors[: floors.index(importer[1]) + 1]


def find_wrong_imports(source: Path) -> list[str]:
    """One line for each import that goes against the flow."""
    modules = list_modules(source)
    return [
        f"{path.relative_to(source).as_posix()}:{line} imports "
        + ".".join((source.name, *imported))
        for path in sorted(source.rglob("*.py"))
        for line, imported in sorted(list_imports(path, source, modules))
        if not may_import(name_module(path, source), imported)
    ]


def write_tree(folder: Path, files: dict[str, str]) -> Path:
    source = folder / "cqrf"
    for name, text in files.items():
        path = source / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return source


def test_rooms_import_only_rooms_before_them():
    assert list(SOURCE.rglob("*.py")), f"no sources in {SOURCE}"
    assert find_wrong_imports(SOURCE) == []


@pytest.mark.parametrize(
    ("file", "text", "imported"),
    [
        ("binning.py", "from .forest import grow", "cqrf._forest.training"),
        ("binning.py", "from . import forest", "cqrf._forest.training"),
        ("binning.py", "from cqrf._forest.training import grow", "cqrf._forest.training"),
        ("binning.py", "from cqrf import table, forest", "cqrf._forest.training"),
        ("binning.py", "import numpy, cqrf._forest.training", "cqrf._forest.training"),
        ("binning.py", "def late():\n    from .forest import grow", "cqrf._forest.training"),
        ("binning.py", "from . import CensoredQuantileForest", "cqrf"),
        ("binning.py", "import cqrf", "cqrf"),
        ("binning.py", "from .unplaced import thing", "cqrf.unplaced"),
        ("quantiles.py", "from .metrics import loss", "cqrf.metrics"),
        ("metrics.py", "from .estimator import CensoredQuantileForest", "cqrf.estimator"),
        ("curves.py", "from .plots import draw", "cqrf.plots"),
        ("weights/oob.py", "from ..curves import survive", "cqrf._survival.curves"),
        ("growing/tree.py", "from ..forest import grow", "cqrf._forest.training"),
        ("growing/tree.py", "from .. import forest", "cqrf._forest.training"),
        ("growing/labels.py", "from .splitting import split", "cqrf._forest.splitting"),
        ("growing/labels.py", "from . import tree", "cqrf._forest.grower"),
        ("growing/labels.py", "from cqrf.growing import tree", "cqrf._forest.grower"),
        ("growing/labels.py", "from . import grow_tree", "cqrf.growing"),
        ("growing/__init__.py", "from ..weights import average", "cqrf._forest.weights"),
        ("kernel.py", "from .target import censored", "cqrf._input.target"),
        ("kernel.py", "from .chance import mix", "cqrf._runtime.random"),
        ("chance.py", "from .table import Table", "cqrf._input.features"),
        ("estimator.py", "from .plots import draw", "cqrf.plots"),
        ("estimator.py", "import cqrf.datasets", "cqrf.datasets"),
        ("estimator.py", "from cqrf.report.page import write", "cqrf.report.page"),
        ("model.py", "from .estimator import CensoredQuantileForest", "cqrf.estimator"),
        ("weights.py", "from .model import Model", "cqrf._model.fitted"),
    ],
)
def test_an_import_against_the_flow_is_found(tmp_path, file, text, imported):
    source = write_tree(tmp_path, {file: text, "report/page.py": ""})
    (wrong,) = find_wrong_imports(source)
    assert wrong.startswith(f"{file}:")
    assert wrong.endswith(f" imports {imported}")


def test_imports_along_the_flow_pass(tmp_path):
    files = {
        "__init__.py": "from .estimator import CensoredQuantileForest",
        "kernel.py": "import numba",
        "chance.py": "from .kernel import kernel",
        "target.py": "import numpy as np\nfrom .kernel import kernel",
        "forest.py": "from cqrf.growing import grow_tree\nfrom cqrf._forest.grower import Tree",
        "growing/__init__.py": "from .tree import grow_tree",
        "growing/labels.py": "from ..kernel import kernel\nfrom .sampling import draw",
        "growing/tree.py": "from . import labels, sampling\nfrom .. import binning",
        "metrics.py": "from . import quantiles, target\nimport cqrf._survival.curves",
        "estimator.py": "from . import forest, metrics\nfrom .quantiles import solve_quantiles",
        "plots.py": "from cqrf import CensoredQuantileForest",
    }
    assert find_wrong_imports(write_tree(tmp_path, files)) == []


def test_importing_the_package_loads_nothing_heavy():
    program = f"import sys, cqrf; print(*(name for name in {HEAVY} if name in sys.modules))"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert run.stdout.split() == []
