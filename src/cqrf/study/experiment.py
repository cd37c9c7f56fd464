"""Experiment: units to run, a figure to draw, claims to judge; and the folder they go to.

A unit, one repeat at one setting, is run once: what its experiment's file already holds is not
run again. A folder belongs to one kind of run, the paper's size or a quick one, with our
baselines or with the peers'; ``run.json`` says which.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from cqrf.study.methods import Study
from cqrf.study.results import Results, Row, read_results, write_results

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Unit: TypeAlias = dict[str, Any]


class Claim(NamedTuple):
    """Something said of an experiment, and what it showed."""

    text: str
    measured: str
    holds: bool
    why: str = ""
    """Why it does not hold, where it does not."""


@dataclass(frozen=True)
class Experiment:
    """One experiment, by its parts."""

    name: str
    list_units: Callable[[Study], list[Unit]]
    run_unit: Callable[[Study, Unit], list[Row]]
    draw: Callable[[Results], Figure]
    judge: Callable[[Results], list[Claim]]
    tabulate: Callable[[Results], str] | None = None
    """A table for the page, in Markdown."""


class Folder:
    """Where results go."""

    def __init__(self, path: Path, study: Study) -> None:
        if path.exists() and not path.is_dir():
            raise ValueError(f"{path} is a file; give a folder as --out.")
        self.path = path
        self.study = study
        self.record: dict[str, Any] = {
            "quick": study.quick,
            "peers": study.with_peers,
            "seconds": {},
        }
        found = self._read_record()
        for kind in ("quick", "peers"):
            if found is not None and found.get(kind) != self.record[kind]:
                was = f"with --{kind}" if found.get(kind) else f"without --{kind}"
                raise ValueError(f"{path} holds results of a run {was}; give another --out.")
        self.record = found or self.record

    def _read_record(self) -> dict[str, Any] | None:
        file = self.path / "run.json"
        if not file.exists():
            return None
        try:
            record = json.loads(file.read_text(encoding="utf-8"))
            record["seconds"].values()
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise ValueError(f"{file} is no record of a run; give another --out.") from error
        return dict(record)

    def holds(self, name: str) -> bool:
        """Whether there are results of an experiment."""
        return (self.path / f"{name}.csv").exists()

    def results(self, name: str) -> Results:
        """What the folder holds of an experiment."""
        return read_results(self.path / f"{name}.csv")

    def missing_units(self, experiment: Experiment) -> list[Unit]:
        """Units that are not in the folder yet."""
        done = self.results(experiment.name)
        units = experiment.list_units(self.study)
        if not len(done):
            return units
        names = list(units[0])
        lacking = set(names) - set(done.rows[0])
        if lacking:
            raise ValueError(
                f"{self.path / experiment.name}.csv has no column {sorted(lacking)[0]!r}. Remove "
                "the file to run its experiment anew."
            )
        keys = {tuple(row[name] for name in names) for row in done.rows}
        return [unit for unit in units if tuple(unit[name] for name in names) not in keys]

    def run(self, experiment: Experiment) -> Iterator[Unit]:
        """Run what is missing, unit by unit; each is in the file when it is yielded."""
        self.path.mkdir(parents=True, exist_ok=True)
        results = self.results(experiment.name)
        if not len(results):  # its file was removed, to be made anew
            self.record["seconds"].pop(experiment.name, None)
        for unit in self.missing_units(experiment):
            began = time.perf_counter()
            results = Results(results.rows + experiment.run_unit(self.study, unit))
            write_results(self.path / f"{experiment.name}.csv", results)
            seconds = self.record["seconds"]
            spent = seconds.get(experiment.name, 0.0) + time.perf_counter() - began
            seconds[experiment.name] = round(spent, 3)
            self._write("run.json", json.dumps(self.record, indent=1) + "\n")
            yield unit

    def write_page(self, text: str) -> None:
        """Write the page over all results."""
        self._write("README.md", text)

    def draw(self, experiment: Experiment) -> None:
        """Draw the figure of what the folder holds, as SVG and PNG."""
        from matplotlib import rc_context
        from matplotlib.pyplot import close

        from cqrf.study.figures import STYLE

        with rc_context(STYLE):
            figure = experiment.draw(self.results(experiment.name))
            for suffix in ("svg", "png"):
                # Without a date the same results give the same bytes.
                metadata = {"Date": None} if suffix == "svg" else None
                figure.savefig(self.path / f"{experiment.name}.{suffix}", metadata=metadata)
            close(figure)

    def _write(self, name: str, text: str) -> None:
        written = self.path / f"{name}.part"
        written.write_text(text, encoding="utf-8")
        written.replace(self.path / name)
