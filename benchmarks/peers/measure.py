"""Sizes along each axis, and the rounds: who fits when, and who is left out because of time."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from benchmarks.peers.libraries import Library
from benchmarks.peers.process import UnableError, Worker

PATIENCE = 2.0  # a fit that takes so many times the budget is ended
MORE_ROUNDS = 40.0  # seconds that further rounds of one forest at one size may take
LARGEST_SAVED = 100_000
PREDICTIONS = 5  # after each fit, beside the first
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
    """The same axes with fewer rows and trees, to try the benchmark itself."""

    def shrink(shape: Shape) -> Shape:
        return Shape(max(100, shape.n // divisor), shape.p, max(2, shape.trees // divisor))

    return {axis: [shrink(shape) for shape in shapes] for axis, shapes in axes.items()}


@dataclass
class Point:
    """What one library took at one size."""

    library: str
    beside: str
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
    tell: Callable[[str], None],
) -> list[Point]:
    """Measure all libraries at each size; from small to large, so that time can be foreseen."""
    points: list[Point] = []
    for shape in sorted(set(shapes), key=lambda shape: (shape.n, shape.p * shape.trees)):
        tell(f"measuring {shape} ...")
        able = []
        for library in libraries:
            seconds = foresee(library, shape, points)
            if seconds == math.inf:
                tell(f"skipped: {library.name} at {shape}, as it failed before")
            elif seconds > budget:
                tell(f"skipped: {library.name} at {shape}, a fit would take {seconds:.0f} s")
            else:
                able.append(library)
        points += measure_shape(shape, able, tables, rounds, budget, tell)
    return [point for point in points if point.fit[0] < math.inf]


def foresee(library: Library, shape: Shape, points: Sequence[Point]) -> float:
    """Seconds of a fit, from the measured size with the most similar work; 0 if there is none."""

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
    tell: Callable[[str], None],
) -> list[Point]:
    """Measure the libraries at one size; those that failed have a fit that took forever."""
    points = [Point(library.name, library.beside, shape) for library in libraries]
    with ExitStack() as stack:
        workers: dict[int, Worker] = {}
        for number in range(rounds):
            for index, (library, point) in enumerate(zip(libraries, points)):
                if point.fit == [math.inf]:
                    continue
                try:
                    if number == 0:
                        workers[index] = stack.enter_context(Worker(library.command, tables))
                        begin(workers[index], point, PATIENCE * budget)
                    elif number * point.fit[0] <= MORE_ROUNDS:
                        point.fit.append(workers[index].fit(shape.trees))
                    # A slow fit is not repeated, but its predictions are: the machine's speed
                    # changes from round to round.
                    if library.predicts_quantiles:
                        point.predict += predict(workers[index])
                except UnableError as problem:
                    tell(f"skipped: {library.name} at {shape}, {problem}")
                    point.fit = [math.inf]
        for index, point in enumerate(points):
            if shape.n <= LARGEST_SAVED and point.fit[0] < math.inf:
                point.model = workers[index].measure_model()
    return points


def predict(worker: Worker) -> list[float]:
    """Seconds of predictions. The first after a fit warms up: it counts only where it is slow."""
    first = worker.predict()
    if first > SLOW_PREDICTION:
        return [first]
    return [worker.predict() for _ in range(PREDICTIONS)]


def begin(worker: Worker, point: Point, limit: float) -> None:
    worker.warm_up()
    worker.load(point.shape.n, point.shape.p)
    seconds, point.memory = worker.fit_with_memory(point.shape.trees, limit)
    point.fit.append(seconds)
