"""How fast the server answers: the page's own question, alone, then under wrk for a minute.

Run: python benchmarks/serve.py    (wrk: apt-get install wrk)
"""

from __future__ import annotations

import argparse
import http.client
import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import numpy as np
import pandas as pd

from cqrf import CensoredQuantileForest, censored

ROWS, COLUMNS, TREES, BAG = 10_000, 20, 500, 2
ASKED = 300
CONNECTIONS = 16


def write_model(folder: Path, bag_size: int) -> None:
    """A forest and its table, as files."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(ROWS, COLUMNS)), columns=[f"x{j}" for j in range(COLUMNS)])
    X["group"] = rng.choice(list("abcdef"), ROWS)
    latent = rng.exponential(np.exp(1 + X["x0"] + 0.5 * X["x1"] * (X["group"] == "a")))
    end = rng.exponential(8.0, ROWS)
    time_, event = np.minimum(latent, end), latent <= end
    forest = CensoredQuantileForest(
        n_estimators=TREES, bag_size=bag_size, random_state=0, n_jobs=-1
    ).fit(X, censored(time_, event))
    forest.save(folder / "model.cqrf", notes={"time": "time", "event": "event"})
    X.assign(time=time_, event=event.astype(int)).to_csv(folder / "data.csv", index=False)


class Server:
    """``cqrf serve`` in a process of its own."""

    def __init__(self, folder: Path) -> None:
        program = "from cqrf.cli import main; main()"
        command = [sys.executable, "-c", program, "serve", "model.cqrf", "--data", "data.csv"]
        self.process = subprocess.Popen(
            [*command, "--port", "0"],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        found = re.search(r"http://([\d.:]+)/", line)
        assert found is not None, line
        self.address = found.group(1)

    def memory(self) -> float:
        """Resident memory in MB."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.findall(r"VmRSS:\s+(\d+)", status)[0]) / 1024

    def stop(self) -> None:
        """End it."""
        self.process.terminate()
        self.process.communicate()


def make_subjects(address: str, n: int) -> list[bytes]:
    """The page's question about two subjects, as many times, never the same."""
    with urllib.request.urlopen(f"http://{address}/model") as answer:
        columns = json.load(answer)["columns"]
    rng = np.random.default_rng(1)
    typical = {column["name"]: column["typical"] for column in columns}

    def draw() -> dict[str, object]:
        moved = {column["name"]: rng.normal() for column in columns if column["kind"] == "number"}
        return {**typical, **moved}

    return [json.dumps({"subjects": [draw(), draw()]}).encode() for _ in range(n)]


def time_questions(address: str, questions: list[bytes]) -> np.ndarray:
    """Milliseconds that each question takes, one after the other."""
    connection = http.client.HTTPConnection(address)
    taken = []
    for question in questions:
        began = time.perf_counter()
        connection.request("POST", "/subjects", question, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        content = answer.read()
        taken.append(1e3 * (time.perf_counter() - began))
        assert answer.status == 200, content
    connection.close()
    return np.array(taken)


def press(server: Server, folder: Path, path: str, body: bytes, seconds: int) -> None:
    """Let wrk ask for a while, and tell what came of it."""
    quoted = body.decode().replace("\\", "\\\\").replace("'", "\\'")
    (folder / "ask.lua").write_text(
        f"wrk.method = 'POST'\nwrk.body = '{quoted}'\n"
        "wrk.headers['Content-Type'] = 'application/json'\n"
        "done = function(summary, latency, requests)\n"
        "  local e = summary.errors\n"
        "  print(string.format('RESULT %d %d %f %f', summary.requests,\n"
        "    e.connect + e.read + e.write + e.status + e.timeout,\n"
        "    latency:percentile(50) / 1000, latency:percentile(99) / 1000))\n"
        "end\n"
    )
    before = server.memory()
    options = ["-t2", f"-c{CONNECTIONS}", f"-d{seconds}s", "--timeout", "10s", "-s", "ask.lua"]
    done = subprocess.run(
        ["wrk", *options, f"http://{server.address}{path}"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    found = re.search(r"RESULT (\d+) (\d+) (\S+) (\S+)", done.stdout)
    assert found is not None, done.stdout
    n, failed, half, late = (float(part) for part in found.groups())
    print(
        f"| {path} | {n / seconds:,.0f} | {half:.0f} | {late:.0f} | {failed:.0f} of {n:,.0f} "
        f"| {before:.0f} | {server.memory():.0f} |",
        flush=True,
    )


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=60, help="how long wrk asks")
    seconds = parser.parse_args().seconds
    print(f"{TREES} trees, {ROWS:,} rows, {COLUMNS + 1} columns; two subjects a question\n")
    print("| forest | median ms | p99 ms | worst ms |\n|---|---|---|---|")
    for bag_size in (1, BAG):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            write_model(folder, bag_size)
            server = Server(folder)
            try:
                questions = make_subjects(server.address, ASKED)
                taken = time_questions(server.address, questions)
                half, late = np.quantile(taken, [0.5, 0.99])
                kind = "without bags" if bag_size == 1 else f"bag_size={bag_size}, with bands"
                print(f"| {kind} | {half:.0f} | {late:.0f} | {taken.max():.0f} |", flush=True)
                if bag_size == 1 or shutil.which("wrk") is None:
                    continue
                print(f"\nwrk, {CONNECTIONS} connections, {seconds} s each\n")
                print("| path | requests/s | median ms | p99 ms | failed | MB before | MB after |")
                print("|---|---|---|---|---|---|---|")
                subject = json.loads(questions[0])["subjects"][0]
                asked = {"rows": [subject], "quantiles": [0.1, 0.5, 0.9], "times": [1, 5]}
                press(server, folder, "/predict", json.dumps(asked).encode(), seconds)
                press(server, folder, "/subjects", questions[0], seconds)
            finally:
                server.stop()


if __name__ == "__main__":
    main()
