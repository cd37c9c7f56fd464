"""Command line: draws mutants, tests them, prints the survivors and a table."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tomllib
from typing import Any

from benchmarks.mutants.mutating import ROOT, Mutant, changed_lines, is_valid, list_mutants

SETTINGS = ROOT / "benchmarks" / "mutants" / "modules.toml"


def main() -> None:
    parser = argparse.ArgumentParser(description="Mutation testing.")
    parser.add_argument("--only", nargs="+", metavar="MODULE", help="modules to mutate")
    parser.add_argument("--all", action="store_true", help="all mutants instead of a sample")
    parser.add_argument("--sample", type=int, help="mutants of each module")
    parser.add_argument("--fail-under", type=float, default=0.0, metavar="PERCENT")
    given = parser.parse_args()
    settings = tomllib.loads(SETTINGS.read_text())
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
    command = [sys.executable, "-m", "benchmarks.mutants.testing", json.dumps(task)]
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
