"""Experiment: cases to run, a figure to draw, claims to check; and the folder of its results.

A case is one repeat at one setting. It is run once: cases that the results file of the experiment
already has are skipped. A folder holds one kind of study, full or quick, with our baselines or
with those of other packages; ``run.json`` records which.
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

Case: TypeAlias = dict[str, Any]


class Claim(NamedTuple):
    """A claim about an experiment, what was measured, and whether the claim holds."""

    text: str
    measured: str
    holds: bool
    reason: str = ""
    """Why it does not hold, if it does not."""


@dataclass(frozen=True)
class Experiment:
    """One experiment: functions that list and run its cases, draw its figure, check its claims."""

    name: str
    list_cases: Callable[[Study], list[Case]]
    run_case: Callable[[Study, Case], list[Row]]
    draw: Callable[[Results], Figure]
    check_claims: Callable[[Results], list[Claim]]
    tabulate: Callable[[Results], str] | None = None
    """Makes a table for the page, in Markdown."""


class Folder:
    """The folder of results: a CSV file and a figure per experiment, run.json and README.md."""

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
            raise ValueError(f"{file} is not the record of a run; give another --out.") from error
        return dict(record)

    def holds(self, name: str) -> bool:
        """Whether there are results of an experiment."""
        return (self.path / f"{name}.csv").exists()

    def results(self, name: str) -> Results:
        """Results of an experiment in the folder."""
        return read_results(self.path / f"{name}.csv")

    def missing_cases(self, experiment: Experiment) -> list[Case]:
        """Cases without results in the folder."""
        done = self.results(experiment.name)
        cases = experiment.list_cases(self.study)
        if not len(done):
            return cases
        names = list(cases[0])
        lacking = set(names) - set(done.rows[0])
        if lacking:
            raise ValueError(
                f"{self.path / experiment.name}.csv has no column {sorted(lacking)[0]!r}. Remove "
                "the file to run its experiment again."
            )
        keys = {tuple(row[name] for name in names) for row in done.rows}
        return [case for case in cases if tuple(case[name] for name in names) not in keys]

    def run(self, experiment: Experiment) -> Iterator[Case]:
        """Run the missing cases; a case is yielded after its results are written."""
        self.path.mkdir(parents=True, exist_ok=True)
        results = self.results(experiment.name)
        if not len(results):  # the file was removed: count its seconds from zero
            self.record["seconds"].pop(experiment.name, None)
        for case in self.missing_cases(experiment):
            began = time.perf_counter()
            results = Results(results.rows + experiment.run_case(self.study, case))
            write_results(self.path / f"{experiment.name}.csv", results)
            seconds = self.record["seconds"]
            spent = seconds.get(experiment.name, 0.0) + time.perf_counter() - began
            seconds[experiment.name] = round(spent, 3)
            self._write("run.json", json.dumps(self.record, indent=1) + "\n")
            yield case

    def write_page(self, text: str) -> None:
        """Write README.md."""
        self._write("README.md", text)

    def draw(self, experiment: Experiment) -> None:
        """Draw the figure of an experiment from its results, as SVG and PNG."""
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
