"""Sizes along each axis, rounds, and which libraries are skipped because they are slow."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from benchmarks.peers.libraries import Library
from benchmarks.peers.process import Worker, WorkerError

TIMEOUT_FACTOR = 2.0  # a fit is stopped after this many times the budget
REPEAT_SECONDS = 40.0  # limit for further rounds of one forest at one size
LARGEST_SAVED = 100_000
PREDICTIONS = 5  # per round, after a first one that warms up
SLOW_PREDICTION = 2.0  # seconds; a slower one is not repeated


class Shape(NamedTuple):
    n: int
    p: int
    trees: int

    def __str__(self) -> str:
        return f"n {self.n}, p {self.p}, {self.trees} trees"


AXES = {
    "n": [
        Shape(1_000, 20, 500),
        Shape(10_000, 20, 200),
        Shape(100_000, 20, 50),
        Shape(1_000_000, 20, 10),
    ],
    "p": [Shape(10_000, p, 20) for p in (10, 100, 1_000)],
    "trees": [Shape(10_000, 20, trees) for trees in (50, 200, 800)],
}
QUICK_AXES = {
    "n": AXES["n"][:2],
    "p": AXES["p"][:2],
    "trees": AXES["trees"][:2],
}


def shrink_axes(axes: dict[str, list[Shape]], divisor: int) -> dict[str, list[Shape]]:
    """The same axes with fewer rows and trees, to test the benchmark itself."""

    def shrink(shape: Shape) -> Shape:
        return Shape(max(100, shape.n // divisor), shape.p, max(2, shape.trees // divisor))

    return {axis: [shrink(shape) for shape in shapes] for axis, shapes in axes.items()}


@dataclass
class Point:
    """Times, memory and model size of one library at one size."""

    library: str
    counterpart: str
    shape: Shape
    fit: list[float] = field(default_factory=list)
    predict: list[float] = field(default_factory=list)
    memory: int | None = None
    model: int | None = None

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Point:
        return cls(**{**values, "shape": Shape(*values["shape"])})

    def median(self, what: str) -> float | None:
        """Median seconds of "fit" or "predict", or the bytes of "memory" or "model"."""
        value = getattr(self, what)
        if isinstance(value, list):
            return median(value) if value else None
        return value


def measure_shapes(
    shapes: Iterable[Shape],
    libraries: Sequence[Library],
    tables: Path,
    *,
    rounds: int,
    budget: float,
    log: Callable[[str], None],
) -> list[Point]:
    """Measure all libraries at each size, from small to large so that times can be estimated."""
    points: list[Point] = []
    for shape in sorted(set(shapes), key=lambda shape: (shape.n, shape.p * shape.trees)):
        log(f"measuring {shape} ...")
        able = []
        for library in libraries:
            seconds = estimate_seconds(library, shape, points)
            if seconds == math.inf:
                log(f"skipped: {library.name} at {shape}, as it failed before")
            elif seconds > budget:
                log(f"skipped: {library.name} at {shape}, a fit would take {seconds:.0f} s")
            else:
                able.append(library)
        points += measure_shape(shape, able, tables, rounds, budget, log)
    return [point for point in points if point.fit[0] < math.inf]


def estimate_seconds(library: Library, shape: Shape, points: Sequence[Point]) -> float:
    """Seconds of a fit, extrapolated from the size with the most similar work; 0 without one."""

    def work(shape: Shape) -> float:
        return shape.trees * shape.p * shape.n**library.power * math.log(shape.n)

    known = [point for point in points if point.library == library.name]
    if not known:
        return 0.0
    nearest = min(known, key=lambda point: abs(math.log(work(point.shape) / work(shape))))
    return median(nearest.fit) * work(shape) / work(nearest.shape)


def measure_shape(
    shape: Shape,
    libraries: Sequence[Library],
    tables: Path,
    rounds: int,
    budget: float,
    log: Callable[[str], None],
) -> list[Point]:
    """Measure the libraries at one size; a library that failed has an infinite fit time."""
    points = [Point(library.name, library.counterpart, shape) for library in libraries]
    with ExitStack() as stack:
        workers: dict[int, Worker] = {}
        for number in range(rounds):
            for index, (library, point) in enumerate(zip(libraries, points)):
                if point.fit == [math.inf]:
                    continue
                try:
                    if number == 0:
                        workers[index] = stack.enter_context(Worker(library.command, tables))
                        start(workers[index], point, TIMEOUT_FACTOR * budget)
                    elif number * point.fit[0] <= REPEAT_SECONDS:
                        point.fit.append(workers[index].fit(shape.trees))
                    # A slow fit is not repeated, but its predictions are: the speed of the
                    # machine changes between rounds.
                    if library.predicts_quantiles:
                        point.predict += predict(workers[index])
                except WorkerError as problem:
                    log(f"skipped: {library.name} at {shape}, {problem}")
                    point.fit = [math.inf]
        for index, point in enumerate(points):
            if shape.n <= LARGEST_SAVED and point.fit[0] < math.inf:
                point.model = workers[index].measure_model()
    return points


def predict(worker: Worker) -> list[float]:
    """Seconds of predictions; the first one warms up and is counted only if it is slow."""
    first = worker.predict()
    if first > SLOW_PREDICTION:
        return [first]
    return [worker.predict() for _ in range(PREDICTIONS)]


def start(worker: Worker, point: Point, limit: float) -> None:
    worker.warm_up()
    worker.load(point.shape.n, point.shape.p)
    seconds, point.memory = worker.fit_with_memory(point.shape.trees, limit)
    point.fit.append(seconds)
