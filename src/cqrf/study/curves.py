"""Curves: estimated quantiles against the one covariate that matters.

What a curve misses is told in two parts, over ten bins of x: its bias, the mean distance of a
bin's mean estimate from its mean truth; and its scatter, the standard deviation of the estimates'
errors within a bin. Both are shares of the mean true quantile.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from cqrf.datasets import make_aft, make_heteroscedastic, make_sine
from cqrf.study.experiment import Claim, Experiment, Unit
from cqrf.study.figures import draw_curves, draw_intervals
from cqrf.study.methods import CENSORED, DEFAULT, Sample, Study, predict_all
from cqrf.study.node_sizes import N_MANY, judge_share
from cqrf.study.results import Results, Row

REPEATS = 3  # the figure shows the first
N_QUERIES = 200
N_BINS = 10
CRF = ("crf-generalized", "crf-quantile")
NAIVE = ("grf", "qrf")


def list_units(node_sizes: Sequence[int], study: Study) -> list[Unit]:
    return [
        {"repeat": repeat, "node_size": node_size}
        for repeat in range(study.pick(REPEATS, 1))
        for node_size in node_sizes
    ]


def run_curves(
    make: Callable[..., Any],
    n: int,
    trees: int,
    methods: Sequence[str],
    levels: Sequence[float],
    study: Study,
    unit: Unit,
    *,
    out_of_bag: bool = False,
) -> list[Row]:
    """Estimates for fresh rows, or out of bag for the training rows, by their first covariate."""
    train = make(study.pick(n, 300), random_state=unit["repeat"])
    X = train.X if out_of_bag else make(N_QUERIES, random_state=1000 + unit["repeat"]).X
    predicted = predict_all(
        methods,
        Sample.of(train),
        None if out_of_bag else X,
        levels,
        node_size=unit["node_size"],
        n_estimators=study.pick(trees, 50),
        seed=unit["repeat"],
        study=study,
    )
    truth = train.quantile(X, levels)
    return [
        {
            "method": method,
            "node_size": unit["node_size"],
            "tau": tau,
            "repeat": unit["repeat"],
            "x": float(X[i, 0]),
            "quantile": float(quantiles[i, k]),
            "truth": float(truth[i, k]),
        }
        for method, quantiles in predicted.items()
        for k, tau in enumerate(levels)
        for i in np.argsort(X[:, 0])
    ]


def split_error(results: Results) -> tuple[float, float]:
    """Bias and scatter of a curve, mean over repeats."""
    parts = []
    for _, curve in results.groups("repeat"):
        x, truth = curve.column("x"), curve.column("truth")
        error = curve.column("quantile") - truth
        edges = np.linspace(x.min(), x.max(), N_BINS + 1)[1:-1]
        bins = [error[np.digitize(x, edges) == b] for b in range(N_BINS)]
        bins = [values for values in bins if len(values) > 1]
        bias = np.mean([abs(values.mean()) for values in bins])
        scatter = np.mean([values.std() for values in bins])
        parts.append(np.array([bias, scatter]) / truth.mean())
    bias, scatter = np.mean(parts, axis=0)
    return float(bias), float(scatter)


def relative_error(results: Results) -> float:
    """Mean absolute error over the mean true quantile."""
    truth = results.column("truth")
    return float(np.abs(results.column("quantile") - truth).mean() / truth.mean())


def shift(results: Results) -> float:
    """Mean error, with its sign, over the mean true quantile."""
    return float(results.mean("quantile") / results.mean("truth") - 1)


def say(values: dict[str, float]) -> str:
    return ", ".join(f"{name} {100 * value:.0f} %" for name, value in values.items())


def judge_aft(results: Results) -> list[Claim]:
    small, large = sorted(results.distinct("node_size"))[:: len(results.distinct("node_size")) - 1]
    at = results.where(node_size=small)
    high = at.where(tau=0.9)
    shifts = {m: shift(high.where(method=m)) for m in NAIVE}
    low_shifts = {m: shift(at.where(tau=0.1, method=m)) for m in NAIVE}
    errors = {m: relative_error(at.where(method=m)) for m in (*CRF, *NAIVE, "rsf", DEFAULT)}
    parts = {m: split_error(high.where(method=m)) for m in (*CRF, "rsf")}
    others = (*CRF, *NAIVE)
    grows = {
        m: [split_error(results.where(node_size=s, method=m, tau=0.9)) for s in (small, large)]
        for m in (*others, "rsf")
    }
    less_variant = all(grows[m][1][1] < grows[m][0][1] for m in others)
    more_biased = all(grows[m][1][0] > grows[m][0][0] for m in others)
    still_volatile = grows["rsf"][1][1] > 1.5 * max(grows[m][1][1] for m in others)
    worse = errors["rsf"] / max(errors[m] for m in CRF)
    return [
        Claim(
            "grf and qrf, which take censored times for event times, lie far below the truth.",
            f"mean shift at τ = .1: {say(low_shifts)}; at τ = .9: {say(shifts)}",
            max(low_shifts.values()) < -0.2 and max(shifts.values()) < -0.05,
        ),
        Claim(
            "crf-generalized and crf-quantile are almost the true quantiles.",
            f"mean absolute error: {say(errors)} of the true quantile",
            max(errors[m] for m in CRF) < 0.1 and max(errors[m] for m in CRF) < errors["grf"] / 2,
        ),
        Claim(
            "rsf is unstable, and does not correct the bias of censoring.",
            f"scatter at τ = .9: {say({m: part[1] for m, part in parts.items()})}; bias: "
            f"{say({m: part[0] for m, part in parts.items()})}; error over that of the worse crf "
            f"{worse:.1f}",
            parts["rsf"][1] > 1.5 * max(parts[m][1] for m in CRF) and worse > 2,
        ),
        Claim(
            f"With nodes of {large} instead of {small} rows all but rsf are more biased and vary "
            "less, and rsf is still volatile.",
            f"bias at τ = .9: {say_change(grows, 0)}; scatter: {say_change(grows, 1)}",
            more_biased and less_variant and still_volatile,
            "The bias grows for all, and the scatter of both crf falls. That of grf and qrf stays "
            "what it was, and rsf, too, is smoother with larger leaves.",
        ),
    ]


def say_change(values: dict[str, Any], part: int) -> str:
    return ", ".join(
        f"{m} {100 * a[part]:.1f} to {100 * b[part]:.1f} %" for m, (a, b) in values.items()
    )


def judge_heteroscedastic(results: Results) -> list[Claim]:
    errors = {m: relative_error(results.where(method=m)) for m in CENSORED}
    step = {}
    for method in ("crf-generalized", "rsf", "crf-quantile", DEFAULT):
        of = results.where(method=method, tau=0.9)
        right = of.column("x") > 0
        values, truth = of.column("quantile"), of.column("truth")
        found = values[right].mean() - values[~right].mean()
        step[method] = float(found / (truth[right].mean() - truth[~right].mean()))
    rest = [errors[m] for m in CENSORED if m not in (DEFAULT, "crf-generalized")]
    return [
        Claim(
            "crf-generalized is much more accurate than all other methods, arguably the only one "
            "that works.",
            f"mean absolute error: {say_finely(errors)} of the true quantile",
            errors["crf-generalized"] < 0.6 * min(rest),
        ),
        Claim(
            "crf-generalized is almost the true quantiles.",
            f"mean absolute error {100 * errors['crf-generalized']:.1f} %",
            errors["crf-generalized"] < 0.02,
        ),
        Claim(
            "rsf does not see the change of spread.",
            f"share found of the step in the .9 quantile: {say(step)}",
            step["rsf"] < 0.5,
        ),
    ]


def say_finely(values: dict[str, float]) -> str:
    return ", ".join(f"{name} {100 * value:.1f} %" for name, value in values.items())


def judge_sine(results: Results) -> list[Claim]:
    errors = {m: relative_error(results.where(method=m)) for m in results.distinct("method")}
    low = {m: relative_error(results.where(method=m, tau=0.1)) for m in results.distinct("method")}
    return [
        judge_share(make_sine(N_MANY, random_state=0).y, 0.25),
        Claim(
            "crf predicts almost the same quantiles as grf-oracle.",
            f"mean absolute error: {say_finely(errors)} of the true quantile",
            errors["crf-generalized"] < 1.25 * errors["grf-oracle"],
        ),
        Claim(
            "At τ = .1 grf is far off the true quantile, and crf as good as grf-oracle.",
            f"mean absolute error at τ = .1: {say_finely(low)}",
            low["grf"] > 2 * low["crf-generalized"]
            and low["crf-generalized"] < 1.25 * low["grf-oracle"],
        ),
    ]


def judge_interval_curves(results: Results) -> list[Claim]:
    widths = {}
    lows = {}
    for method, of in results.groups("method"):
        lower, upper = of.where(tau=0.025), of.where(tau=0.975)
        true_width = upper.mean("truth") - lower.mean("truth")
        widths[method] = (upper.mean("quantile") - lower.mean("quantile")) / true_width
        lows[method] = (lower.mean("quantile") - lower.mean("truth")) / true_width
    return [
        Claim(
            "qrf and grf put the lower quantile too low, and their intervals are much wider than "
            "the true ones.",
            "width over the true width: "
            + ", ".join(f"{m} {v:.2f}" for m, v in widths.items())
            + "; lower end less the true one, over the true width: "
            + ", ".join(f"{m} {v:+.2f}" for m, v in lows.items()),
            min(widths["grf"], widths["qrf"]) > 1.2 and max(lows["grf"], lows["qrf"]) < -0.1,
        )
    ]


INTERVAL_METHODS = (DEFAULT, *CRF, *NAIVE, "grf-oracle", "qrf-oracle")
EXPERIMENTS = (
    Experiment(
        name="aft-curves",
        list_units=lambda study: list_units(study.pick((20, 80), (20, 60)), study),
        run_unit=partial(run_curves, make_aft, 1000, 1000, CENSORED, (0.1, 0.9)),
        draw=partial(draw_curves, rows="node_size", columns="tau", x_label="x1"),
        judge=judge_aft,
    ),
    Experiment(
        name="heteroscedastic-curves",
        list_units=partial(list_units, (150,)),
        run_unit=partial(run_curves, make_heteroscedastic, 2000, 2000, CENSORED, (0.1, 0.5, 0.9)),
        draw=partial(draw_curves, rows="node_size", columns="tau", x_label="x1"),
        judge=judge_heteroscedastic,
    ),
    Experiment(
        name="sine-curves",
        list_units=partial(list_units, (10,)),
        run_unit=partial(
            run_curves,
            make_sine,
            300,
            500,
            (DEFAULT, "crf-generalized", "crf-quantile", "grf", "grf-oracle"),
            (0.1, 0.5, 0.9),
        ),
        draw=partial(draw_curves, rows="node_size", columns="tau", x_label="x"),
        judge=judge_sine,
    ),
    Experiment(
        name="interval-curves",
        list_units=partial(list_units, (20,)),
        run_unit=partial(
            run_curves, make_sine, 300, 500, INTERVAL_METHODS, (0.025, 0.975), out_of_bag=True
        ),
        draw=partial(draw_intervals, x_label="x"),
        judge=judge_interval_curves,
    ),
)
