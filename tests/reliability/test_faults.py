"""Every write, rename and allocation fails once in turn: what was there stays, and nothing else."""

import errno
import io
import os
import stat
import threading
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from cqrf import CensoredQuantileForest, censored
from cqrf._runtime import files
from cqrf.cli.app import app
from cqrf.conformal import ConformalForest
from cqrf.effects import CensoredTreatmentForest
from cqrf.report import report_effects, write_report
from support.commands import ROLES, make_table

OLD = b"what was there before"
MOST_CALLS = 500
# Allocations of NumPy that code reaches by name.
ALLOCATING = (
    *("empty", "zeros", "ones", "full", "concatenate", "ascontiguousarray", "asarray"),
    *("where", "diff", "packbits"),
)


class Fault:
    """Lets so many calls of its own thread through, and fails at the one after them.

    Threads that other tests have left running, such as Dask's, are not counted.
    """

    def __init__(self, n_before, error):
        self.left, self.error, self.has_failed = n_before, error, False
        self.thread = threading.get_ident()

    def wrap(self, function):
        def wrapped(*arguments, **settings):
            if threading.get_ident() != self.thread:
                return function(*arguments, **settings)
            if self.left == 0 and not self.has_failed:
                self.has_failed = True
                raise self.error
            self.left -= 1
            return function(*arguments, **settings)

        return wrapped


class FaultyFile(io.BufferedWriter):
    """A file whose writes and flushes go through a fault."""

    def __init__(self, opened, fault):
        super().__init__(opened.detach())
        self.write = fault.wrap(super().write)
        self.flush = fault.wrap(super().flush)


def fail_disk(monkeypatch, n_before):
    """The n-th step of writing a file fails: to open, write, flush, sync, set rights, rename."""
    fault = Fault(n_before, OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))
    open_part = files.open_part

    def open_faulty(target):
        part, opened = open_part(target)
        return part, FaultyFile(opened, fault)

    monkeypatch.setattr(files, "open_part", fault.wrap(open_faulty))
    sync, faulty_sync = os.fsync, fault.wrap(os.fsync)

    def sync_faulty(opened):  # a folder is synced where the system can, after the file is there
        is_file = stat.S_ISREG(os.fstat(opened).st_mode)
        return (faulty_sync if is_file else sync)(opened)

    monkeypatch.setattr(os, "fsync", sync_faulty)
    monkeypatch.setattr(Path, "chmod", fault.wrap(Path.chmod))
    monkeypatch.setattr(Path, "replace", fault.wrap(Path.replace))
    return fault


def fail_memory(monkeypatch, n_before):
    """The n-th allocation fails."""
    fault = Fault(n_before, MemoryError("no memory is left"))
    for name in ALLOCATING:
        monkeypatch.setattr(np, name, fault.wrap(getattr(np, name)))
    return fault


def make_rows(n=60):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(n, 2)).round(2), columns=["a", "b"])
    return X, censored(rng.exponential(2, n).round(1) + 0.1, rng.random(n) < 0.7)


@pytest.fixture(scope="module")
def writers():
    """What writes a file of each kind, given its path."""
    X, y = make_rows()
    few = {"n_estimators": 4, "random_state": 0, "n_jobs": 1}
    forest = CensoredQuantileForest(**few).fit(X, y)
    nuisance = CensoredQuantileForest(n_estimators=20)
    effects = CensoredTreatmentForest(**few | {"n_estimators": 8}, nuisance_forest=nuisance)
    arm = np.arange(60) % 2
    return {
        "save": forest.save,
        "save of a conformal forest": ConformalForest(forest, random_state=0).fit(X, y).save,
        "save of a treatment forest": effects.fit(X, y, arm, propensity=0.5).save,
        "report": lambda path: write_report(forest, X, y, path, max_rows=10),
        "report of effects": lambda path: report_effects(effects, path),
    }


SAVES = ["save", "save of a conformal forest", "save of a treatment forest"]
# Each step is a whole report.
REPORTS = [pytest.param("report", marks=pytest.mark.slow), "report of effects"]


def try_every_step(fail, write, target, check):
    """Fail at the first step, then at the second, until one run has no fault; return how many."""
    target.parent.mkdir()
    for n_before in range(MOST_CALLS):
        target.write_bytes(OLD)
        with pytest.MonkeyPatch.context() as monkeypatch, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fault = fail(monkeypatch, n_before)
            try:
                write(target)
            except (OSError, MemoryError) as error:
                caught = error
            else:
                caught = None
        assert os.listdir(target.parent) == [target.name], n_before
        if not fault.has_failed:
            assert caught is None
            assert target.read_bytes() != OLD
            return n_before
        check(caught)
        assert target.read_bytes() == OLD, n_before
    raise AssertionError(f"still failing after {MOST_CALLS} calls")


@pytest.mark.parametrize("kind", [*SAVES, *REPORTS])
def test_every_step_of_writing_a_file_fails_once(kind, writers, tmp_path):
    target = tmp_path / "folder" / "out"

    def check(error):
        assert error.errno == errno.ENOSPC
        assert str(error.filename) == str(target)

    n_steps = try_every_step(fail_disk, writers[kind], target, check)
    assert n_steps >= 6  # opened, written, flushed twice, synced, its rights, renamed


@pytest.mark.parametrize("kind", SAVES)
def test_every_allocation_of_a_save_fails_once(kind, writers, tmp_path):
    def check(error):
        assert isinstance(error, MemoryError)

    n_steps = try_every_step(fail_memory, writers[kind], tmp_path / "folder" / "out", check)
    assert n_steps >= 10


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """A folder with a table and a model of it."""
    folder = tmp_path_factory.mktemp("tables")
    table = make_table()
    table.to_csv(folder / "rows.csv", index=False)
    forest = CensoredQuantileForest(n_estimators=4, random_state=0, n_jobs=1)
    forest.fit(table[["age", "group"]], censored(table["days"], table["status"]))
    forest.save(folder / "m.cqrf")
    return folder


def run(*arguments):
    """Run a command; an error of the disk that it tells is raised again, with what it said."""
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if done.exit_code:
        assert isinstance(done.exception, SystemExit), done.exception
        raise OSError(errno.ENOSPC, done.stderr)


COMMANDS = {
    "m.cqrf": ["fit", "rows.csv", *ROLES, "--trees", "4", "--jobs", "1"],
    "r.html": ["report", "m.cqrf", "rows.csv", *ROLES],
    "out.csv": ["predict", "m.cqrf", "rows.csv"],
    "out.parquet": ["predict", "m.cqrf", "rows.csv"],
    "out.feather": ["predict", "m.cqrf", "rows.csv"],
}


SLOW_COMMANDS = ("m.cqrf", "r.html")  # each step is a fit, or a report


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] if name in SLOW_COMMANDS else [])
        for name in COMMANDS
    ],
)
def test_every_step_of_a_command_that_writes_fails_once(name, tables, tmp_path, monkeypatch):
    """One line that names the file, which is as it was."""
    monkeypatch.chdir(tables)
    target = tmp_path / "folder" / name

    def write(path):
        run(*COMMANDS[name], "-o", path, "--force")

    def check(error):
        (line,) = [line for line in error.strerror.splitlines() if line.startswith("cqrf: ")]
        assert str(target) in line
        assert os.strerror(errno.ENOSPC) in line

    assert try_every_step(fail_disk, write, target, check) >= 6
