"""Measure all packages; write a table, the goals and a figure."""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.peers.goals import check_goals
from benchmarks.peers.libraries import PEERS, Library, find_libraries
from benchmarks.peers.measure import AXES, QUICK_AXES, Point, Shape, measure_shapes, shrink_axes
from benchmarks.peers.own import OwnFigures
from benchmarks.peers.picture import draw
from benchmarks.peers.process import ROOT
from benchmarks.peers.table import write_goals, write_points

PARTS = (*AXES, "goals")


def main() -> None:
    options = read_options()
    if options.results is None:
        results = measure(options)
    else:
        results = json.loads(options.results.read_text())
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "results.json").write_text(json.dumps(results, indent=1))
    write(results, options.out)


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.peers",
        description="Speed and memory of our forests and of other packages.",
    )
    parser.add_argument("--quick", action="store_true", help="up to n 10 000, one round (minutes)")
    parser.add_argument("--only", type=_split(PARTS), default=PARTS, help=f"of {','.join(PARTS)}")
    parser.add_argument("--peers", type=_split(PEERS), help=f"of {','.join(PEERS)}")
    parser.add_argument("--rounds", type=int, default=5, help="maximum rounds per forest")
    parser.add_argument("--budget", type=float, default=150, help="maximum seconds per fit")
    parser.add_argument("--out", type=Path, default=Path("build/bench"))
    parser.add_argument("--shrink", type=int, default=1, help="divide rows and trees, for a trial")
    parser.add_argument("--results", type=Path, help="do not measure; show this results.json")
    return parser.parse_args()


def _split(known: Any) -> Any:
    def split(text: str) -> list[str]:
        names = text.split(",")
        for name in names:
            if name not in known:
                raise argparse.ArgumentTypeError(f"{name} is not one of {', '.join(known)}")
        return names

    return split


def measure(options: argparse.Namespace) -> dict[str, Any]:
    notes: list[str] = []

    def log(line: str) -> None:
        print(line, file=sys.stderr, flush=True)
        if not line.startswith("measuring"):
            notes.append(line)

    if options.shrink > 1:
        log(f"rows and trees are divided by {options.shrink}: a trial, not a measurement")
    axes = shrink_axes(QUICK_AXES if options.quick else AXES, options.shrink)
    libraries, missing = find_libraries(options.peers)
    for line in missing:
        log(line)
    with tempfile.TemporaryDirectory(prefix="cqrf-bench-") as folder:
        points = measure_shapes(
            [shape for axis in options.only if axis in axes for shape in axes[axis]],
            libraries,
            Path(folder),
            rounds=1 if options.quick else options.rounds,
            budget=options.budget,
            log=log,
        )
        figures: dict[str, float] = {}
        if "goals" in options.only:
            own = OwnFigures(Path(folder), options.shrink, log)
            figures = own.measure(libraries, quick=options.quick)
    return {
        "versions": describe_versions(libraries),
        "axes": axes,
        "points": [asdict(point) for point in points],
        "figures": {name: float(figure) for name, figure in figures.items()},
        "notes": notes,
    }


def describe_versions(libraries: Sequence[Library]) -> dict[str, str]:
    git = ["git", "-C", str(ROOT), "describe", "--always", "--dirty"]
    revision = subprocess.run(git, capture_output=True, text=True).stdout.strip()
    return {
        "cqrf": revision or version("cqrf"),
        "cores": str(os.cpu_count()),
        "Python": platform.python_version(),
        **{name: version(name) for name in ("numpy", "numba")},
        **{library.name: library.version for library in libraries if not library.is_ours},
    }


def write(results: dict[str, Any], out: Path) -> None:
    axes = {axis: [Shape(*shape) for shape in shapes] for axis, shapes in results["axes"].items()}
    points: Sequence[Point] = [Point.from_json(point) for point in results["points"]]
    versions = ", ".join(f"{name} {value}" for name, value in results["versions"].items())
    goals = check_goals(points, results["figures"], axes["n"])
    lines = [versions, "", *write_points(points), *results["notes"], "", *write_goals(goals)]
    text = "\n".join(lines)
    print(text)
    (out / "results.txt").write_text(text + "\n")
    if points:
        draw(points, axes, out / "peers.png")
    print(f"\nwritten to {out}")


if __name__ == "__main__":
    main()
