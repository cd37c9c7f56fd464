"""What every test shares: where Numba keeps compiled kernels, and how Hypothesis draws.

Numba's disk cache looks only at the file of a kernel, not at what it imports. So the folder of the
cache is named after the sources of all packages that hold kernels: a change to any of these starts
a new one. Numba reads the variable when it is imported, so it is set here first; workers and
subprocesses inherit it.

A run with several workers compiles the common kernels first, each once, so that no two workers
compile the same one at the same time.
"""

import hashlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

TESTS = Path(__file__).resolve().parent
SOURCE = TESTS.parent / "src" / "cqrf"


def hash_sources(folder: Path) -> str:
    """Hash the names and bytes of all Python files in packages that hold kernels."""
    sources = {path: path.read_bytes() for path in sorted(folder.rglob("*.py"))}
    packages = {
        path.relative_to(folder).parts[0]
        for path, source in sources.items()
        if b"_runtime.compiling" in source or b"from numba" in source
    }
    digest = hashlib.sha256()
    for path, source in sources.items():
        if path.relative_to(folder).parts[0] in packages:
            digest.update(path.relative_to(folder).as_posix().encode() + b"\0")
            digest.update(hashlib.sha256(source).digest())
    return digest.hexdigest()[:16]


os.environ.setdefault(
    "NUMBA_CACHE_DIR", str(Path(tempfile.gettempdir()) / f"cqrf-numba-{hash_sources(SOURCE)}")
)

# scikit-learn checks estimators on array API input only if SciPy was told of it on import.
os.environ.setdefault("SCIPY_ARRAY_API", "1")

settings.register_profile(
    "cqrf",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],  # seconds, as the deadline: a busy machine
    derandomize=bool(os.environ.get("CI")),
    max_examples=int(os.environ.get("CQRF_EXAMPLES", "50")),
    print_blob=True,
)
settings.load_profile("cqrf")


COMPILES = os.environ.get("NUMBA_DISABLE_JIT", "0") == "0"


def pytest_configure(config):
    """Ctrl-C stops commands of the tests; kernels as plain Python wrap around, unwarned."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as for what a shell starts with &
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if not COMPILES:
        for what in ("overflow", "invalid value", "divide by zero"):
            config.addinivalue_line("filterwarnings", f"ignore:{what} encountered:RuntimeWarning")


def pytest_sessionstart(session):
    """Compile the common kernels before workers start; xdist starts them in a later hook."""
    n_workers = getattr(session.config.option, "numprocesses", None)
    if n_workers and COMPILES and not session.config.option.collectonly:
        compile_common_kernels(n_workers)


def compile_common_kernels(n_processes: int) -> None:
    """Fit and read the small forests of tests/support, a share of them in each process."""
    done = Path(os.environ["NUMBA_CACHE_DIR"]) / "common-kernels"
    if done.exists():
        return
    path = [str(TESTS), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, path))}
    command = [sys.executable, "-m", "support.small_forests", os.devnull]
    processes = [
        subprocess.Popen([*command, f"{share}/{n_processes}"], env=environment)
        for share in range(n_processes)
    ]
    codes = [process.wait() for process in processes]
    if not any(codes):
        done.touch()


def require(is_there, reason):
    """Skip a test for what this machine does not have; CI has everything."""
    if is_there:
        return
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="module")
def browser():
    program = shutil.which("chromium")
    require(program, "there is no chromium on this machine (apt-get install chromium)")
    from support.browser import Browser

    opened = Browser(program)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def site():
    """The address of the manual."""
    from support.site import SITE, serve_site

    require((SITE / "index.html").exists(), "the manual is not built (make docs)")
    with serve_site() as address:
        yield address


@pytest.fixture(scope="session")
def axe():
    """The program of axe-core, which finds faults that keep people from using a page."""
    path = TESTS.parent / "node_modules" / "axe-core" / "axe.min.js"
    require(path.exists(), "axe-core is not installed (make accessibility)")
    return path.read_text(encoding="utf-8")
