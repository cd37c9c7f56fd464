"""What every test shares: where Numba keeps compiled kernels, and how Hypothesis draws.

Numba's disk cache looks only at the file a kernel stands in, not at the kernels it imports. So
the cache's folder is named after all sources: a change anywhere starts a new one. Numba reads
the variable when it is imported, so it is set here first; workers and subprocesses inherit it.
"""

import hashlib
import os
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings

SOURCE = Path(__file__).resolve().parents[1] / "src" / "cqrf"


def hash_sources(folder: Path) -> str:
    """Hash the names and bytes of all Python files below a folder."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        digest.update(path.relative_to(folder).as_posix().encode() + b"\0")
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:16]


os.environ.setdefault(
    "NUMBA_CACHE_DIR", str(Path(tempfile.gettempdir()) / f"cqrf-numba-{hash_sources(SOURCE)}")
)

# scikit-learn checks estimators on array API input only if SciPy was told of it on import.
os.environ.setdefault("SCIPY_ARRAY_API", "1")

settings.register_profile(
    "cqrf", deadline=None, derandomize=bool(os.environ.get("CI")), print_blob=True
)
settings.load_profile("cqrf")


@pytest.fixture(scope="module")
def browser():
    program = shutil.which("chromium")
    if program is None:
        reason = "there is no chromium on this machine (apt-get install chromium)"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    from support.browser import Browser

    opened = Browser(program)
    yield opened
    opened.close()
