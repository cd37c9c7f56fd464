"""The layers of the package and every module in them, and the graph of their imports.

``make graph`` writes the graph into CONTRIBUTING.md.
"""

from __future__ import annotations

import re

from support.source_code import ROOT, SourceTree

SOURCE = ROOT / "src" / "cqrf"
PAGE = ROOT / "CONTRIBUTING.md"
MARKS = "<!-- import graph: written by `make graph` -->", "<!-- end of the import graph -->"

# From the lowest layer to the highest: packages and public modules, and the modules in each. A
# module imports modules of its own layer and of lower ones.
LAYERS: tuple[dict[str, str], ...] = (
    {
        "_runtime": "arguments compiling extras files intrinsics plain_intrinsics progress random "
        "threads",
    },
    {
        "_input": "causes columns features frames intervals risk_sets sample_weight target times "
        "units written_values",
    },
    {
        "_forest": "binning categories grower histograms layout rows sampling spec splitting "
        "training traversal weights workspace "
        "criteria criteria.at_risk criteria.cause_logrank criteria.cause_quantile "
        "criteria.censored_quantile criteria.effect criteria.interval_quantile criteria.logrank "
        "criteria.quantile criteria.variance",
    },
    {
        "_working_model": "adaptive cox design fit ridge transform",
    },
    {
        "_survival": "curve_views curves equation incidence innermost interval_curves "
        "interval_scale little_bags mixture mixture_quantiles npmle quantiles step_curve "
        "step_curves step_kernels",
    },
    {
        "metrics": "auc bootstrap causes concordance incidence incidence_calibration ipcw metric "
        "quantile registry score_times scorers skill survival",
    },
    {
        "_model": "bin_values codec file file_bytes file_causes file_checks file_intervals "
        "file_kernels file_sections file_summary file_values file_working fit fitted kinds memory "
        "queries residual settings share skill stored_columns",
    },
    {
        "_readers": "curves errors incidence intervals quantiles reader weight_rows",
    },
    {
        "_estimator": "errors incidence intervals out_of_bag output prediction scikit_survival",
        "estimator": "",
    },
    {
        "_calibration": "uniformity",
        "calibration": "",
        "_conformal": "file scores settings table",
        "conformal": "",
        "_effects": "arm_methods averages bags file fit fitted follow_up forest halves leaf_means "
        "linear magnitude methods nuisances predict projection ranking ranking_methods response "
        "smoothing targets treatment",
        "effects": "",
        "evaluation": "",
        "inspection": "dependence forests importance",
        "tuning": "",
        "datasets": "competing generators randomness tables treatment",
        "plots": "at_risk calibration direct_labels effect_labels effects features incidence "
        "intervals node_sizes style subgroups survival",
    },
    {
        "cqrf": "",  # the public names, loaded on first use
    },
    {
        "_views": "causes curves effects intervals numbers pages training_table",
    },
    {
        "cli": "app cause_columns cells conformal console effect_words effects evaluate fit "
        "fit_commands incidence_outputs info model_commands models notation options outputs "
        "predict report reproduce roles serve subgroups tables target_columns text_files warm "
        "writers",
        "report": "calibration causes content data effect_averages effects evaluation features "
        "page predictions rows words",
        "serve": "app cause_schema columns computing curve_times data_rows description "
        "effect_openapi effect_schema effect_view effects incidence known middleware model_view "
        "openapi predictions protocol responses schema values",
        "dask": "estimator fitting growing lazy_methods partitions predicting preparing reading "
        "tasks working",
        "study": "beyond catalog censoring_survival curves experiment figures intervals methods "
        "node_sizes page paper_quantiles peers references results",
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
        for line, module in sorted({(one.line, one.module) for one in imports}):
            if LAYER_OF.get(name_unit(module), len(LAYERS)) > own:
                dotted = ".".join(filter(None, (tree.package, module)))
                wrong.append(f"{tree.modules[name].file}:{line} imports {dotted}")
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
        others = {name_unit(one.module) for one in found}
        imports.setdefault(name_unit(name), set()).update(others & LAYER_OF.keys())
    width = max(map(len, imports))
    lines = []
    for number, layer in enumerate(LAYERS, 1):
        for unit in layer:
            others = sorted(imports[unit] - {unit}, key=list(LAYER_OF).index)
            lines.append(f"{number:>2}  {unit:<{width}}  {' '.join(others)}".rstrip())
            number = ""
    head = f"{'':>2}  {'':<{width}}  imports"
    return "\n".join(["```", head, *lines, "```"])


def find_unlisted() -> list[str]:
    """Modules of internal packages and of metrics, and all units, that CONTRIBUTING.md lacks."""
    text = PAGE.read_text(encoding="utf-8")
    listed = set(re.findall(r"\w+", text[text.index("src/cqrf/\n") : text.index(MARKS[0])]))
    units = [unit for unit in LAYER_OF if unit != "cqrf" and unit not in listed]
    internal = [
        (unit, inner)
        for layer in LAYERS
        for unit, inner in layer.items()
        if unit.startswith("_") or unit == "metrics"
    ]
    modules = [f"{unit}.{name}" for unit, inner in internal for name in inner.split()]
    # The recipe of a criterion covers the files of criteria.
    own = [name for name in modules if name.count(".") == 1]
    return units + [name for name in own if name.partition(".")[2] not in listed]


def find_dead_references(tree: SourceTree) -> list[str]:
    """Files and functions that CONTRIBUTING.md names and that are not there."""
    text = PAGE.read_text(encoding="utf-8")
    paths = re.findall(r"`([\w.]+/[\w./]*|\w+\.py)`", text)
    dead = [
        path
        for path in paths
        if not re.search("NAME|NN|my_task|_build|node_modules|\\.venv", path)
        and not any((folder / path).exists() for folder in (ROOT, SOURCE))
    ]
    for module, name in re.findall(r"`(_\w+(?:\.\w+)*)\.(\w+)`", text):
        known, dotted = tree.modules.get(module), f"{module}.{name}"
        if dotted not in tree.modules and (known is None or name not in known.definitions):
            dead.append(dotted)
    return dead


def count_outcome_files() -> tuple[int, int, int]:
    """Files in the recipe of a kind of outcome: new ones, others, and others of Dask."""
    text = PAGE.read_text(encoding="utf-8")
    table = text[text.index("| what | new file |") : text.index("That is ")]
    new, others = set(), set()
    for line in table.splitlines()[2:]:
        cells = line.split("|")
        new |= set(re.findall(r"`([\w/]+\.py)`", cells[2])) if len(cells) > 3 else set()
        others |= set(re.findall(r"`([\w/]+\.py)`", cells[3])) if len(cells) > 3 else set()
    dask = {path for path in others if path.startswith("dask/")}
    return len(new), len(others - dask), len(dask)


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
