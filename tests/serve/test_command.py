"""The command: it serves until Ctrl-C, and says on one line what is wrong."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request

import pandas as pd
import pytest
from typer.testing import CliRunner

from cqrf.cli.app import app

PROGRAM = [sys.executable, "-c", "from cqrf.cli import main; main()"]


@pytest.fixture(scope="module")
def folder(forest, frame, target, tmp_path_factory):
    """A model file and tables beside it."""
    folder = tmp_path_factory.mktemp("serve")
    forest.save(folder / "m.cqrf", notes={"time": "days", "event": "status", "source": "data.csv"})
    table = frame.assign(days=target["time"], status=target["event"].astype(int))
    table.insert(0, "id", [f"p{i}" for i in range(len(frame))])
    table.to_parquet(folder / "data.parquet")
    table.head(7).drop(columns=["days", "status"]).to_parquet(folder / "new.parquet")
    strange = table.head(3).drop(columns=["days", "status"])
    colours = [strange["colour"].iloc[0], "pink", None]
    strange.assign(colour=colours).to_parquet(folder / "strange.parquet")
    table.drop(columns=["age", "stay"]).to_csv(folder / "less.csv", index=False)
    forest.save(folder / "python.cqrf", notes={})
    (folder / "broken.cqrf").write_bytes((folder / "m.cqrf").read_bytes()[:500])
    return folder


class Serving:
    """The command in a process of its own."""

    def __init__(self, *arguments, cwd):
        self.process = subprocess.Popen(
            [*PROGRAM, "serve", *arguments, "--port", "0"],
            cwd=cwd,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.line = self.process.stdout.readline()
        if not self.line:
            raise AssertionError(self.process.communicate()[1])
        self.address = re.search(r"http://\S+/", self.line).group()

    def get(self, path):
        with urllib.request.urlopen(self.address + path) as answer:
            return json.load(answer)

    def stop(self):
        """Exit code after Ctrl-C, and what was said."""
        self.process.send_signal(signal.SIGINT)
        out, err = self.process.communicate(timeout=240)
        return self.process.returncode, out, err


def test_it_serves_until_it_is_stopped(folder, frame):
    serving = Serving("m.cqrf", "--data", "data.parquet", "--id", "id", cwd=folder)
    assert re.fullmatch(
        r"Serving m\.cqrf on http://127\.0\.0\.1:\d+/ \(Ctrl-C ends it\)\n", serving.line
    )
    assert serving.get("healthz")["status"] == "ok"
    data = serving.get("model")["data"]
    assert data == {"source": "data.parquet", "rows": len(frame), "training": True, "id": "id"}
    assert serving.get("rows/3")["label"] == "p2"
    code, out, err = serving.stop()
    assert (code, out) == (0, "")
    assert "the training table, so the neighbours of a subject are shown" in err
    assert "Traceback" not in err


@pytest.mark.parametrize("place", ["webbrowser.open", "uvicorn.Config", "uvicorn.Server.run"])
def test_ctrl_c_ends_it_as_soon_as_the_address_is_printed(folder, monkeypatch, place):
    monkeypatch.setattr(place, lambda *_, **__: signal.raise_signal(signal.SIGINT))
    done = CliRunner().invoke(app, ["serve", str(folder / "m.cqrf"), "--port", "0", "--open"])
    assert (done.exit_code, done.stderr) == (0, "cqrf: stopped serving\n")
    assert done.stdout.startswith("Serving m.cqrf on ")


def test_other_rows_are_for_starting_only(folder):
    serving = Serving("m.cqrf", "--data", "new.parquet", cwd=folder)
    try:
        assert serving.get("model")["data"] == {
            "source": "new.parquet",
            "rows": 7,
            "training": False,
            "id": None,
        }
        row = serving.get("rows/7")
        assert (row["label"], row["time"]) == ("7", None)
    finally:
        code, _, err = serving.stop()
    assert code == 0
    assert "not the training table, so neighbours are not shown" in err


def test_a_forest_that_python_saved_does_not_name_the_column_of_times(folder):
    serving = Serving("python.cqrf", "--data", "data.parquet", cwd=folder)
    try:
        assert not serving.get("model")["data"]["training"]
    finally:
        code, _, err = serving.stop()
    assert code == 0
    assert "if it is the training table, --time and --event show neighbours" in err


@pytest.mark.parametrize("options", [[], ["--strict"]])
def test_an_unseen_level_is_missing_unless_the_server_is_strict(folder, options):
    serving = Serving("m.cqrf", "--data", "strange.parquet", *options, cwd=folder)
    try:
        assert serving.get("rows/1")["notes"] == []
        if options:
            with pytest.raises(urllib.error.HTTPError) as refusal:
                serving.get("rows/2")
            assert refusal.value.code == 422
            assert "has no level 'pink'" in json.load(refusal.value)["error"]
        else:
            row = serving.get("rows/2")
            assert row["values"]["colour"] is None
            (note,) = row["notes"]
            assert "column 'colour' has no level 'pink'" in note
    finally:
        assert serving.stop()[0] == 0


def refused(folder, *arguments):
    """The one line that says what is wrong."""
    before = os.getcwd()
    os.chdir(folder)
    try:
        done = CliRunner().invoke(app, ["serve", *arguments])
    finally:
        os.chdir(before)
    assert done.exit_code == 2, done.output
    assert done.stdout == ""
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("cqrf: ")]
    return line


def test_what_is_wrong_is_said_on_one_line(folder):
    assert "none.cqrf: No such file" in refused(folder, "none.cqrf")
    assert "broken.cqrf" in refused(folder, "broken.cqrf")
    assert "none.csv" in refused(folder, "m.cqrf", "--data", "none.csv")
    line = refused(folder, "m.cqrf", "--data", "less.csv")
    assert "less.csv lacks 2 columns of the model: 'age', 'stay'" in line
    line = refused(folder, "m.cqrf", "--data", "data.parquet", "--id", "name")
    assert "no column 'name'" in line
    line = refused(folder, "m.cqrf", "--data", "new.parquet", "--time", "weeks")
    assert "no column 'weeks'" in line
    assert "--host 192.0.2.1 is no address" in refused(folder, "m.cqrf", "--host", "192.0.2.1")
    assert "--host no.such.invalid" in refused(folder, "m.cqrf", "--host", "no.such.invalid")


def test_a_port_in_use_is_said(folder):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        line = refused(folder, "m.cqrf", "--port", port)
    assert (
        line
        == f"cqrf: port {port} is in use: choose another with --port, or 0 for any that is free."
    )


def test_a_model_of_an_array_is_served_too(folder, tmp_path):
    import numpy as np

    from cqrf import CensoredQuantileForest

    X = np.random.default_rng(0).random((60, 2))
    CensoredQuantileForest(n_estimators=5, random_state=0).fit(X, X[:, 0] + 1).save(
        tmp_path / "a.cqrf"
    )
    pd.DataFrame(X, columns=["feature 0", "feature 1"]).to_csv(tmp_path / "a.csv", index=False)
    serving = Serving("a.cqrf", "--data", "a.csv", cwd=tmp_path)
    try:
        assert [c["name"] for c in serving.get("model")["columns"]] == ["feature 0", "feature 1"]
    finally:
        assert serving.stop()[0] == 0


@pytest.mark.parametrize("gone", ["fastapi", "uvicorn"])
def test_without_the_extra_it_is_named(folder, gone):
    program = f"import sys; sys.modules[{gone!r}] = None; from cqrf.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", program, "serve", "m.cqrf"],
        cwd=folder,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert done.stderr.strip() == f"cqrf: this needs {gone}: pip install 'cqrf[serve]'"


def test_a_treatment_forest_is_served(treatment_forest, arms, tmp_path):
    X, y, _ = arms
    treatment_forest.save(tmp_path / "e.cqrf", notes={"time": "days", "event": "status"})
    table = X.assign(days=y["time"], status=y["event"].astype(int))
    table.to_parquet(tmp_path / "data.parquet")
    serving = Serving("e.cqrf", "--data", "data.parquet", cwd=tmp_path)
    try:
        model = serving.get("model")
        assert [arm["name"] for arm in model["arms"]] == ["usual", "new"]
        assert model["data"]["training"]
        assert serving.get("rows/3")["event"] == bool(y["event"][2])
    finally:
        code, _, err = serving.stop()
    assert code == 0
    assert f"{len(X)} rows, to start from\n" in err
    assert "Traceback" not in err
