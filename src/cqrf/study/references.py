"""References: our forests compared with the R packages of the paper and with Python packages.

The R results and their data are part of the package (folder ``paper_r``; its README says how they
were computed).
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
from cqrf.study.experiment import Case, Claim, Experiment
from cqrf.study.figures import draw_lines
from cqrf.study.methods import CENSORED, DEFAULT, ORACLES, Sample, Study, predict_all
from cqrf.study.node_sizes import ERROR, LOSS, format_values, score_predictions
from cqrf.study.results import Results, Row

FOLDER = files("cqrf.study").joinpath("paper_r")
LEVELS = (0.1, 0.3, 0.5, 0.7, 0.9)
QUANTILE_OF: dict[str, Callable[..., NDArray[np.float64]]] = {
    "aft": aft_quantile,
    "hetero": heteroscedastic_quantile,
}
NODE_SIZES = {"aft": (10, 20, 40, 80), "hetero": (20, 80, 150)}
R_REPEATS = (1, 2, 3)
# Upper bounds of our mean loss over R's.
TOLERANCE = {"rsf": 1.03}
DEFAULT_TOLERANCE = 1.01
ERROR_BOUND = {"aft": 0.85, "hetero": 1.02}
CLEARLY_LOWER = 0.98  # an error below this share of another is clearly lower


class Split(NamedTuple):
    """One of the data sets that the R packages were fitted to."""

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
    """R's loss and error by data, method (our names), node size, repeat and level."""
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
    """R's loss and error of each method, averaged over settings and repeats."""
    found = defaultdict(list)
    for (subset, method, *_), pair in read_r_figures().items():
        if subset == data:
            found[method].append(pair)
    return {method: np.mean(pairs, axis=0) for method, pairs in found.items()}


def list_r_cases(study: Study) -> list[Case]:
    """Every data set at every node size."""
    return [
        {"data": data, "repeat": repeat, "node_size": node_size}
        for data, sizes in NODE_SIZES.items()
        for repeat in study.pick(R_REPEATS, R_REPEATS[:1])
        for node_size in study.pick(sizes, sizes[1:2])
    ]


def run_r(study: Study, case: Case) -> list[Row]:
    """Loss and error of our methods on R's data, and those of R."""
    data, node_size, repeat = case["data"], case["node_size"], case["repeat"]
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
    missing = float("nan"), float("nan")
    rows = score_predictions(case, predicted, LEVELS, split.latent_test, truth)
    for row in rows:
        key = data, row["method"], node_size, repeat, row["tau"]
        row["r_loss"], row["r_error"] = read_r_figures().get(key, missing)
    return [{"data": data, **row} for row in rows]


def check_r(results: Results) -> list[Claim]:
    """Our methods against R's, on R's data."""
    claims = []
    for data, subset in results.groups("data"):
        ratios = {
            m: subset.where(method=m).mean("loss") / subset.where(method=m).mean("r_loss")
            for m in CENSORED
            if m != DEFAULT
        }
        claims.append(
            Claim(
                f"On R's {data} data each method's mean loss is within 1 % of R's or better (rsf: "
                "3 %).",
                f"loss over R's: {format_values(ratios)}",
                all(v <= TOLERANCE.get(m, DEFAULT_TOLERANCE) for m, v in ratios.items()),
            )
        )
        default = subset.where(method=DEFAULT).mean("error")
        theirs = subset.where(method="crf-generalized").mean("r_error")
        claims.append(
            Claim(
                f"On R's {data} data the default's error is at most {ERROR_BOUND[data]:g} times "
                "that of R's crf-generalized.",
                f"{default:.4f} over {theirs:.4f}: {default / theirs:.3f}",
                default <= ERROR_BOUND[data] * theirs,
            )
        )
        rivals = {m: subset.where(method=m).mean("error") for m in CENSORED if m != DEFAULT}
        rivals |= {
            f"R's {m}": float(pair[1])
            for m, pair in mean_r_figures(data).items()
            if m not in ORACLES
        }
        best = min(rivals, key=lambda name: rivals[name])
        claims.append(
            Claim(
                f"On R's {data} data no method except the oracles is clearly more accurate than "
                "the default.",
                f"default {default:.4f}; next best {best} {rivals[best]:.4f}",
                rivals[best] >= CLEARLY_LOWER * default,
            )
        )
    return claims


def tabulate_r(results: Results) -> str:
    """Our loss and error beside R's."""
    lines = [
        "Means over levels, node sizes and repeats; R's results are from grf 2.6.1 and "
        "randomForestSRC 3.6.2 on the same rows.",
        "",
        "| data | method | loss, R | loss, ours | ratio | error, R | error, ours | ratio |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for data, subset in results.groups("data"):
        for method, own in subset.groups("method"):
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


def list_peer_cases(study: Study) -> list[Case]:
    """Every repeat at every node size."""
    return [
        {"repeat": repeat, "node_size": node_size}
        for node_size in study.pick((20, 80), (20,))
        for repeat in range(study.pick(2, 1))
    ]


def run_peers(study: Study, case: Case) -> list[Row]:
    """Our baselines and those of other packages on the same AFT data."""
    train = make_aft(study.pick(1000, 200), random_state=case["repeat"])
    test = make_aft(500, random_state=1000 + case["repeat"])
    truth = test.quantile(test.X, LEVELS)
    rows = []
    for with_peers in (False, True):
        predicted = predict_all(
            ("qrf", "rsf", "qrf-oracle"),
            Sample.of(train),
            test.X,
            LEVELS,
            node_size=case["node_size"],
            n_estimators=study.pick(1000, 50),
            seed=case["repeat"],
            study=Study(study.quick, with_peers, study.n_jobs),
        )
        for row in score_predictions(case, predicted, LEVELS, test.latent, truth):
            rows.append({"source": PEER_OF[row["method"]] if with_peers else "cqrf", **row})
    return rows


PEER_OF = {"qrf": "quantile-forest", "qrf-oracle": "quantile-forest", "rsf": "scikit-survival"}


def check_peers(results: Results) -> list[Claim]:
    """Our baselines against those of other packages."""
    ratios = {}
    for method, subset in results.groups("method"):
        own = subset.where(source="cqrf").mean("loss")
        ratios[method] = own / subset.where(source=PEER_OF[method]).mean("loss")
    return [
        Claim(
            "Our qrf, qrf-oracle and rsf are baselines as strong as those of other packages.",
            f"our mean loss over theirs: {format_values(ratios)}",
            max(ratios.values()) < 1.03,
            "The trees of quantile-forest are not honest and draw with replacement. Ours are "
            "honest like those of grf, which the paper used. Trees that are not honest help a "
            "forest that treats censored times as event times; the oracles do not differ.",
        )
    ]


def tabulate_peers(results: Results) -> str:
    """Loss and error by method, node size and package."""
    lines = ["| method | node size | source | quantile loss | error to the true quantile |"]
    lines += ["|---|---|---|---|---|"]
    for method, subset in results.groups("method"):
        for node_size, at in subset.groups("node_size"):
            for source, own in at.groups("source"):
                lines.append(
                    f"| {method} | {node_size} | {source} | {own.mean('loss'):.4f} "
                    f"| {own.mean('error'):.4f} |"
                )
    return "\n".join(lines)


def draw_peers(results: Results) -> Any:
    """Bars of the loss by level, ours beside theirs, a panel for each method."""
    from cqrf.study.figures import BLUE, VERMILLION, panels

    levels = results.distinct("tau")
    figure, grid = panels(1, len(results.distinct("method")))
    for axes, (method, subset) in zip(grid[0], results.groups("method")):
        sources = (("cqrf", VERMILLION, -0.2), (PEER_OF[method], BLUE, 0.2))
        for source, color, offset in sources:
            own = subset.where(source=source)
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
        list_cases=list_r_cases,
        run_case=run_r,
        draw=partial(draw_lines, x="node_size", panel="data", measures=(LOSS, ERROR)),
        check_claims=check_r,
        tabulate=tabulate_r,
    ),
    Experiment(
        name="python-packages",
        list_cases=list_peer_cases,
        run_case=run_peers,
        draw=draw_peers,
        check_claims=check_peers,
        tabulate=tabulate_peers,
    ),
)
