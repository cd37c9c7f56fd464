"""Speed goals, the measured values, and whether each goal is met."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import NamedTuple

from benchmarks.peers.libraries import CENSORED
from benchmarks.peers.measure import Point, Shape


class Goal(NamedTuple):
    what: str
    figure: float | None  # None if it was not measured
    wanted: float
    at_least: bool

    @property
    def verdict(self) -> str:
        if self.figure is None:
            return "not measured"
        met = self.figure >= self.wanted if self.at_least else self.figure < self.wanted
        return "met" if met else "NOT MET"

    def __str__(self) -> str:
        figure = "-" if self.figure is None else f"{self.figure:.3g}"
        wanted = f"{'at least' if self.at_least else 'below'} {self.wanted:g}"
        return f"{self.what:<62} {figure:>8}  {wanted:<14} {self.verdict}"


def check_goals(
    points: Sequence[Point], figures: Mapping[str, float], along_n: Sequence[Shape]
) -> list[Goal]:
    """Check all goals; ``along_n`` has those of the sizes 1e3, 1e4, 1e5 and 1e6 that were run."""

    def ratios(library: str, what: str) -> list[float | None]:
        found = [ratio_to_ours(points, library, shape, what) for shape in along_n]
        return [*found, *[None] * (4 - len(found))]

    def worst_ratio(text: str, library: str, what: str, wanted: float, at_least: bool) -> Goal:
        known = [ratio for ratio in ratios(library, what) if ratio is not None]
        worst = (min if at_least else max)(known, default=None)
        return Goal(f"{text}, worst of {len(known)} n", worst, wanted, at_least)

    def largest(*names: str) -> float | None:
        known = [figures[name] for name in names if name in figures]
        return max(known) if known else None

    learn, grf = ratios("scikit-learn", "fit"), ratios("grf", "fit")
    survival = ratios("scikit-survival", "fit")
    gains = [figure for name, figure in figures.items() if name.startswith("gain")]
    get = figures.get
    return [
        Goal("fit, times as fast as scikit-learn, n 1e3", learn[0], 8, True),
        Goal("fit, times as fast as scikit-learn, n 1e4", learn[1], 15, True),
        Goal("fit, times as fast as scikit-learn, n 1e5", learn[2], 25, True),
        Goal("fit, times as fast as grf, n 1e4", grf[1], 10, True),
        Goal("fit, times as fast as grf, n 1e5", grf[2], 20, True),
        Goal("fit, times as fast as scikit-survival, n 1e3", survival[0], 200, True),
        worst_ratio("fit, censored_quantile over variance", CENSORED, "fit", 2.5, False),
        worst_ratio(
            "predict, times as fast as quantile-forest", "quantile-forest", "predict", 4, True
        ),
        worst_ratio("predict, times as fast as grf", "grf", "predict", 3, True),
        Goal("predict, cost of a query row at n 1e6 over 1e5", get("predict growth"), 1.5, False),
        Goal("memory of fit over the float32 table, 1e6 rows, 100 trees", get("memory"), 4, False),
        Goal("model over quantile-forest's pickle, n 1e5, 500 trees", get("model"), 0.2, False),
        Goal(
            "exponent of fit time in n, 1e4 to 1e6",
            largest("exponent, variance", "exponent, censored_quantile"),
            1.15,
            False,
        ),
        Goal("gain of two threads, smaller of n 1e4 and 1e5", min(gains, default=None), 1.8, True),
        Goal("seconds to fit 1e6 rows, 500 trees of 1e5", get("million rows"), 90, False),
        Goal(
            "seconds of the first fit and predict, compilation and all", get("compile"), 10, False
        ),
        Goal("seconds of import cqrf, which defers the rest", get("import"), 0.8, False),
    ]


def ratio_to_ours(points: Sequence[Point], library: str, shape: Shape, what: str) -> float | None:
    """Time of a library over the time of our forest with equal work.

    Fits are compared over the rounds of both: a slow library takes part in the first rounds only,
    and the speed of the machine changes between rounds.
    """
    at_shape = {point.library: point for point in points if point.shape == shape}
    if library not in at_shape or at_shape[library].counterpart not in at_shape:
        return None
    theirs, ours = (
        getattr(at_shape[name], what) for name in (library, at_shape[library].counterpart)
    )
    if not theirs or not ours:
        return None
    if what == "fit":
        ours = ours[: len(theirs)]
    return median(theirs) / median(ours)
