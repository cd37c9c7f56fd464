"""The layers of the package and every module in them, and the graph of their imports.

``make graph`` writes the graph into CONTRIBUTING.md.
"""

from __future__ import annotations

import re

from support.source_code import ROOT, SourceTree

SOURCE = ROOT / "src" / "cqrf"
PAGE = ROOT / "CONTRIBUTING.md"
MARKS = "<!-- import graph: written by `make graph` -->", "<!-- end of the import graph -->"

# From the lowest layer to the highest. A module imports modules of its own layer and of lower
# ones. '' in the list of a package is its __init__.
LAYERS: tuple[dict[str, str], ...] = (
    {
        "_runtime": "arguments compiling files intrinsics plain_intrinsics progress random threads",
    },
    {
        "_input": "features risk_sets sample_weight target units",
    },
    {
        "_forest": "binning grower histograms labels layout sampling splitting training traversal "
        "weights workspace",
    },
    {
        "_survival": "curves equation little_bags quantiles",
    },
    {
        "metrics": "censoring concordance quantile scorers survival",
    },
    {
        "_model": "codec file file_checks fit fitted memory predict settings skill",
    },
    {
        "estimator": "",
    },
    {
        "calibration": "",
        "conformal": "",
        "evaluation": "",
        "inspection": "",
        "tuning": "",
        "datasets": "generators randomness tables",
        "plots": "",
    },
    {
        "cqrf": "",  # the public names, loaded on first use
    },
    {
        "cli": "app console fitting judging predicting reporting reproduce roles serving tables",
        "report": "data facts features numbers page quality rows subject",
        "serve": "answers app columns facts guard openapi schema served values",
        "dask": "errands estimator fitting growing partitions predicting preparing reading",
        "study": "beyond catalog censoring_survival curves experiment figures intervals methods "
        "node_sizes page peers references results",
        "demo": "",
    },
)


def name_unit(module: str) -> str:
    """The package or the module at the top that a module belongs to."""
    return module.partition(".")[0] or "cqrf"


def list_modules() -> set[str]:
    """Every module of the layers, dotted below the package."""
    listed = set()
    for layer in LAYERS:
        for unit, inner in layer.items():
            listed.add("" if unit == "cqrf" else unit)
            listed |= {f"{unit}.{name}" for name in inner.split()}
    return listed


LAYER_OF = {unit: i for i, layer in enumerate(LAYERS) for unit in layer}


def find_wrong_imports(tree: SourceTree) -> list[str]:
    """One line for each import of a higher layer, or of a module that has no layer."""
    wrong = []
    for name, imports in tree.imports.items():
        own = LAYER_OF.get(name_unit(name), len(LAYERS))
        for one in imports:
            other = LAYER_OF.get(name_unit(one.module), len(LAYERS))
            if other > own or (other == len(LAYERS) and own < other):
                dotted = ".".join(filter(None, (tree.package, one.module)))
                wrong.append(f"{tree.modules[name].file}:{one.line} imports {dotted}")
    return wrong


def find_cycles(tree: SourceTree) -> list[str]:
    """One line for each layer whose modules import each other in a circle."""
    cycles = []
    for i in range(len(LAYERS)):
        names = {name for name in tree.modules if LAYER_OF.get(name_unit(name)) == i}
        if cycle := tree.find_cycle(names):
            cycles.append(" <- ".join(name or "cqrf" for name in cycle))
    return cycles


def draw_graph(tree: SourceTree) -> str:
    """A line for each package and public module: its layer, and what it imports."""
    imports: dict[str, set[str]] = {unit: set() for unit in LAYER_OF}
    for name, found in tree.imports.items():
        imports[name_unit(name)] |= {name_unit(one.module) for one in found}
    width = max(map(len, imports))
    lines = []
    for number, layer in enumerate(LAYERS, 1):
        for unit in layer:
            others = sorted(imports[unit] - {unit}, key=list(LAYER_OF).index)
            lines.append(f"{number:>2}  {unit:<{width}}  {' '.join(others)}".rstrip())
            number = ""
    head = f"{'':>2}  {'':<{width}}  imports"
    return "\n".join(["```", head, *lines, "```"])


def read_graph() -> str:
    """The graph that stands in CONTRIBUTING.md."""
    start, end = map(re.escape, MARKS)
    found = re.search(f"{start}\n(.*?)\n{end}", PAGE.read_text(encoding="utf-8"), re.S)
    return found.group(1) if found else ""


def write_graph() -> None:
    """Put the graph into CONTRIBUTING.md, between its two marks."""
    text = PAGE.read_text(encoding="utf-8")
    start, end = text.index(MARKS[0]) + len(MARKS[0]), text.index(MARKS[1])
    graph = draw_graph(SourceTree(SOURCE))
    PAGE.write_text(f"{text[:start]}\n{graph}\n{text[end:]}", encoding="utf-8")


if __name__ == "__main__":
    write_graph()
