"""Mutation testing: small changes of the code, and whether a test notices each of them.

    python -m benchmarks.mutants                 # a sample of the mutants of every module
    python -m benchmarks.mutants --all           # all mutants: hours
    python -m benchmarks.mutants --only codec    # one module
    python -m benchmarks.mutants --fail-under 85 # exit status 1 if a module has a lower share

Cosmic Ray makes the mutants: it shifts numbers, swaps operators and comparisons, negates conditions,
leaves out loops. ``mutants.toml`` names the modules, the tests that concern each of their files, and
the mutants that no test can notice, with the reason (they do not count). A mutant is killed if one
of the tests fails, or takes much longer than without it.

The sample is the same for the same code: a mutant is drawn by a hash of its line. So a change of one
line leaves the sample of the others alone, and what has survived stays in it.

Importing scikit-learn and Numba takes longer than most tests. So a process for each group of files
imports them once and forks for each mutant; the child imports the mutated source and runs the tests.
No file of the checkout is written. Kernels run as plain Python, as compiling takes too long.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import difflib
import hashlib
import importlib.abc
import importlib.util
import json
import os
import re
import resource
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

ROOT = Path(__file__).resolve().parent.parent
SETTINGS = ROOT / "benchmarks" / "mutants.toml"
REPLACED_COMPARISONS = {
    "Lt": ("LtE", "GtE"),
    "LtE": ("Lt", "Gt"),
    "Gt": ("GtE", "LtE"),
    "GtE": ("Gt", "Lt"),
    "Eq": ("NotEq",),
    "NotEq": ("Eq",),
    "Is": ("IsNot",),
    "IsNot": ("Is",),
}
REPLACED_OPERATORS = {
    "Add": "Sub",
    "Sub": "Add",
    "Mul": "Div",
    "Div": "Mul",
    "FloorDiv": "Mul",
    "Mod": "Mul",
    "Pow": "Mul",
    "LShift": "RShift",
    "RShift": "LShift",
    "BitAnd": "BitOr",
    "BitOr": "BitAnd",
    "BitXor": "BitAnd",
}
OPERATORS = [
    "AddNot",
    "NumberReplacer",
    "ReplaceAndWithOr",
    "ReplaceOrWithAnd",
    "ReplaceTrueWithFalse",
    "ReplaceFalseWithTrue",
    "ReplaceBreakWithContinue",
    "ReplaceContinueWithBreak",
    "ReplaceUnaryOperator_Delete_Not",
    "ReplaceUnaryOperator_Delete_USub",
    "ReplaceUnaryOperator_Delete_Invert",
    "ZeroIterationForLoop",
    *(
        f"ReplaceComparisonOperator_{a}_{b}"
        for a, others in REPLACED_COMPARISONS.items()
        for b in others
    ),
    *(f"ReplaceBinaryOperator_{a}_{b}" for a, b in REPLACED_OPERATORS.items()),
]
OWN_PACKAGES = ("cqrf", "tests", "oracles", "support", "conftest", "benchmarks")
# A test that computes for more seconds is not used.
SLOWEST = 2.0
# Tests are stopped if they compute so much longer than without the mutation, or wait so many times
# as long.
TIMES_LONGER, SECONDS_LONGER, WAITING = 3, 10, 60
PYTEST_OPTIONS = [
    "-x",
    "-q",
    "-p",
    "no:cacheprovider",
    "-p",
    "no:xdist",
    "--tb=no",
    "--assert=plain",
    "-m",
    "not slow",
]


class Mutant(NamedTuple):
    """A change of one place: Cosmic Ray's operator, and which of its occurrences in the file."""

    operator: str
    occurrence: int
    line: int
    key: str


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", nargs="+", metavar="MODULE", help="modules to mutate")
    parser.add_argument("--all", action="store_true", help="all mutants instead of a sample")
    parser.add_argument("--sample", type=int, help="mutants of each module")
    parser.add_argument("--fail-under", type=float, default=0.0, metavar="PERCENT")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    given = parser.parse_args()
    settings = tomllib.loads(SETTINGS.read_text())
    if given.worker:
        run_worker(json.loads(given.worker))
        return
    size = None if given.all else given.sample or settings["sample"]
    results = {}
    for module in given.only or settings["module"]:
        results[module] = run_module(module, settings, size)
        print_survivors(module, results[module])
    shares = print_table(results)
    if min(shares) < given.fail_under:
        sys.exit(f"a module has less than {given.fail_under:g} % of its mutants killed.")


def run_module(module: str, settings: dict[str, Any], size: int | None) -> list[dict[str, Any]]:
    """Results of the mutants of a module: path, line, diff, outcome."""
    groups = settings["module"][module]
    files = [file for group in groups for file in list_files(group["files"])]
    drawn = draw_mutants(files, settings, size)
    results = []
    for group in groups:
        work = {file: drawn[file] for file in list_files(group["files"]) if drawn[file]}
        if work:
            task = {
                "module": module,
                "work": work,
                "tests": group["tests"],
                "compiled": group.get("compiled", False),
                "seconds": settings["seconds"],
            }
            results += run_group(task, settings["examples"])
    return results


def list_files(patterns: list[str]) -> list[str]:
    """Paths of the files that some patterns name, from the top of the checkout."""
    return [str(path.relative_to(ROOT)) for each in patterns for path in sorted(ROOT.glob(each))]


def draw_mutants(
    files: list[str], settings: dict[str, Any], size: int | None
) -> dict[str, list[tuple[Mutant, str | None]]]:
    """Mutants of each file, with the reason if one is equivalent; the smallest keys of all."""
    reasons = {
        (each["path"], each["line"], each["mutant"]): each["reason"]
        for each in settings.get("equivalent", [])
    }
    every = sorted(
        ((mutant, file) for file in files for mutant in list_mutants(file)),
        key=lambda each: each[0].key,
    )
    drawn: dict[str, list[tuple[Mutant, str | None]]] = {file: [] for file in files}
    n_drawn, seen = 0, set()
    for mutant, file in every:
        if size is not None and n_drawn == size:
            break
        before, after = changed_lines(file, mutant)
        if (file, mutant.line, after) in seen or not is_valid(file, mutant):
            continue  # two operators may give the same code
        seen.add((file, mutant.line, after))
        reason = reasons.get((file, before, after))
        drawn[file].append((mutant, reason))
        n_drawn += reason is None
    return drawn


def list_mutants(file: str) -> Iterator[Mutant]:
    """Mutants of a file, but for those in annotations, decorators and ``__all__``."""
    from cosmic_ray.ast import ast_nodes, get_ast
    from cosmic_ray.plugins import get_operator

    source = (ROOT / file).read_text()
    lines, left_out = source.splitlines(), spans_left_out(source)
    nodes = list(ast_nodes(get_ast(source)))
    for name in OPERATORS:
        operator = get_operator(f"core/{name}")()
        places = [place for node in nodes for place in operator.mutation_positions(node)]
        for occurrence, (start, _) in enumerate(places):
            if any(first <= start < last for first, last in left_out):
                continue
            text = f"{file}|{lines[start[0] - 1].strip()}|{start[1]}|{name}|{occurrence_here(places, occurrence)}"
            key = hashlib.sha256(text.encode()).hexdigest()
            yield Mutant(name, occurrence, start[0], key)


def is_valid(file: str, mutant: Mutant) -> bool:
    """Whether it is valid code that may differ.

    ``shape[-1]`` is ``shape[0]`` for an array of one dimension, and ``shape[1]`` is tried for any;
    the star among parameters is no operator.
    """
    before, after = changed_lines(file, mutant)
    if re.fullmatch(r"[*/],?", before) or before.replace("shape[0]", "shape[ -1]") == after:
        return False
    try:
        ast.parse(mutate(file, mutant))
    except SyntaxError:
        return False
    return True


def occurrence_here(places: list[Any], occurrence: int) -> int:
    """Which of the mutants of the operator at the same place this is."""
    return sum(place == places[occurrence] for place in places[:occurrence])


def spans_left_out(source: str) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """First and last positions of annotations and decorators."""
    found: list[ast.expr | None] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found += node.decorator_list
        if isinstance(node, ast.FunctionDef):
            found.append(node.returns)
        if isinstance(node, ast.arg | ast.AnnAssign):
            found.append(node.annotation)
    return [
        ((node.lineno, node.col_offset), (node.end_lineno or 0, node.end_col_offset or 0))
        for node in found
        if node is not None
    ]


def mutate(file: str, mutant: Mutant) -> str:
    """The source of a file with a mutation."""
    from cosmic_ray.mutating import mutate_code
    from cosmic_ray.plugins import get_operator

    source = (ROOT / file).read_text()
    mutated = mutate_code(source, get_operator(f"core/{mutant.operator}")(), mutant.occurrence)
    assert mutated is not None
    return mutated


def changed_lines(file: str, mutant: Mutant) -> tuple[str, str]:
    """The lines that a mutation changes, before and after it, without indentation."""
    before, after = (ROOT / file).read_text().splitlines(), mutate(file, mutant).splitlines()
    old, new = [], []
    for tag, a, b, c, d in difflib.SequenceMatcher(None, before, after, False).get_opcodes():
        if tag != "equal":
            old += before[a:b]
            new += after[c:d]
    return "\n".join(each.strip() for each in old), "\n".join(each.strip() for each in new)


def run_group(task: dict[str, Any], examples: int) -> list[dict[str, Any]]:
    """Results of a process that runs the tests of a group of files on each of their mutants."""
    environment = os.environ | {
        "NUMBA_DISABLE_JIT": "0" if task["compiled"] else "1",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "CQRF_EXAMPLES": str(examples),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT), *sys.path[1:]]),
    }
    command = [sys.executable, "-m", "benchmarks.mutants", "--worker", json.dumps(task)]
    results = []
    with subprocess.Popen(
        command, env=environment, cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            results.append(json.loads(line))
            print(describe(results[-1]), file=sys.stderr, flush=True)
    if process.returncode:
        sys.exit(process.returncode)
    return results


def run_worker(task: dict[str, Any]) -> None:
    """Print the result of each mutant as a line of JSON."""
    if task["compiled"]:
        measure_tests(task["tests"], 0.0)  # compiles kernels, which are then in the cache
    measured = measure_tests(task["tests"], SLOWEST)
    for name in measured["libraries"]:
        with contextlib.suppress(Exception):
            importlib.import_module(name)
    chosen, seconds = choose_tests(measured["tests"], task["seconds"])
    print(
        f"{task['module']}: {len(chosen)} of {len(measured['tests'])} tests in {seconds:.1f} s",
        file=sys.stderr,
        flush=True,
    )
    limit = int(TIMES_LONGER * seconds + SECONDS_LONGER)
    file = next(iter(task["work"]))
    if run_tests(file, (ROOT / file).read_text(), task["tests"], chosen, limit) != "survived":
        sys.exit(f"{task['module']}: tests of {file} fail without a mutation.")
    for file, drawn in task["work"].items():
        for fields, reason in drawn:
            mutant = Mutant(*fields)
            before, after = changed_lines(file, mutant)
            result = {"path": file, "number": mutant.line, "line": before, "mutant": after}
            result["outcome"] = "equivalent"
            if reason is None:
                mutated = mutate(file, mutant)
                result["outcome"] = run_tests(file, mutated, task["tests"], chosen, limit)
            print(json.dumps(result), flush=True)


class Measured:
    """Plugin of pytest: which tests pass within some seconds, and how long they compute."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.tests = seconds, {}
        self.passed: set[str] = set()

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: Any) -> Iterator[None]:
        signal.signal(signal.SIGPROF, give_up)
        signal.setitimer(signal.ITIMER_PROF, self.seconds)
        start = time.process_time()
        yield
        signal.setitimer(signal.ITIMER_PROF, 0)
        self.tests[item.nodeid] = time.process_time() - start

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.when == "call" and report.passed:
            self.passed.add(report.nodeid)


class Chosen:
    """Plugin of pytest: some tests only, in a given order."""

    def __init__(self, names: list[str]) -> None:
        self.names = names

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        by_name = {item.nodeid: item for item in items}
        items[:] = [by_name[name] for name in self.names if name in by_name]


def give_up(*_: Any) -> None:
    raise TimeoutError("this test takes too long")


def measure_tests(tests: list[str], seconds: float) -> dict[str, Any]:
    """Seconds of the tests that pass within some seconds, None of others; libraries they load."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        measured = Measured(seconds)
        pytest.main([each for each in PYTEST_OPTIONS if each != "-x"] + tests, [measured])
        libraries = [
            name
            for name in sys.modules
            if name.split(".")[0] not in OWN_PACKAGES and not name.startswith(("test", "_"))
        ]
        times = {
            name: each if name in measured.passed else None for name, each in measured.tests.items()
        }
        with os.fdopen(writer, "w") as pipe:
            json.dump({"tests": times, "libraries": libraries}, pipe)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        found: dict[str, Any] = json.load(pipe)
    os.waitpid(child, 0)
    return found


def choose_tests(measured: dict[str, float | None], budget: float) -> tuple[list[str], float]:
    """The quickest tests, as many as the budget of seconds has place for, and their time."""
    chosen, total = [], 0.0
    for seconds, name in sorted(
        (each, name) for name, each in measured.items() if each is not None
    ):
        if total + seconds > budget:
            break
        chosen.append(name)
        total += seconds
    return chosen, total


def run_tests(file: str, source: str, tests: list[str], chosen: list[str], seconds: int) -> str:
    """Run the chosen tests in a child with a file's source replaced: killed, stopped, survived."""
    child = os.fork()
    if child == 0:
        silence = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silence, 1)
        os.dup2(silence, 2)
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        signal.alarm(WAITING * seconds)
        sys.meta_path.insert(0, Replaced(file, source))
        os._exit(int(pytest.main([*PYTEST_OPTIONS, *tests], [Chosen(chosen)])))
    _, status = os.waitpid(child, 0)
    return "survived" if status == 0 else "stopped" if os.WIFSIGNALED(status) else "killed"


class Replaced(importlib.abc.MetaPathFinder, importlib.abc.InspectLoader):
    """Imports one module from a source that is not in its file."""

    def __init__(self, file: str, source: str) -> None:
        self.path, self.source = ROOT / file, source
        parts = Path(file).relative_to("src").with_suffix("").parts
        self.is_folder = parts[-1] == "__init__"
        self.name = ".".join(parts[:-1] if self.is_folder else parts)

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        if name != self.name:
            return None
        folders = [str(self.path.parent)] if self.is_folder else None
        return importlib.util.spec_from_file_location(
            name, self.path, loader=self, submodule_search_locations=folders
        )

    def get_source(self, name: str) -> str:
        return self.source

    def get_filename(self, name: str) -> str:
        return str(self.path)

    def is_package(self, name: str) -> bool:
        return self.is_folder

    def get_code(self, name: str) -> Any:
        return compile(self.source, str(self.path), "exec")


def describe(result: dict[str, Any]) -> str:
    place = f"{result['path']}:{result['number']}"
    return f"{result['outcome']:10s} {place}  {result['line']}  ->  {result['mutant']}"


def print_survivors(module: str, results: list[dict[str, Any]]) -> None:
    """Print what each surviving mutant changes."""
    for each in results:
        if each["outcome"] == "survived":
            old = each["line"].replace("\n", "\n- ")
            new = each["mutant"].replace("\n", "\n+ ")
            print(f"{module}: {each['path']}:{each['number']}\n- {old}\n+ {new}\n")


def print_table(results: dict[str, list[dict[str, Any]]]) -> list[float]:
    """Print a table of the modules; return the share of mutants killed in each, in percent."""
    print("| module | mutants | killed | survived | equivalent | share killed |")
    print("|---|--:|--:|--:|--:|--:|")
    shares = []
    for module, each in results.items():
        outcomes = [result["outcome"] for result in each]
        n_equivalent, n_survived = outcomes.count("equivalent"), outcomes.count("survived")
        n = len(outcomes) - n_equivalent
        shares.append(100.0 * (n - n_survived) / max(1, n))
        print(
            f"| {module} | {n} | {n - n_survived} | {n_survived} | {n_equivalent} "
            f"| {shares[-1]:.0f} % |"
        )
    return shares


if __name__ == "__main__":
    main()
