"""Outputs that are no regular files, and standard streams that are closed."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from cqrf import CensoredQuantileForest, censored
from support.commands import FAST, ROLES, make_table, refused

PROGRAM = f'"{sys.executable}" -c "from cqrf.cli import main; main()"'


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table = make_table()
    table.to_csv("rows.csv", index=False)
    return table


@pytest.fixture
def model(table):
    forest = CensoredQuantileForest(n_estimators=4, random_state=0)
    forest.fit(table[["age", "group"]], censored(table["days"], table["status"]))
    forest.save("m.cqrf")
    return "m.cqrf"


def run(command):
    return subprocess.run(
        ["sh", "-c", f"exec {PROGRAM} {command}"], capture_output=True, text=True, timeout=900
    )


def test_an_output_that_is_a_link_to_itself_is_refused_before_any_work(table):
    os.symlink("loop.cqrf", "loop.cqrf")
    message = refused("fit", "rows.csv", *ROLES, *FAST, "-o", "loop.cqrf")
    assert message == "loop.cqrf: is a link that leads to itself."


def test_an_output_that_leads_to_no_folder_is_refused_before_any_work(table):
    os.symlink("nowhere/m.cqrf", "link.cqrf")
    message = refused("fit", "rows.csv", *ROLES, *FAST, "-o", "link.cqrf")
    assert message.startswith("link.cqrf leads to ")
    assert message.endswith("nowhere is not a folder: make it first.")


def test_an_output_that_is_a_pipe_needs_no_force_and_stays_one(table, model):
    os.mkfifo("out.csv")
    command = "predict m.cqrf rows.csv -o out.csv & cat out.csv; wait"
    done = subprocess.run(
        ["sh", "-c", f"{PROGRAM} {command}"], capture_output=True, text=True, timeout=900
    )
    assert done.stdout.splitlines()[0].startswith("q0.5")
    assert len(done.stdout.splitlines()) == 1 + len(table)
    assert stat.S_ISFIFO(os.stat("out.csv").st_mode)


def test_closed_standard_output_is_one_line(table, model):
    done = run("predict m.cqrf rows.csv >&-")
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith("cqrf: standard output is closed")


@pytest.mark.parametrize("out", ["", "-o out.csv"])
def test_with_closed_standard_error_no_note_lands_in_the_table(table, model, out):
    table["group"] = "unseen"  # gives a note
    table.to_csv("rows.csv", index=False)
    noted = run("predict m.cqrf rows.csv")
    assert "unseen" in noted.stderr
    done = run(f"predict m.cqrf rows.csv {out} 2>&-")
    found = Path("out.csv").read_text() if out else done.stdout
    assert found == noted.stdout
    assert done.stdout == ("" if out else found)


def test_closed_standard_input_is_one_line(model):
    done = run("predict m.cqrf - <&-")
    assert done.returncode == 2
    assert [line for line in done.stderr.splitlines() if line.startswith("cqrf: standard input")]
    assert "Traceback" not in done.stderr


def test_a_full_disk_behind_standard_output_is_named(table, model):
    done = run("predict m.cqrf rows.csv >/dev/full")
    assert done.returncode == 2
    assert done.stderr.splitlines() == ["cqrf: standard output: No space left on device"]


def test_a_model_is_written_although_no_message_can_be(table):
    done = run(f"fit rows.csv {' '.join(ROLES)} {' '.join(FAST)} -o m.cqrf 2>/dev/full")
    assert done.returncode == 0
    assert len(CensoredQuantileForest.load("m.cqrf").predict(table[["age", "group"]])) == len(table)
