"""Catalog: every experiment, first those of the paper in its order, then those beyond it.

Listing names and titles imports no experiment; a module is imported when its experiment is loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from difflib import get_close_matches
from importlib import import_module
from importlib.resources import files
from importlib.util import find_spec
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from cqrf.study.experiment import Experiment


class Need(NamedTuple):
    """What an experiment needs beside the package: whether it is there, and how to get it."""

    is_met: Callable[[], bool]
    remedy: str


def have_peers() -> bool:
    """Whether the packages of :mod:`cqrf.study.peers` are installed."""
    return all(find_spec(name) is not None for name in ("quantile_forest", "sksurv"))


def have_r_data() -> bool:
    """Whether the data of the R packages are there: they are in a checkout, not in a wheel."""
    return files("cqrf.study").joinpath("paper_r", "aft_1_train.csv.gz").is_file()


PEERS = Need(have_peers, "both packages: pip install 'cqrf[bench]'")
R_DATA = Need(
    have_r_data,
    "data that are not in the wheel: in a checkout or the unpacked source distribution, use "
    "pip install -e '.[cli,plots]'",
)


class Entry(NamedTuple):
    """An experiment; ``section`` is its section in the paper, empty for one beyond it."""

    name: str
    title: str
    section: str
    module: str
    needs: Need | None = None

    def can_run(self) -> bool:
        """Whether what it needs is there."""
        return self.needs is None or self.needs.is_met()

    def say_need(self) -> str:
        """What it needs, and how to get it."""
        return f"{self.name} needs {self.needs.remedy}" if self.needs else ""

    def load(self) -> Experiment:
        """Load the experiment from its module."""
        experiments = import_module(f"cqrf.study.{self.module}").EXPERIMENTS
        return next(found for found in experiments if found.name == self.name)


CATALOG = (
    Entry("aft-curves", "AFT model: quantiles along x1", "5.1.1, fig. 1", "curves"),
    Entry("aft-node-sizes", "AFT model: losses", "5.1.1, fig. 3", "node_sizes"),
    Entry(
        "heteroscedastic-curves",
        "Heteroscedastic model: quantiles along x1",
        "5.1.2, fig. 2",
        "curves",
    ),
    Entry(
        "heteroscedastic-node-sizes", "Heteroscedastic model: losses", "5.1.2, fig. 4", "node_sizes"
    ),
    Entry(
        "censoring-survival",
        "Survival function of the censoring time",
        "5.2, fig. 5",
        "censoring_survival",
    ),
    Entry("boston-housing", "Boston housing: losses", "5.3, fig. 6", "node_sizes"),
    Entry("pbc", "PBC: concordance", "5.3, fig. 6", "node_sizes"),
    Entry("interval-curves", "Sine model: 95 % intervals along x", "B.1", "curves"),
    Entry("interval-coverage", "Sine model: coverage of intervals", "B.1", "intervals"),
    Entry("sine-curves", "Sine model: quantiles along x", "B.2", "curves"),
    Entry("consistency", "AFT model: error as n grows", "4.1, theory", "beyond"),
    Entry("query-time", "Time per query as n grows", "A.1, theory", "beyond"),
    Entry("censoring-share", "AFT model: 10 to 70 % censored", "", "beyond"),
    Entry("dependent-censoring", "Censoring that depends on a covariate", "", "beyond"),
    Entry(
        "r-packages",
        "Comparison with the R packages of the paper",
        "",
        "references",
        needs=R_DATA,
    ),
    Entry(
        "python-packages",
        "Comparison with Python packages",
        "",
        "references",
        needs=PEERS,
    ),
)


def find_entries(names: Sequence[str]) -> list[Entry]:
    """Entries with these names, in the order of the catalog; ``all`` selects every entry."""
    known = [*(entry.name for entry in CATALOG), "all"]
    for name in names:
        if name not in known:
            near = get_close_matches(name, known, 1)
            hint = f"; did you mean {near[0]!r}?" if near else "; cqrf reproduce lists them."
            raise ValueError(f"there is no experiment {name!r}{hint}")
    return [entry for entry in CATALOG if "all" in names or entry.name in names]
