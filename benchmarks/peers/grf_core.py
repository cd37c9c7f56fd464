"""grf's C++ core with our driver, for machines without the R package grf.

The source of grf 2.0.0 is taken from the wheel of skgrf on PyPI. It is built once, into the user's
cache.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

DRIVER = Path(__file__).with_name("grf_driver.cpp")
FLAGS = ["-O3", "-std=c++11", "-pthread", "-w"]
# Only the source in the wheel is used. A fixed platform keeps pip from building the package.
WHEEL = ["--python-version", "3.9", "--platform", "manylinux1_x86_64", "skgrf==0.3.0"]


def find_driver() -> Path:
    """Path of the driver, which is built if necessary; OSError if it cannot be built."""
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "cqrf-bench"
    built = cache / f"grf_driver-{hashlib.sha256(DRIVER.read_bytes()).hexdigest()[:12]}"
    if not built.exists():
        compiler = shutil.which("g++")
        if compiler is None:
            raise OSError("no g++")
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as folder:
            os.replace(_build(compiler, Path(folder)), built)
    return built


def _build(compiler: str, folder: Path) -> Path:
    pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary", ":all:"]
    _run([*pip, "-d", str(folder), *WHEEL])
    with zipfile.ZipFile(next(folder.glob("*.whl"))) as wheel:
        wheel.extractall(folder)
    core = folder / "skgrf" / "grf"
    print("building grf's C++ core, once (minutes) ...", flush=True)
    sources = [str(DRIVER), *map(str, sorted((core / "src").rglob("*.cpp")))]
    built = folder / "grf_driver"
    includes = [f"-I{core / 'src'}", f"-I{core / 'third_party'}"]
    _run([compiler, *FLAGS, *includes, *sources, "-o", str(built)])
    return built


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise OSError(f"{Path(command[0]).name} failed: {last}")
