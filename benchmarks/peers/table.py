"""Results as plain text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from benchmarks.peers.goals import Goal, ratio_to_ours
from benchmarks.peers.measure import Point

HEAD = (
    f"{'library':<24} {'fit s':>8} {'spread':>17} {'x ours':>7}   "
    f"{'predict s':>9} {'spread':>15} {'x ours':>7}   {'fit MB':>7} {'model MB':>8}"
)


def write_points(points: Sequence[Point]) -> Iterable[str]:
    """Yield the lines for each size; "x ours" is the time over that of our forest."""
    for shape in sorted({point.shape for point in points}):
        at_shape = [point for point in points if point.shape == shape]
        yield f"{shape}"
        yield HEAD
        for point in sorted(at_shape, key=lambda point: not point.library.startswith("cqrf")):
            fit, predict = (
                f"{_seconds(point.median(what))} {_spread(getattr(point, what)):>{width}} "
                f"{_ratio(ratio_to_ours(points, point.library, shape, what))}"
                for what, width in (("fit", 17), ("predict", 15))
            )
            sizes = f"{_megabytes(point.memory):>7} {_megabytes(point.model):>8}"
            yield f"{point.library:<24} {fit}    {predict}   {sizes}"
        yield ""


def write_goals(goals: Iterable[Goal]) -> Iterable[str]:
    yield f"{'goal':<62} {'measured':>8}  wanted"
    yield from map(str, goals)


def _seconds(value: float | None) -> str:
    return f"{'-' if value is None else f'{value:.3f}':>8}"


def _spread(runs: Sequence[float]) -> str:
    return f"{min(runs):.3f} - {max(runs):.3f}" if len(runs) > 1 else ""


def _ratio(value: float | None) -> str:
    return f"{'-' if value is None else f'{value:.1f}':>7}"


def _megabytes(value: float | None) -> str:
    return "-" if value is None else f"{value / 1e6:.1f}"
