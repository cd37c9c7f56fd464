"""The forests that are compared, the command that starts each, and how to install it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from benchmarks.peers.forests import LEAF_SIZE, LEVELS, SAMPLE_SHARE
from benchmarks.peers.grf_core import find_driver

LEAF_SETTINGS = {"min_samples_leaf": LEAF_SIZE, "min_samples_split": 2, "min_child_fraction": 0.0}
NOT_HONEST = {"honest": False, "working_model": None, "max_samples": SAMPLE_SHARE, **LEAF_SETTINGS}
GRF_SETTINGS = {
    "split_quantiles": LEVELS,
    "honest": True,
    "max_samples": 0.5,
    "min_samples_leaf": 1,
    "min_samples_split": LEAF_SIZE + 1,
    "min_child_fraction": 0.05,
}

VARIANCE = "cqrf variance"
CENSORED = "cqrf censored_quantile"
LOGRANK = "cqrf logrank"
QUANTILE = "cqrf quantile, honest"


@dataclass(frozen=True)
class Library:
    name: str
    counterpart: str  # the one of our forests with equal work
    command: list[str]
    version: str = ""
    predicts_quantiles: bool = True
    power: float = 1.0  # fit time is proportional to n ** power log n

    @property
    def is_ours(self) -> bool:
        return self.name.startswith("cqrf")


def python_command(name: str, **settings: Any) -> list[str]:
    return [sys.executable, "-m", "benchmarks.peers.worker", name, json.dumps(settings)]


def ours() -> list[Library]:
    return [
        Library(name, counterpart, python_command("Cqrf", criterion=criterion, **settings))
        for name, counterpart, criterion, settings in (
            (VARIANCE, VARIANCE, "variance", NOT_HONEST),
            (CENSORED, VARIANCE, "censored_quantile", NOT_HONEST),
            (LOGRANK, LOGRANK, "logrank", NOT_HONEST),
            (QUANTILE, QUANTILE, "quantile", GRF_SETTINGS),
        )
    ]


class MissingError(Exception):
    """The package is not installed; the message says how to install it."""


def find_libraries(wanted: Collection[str] | None = None) -> tuple[list[Library], list[str]]:
    """Our forests and the installed packages, and a line for each package that is missing."""
    found, missing = ours(), []
    for name, find in PEERS.items():
        if wanted is None or name in wanted:
            try:
                found.append(find())
            except MissingError as reason:
                missing.append(f"{name} is not installed: {reason}")
    return found, missing


def _from_pypi(
    name: str, forest: str, counterpart: str, how: str = "pip install '.[bench]'", **traits: Any
) -> Library:
    try:
        found = version(name)
    except PackageNotFoundError:
        raise MissingError(how) from None
    return Library(name, counterpart, python_command(forest), found, **traits)


def _from_r(name: str, counterpart: str, how: str) -> Library:
    test = f"cat(as.character(packageVersion('{name}')))"
    found = shutil.which("Rscript") and subprocess.run(
        ["Rscript", "--vanilla", "-e", test], capture_output=True, text=True
    )
    if not found or found.returncode:
        raise MissingError(how)
    script = Path(__file__).with_name("worker.R")
    return Library(name, counterpart, ["Rscript", "--vanilla", str(script), name], found.stdout)


def _grf() -> Library:
    with suppress(MissingError):
        return _from_r("grf", QUANTILE, "")
    try:
        driver = find_driver()
    except OSError as problem:
        raise MissingError(f"install.packages('grf') in R, or g++ and PyPI ({problem})") from None
    settings = [
        "1",
        str(GRF_SETTINGS["max_samples"]),
        str(LEAF_SIZE),
    ]  # honest, fraction, node size
    return Library("grf", QUANTILE, [str(driver), *settings], "2.0.0 (its C++ core)")


PEERS: dict[str, Callable[[], Library]] = {
    "scikit-learn": partial(
        _from_pypi, "scikit-learn", "ScikitLearn", VARIANCE, predicts_quantiles=False
    ),
    "quantile-forest": partial(_from_pypi, "quantile-forest", "QuantileForest", VARIANCE),
    "ranger": partial(
        _from_r, "ranger", VARIANCE, "apt install r-cran-ranger, or install.packages('ranger') in R"
    ),
    "grf": _grf,
    "scikit-survival": partial(_from_pypi, "scikit-survival", "ScikitSurvival", LOGRANK, power=2.0),
    "comprisk": partial(
        _from_pypi,
        "comprisk",
        "Comprisk",
        LOGRANK,
        "pip install --no-deps comprisk (it asks for an older Numba than ours, and runs)",
    ),
    "LightGBM": partial(_from_pypi, "LightGBM", "LightGBM", VARIANCE, predicts_quantiles=False),
}
