"""warm: afterwards the commands compile nothing."""

import json
import subprocess
import sys

from cqrf._forest.grower import grow_trees
from cqrf._runtime.compiling import notice
from cqrf.cli import warm
from support.commands import call, make_table, refused

# What is compiled and what is read from the cache both become overloads of a kernel, so the state
# of the cache does not matter here.
COMMANDS = """
import gc, json, sys
from numba.core.dispatcher import Dispatcher
from cqrf.cli.app import app
from cqrf.cli.warm import run_steps

def list_compiled():
    return {
        f"{each.py_func.__module__}.{each.py_func.__name__}{signature}"
        for each in gc.get_objects()
        if isinstance(each, Dispatcher) and each.py_func.__module__.startswith("cqrf")
        for signature in each.overloads
    }

for _ in run_steps():
    pass
before = list_compiled()
assert len(before) > 20
for command in json.loads(sys.argv[1]):
    app(command, standalone_mode=False)
print(*sorted(list_compiled() - before), sep="\\n", file=sys.stderr)
"""
ROLES = ["--time", "days", "--event", "status", "--trees", "20"]
PREDICTIONS = ["-q", ".1,.5", "--survival", "5,9", "--mean", "--max-quantile", "--interval", ".8"]


def test_after_it_the_commands_have_all_their_kernels(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table = make_table(200)  # conformal fits a forest to half of them
    table["start"], table["weight"], table["ward"] = 0.1, 1.0 + table["age"] % 3, table["age"] % 9
    table.to_csv("t.csv", index=False)
    extra = ["--entry", "start", "--weight", "weight", "--groups", "ward"]
    ignored = ["--ignore", "start", "--ignore", "weight", "--ignore", "ward"]
    plain = [*ROLES, "--working-model", "none"]
    commands = [
        ["fit", "t.csv", *plain, *ignored, "--bag-size", "2", "-o", "m.cqrf"],
        ["fit", "t.csv", *plain, *extra, "-o", "extra.cqrf"],
        ["tune", "t.csv", *plain, *ignored, "--trials", "2", "-o", "tuned.cqrf"],
        ["conformal", "t.csv", *plain, *ignored, "-o", "c.cqrf"],
        ["predict", "m.cqrf", "t.csv", *PREDICTIONS],
        ["predict", "m.cqrf", "t.csv", "--survival", "5", "--confidence", ".9"],
        ["predict", "m.cqrf", "t.csv", *PREDICTIONS, "--given", "3"],
        ["predict", "extra.cqrf", "t.csv", *PREDICTIONS],
        ["predict", "c.cqrf", "t.csv"],
        ["evaluate", "m.cqrf"],
        ["evaluate", "m.cqrf", "t.csv"],
        ["report", "m.cqrf", "t.csv", "-o", "r.html"],
    ]
    with_model = ["--set", "min_samples_leaf=2"]  # by default
    commands += [
        ["fit", "t.csv", *ROLES, *ignored, *with_model, "--bag-size", "2", "-o", "w.cqrf"],
        ["fit", "t.csv", *ROLES, *extra, *with_model, "-o", "extra_w.cqrf"],
        ["tune", "t.csv", *ROLES, *ignored, *with_model, "--trials", "2", "-o", "tuned_w.cqrf"],
        ["conformal", "t.csv", *ROLES, *ignored, *with_model, "-o", "c_w.cqrf"],
        ["predict", "w.cqrf", "t.csv", *PREDICTIONS],
        ["predict", "w.cqrf", "t.csv", "--survival", "5", "--confidence", ".9"],
        ["predict", "w.cqrf", "t.csv", *PREDICTIONS, "--given", "3"],
        ["predict", "extra_w.cqrf", "t.csv", *PREDICTIONS],
        ["predict", "c_w.cqrf", "t.csv"],
        ["evaluate", "w.cqrf"],
        ["evaluate", "w.cqrf", "t.csv"],
        ["report", "w.cqrf", "t.csv", "-o", "r_w.html"],
    ]
    run = subprocess.run(
        [sys.executable, "-c", COMMANDS, json.dumps(commands)], capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    added = [line for line in run.stderr.splitlines() if line.startswith("cqrf.")]
    assert added == []


def test_it_says_what_was_compiled_and_where_it_is_kept(monkeypatch):
    def compile_two():
        notice.n_kernels += 2

    monkeypatch.setattr(notice, "n_kernels", 0)
    monkeypatch.setattr(notice, "is_announced", False)
    monkeypatch.setattr(warm, "STEPS", {"one": lambda: None})
    folder = warm.find_cache()
    assert any(folder.rglob("*.nbi"))
    assert call("warm").stderr == f"Nothing to compile: all kernels are in {folder}\n"
    monkeypatch.setattr(warm, "STEPS", {"two": compile_two})
    said = call("warm").stderr
    assert said.startswith("Compiled 2 kernels in 0.0 s, kept in ")


def test_without_a_folder_it_says_what_to_set(monkeypatch):
    class NoStats:
        cache_path = None

    monkeypatch.setattr(type(grow_trees), "stats", NoStats)
    assert "set NUMBA_CACHE_DIR to one that can be written" in refused("warm")
