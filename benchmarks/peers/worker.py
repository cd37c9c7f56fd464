"""Worker process in Python: reads commands from standard input, writes one line for each.

The commands are load FOLDER N P QUERIES, fit TREES THREADS, predict, and save PATH. The line is
"ok" and the seconds the command took, or "error" and the reason.

Run by process.py: python -m benchmarks.peers.worker NAME SETTINGS
"""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from pathlib import Path

from benchmarks.peers.forests import FORESTS, Forest
from benchmarks.peers.tables import read_table


class Commands:
    def __init__(self, forest: Forest) -> None:
        self.forest = forest

    def load(self, folder: str, n: str, p: str, n_queries: str) -> None:
        self.train = read_table(Path(folder) / "train.bin", int(n), int(p))
        self.queries = read_table(Path(folder) / "queries.bin", int(n_queries), int(p))[0]

    def fit(self, trees: str, threads: str) -> None:
        self.forest.fit(*self.train, trees=int(trees), threads=int(threads))

    def predict(self) -> None:
        self.forest.predict(self.queries)

    def save(self, path: str) -> None:
        self.forest.save(Path(path))


def main() -> None:
    warnings.simplefilter("ignore")
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # other output of a library goes to the log
    commands = Commands(FORESTS[sys.argv[1]](**json.loads(sys.argv[2])))
    for line in sys.stdin:
        name, *words = line.rstrip("\n").split("\t")
        began = time.perf_counter()
        try:
            getattr(commands, name)(*words)
            answer = f"ok {time.perf_counter() - began:.6f}"
        except Exception as problem:
            answer = f"error {type(problem).__name__}: {problem}".replace("\n", " ")
        print(answer, file=answers, flush=True)


if __name__ == "__main__":
    main()
