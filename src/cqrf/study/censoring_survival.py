"""Conditional survival of the censoring time: both estimates of the paper and the truth."""

from __future__ import annotations

from typing import Any

import numpy as np

from cqrf._input.target import Target
from cqrf.datasets import make_aft
from cqrf.metrics.ipcw import estimate_censoring_survival
from cqrf.study.experiment import Case, Claim, Experiment
from cqrf.study.figures import STYLES, TRUTH, add_legend, panels
from cqrf.study.methods import DEFAULT, METHODS, Study, build_forest
from cqrf.study.node_sizes import format_values
from cqrf.study.results import Results, Row

RATE = 0.08
POINTS = (0.4, 0.8, 1.2, 1.6)
TIMES = np.linspace(0.0, 12.0, 61)
NEIGHBOR_SHARE = 0.1
NODE_SIZE = 20
OURS = "Beran, censored-quantile"
SEEN = 0.9  # up to this quantile of T there are enough censored rows to estimate G


def list_cases(study: Study) -> list[Case]:
    """Every repeat at every n."""
    return [
        {"repeat": repeat, "n": n}
        for n in study.pick((500, 1500, 5000), (300, 600))
        for repeat in range(study.pick(5, 1))
    ]


def run_case(study: Study, case: Case) -> list[Row]:
    """Estimates at four values of x1, with all other covariates at the middle of their range."""
    data = make_aft(case["n"], censoring_rate=RATE, random_state=case["repeat"])
    settings = {
        "node_size": NODE_SIZE,
        "n_estimators": study.pick(1000, 50),
        "seed": case["repeat"],
        "n_jobs": study.n_jobs,
    }
    forest = build_forest("quantile", data.X.shape[1], **settings).fit(data.X, data.y)
    queries = np.ones((len(POINTS), data.X.shape[1]))
    queries[:, 0] = POINTS
    beran = np.asarray(forest.predict_censoring(queries, TIMES, beyond="extend"))
    weights = forest.weights(queries).toarray()
    last_seen = data.quantile(queries, SEEN)
    own = build_forest(METHODS[DEFAULT].criterion, data.X.shape[1], **settings)
    beran_of_own = np.asarray(
        own.fit(data.X, data.y).predict_censoring(queries, TIMES, beyond="extend")
    )
    n_nearest = round(NEIGHBOR_SHARE * case["n"])
    rows = []
    for i, x in enumerate(POINTS):
        nearest = np.argsort(-weights[i], kind="stable")[:n_nearest]
        near = Target(data.y["time"][nearest], data.y["event"][nearest])
        estimates = {
            "Beran": beran[i],
            "neighbours": estimate_censoring_survival(near)(TIMES, beyond="extend"),
            OURS: beran_of_own[i],
        }
        for method, survival in estimates.items():
            for t, value in zip(TIMES, survival):
                rows.append(
                    {
                        "method": method,
                        "n": case["n"],
                        "x": x,
                        "repeat": case["repeat"],
                        "time": float(t),
                        "survival": float(value),
                        "truth": float(np.exp(-RATE * t)),
                        "seen": int(t <= last_seen[i]),
                    }
                )
    return rows


def check_claims(results: Results) -> list[Claim]:
    """Distance of both estimates to each other and to the truth."""
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
            "The two estimates converge to each other as n grows.",
            "mean distance: " + ", ".join(f"{d:.3f} at n = {n}" for n, d in apart.items()),
            apart[many] < apart[few],
        ),
        Claim(
            "For large n both are close to the true curve.",
            f"mean distance to the truth, up to the .9 quantile of T: "
            f"{format_values(off[few])} at n = {few}; {format_values(off[many])} at n = {many}",
            worst < 0.03 and worst < max(off[few].values()),
        ),
        Claim(
            "At small x1 the estimates degenerate in the tail, because no censored times are "
            "observed there.",
            f"mean distance to the truth at n = {many}, x1 = {POINTS[0]}: {before:.3f} up to the "
            f".9 quantile of T, {tail:.3f} beyond it",
            tail > 3 * before,
        ),
    ]


def distance(results: Results) -> float:
    """Mean absolute difference between estimate and truth."""
    return float(np.abs(results.column("survival") - results.column("truth")).mean())


def draw(results: Results) -> Any:
    """A row of panels for each n, a column for each x1; the first repeat."""
    shown = results.where(repeat=0)
    sizes = shown.distinct("n")
    figure, grid = panels(len(sizes), len(POINTS), width=2.7, height=2.2)
    for line, (n, at) in zip(grid, shown.groups("n")):
        for axes, (x, cell) in zip(line, at.groups("x")):
            for method, curve in cell.groups("method"):
                axes.step(
                    curve.column("time"), curve.column("survival"), where="post", label=method,
                    **STYLES[method],
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
        list_cases=list_cases,
        run_case=run_case,
        draw=draw,
        check_claims=check_claims,
    ),
)
