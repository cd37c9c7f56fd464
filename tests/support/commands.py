"""Calls of the command line in this process, and a table for them."""

import numpy as np
import pandas as pd
from typer.testing import CliRunner

from cqrf.cli.app import app

ROLES = ["--time", "days", "--event", "status"]
FAST = ["--trees", "20", "--jobs", "1"]


def call(*arguments, code=0, **settings):
    """Run a command that must end with this code."""
    done = CliRunner().invoke(app, [str(argument) for argument in arguments], **settings)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == code, done.output
    return done


def refused(*arguments, **settings):
    """The one line that says what is wrong."""
    done = call(*arguments, code=2, **settings)
    lines = [line for line in done.stderr.splitlines() if line.startswith("cqrf: ")]
    assert len(lines) == 1, done.stderr
    assert done.stdout == ""
    return lines[0].removeprefix("cqrf: ")


def make_table(n=60, seed=0):
    """Age and group of rows, their time in days, and whether they had the event."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({"age": rng.integers(20, 90, n), "group": rng.choice(["a", "é", "c"], n)})
    table["days"] = (rng.exponential(3000 / table["age"]) + 1).round(1)
    table["status"] = rng.choice([0, 1], n, p=[0.3, 0.7])
    return table
