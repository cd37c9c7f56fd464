"""Runs of the tests with other versions of Python and of the dependencies.

``python tests/support/versions.py lowest`` runs them with the lowest versions that pyproject.toml
allows, which are those of constraints-lowest.txt, and the oldest Python; ``newest`` with the newest
versions of everything and every Python that is found. ``extras`` installs the package bare and with
each extra alone. Each run makes virtual environments of its own, ``.venv-...`` in the checkout.

Only the standard library is used here.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
EXTRAS = ("", "plots", "frames", "cli", "excel", "serve", "dask", "all")
TOOLS = ("hypothesis", "pandas", "polars", "pytest", "pytest-xdist")

# Each dependency is used by one of these. Left out: what computes with NumPy only, whatever else is
# installed (metrics, survival curves, effects), the pages in a browser, and what needs packages
# that allow few versions of scikit-learn (scikit-survival), pandas (lifelines) or FastAPI
# (Schemathesis).
TESTS = (
    "tests/_runtime",  # numba, with its private option `_nrt` and its cache; threadpoolctl
    "tests/_input",  # narwhals, pandas, polars, pyarrow
    "tests/test_estimator.py",  # scikit-learn's checks of estimators; numpy, scipy
    "tests/test_plots.py",  # matplotlib
    "tests/plots",
    "tests/cli",  # typer, rich, pyarrow, openpyxl
    "tests/serve",  # fastapi, uvicorn, httptools, uvloop
    "tests/dask",  # dask, distributed
)
LEFT_OUT = (
    "tests/_input/test_target.py",
    "tests/serve/test_effects_page.py",
    "tests/serve/test_schema.py",
    "tests/serve/test_serve_page.py",
)

# Warnings that a newer version of a dependency gives are listed at the end, and fail no test: what
# it will change, wherever it says so, and all that it says of its own modules. Everything else
# stays an error: what cqrf warns of, and what NumPy says of arithmetic in cqrf or in a test.
OTHER_MODULES = r"(?!(cqrf|tests|test_\w+|conftest|support|oracles|__main__)(\.|$))"
FILTERS = (
    "error",
    f"default:::{OTHER_MODULES}",
    "default::DeprecationWarning",
    "default::PendingDeprecationWarning",
    "default::FutureWarning",
)


def main() -> int:
    """Run what the command line names; 0 if nothing failed."""
    what, *others = sys.argv[1:]
    if what == "lowest":
        return run_lowest(others)
    return run_newest(others) if what == "newest" else run_extras()


def run_lowest(options: list[str]) -> int:
    """The tests with the lowest versions."""
    version = PYTHONS[0]
    python = find_python(version)
    if python is None:
        print(f"The lowest versions need Python {version}, which is not found.")
        return 1
    constraints = ROOT / "constraints-lowest.txt"
    stamps = [ROOT / "pyproject.toml", constraints]
    installed = make_environment(
        ROOT / ".venv-lowest", python, ["-c", str(constraints), "-e", ".[all]", *TOOLS], stamps
    )
    return run_tests(installed, options)


def run_newest(options: list[str]) -> int:
    """The tests with the newest versions, for each Python."""
    results = {}
    for version in PYTHONS:
        python = find_python(version)
        if python is None:
            results[version] = "cannot be had on this machine: not run"
            continue
        folder = ROOT / f".venv-{version}"
        shutil.rmtree(folder, ignore_errors=True)  # what was newest may not be any more
        installed = make_environment(folder, python, ["-e", ".[all]", *TOOLS], [])
        began = time.perf_counter()
        code = run_tests(installed, options)
        result = "passed" if code == 0 else "FAILED"
        results[version] = f"{result} in {time.perf_counter() - began:.0f} s"
    for version, result in results.items():
        print(f"Python {version}, newest versions: {result}")
    return int(any("FAILED" in result for result in results.values()))


def run_extras() -> int:
    """Every public module with each extra: it works, or says which extra it needs."""
    folder = ROOT / ".venv-extras"
    shutil.rmtree(folder, ignore_errors=True)
    failed = []
    for extra in EXTRAS:
        name = extra or "bare"
        python = make_environment(
            folder / name, Path(sys.executable), [f".[{extra}]" if extra else "."], []
        )
        check = ROOT / "tests" / "support" / "check_extra.py"
        environment = os.environ | {"NUMBA_DISABLE_JIT": "1", "PYTHONPATH": ""}
        done = subprocess.run([python, check, name], cwd=folder, env=environment)
        print(f"cqrf with {name}: {'FAILED' if done.returncode else 'passed'}", flush=True)
        if done.returncode:
            failed.append(name)
        shutil.rmtree(folder / name)
    return int(bool(failed))


def find_python(version: str) -> Path | None:
    """A Python of this version: of the PATH, of pyenv, or one that uv knows."""
    candidates: list[str | None] = [sys.executable, shutil.which(f"python{version}")]
    pyenv = Path.home() / ".pyenv" / "versions"
    candidates += map(str, sorted(pyenv.glob(f"{version}.*/bin/python"), reverse=True))
    if shutil.which("uv"):
        asked = ["uv", "python", "find", "--no-project", version]
        found = subprocess.run(asked, capture_output=True, text=True)
        candidates.append(found.stdout.strip())
    for candidate in filter(None, candidates):
        code = "import ensurepip, sys; print('%d.%d' % sys.version_info[:2])"
        asked = subprocess.run([candidate, "-c", code], capture_output=True, text=True)
        if asked.stdout.strip() == version:
            return Path(candidate)
    return None


def make_environment(folder: Path, python: Path, packages: list[str], stamps: list[Path]) -> Path:
    """Python of a virtual environment with these packages, made anew if a stamp has changed."""
    installed = folder / "bin" / "python"
    done = folder / "installed"
    newest = max((stamp.stat().st_mtime for stamp in stamps), default=float("inf"))
    if done.exists() and done.stat().st_mtime > newest:
        return installed
    print(f"Creating {folder.relative_to(ROOT)} ...", flush=True)
    has_uv = shutil.which("uv") is not None  # which takes seconds where pip takes a minute
    options = ["--clear", "--without-pip"] if has_uv else ["--clear"]
    subprocess.run([python, "-m", "venv", *options, folder], check=True)
    pip = [installed, "-m", "pip", "install", "--disable-pip-version-check"]
    install = ["uv", "pip", "install", "--python", installed] if has_uv else pip
    subprocess.run([*install, "-q", *packages], check=True, cwd=ROOT)
    done.touch()
    return installed


def run_tests(python: Path, options: list[str]) -> int:
    """The tests, with the warnings of dependencies listed; kernels are kept in the environment."""
    environment = os.environ | {
        "MPLBACKEND": "Agg",
        "NUMBA_CACHE_DIR": str(python.parents[1] / "numba"),
    }
    command = [python, "-m", "pytest", "-q", "-m", "not slow", "-n", "2", "--dist", "worksteal"]
    command += ["-o", "filterwarnings=" + "\n".join(FILTERS)]
    command += [f"--ignore={path}" for path in LEFT_OUT]
    return subprocess.run([*command, *(options or TESTS)], cwd=ROOT, env=environment).returncode


if __name__ == "__main__":
    sys.exit(main())
