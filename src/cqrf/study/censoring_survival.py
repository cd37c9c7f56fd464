"""Conditional survival of the censoring time: both estimates of the paper beside the truth."""

from __future__ import annotations

from typing import Any

import numpy as np

from cqrf._input.target import Target
from cqrf.datasets import make_aft
from cqrf.metrics.ipcw import estimate_censoring_survival
from cqrf.study.experiment import Claim, Experiment, Unit
from cqrf.study.figures import LOOKS, TRUTH, add_legend, panels
from cqrf.study.methods import DEFAULT, METHODS, Study, build_forest
from cqrf.study.node_sizes import say
from cqrf.study.results import Results, Row

RATE = 0.08
POINTS = (0.4, 0.8, 1.2, 1.6)
TIMES = np.linspace(0.0, 12.0, 61)
NEIGHBOR_SHARE = 0.1
NODE_SIZE = 20
OURS = "Beran, censored-quantile"
SEEN = 0.9  # level of T up to which enough is seen of C to judge its estimates


def list_units(study: Study) -> list[Unit]:
    return [
        {"repeat": repeat, "n": n}
        for n in study.pick((500, 1500, 5000), (300, 600))
        for repeat in range(study.pick(5, 1))
    ]


def run_unit(study: Study, unit: Unit) -> list[Row]:
    """Estimates at four places along x1, all other covariates at the middle of their range."""
    data = make_aft(unit["n"], censoring_rate=RATE, random_state=unit["repeat"])
    settings = {
        "node_size": NODE_SIZE,
        "n_estimators": study.pick(1000, 50),
        "seed": unit["repeat"],
        "n_jobs": study.n_jobs,
    }
    forest = build_forest("quantile", data.X.shape[1], **settings).fit(data.X, data.y)
    queries = np.ones((len(POINTS), data.X.shape[1]))
    queries[:, 0] = POINTS
    beran = np.asarray(forest.predict_censoring(queries, TIMES))
    weights = forest.weights(queries).toarray()
    last_seen = data.quantile(queries, SEEN)
    own = build_forest(METHODS[DEFAULT].criterion, data.X.shape[1], **settings)
    beran_of_own = np.asarray(own.fit(data.X, data.y).predict_censoring(queries, TIMES))
    n_nearest = round(NEIGHBOR_SHARE * unit["n"])
    rows = []
    for i, x in enumerate(POINTS):
        nearest = np.argsort(-weights[i], kind="stable")[:n_nearest]
        near = Target(data.y["time"][nearest], data.y["event"][nearest])
        estimates = {
            "Beran": beran[i],
            "neighbours": estimate_censoring_survival(near)(TIMES),
            OURS: beran_of_own[i],
        }
        for method, survival in estimates.items():
            for t, value in zip(TIMES, survival):
                rows.append(
                    {
                        "method": method,
                        "n": unit["n"],
                        "x": x,
                        "repeat": unit["repeat"],
                        "time": float(t),
                        "survival": float(value),
                        "truth": float(np.exp(-RATE * t)),
                        "seen": int(t <= last_seen[i]),
                    }
                )
    return rows


def judge(results: Results) -> list[Claim]:
    apart, off = {}, {}
    for n, at in results.where(seen=1).groups("n"):
        both = [at.where(method=m).column("survival") for m in ("Beran", "neighbours")]
        apart[n] = float(np.abs(both[0] - both[1]).mean())
        off[n] = {m: distance(at.where(method=m)) for m in ("Beran", "neighbours", OURS)}
    few, many = min(apart), max(apart)
    first = results.where(n=many, x=POINTS[0], method=("Beran", "neighbours"))
    tail, before = distance(first.where(seen=0)), distance(first.where(seen=1))
    worst = max(off[many].values())
    return [
        Claim(
            "As n grows the two estimates come closer.",
            "mean distance: " + ", ".join(f"{d:.3f} at n = {n}" for n, d in apart.items()),
            apart[many] < apart[few],
        ),
        Claim(
            "Both are then good approximations of the true curve.",
            f"mean distance to the truth, up to the .9 quantile of T: "
            f"{say(off[few])} at n = {few}; {say(off[many])} at n = {many}",
            worst < 0.03 and worst < max(off[few].values()),
        ),
        Claim(
            "Where x1 is small the estimates degenerate in the tail, as no censored times are "
            "seen there.",
            f"mean distance to the truth at n = {many}, x1 = {POINTS[0]}: {before:.3f} up to the "
            f".9 quantile of T, {tail:.3f} beyond it",
            tail > 3 * before,
        ),
    ]


def distance(results: Results) -> float:
    return float(np.abs(results.column("survival") - results.column("truth")).mean())


def draw(results: Results) -> Any:
    """A row for each n, a column for each place, one repeat."""
    shown = results.where(repeat=0)
    sizes = shown.distinct("n")
    figure, grid = panels(len(sizes), len(POINTS), width=2.7, height=2.2)
    for line, (n, at) in zip(grid, shown.groups("n")):
        for axes, (x, cell) in zip(line, at.groups("x")):
            for method, curve in cell.groups("method"):
                axes.step(
                    curve.column("time"), curve.column("survival"), where="post", label=method,
                    **LOOKS[method],
                )  # fmt: skip
            axes.plot(curve.column("time"), curve.column("truth"), label="truth", **TRUTH)
            seen = curve.where(seen=1).column("time").max()
            axes.axvline(seen, color="0.7", lw=0.8, ls=":")
            axes.set_title(f"x1 = {x:g}, n = {n}", fontsize=9)
            axes.set(ylim=(0, 1.03), xlabel="time")
        line[0].set_ylabel("P(C > t | x)")
    add_legend(figure, grid[0, 0])
    return figure


EXPERIMENTS = (
    Experiment(
        name="censoring-survival",
        list_units=list_units,
        run_unit=run_unit,
        draw=draw,
        judge=judge,
    ),
)
