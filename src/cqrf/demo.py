"""Demo: survival with primary biliary cirrhosis.

Run with ``cqrf demo`` or ``python -m cqrf.demo``: fits the bundled PBC trial, predicts for patients
that were held out, draws their survival curves, and writes a report on all patients.
"""

from __future__ import annotations

import shutil
import sys
import time
from importlib.resources import files
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cqrf import CensoredQuantileForest
from cqrf.datasets import load_pbc

DAYS_PER_YEAR = 365.25
QUANTILES = (0.1, 0.25, 0.5)
N_SHOWN = 8


def main(folder: Path = Path("demo")) -> None:
    """Fit, predict, print, draw and report; files go to the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    table = load_pbc()
    n = len(table.y)
    shuffled = np.random.default_rng(1).permutation(n)
    test, train = shuffled[: n // 4], shuffled[n // 4 :]
    print(
        f"PBC trial: {n} patients, {int(table.y['event'].sum())} deaths, "
        f"{1 - table.y['event'].mean():.0%} censored, {table.X.shape[1]} covariates, "
        f"{int(np.isnan(table.X).any(axis=1).sum())} patients with missing values."
    )
    began = time.perf_counter()
    forest = CensoredQuantileForest(n_jobs=-1, random_state=0).fit(table.X[train], table.y[train])
    print(
        f"Fitted {forest.n_estimators} trees on {len(train)} patients in "
        f"{time.perf_counter() - began:.1f} s (the first run compiles the kernels).\n"
    )
    X, y = table.X[test], table.y[test]
    bilirubin = table.feature_names.index("bili")
    shown = np.argsort(X[:, bilirubin])[np.linspace(0, len(test) - 1, N_SHOWN).astype(int)]
    _print_patients(forest, X[shown], y[shown], table.feature_names)
    print(
        f"\nHeld-out accuracy, {len(test)} patients: quantile loss "
        f"{forest.score(X, y):.0%} below that of the Kaplan-Meier curve of all patients."
    )
    _draw(forest, X[shown[[1, -3, -1]]], bilirubin, folder / "pbc_survival.png")
    _report(folder)


def _print_patients(
    forest: CensoredQuantileForest,
    X: NDArray[np.float64],
    y: NDArray[np.void],
    names: tuple[str, ...],
) -> None:
    years = forest.predict(X, QUANTILES, unidentified="nan") / DAYS_PER_YEAR
    five_years = np.asarray(forest.predict_survival(X, times=[5 * DAYS_PER_YEAR]))[:, 0]
    limits = forest.max_quantile(X)
    bilirubin, age = names.index("bili"), names.index("age")
    print("Years until death, for patients held out of the fit")
    print(f"{'age':>4} {'bili':>5}  {'10 %':>6} {'25 %':>6} {'50 %':>6}  {'P(T>5y)':>7}  observed")
    for i in range(len(X)):
        cells = " ".join(f"{year:6.1f}" if np.isfinite(year) else f"{'-':>6}" for year in years[i])
        outcome = f"{'died' if y['event'][i] else 'alive'} at {y['time'][i] / DAYS_PER_YEAR:.1f}"
        print(f"{X[i, age]:4.0f} {X[i, bilirubin]:5.1f}  {cells}  {five_years[i]:7.0%}  {outcome}")
    n_unidentified = int(np.isnan(years).sum())
    if n_unidentified:
        print(
            f"-: {n_unidentified} quantiles are not identifiable because of censoring; the largest "
            f"identifiable level of these patients is {limits.min():.0%} to {limits.max():.0%}."
        )


def _draw(
    forest: CensoredQuantileForest, X: NDArray[np.float64], bilirubin: int, picture: Path
) -> None:
    try:
        import matplotlib
    except ImportError:
        print("For the figure: pip install 'cqrf[plots]'")
        return
    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    from cqrf.plots import plot_survival

    figure, ax = plt.subplots(figsize=(7, 4.2), layout="constrained")
    labels = [f"bilirubin {row[bilirubin]:g} mg/dl" for row in X]
    plot_survival(forest, X, quantiles=QUANTILES, labels=labels, scale=DAYS_PER_YEAR, ax=ax)
    ax.set(xlabel="years", ylabel="survival probability")
    figure.savefig(picture, dpi=150)
    plt.close(figure)
    print(f"Survival curves of three of them: {picture.resolve()}")


def _report(folder: Path) -> None:
    """Fit all patients and write the report, as the commands ``fit`` and ``report`` do."""
    try:
        from cqrf.cli.fit import FitTask, fit_file
        from cqrf.cli.report import ReportTask, report_file
        from cqrf.cli.roles import GivenRoles, Roles
    except ImportError:
        print("For the report: pip install 'cqrf[cli]'")
        return
    data, model, page = (folder / name for name in ("pbc.csv", "pbc.cqrf", "pbc_report.html"))
    data.write_bytes(files("cqrf.datasets").joinpath("pbc.csv").read_bytes())
    roles = Roles(time="time", event="status", event_value="2", ignore=("id",))
    print(
        f"\n$ cqrf fit {data} --time time --event status --event-value 2 --ignore id "
        f"--set bag_size=2 -o {model}",
        flush=True,
    )
    settings = {"n_jobs": -1, "random_state": 0, "bag_size": 2}
    fit_file(FitTask(str(data), roles, model, settings))
    print(f"\n$ cqrf report {model} {data} --id id -o {page}", flush=True)
    task = ReportTask(str(model), str(data), page, GivenRoles(), "PBC trial", id_column="id")
    report_file(task)
    print(f"\nThe report, for a browser: {page.resolve()}")
    program = "cqrf" if shutil.which("cqrf") else Path(sys.executable).with_name("cqrf")
    print(f"Predict:  {program} predict {model} {data} -q .1,.25 --survival 365,1825 --id id")
    print(f"Try next: {program} serve {model} --data {data} --id id")


if __name__ == "__main__":
    main()
