"""What every public module does with one extra: ``python check_extra.py EXTRA`` (or ``bare``).

It works, or raises an ImportError that names the extra which is missing. The names of modules that
are given after the extra are blocked, as if they were not installed.
"""

from __future__ import annotations

import sys
import tempfile
from importlib import import_module
from pathlib import Path

MODULES = (
    "cqrf",
    "cqrf.calibration",
    "cqrf.cli",
    "cqrf.conformal",
    "cqrf.dask",
    "cqrf.datasets",
    "cqrf.demo",
    "cqrf.effects",
    "cqrf.evaluation",
    "cqrf.inspection",
    "cqrf.metrics",
    "cqrf.plots",
    "cqrf.report",
    "cqrf.serve",
    "cqrf.serve.app",
    "cqrf.tuning",
)
WITH = {"dask": ("dask", "all"), "serve": ("serve", "all"), "plots": ("plots", "all")}
WITH_COMMANDS = ("cli", "excel", "serve", "all")


def main(extra: str, *blocked: str) -> None:
    """Check every module, then a forest, a plot and the command line."""
    for name in blocked:
        sys.modules[name] = None  # type: ignore[assignment]
    for module in MODULES:
        needed = module.split(".")[1] if module.startswith(("cqrf.dask", "cqrf.serve")) else None
        expect(extra, needed, lambda module=module: import_module(module))
    with tempfile.TemporaryDirectory() as folder:
        use_forest(extra, Path(folder))


def expect(extra: str, needed: str | None, call) -> None:
    """Call, which works, or raises an ImportError that names the extra it needs."""
    works = needed is None or extra in WITH[needed]
    message = ""
    try:
        call()
    except ImportError as error:
        if works:
            raise
        message = str(error)
    assert works or f"pip install 'cqrf[{needed}]'" in message, f"with {extra}: {message!r}"


def use_forest(extra: str, folder: Path) -> None:
    """Fit, save, load, predict and report; a plot; the command line."""
    import numpy as np

    import cqrf
    from cqrf.cli import main as run_command
    from cqrf.plots import plot_survival
    from cqrf.report import write_report

    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    y = cqrf.censored(rng.exponential(size=40), rng.random(40) < 0.7)
    forest = cqrf.CensoredQuantileForest(n_estimators=4, n_jobs=1, random_state=0).fit(X, y)
    forest.save(folder / "forest.cqrf")
    loaded = cqrf.CensoredQuantileForest.load(folder / "forest.cqrf")
    assert np.array_equal(loaded.predict(X, 0.1), forest.predict(X, 0.1))
    write_report(forest, X, y, folder / "report.html")
    expect(extra, "plots", lambda: plot_survival(forest, X[:2]))
    sys.argv = ["cqrf", "info", str(folder / "forest.cqrf")]
    code: object = None
    try:
        run_command()
    except SystemExit as stopped:
        code = stopped.code
    if extra in WITH_COMMANDS:
        assert code in (0, None), code
    else:
        assert "pip install 'cqrf[cli]'" in str(code), code


if __name__ == "__main__":
    main(*sys.argv[1:])
