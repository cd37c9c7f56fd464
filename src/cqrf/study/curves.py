"""Curves: estimated quantiles against the one covariate that affects T.

The error of a curve has two parts, computed over ten bins of x. Its bias is the mean absolute
difference between the mean estimate and the mean truth of a bin. Its scatter is the mean standard
deviation of the errors within a bin. Both are relative to the mean true quantile.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from cqrf.datasets import make_aft, make_heteroscedastic, make_sine
from cqrf.study.experiment import Case, Claim, Experiment
from cqrf.study.figures import draw_curves, draw_intervals
from cqrf.study.methods import CENSORED, DEFAULT, Sample, Study, predict_all
from cqrf.study.node_sizes import N_MANY, check_censored_share
from cqrf.study.results import Results, Row

REPEATS = 3  # the figure shows the first
N_QUERIES = 200
N_BINS = 10
CRF = ("crf-generalized", "crf-quantile")
NAIVE = ("grf", "qrf")


def list_cases(node_sizes: Sequence[int], study: Study) -> list[Case]:
    """Every repeat at every node size."""
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
    case: Case,
    *,
    out_of_bag: bool = False,
) -> list[Row]:
    """Estimates for new rows, or out of bag for the training rows, sorted by x1."""
    train = make(study.pick(n, 300), random_state=case["repeat"])
    X = train.X if out_of_bag else make(N_QUERIES, random_state=1000 + case["repeat"]).X
    predicted = predict_all(
        methods,
        Sample.of(train),
        None if out_of_bag else X,
        levels,
        node_size=case["node_size"],
        n_estimators=study.pick(trees, 50),
        seed=case["repeat"],
        study=study,
    )
    truth = train.quantile(X, levels)
    return [
        {
            "method": method,
            "node_size": case["node_size"],
            "tau": tau,
            "repeat": case["repeat"],
            "x": float(X[i, 0]),
            "quantile": float(quantiles[i, k]),
            "truth": float(truth[i, k]),
        }
        for method, quantiles in predicted.items()
        for k, tau in enumerate(levels)
        for i in np.argsort(X[:, 0])
    ]


def split_error(results: Results) -> tuple[float, float]:
    """Bias and scatter of a curve, averaged over repeats."""
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
    """Mean signed error over the mean true quantile."""
    return float(results.mean("quantile") / results.mean("truth") - 1)


def format_percent(values: dict[str, float], digits: int = 0) -> str:
    """Name and value of each entry, as text."""
    return ", ".join(f"{name} {100 * value:.{digits}f} %" for name, value in values.items())


def check_aft(results: Results) -> list[Claim]:
    """Claims on the AFT model."""
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
            "grf and qrf, which treat censored times as event times, lie far below the truth.",
            f"mean shift at τ = .1: {format_percent(low_shifts)}; at τ = .9: "
            f"{format_percent(shifts)}",
            max(low_shifts.values()) < -0.2 and max(shifts.values()) < -0.05,
        ),
        Claim(
            "crf-generalized and crf-quantile are close to the true quantiles.",
            f"mean absolute error: {format_percent(errors)} of the true quantile",
            max(errors[m] for m in CRF) < 0.1 and max(errors[m] for m in CRF) < errors["grf"] / 2,
        ),
        Claim(
            "rsf is unstable and does not correct the bias due to censoring.",
            f"scatter at τ = .9: {format_percent({m: part[1] for m, part in parts.items()})}; "
            f"bias: {format_percent({m: part[0] for m, part in parts.items()})}; error over that "
            f"of the worse crf {worse:.1f}",
            parts["rsf"][1] > 1.5 * max(parts[m][1] for m in CRF) and worse > 2,
        ),
        Claim(
            f"With node size {large} instead of {small} all methods but rsf have more bias and "
            "less variance, and rsf is still volatile.",
            f"bias at τ = .9: {format_change(grows, 0)}; scatter: {format_change(grows, 1)}",
            more_biased and less_variant and still_volatile,
            "The bias of all methods grows, and the scatter of both crf methods falls. The scatter "
            "of grf and qrf does not change, and that of rsf falls too.",
        ),
    ]


def format_change(values: dict[str, Any], part: int) -> str:
    """Bias (part 0) or scatter (part 1) at the small and at the large node size, as text."""
    return ", ".join(
        f"{m} {100 * a[part]:.1f} to {100 * b[part]:.1f} %" for m, (a, b) in values.items()
    )


def check_heteroscedastic(results: Results) -> list[Claim]:
    """Claims on the heteroscedastic model."""
    errors = {m: relative_error(results.where(method=m)) for m in CENSORED}
    step = {}
    for method in ("crf-generalized", "rsf", "crf-quantile", DEFAULT):
        subset = results.where(method=method, tau=0.9)
        right = subset.column("x") > 0
        values, truth = subset.column("quantile"), subset.column("truth")
        found = values[right].mean() - values[~right].mean()
        step[method] = float(found / (truth[right].mean() - truth[~right].mean()))
    rest = [errors[m] for m in CENSORED if m not in (DEFAULT, "crf-generalized")]
    return [
        Claim(
            "crf-generalized is much more accurate than all other methods, arguably the only "
            "method that works.",
            f"mean absolute error: {format_percent(errors, 1)} of the true quantile",
            errors["crf-generalized"] < 0.6 * min(rest),
        ),
        Claim(
            "crf-generalized is close to the true quantiles.",
            f"mean absolute error {100 * errors['crf-generalized']:.1f} %",
            errors["crf-generalized"] < 0.02,
        ),
        Claim(
            "rsf does not detect the heteroscedasticity.",
            f"estimated step of the .9 quantile over the true step: {format_percent(step)}",
            step["rsf"] < 0.5,
        ),
    ]


def check_sine(results: Results) -> list[Claim]:
    """Claims on the quantiles of the sine model."""
    errors = {m: relative_error(results.where(method=m)) for m in results.distinct("method")}
    low = {m: relative_error(results.where(method=m, tau=0.1)) for m in results.distinct("method")}
    return [
        check_censored_share(make_sine(N_MANY, random_state=0).y, 0.25),
        Claim(
            "crf predicts almost the same quantiles as grf-oracle.",
            f"mean absolute error: {format_percent(errors, 1)} of the true quantile",
            errors["crf-generalized"] < 1.25 * errors["grf-oracle"],
        ),
        Claim(
            "At τ = .1 grf is far from the true quantile, and crf is as good as grf-oracle.",
            f"mean absolute error at τ = .1: {format_percent(low, 1)}",
            low["grf"] > 2 * low["crf-generalized"]
            and low["crf-generalized"] < 1.25 * low["grf-oracle"],
        ),
    ]


def check_interval_curves(results: Results) -> list[Claim]:
    """Claims on the prediction intervals of the sine model."""
    widths = {}
    lows = {}
    for method, subset in results.groups("method"):
        lower, upper = subset.where(tau=0.025), subset.where(tau=0.975)
        true_width = upper.mean("truth") - lower.mean("truth")
        widths[method] = (upper.mean("quantile") - lower.mean("quantile")) / true_width
        lows[method] = (lower.mean("quantile") - lower.mean("truth")) / true_width
    return [
        Claim(
            "The lower quantile of qrf and grf is too low, and their intervals are much wider than "
            "the true ones.",
            "width over the true width: "
            + ", ".join(f"{m} {v:.2f}" for m, v in widths.items())
            + "; lower end minus the true lower end, over the true width: "
            + ", ".join(f"{m} {v:+.2f}" for m, v in lows.items()),
            min(widths["grf"], widths["qrf"]) > 1.2 and max(lows["grf"], lows["qrf"]) < -0.1,
        )
    ]


INTERVAL_METHODS = (DEFAULT, *CRF, *NAIVE, "grf-oracle", "qrf-oracle")
EXPERIMENTS = (
    Experiment(
        name="aft-curves",
        list_cases=lambda study: list_cases(study.pick((20, 80), (20, 60)), study),
        run_case=partial(run_curves, make_aft, 1000, 1000, CENSORED, (0.1, 0.9)),
        draw=partial(draw_curves, rows="node_size", columns="tau", x_label="x1"),
        check_claims=check_aft,
    ),
    Experiment(
        name="heteroscedastic-curves",
        list_cases=partial(list_cases, (150,)),
        run_case=partial(run_curves, make_heteroscedastic, 2000, 2000, CENSORED, (0.1, 0.5, 0.9)),
        draw=partial(draw_curves, rows="node_size", columns="tau", x_label="x1"),
        check_claims=check_heteroscedastic,
    ),
    Experiment(
        name="sine-curves",
        list_cases=partial(list_cases, (10,)),
        run_case=partial(
            run_curves,
            make_sine,
            300,
            500,
            (DEFAULT, "crf-generalized", "crf-quantile", "grf", "grf-oracle"),
            (0.1, 0.5, 0.9),
        ),
        draw=partial(draw_curves, rows="node_size", columns="tau", x_label="x"),
        check_claims=check_sine,
    ),
    Experiment(
        name="interval-curves",
        list_cases=partial(list_cases, (20,)),
        run_case=partial(
            run_curves, make_sine, 300, 500, INTERVAL_METHODS, (0.025, 0.975), out_of_bag=True
        ),
        draw=partial(draw_intervals, x_label="x"),
        check_claims=check_interval_curves,
    ),
)
