"""Install what ``make dist`` has built into empty environments, and use it there.

Run as ``python tools/check_dist.py wheel`` or ``... sdist``. The wheel: the demo, and tests of the
public names, the command line and a model file of every format, none of which may see ``src``. The
source distribution: it has every file that git keeps; ``make demo``, ``make docs`` and some tests
run from where it is unpacked.
"""

import os
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TEST_PACKAGES = ["hypothesis", "pandas", "pytest"]
WHEEL_TESTS = [
    "tests/test_public_names.py",
    "tests/test_docs.py::test_the_code_of_the_readme_runs",
    "tests/reliability/test_released_files.py",
    "tests/cli/test_info.py",
]
# The second needs the data that only the source distribution has.
SDIST_TESTS = ["tests/reliability/test_released_files.py", "tests/study/test_paper.py"]


def run(*command: object, folder: Path, **environment: str) -> None:
    """Run a command in a folder; what it prints is shown, and a failure ends the program."""
    words = [str(word) for word in command]
    print("+", *words, flush=True)
    kept = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run(words, cwd=folder, env=kept | environment)
    if done.returncode:
        sys.exit(f"check_dist: failed: {' '.join(words)}")


def find_one(pattern: str) -> Path:
    """The only file of this kind in dist/."""
    found = list((ROOT / "dist").glob(pattern))
    if len(found) != 1:
        sys.exit(f"check_dist: dist/ has {len(found)} files {pattern}; run make dist")
    return found[0]


def check_wheel(folder: Path) -> None:
    """Install the wheel into an empty environment, and run the demo and tests."""
    wheel = find_one("*.whl")
    packed = [name for name in zipfile.ZipFile(wheel).namelist() if name.endswith(".csv.gz")]
    if packed:
        sys.exit(f"check_dist: the wheel has {packed[0]}")
    run(sys.executable, "-m", "venv", folder / "venv", folder=folder)
    python = folder / "venv" / "bin" / "python"
    constraints = ["-c", ROOT / "constraints.txt"]
    install = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check", *constraints]
    run(*install, f"{wheel}[all]", *TEST_PACKAGES, folder=folder)
    kernels = {"NUMBA_CACHE_DIR": str(folder / "kernels")}
    place = "import cqrf, sys; sys.exit(not cqrf.__file__.startswith(sys.prefix))"
    run(python, "-c", place, folder=ROOT)
    run(python, "-m", "cqrf.demo", folder=folder, **kernels)
    check_absent_data(folder / "venv" / "bin" / "cqrf", folder)
    pytest = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    run(*pytest, *WHEEL_TESTS, folder=ROOT, **kernels)
    print(f"{wheel.name}: installed, demo and tests done")


def check_absent_data(command: Path, folder: Path) -> None:
    """What the wheel leaves out is said in one line."""
    words = [str(command), "reproduce", "r-packages", "--out", "none"]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True)
    if done.returncode != 2 or not done.stderr.startswith("cqrf: r-packages needs data"):
        sys.exit(f"check_dist: without its data, r-packages said: {done.stdout}{done.stderr}")


def check_sdist(folder: Path) -> None:
    """Unpack the source distribution, and use its Makefile."""
    archive = find_one("*.tar.gz")
    with tarfile.open(archive) as file:
        file.extractall(folder, filter="data")
    unpacked = folder / archive.name.removesuffix(".tar.gz")
    missing = list_kept() - {path.relative_to(unpacked) for path in unpacked.rglob("*")}
    if missing:
        sys.exit(f"check_dist: the source distribution lacks {sorted(map(str, missing))}")
    kernels = {"NUMBA_CACHE_DIR": str(folder / "kernels")}
    run("make", "demo", "docs", f"PYTHON={sys.executable}", folder=unpacked, **kernels)
    python = unpacked / ".venv" / "bin" / "python"
    install = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    run(*install, "-c", "constraints.txt", *TEST_PACKAGES, folder=unpacked)
    pytest = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    run(*pytest, *SDIST_TESTS, folder=unpacked, **kernels)
    print(f"{archive.name}: unpacked, demo, manual and tests done")


def list_kept() -> set[Path]:
    """Files that git keeps."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return {Path(name) for name in listed.stdout.split("\0") if name}


CHECKS = {"wheel": check_wheel, "sdist": check_sdist}

if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in CHECKS:
        sys.exit("usage: python tools/check_dist.py wheel|sdist")
    with tempfile.TemporaryDirectory(prefix="cqrf-dist-") as temporary:
        CHECKS[sys.argv[1]](Path(temporary))
