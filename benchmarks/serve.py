"""How fast the server responds: the page's own request alone, then under wrk for a minute.

Run: python benchmarks/serve.py    (wrk: apt-get install wrk)

``--against SRC`` compares one response with confidence with that of another revision, whose ``src``
folder it is given. The other revision fits and writes the forest, which both serve; a third server
has today's default, fitted by this revision. All run at the same time and get the same requests in
turn. Other work on the machine moves the 10 % quantile of the times less than their median, and the
processor time of the server's process least. The other revision runs without httptools and uvloop,
which ``cqrf[serve]`` did not install then; with ``--same-packages`` it has them too.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cqrf import CensoredQuantileForest, censored
from cqrf.datasets import load_pbc

ROWS, COLUMNS, TREES, BAG = 10_000, 20, 500, 2
N_REQUESTS = 300
N_ROUNDS = 3
CONNECTIONS = 16
NEW_PACKAGES = ("httptools", "uvloop")  # of cqrf[serve] since d2b4140
CONFIDENT = {"quantiles": [0.1, 0.5, 0.9], "intervals": [0.8], "confidence": 0.95}


def write_model(folder: Path, bag_size: int) -> None:
    """A forest on simulated data and its table, as files."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(ROWS, COLUMNS)), columns=[f"x{j}" for j in range(COLUMNS)])
    X["group"] = rng.choice(list("abcdef"), ROWS)
    latent = rng.exponential(np.exp(1 + X["x0"] + 0.5 * X["x1"] * (X["group"] == "a")))
    end = rng.exponential(8.0, ROWS)
    save(folder, X, np.minimum(latent, end), latent <= end, bag_size)


def write_pbc(folder: Path, bag_size: int) -> None:
    """A forest on the PBC data and its table, as files."""
    table = load_pbc(as_frame=True)
    save(folder, table.X, table.y["time"], table.y["event"], bag_size)


WRITERS = {"PBC": write_pbc, "10,000 rows": write_model}


def write_by(source: str | None, folder: Path, table: str) -> Path:
    """A forest by another revision, or by this one in a process of its own."""
    folder.mkdir(parents=True)
    command = [sys.executable, __file__, "--write", str(folder), "--table", table]
    subprocess.run(command, env=make_environment(source, folder), check=True)
    return folder


def make_environment(source: str | None, folder: Path) -> dict[str, str]:
    """Environment of a process of a revision, with a kernel cache of its own."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(folder / "kernels")}
    return environment if source is None else {**environment, "PYTHONPATH": source}


def save(folder: Path, X: pd.DataFrame, time_: Any, event: Any, bag_size: int) -> None:
    """Fit and write ``model.cqrf`` and ``data.csv``."""
    forest = CensoredQuantileForest(
        n_estimators=TREES, bag_size=bag_size, random_state=0, n_jobs=-1
    ).fit(X, censored(time_, event))
    forest.save(folder / "model.cqrf", notes={"time": "time", "event": "event"})
    X.assign(time=time_, event=event.astype(int)).to_csv(folder / "data.csv", index=False)


class Server:
    """``cqrf serve`` in its own process, of this revision or of another one."""

    def __init__(
        self, folder: Path, source: str | None = None, without: Sequence[str] = ()
    ) -> None:
        hidden = "".join(f"sys.modules[{name!r}] = None; " for name in without)
        program = f"import sys; {hidden}from cqrf.cli import main; main()"
        command = [sys.executable, "-c", program, "serve", "model.cqrf", "--data", "data.csv"]
        self.process = subprocess.Popen(
            [*command, "--port", "0"],
            cwd=folder,
            env=make_environment(source, folder),
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

    def cpu_time(self) -> float:
        """Milliseconds of processor time of all its threads."""
        tasks = Path(f"/proc/{self.process.pid}/task").glob("*/schedstat")
        return sum(int(task.read_text().split()[0]) for task in tasks) / 1e6

    def stop(self) -> None:
        """End it."""
        self.process.terminate()
        self.process.communicate()


def draw_subjects(address: str, n: int) -> list[dict[str, Any]]:
    """Subjects with random numbers in the numeric columns, and typical values elsewhere."""
    with urllib.request.urlopen(f"http://{address}/model") as response:
        columns = json.load(response)["columns"]
    rng = np.random.default_rng(1)
    subjects = []
    for _ in range(n):
        subject = {column["name"]: column["typical"] for column in columns}
        for column in columns:
            if column["kind"] == "number" and column["low"] is not None:
                subject[column["name"]] = rng.uniform(column["low"], column["high"])
        subjects.append(subject)
    return subjects


def make_subject_requests(address: str, n: int) -> list[bytes]:
    """Requests of the page for two subjects, no two alike."""
    subjects = draw_subjects(address, 2 * n)
    pairs = zip(subjects[::2], subjects[1::2], strict=True)
    return [json.dumps({"subjects": list(pair)}).encode() for pair in pairs]


def time_requests(address: str, path: str, bodies: list[bytes]) -> np.ndarray:
    """Milliseconds until each response, one request after the other."""
    connection = http.client.HTTPConnection(address)
    taken = [time_request(connection, path, body) for body in bodies]
    connection.close()
    return np.array(taken)


def time_request(connection: http.client.HTTPConnection, path: str, body: bytes) -> float:
    """Milliseconds until the response, over a connection that stays open."""
    began = time.perf_counter()
    connection.request("POST", path, body, {"Content-Type": "application/json"})
    response = connection.getresponse()
    content = response.read()
    taken = 1e3 * (time.perf_counter() - began)
    assert response.status == 200, content
    return taken


def compare(source: str, without: Sequence[str]) -> None:
    """Print the time of one response with confidence, here and at another revision."""
    print(f"{TREES} trees, bag_size={BAG}; one response with confidence, in ms.")
    print("HTTP: 10 % quantile of the time until the client has it. CPU: processor time of the")
    print("server's process for one request, on average. Default: with the working model.\n")
    print("| table | path | HTTP before | now | ratio | CPU before | now | ratio | default: HTTP |")
    print("|---|---|---|---|---|---|---|---|---|")
    for table in WRITERS:
        with tempfile.TemporaryDirectory() as name:
            compare_on(table, Path(name), source, without)


def compare_on(table: str, folder: Path, source: str, without: Sequence[str]) -> None:
    """Print the rows of a table."""
    other = write_by(source, folder / "other", table)
    this, default = folder / "this", write_by(None, folder / "default", table)
    shutil.copytree(other, this, ignore=shutil.ignore_patterns("kernels"))
    servers = [Server(other, source, without), Server(this), Server(default)]
    connections = [http.client.HTTPConnection(server.address) for server in servers]
    try:
        for path, requests in make_confident_requests(servers[1].address).items():
            for server in servers:
                time_requests(server.address, path, requests[:3])  # kernels are compiled
            for _ in range(N_ROUNDS):
                began = [server.cpu_time() for server in servers]
                taken = [
                    [time_request(connection, path, body) for connection in connections]
                    for body in requests
                ]
                ended = [server.cpu_time() for server in servers]
                used = (np.array(ended) - began) / len(requests)
                before, now, with_model = np.quantile(taken, 0.1, axis=0)
                print(
                    f"| {table} | {path} | {before:.2f} | {now:.2f} | {now / before:.2f} "
                    f"| {used[0]:.2f} | {used[1]:.2f} | {used[1] / used[0]:.2f} "
                    f"| {with_model:.2f} |",
                    flush=True,
                )
    finally:
        for connection, server in zip(connections, servers, strict=True):
            connection.close()
            server.stop()


def make_confident_requests(address: str) -> dict[str, list[bytes]]:
    """Requests with confidence by path: one row of the API, two subjects of the page."""
    return {
        "/predict": [
            json.dumps({"rows": [row], "times": [365, 1825], **CONFIDENT}).encode()
            for row in draw_subjects(address, N_REQUESTS)
        ],
        "/subjects": make_subject_requests(address, N_REQUESTS),
    }


def run_wrk(server: Server, folder: Path, path: str, body: bytes, seconds: int) -> None:
    """Send requests by wrk for some time, and print a row of the table."""
    quoted = body.decode().replace("\\", "\\\\").replace("'", "\\'")
    (folder / "requests.lua").write_text(
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
    options = ["-t2", f"-c{CONNECTIONS}", f"-d{seconds}s", "--timeout", "10s", "-s", "requests.lua"]
    done = subprocess.run(
        ["wrk", *options, f"http://{server.address}{path}"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    found = re.search(r"RESULT (\d+) (\d+) (\S+) (\S+)", done.stdout)
    assert found is not None, done.stdout
    n, failed, median, p99 = (float(part) for part in found.groups())
    print(
        f"| {path} | {n / seconds:,.0f} | {median:.0f} | {p99:.0f} | {failed:.0f} of {n:,.0f} "
        f"| {before:.0f} | {server.memory():.0f} |",
        flush=True,
    )


def measure(seconds: int) -> None:
    """Print the tables of benchmarks/results/serve.md."""
    print(f"{TREES} trees, {ROWS:,} rows, {COLUMNS + 1} columns; two subjects a request\n")
    print("| forest | median ms | p99 ms | worst ms |\n|---|---|---|---|")
    for bag_size in (1, BAG):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            write_model(folder, bag_size)
            server = Server(folder)
            try:
                requests = make_subject_requests(server.address, N_REQUESTS)
                taken = time_requests(server.address, "/subjects", requests)
                median, p99 = np.quantile(taken, [0.5, 0.99])
                kind = "without bags" if bag_size == 1 else f"bag_size={bag_size}, with bands"
                print(f"| {kind} | {median:.0f} | {p99:.0f} | {taken.max():.0f} |", flush=True)
                if bag_size == 1 or shutil.which("wrk") is None:
                    continue
                print(f"\nwrk, {CONNECTIONS} connections, {seconds} s each\n")
                print("| path | requests/s | median ms | p99 ms | failed | MB before | MB after |")
                print("|---|---|---|---|---|---|---|")
                row = json.loads(requests[0])["subjects"][0]
                predict = {"rows": [row], "quantiles": [0.1, 0.5, 0.9], "times": [1, 5]}
                run_wrk(server, folder, "/predict", json.dumps(predict).encode(), seconds)
                run_wrk(server, folder, "/subjects", requests[0], seconds)
            finally:
                server.stop()


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=60, help="duration of each run of wrk")
    parser.add_argument("--against", metavar="SRC", help="src folder of another revision")
    parser.add_argument("--same-packages", action="store_true", help="for the other revision")
    parser.add_argument("--write", metavar="FOLDER", type=Path, help="only write a forest")
    parser.add_argument("--table", choices=WRITERS, default="PBC", help="table of that forest")
    arguments = parser.parse_args()
    if arguments.write is not None:
        WRITERS[arguments.table](arguments.write, BAG)
    elif arguments.against is not None:
        compare(arguments.against, () if arguments.same_packages else NEW_PACKAGES)
    else:
        measure(arguments.seconds)


if __name__ == "__main__":
    main()
