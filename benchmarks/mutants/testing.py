"""Testing mutants: a process that imports libraries once, and forks for each mutant."""

from __future__ import annotations

import contextlib
import importlib.abc
import importlib.util
import json
import os
import resource
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from benchmarks.mutants.mutating import ROOT, Mutant, changed_lines, mutate

OWN_PACKAGES = ("cqrf", "tests", "oracles", "support", "conftest", "benchmarks")
# A test that computes for more seconds is not used.
SLOWEST = 2.0
# Tests are stopped if they compute so much longer than without the mutation, or wait so many times
# as long.
TIMES_LONGER, SECONDS_LONGER, WAITING = 3, 5, 60
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
    "--hypothesis-seed=0",
]


def run_worker(task: dict[str, Any]) -> None:
    """Print the result of each mutant as a line of JSON."""
    if task["compiled"]:
        measure_tests(task["tests"], 0.0)  # compiles kernels, which are then in the cache
    measured = measure_tests(task["tests"], SLOWEST)
    # The tests' conftest.py says where compiled kernels are cached: Numba reads it when imported.
    os.environ.update(measured["environment"])
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
    """Seconds of the tests that pass in time, None of others; libraries and environment."""
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
            environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST")}
            found = {"tests": times, "libraries": libraries, "environment": environment}
            json.dump(found, pipe)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        result: dict[str, Any] = json.load(pipe)
    os.waitpid(child, 0)
    return result


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


if __name__ == "__main__":
    run_worker(json.loads(sys.argv[1]))
