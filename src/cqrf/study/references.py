"""References: our forests beside the R packages the paper used, and beside Python's.

The R figures and the data they were computed on come with the package (``paper_r``; the README
there says how they were made).
"""

from __future__ import annotations

import csv
import gzip
from collections import defaultdict
from collections.abc import Callable
from functools import cache, partial
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cqrf._input.target import censored
from cqrf.datasets import make_aft
from cqrf.datasets.generators import aft_quantile, heteroscedastic_quantile
from cqrf.study.experiment import Claim, Experiment, Unit
from cqrf.study.figures import draw_lines
from cqrf.study.methods import CENSORED, DEFAULT, ORACLES, Sample, Study, predict_all
from cqrf.study.node_sizes import ERROR, LOSS, measure, say
from cqrf.study.results import Results, Row

FOLDER = files("cqrf.study").joinpath("paper_r")
LEVELS = (0.1, 0.3, 0.5, 0.7, 0.9)
QUANTILE_OF: dict[str, Callable[..., NDArray[np.float64]]] = {
    "aft": aft_quantile,
    "hetero": heteroscedastic_quantile,
}
NODE_SIZES = {"aft": (10, 20, 40, 80), "hetero": (20, 80, 150)}
R_REPEATS = (1, 2, 3)
# How far our mean loss may lie above R's.
TOLERANCE = {"rsf": 1.03}
DEFAULT_TOLERANCE = 1.01
ERROR_BOUND = {"aft": 0.85, "hetero": 1.02}
CLEARLY = 0.98  # an error below this share of another is clearly below it


class Split(NamedTuple):
    """One of the data sets that R was given."""

    train: Sample
    X_test: NDArray[np.float64]
    latent_test: NDArray[np.float64]


@cache
def read_split(data: str, repeat: int) -> Split:
    """Training and test rows of one repeat."""
    parts = []
    for part in ("train", "test"):
        packed = FOLDER.joinpath(f"{data}_{repeat}_{part}.csv.gz").read_bytes()
        parts.append(np.loadtxt(gzip.decompress(packed).decode().splitlines(), delimiter=","))
    train, test = parts
    y = censored(train[:, -3], train[:, -2] == 1)
    return Split(Sample(train[:, :-3], y, train[:, -1]), test[:, :-1], test[:, -1])


@cache
def read_r_figures() -> dict[tuple[str, str, int, int, float], tuple[float, float]]:
    """R's loss and error by data, method, node size, repeat and level; methods named as ours."""
    lines = FOLDER.joinpath("results.csv").read_text(encoding="utf-8").splitlines()
    return {
        (
            row["data"],
            row["method"].replace("_", "-"),
            int(row["node_size"]),
            int(row["repeat"]),
            float(row["tau"]),
        ): (float(row["quantile_loss"]), float(row["error_to_true_quantile"]))
        for row in csv.DictReader(lines)
    }


def mean_r_figures(data: str) -> dict[str, NDArray[np.float64]]:
    """R's loss and error of each method, mean over everything else."""
    found = defaultdict(list)
    for (of, method, *_), pair in read_r_figures().items():
        if of == data:
            found[method].append(pair)
    return {method: np.mean(pairs, axis=0) for method, pairs in found.items()}


def list_r_units(study: Study) -> list[Unit]:
    return [
        {"data": data, "repeat": repeat, "node_size": node_size}
        for data, sizes in NODE_SIZES.items()
        for repeat in study.pick(R_REPEATS, R_REPEATS[:1])
        for node_size in study.pick(sizes, sizes[1:2])
    ]


def run_r(study: Study, unit: Unit) -> list[Row]:
    data, node_size, repeat = unit["data"], unit["node_size"], unit["repeat"]
    split = read_split(data, repeat)
    predicted = predict_all(
        (*CENSORED, *ORACLES),
        split.train,
        split.X_test,
        LEVELS,
        node_size=node_size,
        n_estimators=study.pick(1000, 100),
        seed=repeat,
        study=study,
    )
    truth = QUANTILE_OF[data](split.X_test, LEVELS)
    nothing = float("nan"), float("nan")
    rows = measure(unit, predicted, LEVELS, split.latent_test, truth)
    for row in rows:
        key = data, row["method"], node_size, repeat, row["tau"]
        row["r_loss"], row["r_error"] = read_r_figures().get(key, nothing)
    return [{"data": data, **row} for row in rows]


def judge_r(results: Results) -> list[Claim]:
    claims = []
    for data, of in results.groups("data"):
        ratios = {
            m: of.where(method=m).mean("loss") / of.where(method=m).mean("r_loss")
            for m in CENSORED
            if m != DEFAULT
        }
        claims.append(
            Claim(
                f"On R's {data} data each method's mean loss is within 1 % of R's or better (rsf: "
                "3 %).",
                f"loss over R's: {say(ratios)}",
                all(v <= TOLERANCE.get(m, DEFAULT_TOLERANCE) for m, v in ratios.items()),
            )
        )
        default = of.where(method=DEFAULT).mean("error")
        theirs = of.where(method="crf-generalized").mean("r_error")
        claims.append(
            Claim(
                f"There the default's error is at most {ERROR_BOUND[data]:g} of R's "
                "crf-generalized.",
                f"{default:.4f} over {theirs:.4f}: {default / theirs:.3f}",
                default <= ERROR_BOUND[data] * theirs,
            )
        )
        rivals = {m: of.where(method=m).mean("error") for m in CENSORED if m != DEFAULT}
        rivals |= {
            f"R's {m}": float(pair[1])
            for m, pair in mean_r_figures(data).items()
            if m not in ORACLES
        }
        best = min(rivals, key=lambda name: rivals[name])
        claims.append(
            Claim(
                "There no method but the oracles is clearly more accurate than the default.",
                f"default {default:.4f}; next best {best} {rivals[best]:.4f}",
                rivals[best] >= CLEARLY * default,
            )
        )
    return claims


def tabulate_r(results: Results) -> str:
    lines = [
        "Means over levels, node sizes and repeats; R's figures from grf 2.6.1 and "
        "randomForestSRC 3.6.2 on the same rows.",
        "",
        "| data | method | loss, R | loss, ours | ratio | error, R | error, ours | ratio |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for data, of in results.groups("data"):
        for method, own in of.groups("method"):
            loss, error = own.mean("loss"), own.mean("error")
            r_loss, r_error = own.mean("r_loss"), own.mean("r_error")
            if np.isnan(r_loss):
                cells = f"| | {loss:.4f} | | | {error:.4f} | |"
            else:
                cells = f"| {r_loss:.4f} | {loss:.4f} | {loss / r_loss:.3f} "
                cells += f"| {r_error:.4f} | {error:.4f} | {error / r_error:.3f} |"
            lines.append(f"| {data} | {method} {cells}")
        extra = mean_r_figures(data).get("grf-survival")
        if extra is not None:
            lines.append(
                f"| {data} | grf survival_forest | {extra[0]:.4f} | | | {extra[1]:.4f} | | |"
            )
    return "\n".join(lines)


def list_peer_units(study: Study) -> list[Unit]:
    return [
        {"repeat": repeat, "node_size": node_size}
        for node_size in study.pick((20, 80), (20,))
        for repeat in range(study.pick(2, 1))
    ]


def run_peers(study: Study, unit: Unit) -> list[Row]:
    """Our baselines and the peers' on the same AFT data."""
    train = make_aft(study.pick(1000, 200), random_state=unit["repeat"])
    test = make_aft(500, random_state=1000 + unit["repeat"])
    truth = test.quantile(test.X, LEVELS)
    rows = []
    for with_peers in (False, True):
        predicted = predict_all(
            ("qrf", "rsf", "qrf-oracle"),
            Sample.of(train),
            test.X,
            LEVELS,
            node_size=unit["node_size"],
            n_estimators=study.pick(1000, 50),
            seed=unit["repeat"],
            study=Study(study.quick, with_peers, study.n_jobs),
        )
        for row in measure(unit, predicted, LEVELS, test.latent, truth):
            rows.append({"source": PEER_OF[row["method"]] if with_peers else "cqrf", **row})
    return rows


PEER_OF = {"qrf": "quantile-forest", "qrf-oracle": "quantile-forest", "rsf": "scikit-survival"}


def judge_peers(results: Results) -> list[Claim]:
    ratios = {}
    for method, of in results.groups("method"):
        own = of.where(source="cqrf").mean("loss")
        ratios[method] = own / of.where(source=PEER_OF[method]).mean("loss")
    return [
        Claim(
            "Our qrf, qrf-oracle and rsf are no weaker baselines than the peers' own.",
            f"our mean loss over theirs: {say(ratios)}",
            max(ratios.values()) < 1.03,
            "quantile-forest's trees are not honest and draw with replacement; ours follow the "
            "paper's, grf's honest ones. That helps a forest that takes censored times for event "
            "times; for the oracle the difference is gone.",
        )
    ]


def tabulate_peers(results: Results) -> str:
    lines = ["| method | node size | source | quantile loss | error to the true quantile |"]
    lines += ["|---|---|---|---|---|"]
    for method, of in results.groups("method"):
        for node_size, at in of.groups("node_size"):
            for source, own in at.groups("source"):
                lines.append(
                    f"| {method} | {node_size} | {source} | {own.mean('loss'):.4f} "
                    f"| {own.mean('error'):.4f} |"
                )
    return "\n".join(lines)


def draw_peers(results: Results) -> Any:
    """Ours and theirs side by side, a bar for each."""
    from cqrf.study.figures import BLUE, VERMILLION, panels

    levels = results.distinct("tau")
    figure, grid = panels(1, len(results.distinct("method")))
    for axes, (method, of) in zip(grid[0], results.groups("method")):
        sources = (("cqrf", VERMILLION, -0.2), (PEER_OF[method], BLUE, 0.2))
        for source, color, offset in sources:
            own = of.where(source=source)
            heights = [own.where(tau=tau).mean("loss") for tau in levels]
            axes.bar(np.arange(len(levels)) + offset, heights, 0.36, color=color, label=source)
        axes.set_xticks(range(len(levels)), [f"{tau:g}" for tau in levels])
        axes.set_title(method, fontsize=9)
        axes.set_xlabel("τ")
        axes.legend(fontsize=7)
    grid[0, 0].set_ylabel("quantile loss")
    return figure


EXPERIMENTS = (
    Experiment(
        name="r-packages",
        list_units=list_r_units,
        run_unit=run_r,
        draw=partial(draw_lines, x="node_size", panel="data", measures=(LOSS, ERROR)),
        judge=judge_r,
        tabulate=tabulate_r,
    ),
    Experiment(
        name="python-packages",
        list_units=list_peer_units,
        run_unit=run_peers,
        draw=draw_peers,
        judge=judge_peers,
        tabulate=tabulate_peers,
    ),
)
