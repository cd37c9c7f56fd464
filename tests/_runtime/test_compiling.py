"""Compiling: without a cache, with garbage collection paused, and said if it takes long."""

import gc
import os
import shutil
import subprocess
import sys
import threading
import warnings
from types import SimpleNamespace

import pytest

from cqrf._runtime import compiling, progress
from cqrf._runtime.compiling import kernel


@pytest.fixture
def fresh_warning():
    compiling._warn_without_cache.cache_clear()
    yield
    compiling._warn_without_cache.cache_clear()


def test_a_kernel_that_cannot_be_cached_warns_once_and_works(fresh_warning):
    # The source of these functions is no file, so that there is no folder to keep them in.
    functions = {}
    exec("def one(x): return x + 1\ndef two(x): return x + 2", functions)
    with pytest.warns(RuntimeWarning, match="set NUMBA_CACHE_DIR"):
        one = kernel(functions["one"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        two = kernel(functions["two"])
    assert (one(1), two(1)) == (2, 3)


class Pause(compiling._PauseGarbageCollection):
    def __init__(self):
        super().__init__()
        self.states = []

    def compile(self, depth):
        """Compilations within each other, as Numba announces them."""
        self.on_start(None)
        self.states.append(gc.isenabled())
        if depth > 1:
            self.compile(depth - 1)
        self.states.append(gc.isenabled())
        self.on_end(None)


@pytest.mark.parametrize("was_on", [True, False])
def test_garbage_collection_pauses_until_the_outermost_compilation_ends(was_on):
    before, pause = gc.isenabled(), Pause()
    try:
        (gc.enable if was_on else gc.disable)()
        for depth in (1, 3):
            pause.compile(depth)
            assert gc.isenabled() == was_on
        assert not any(pause.states)
    finally:
        (gc.enable if before else gc.disable)()


def announce(module):
    """What Numba says about the kernel of a module that is compiled."""
    function = SimpleNamespace(__module__=module)
    return SimpleNamespace(data={"dispatcher": SimpleNamespace(py_func=function)})


class Clock(threading.Event):
    """An event that is set `until` a time, on a clock that moves only while it is waited for.

    So that what is said does not depend on how busy the machine is.
    """

    now = until = 0.0

    def perf_counter(self):
        return self.now

    def wait(self, timeout=None):
        self.now = min(self.until, self.now + timeout)
        return self.now == self.until


@pytest.fixture
def notice(monkeypatch):
    """A notice that counts the seconds of a clock of its own."""
    made = compiling.CompilationNotice()
    made._is_done = Clock()
    for module in (compiling, progress):
        monkeypatch.setattr(module, "time", made._is_done)
    return made


def compile_for(notice, seconds, module="cqrf._forest.grower"):
    clock = notice._is_done
    clock.until = clock.now + seconds
    notice.on_start(announce(module))
    notice.on_start(announce("cqrf._forest.splitting"))  # a part of it
    if notice._waiting is not None:
        notice._waiting.join()
    clock.now = clock.until
    notice.on_end(None)
    notice.on_end(None)


def test_long_compilation_is_said_once_and_short_not_at_all(capsys, notice):
    compile_for(notice, 2.5, module="numpy.linalg")
    compile_for(notice, 0.3)
    assert capsys.readouterr().err == ""
    compile_for(notice, 1.5)
    assert capsys.readouterr().err.splitlines() == [
        f"cqrf is compiling its kernels.{compiling.KEPT}"
    ]
    compile_for(notice, 1.5)
    assert capsys.readouterr().err == ""
    assert notice.n_kernels == 3


def test_several_short_compilations_are_one_long_one(capsys, notice):
    for _ in range(4):
        compile_for(notice, 0.3)
    assert capsys.readouterr().err.count("cqrf is compiling") == 1


def test_the_command_line_has_a_bar_while_it_compiles(capsys, notice, monkeypatch):
    monkeypatch.setattr(progress, "_shows_waiting", True)
    compile_for(notice, 2.0)
    first, *drawn, last = capsys.readouterr().err.replace("\n", "\r").split("\r")
    assert first.startswith("cqrf is compiling")
    assert any("######" in line and "] compiling, 0 done, 1." in line for line in drawn)
    assert last == ""


RENAMED = """
from typing import NamedTuple
from cqrf._runtime.compiling import kernel
class NAME(NamedTuple):
    value: float
@kernel
def double(record):
    return 2 * record.value
print(double(NAME(4.0)))
"""


def test_a_renamed_record_class_does_not_break_a_cache_that_is_still_there(tmp_path):
    for name in ("Before", "After"):
        (tmp_path / "renamed.py").write_text(RENAMED.replace("NAME", name))
        run = subprocess.run(
            [sys.executable, "-c", "import renamed"],
            cwd=tmp_path,
            env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache")},
            capture_output=True,
            text=True,
        )
        assert run.stdout == "8.0\n", run.stderr


CALLS = """
from cqrf._forest.second import add
print(add(1))
"""
FIRST = """
from cqrf._runtime.compiling import called

@called
def step(x):
    return x + {step}
"""
SECOND = """{comment}
from cqrf._forest.first import step
from cqrf._runtime.compiling import kernel

@kernel
def add(x):
    return step(x)
"""


def test_a_change_in_a_called_kernel_is_seen_and_old_entries_are_removed(tmp_path):
    package, kept = tmp_path / "src" / "cqrf", tmp_path / "kept"
    shutil.copytree(compiling.PACKAGE / "_runtime", package / "_runtime")
    (package / "_forest").mkdir()
    for folder in (package, package / "_forest"):
        (folder / "__init__.py").touch()
    environment = os.environ | {
        "PYTHONPATH": str(package.parent),
        "NUMBA_CACHE_DIR": str(kept),
        "PYTHONDONTWRITEBYTECODE": "1",
    }

    def call(step, comment=""):
        sources = {"first": FIRST.format(step=step), "second": SECOND.format(comment=comment)}
        for name, source in sources.items():
            path = package / "_forest" / f"{name}.py"
            if not path.exists() or path.read_text() != source:  # older Numba compares times, too
                path.write_text(source)
        done = subprocess.run(
            [sys.executable, "-c", CALLS], env=environment, capture_output=True, text=True
        )
        assert done.stderr == ""
        return int(done.stdout), sorted(kept.rglob("second.add-*"))

    found, first_files = call(1)
    assert (found, len(first_files)) == (2, 2)
    stamps = [path.stat().st_mtime_ns for path in first_files]
    assert call(1) == (2, first_files)
    assert [path.stat().st_mtime_ns for path in first_files] == stamps  # read, not written again
    assert call(100) == (101, first_files)
    found, files = call(100, comment="\n# the kernel is on another line")
    assert (found, len(files)) == (101, 2)
    assert not set(files) & set(first_files)


def test_all_packages_with_kernels_decide_whether_the_cache_is_right():
    marks = ("_runtime.compiling import", "_runtime.intrinsics import", "from numba import")
    found = {
        path.relative_to(compiling.PACKAGE).parts[0]
        for path in compiling.PACKAGE.rglob("*.py")
        if any(mark in path.read_text() for mark in marks)
    }
    # `cqrf warm` only asks how many kernels were compiled.
    assert found - {"cli"} <= set(compiling.KERNEL_PACKAGES)


TINY = """
from cqrf._runtime.compiling import kernel, notice

@kernel
def double(x):
    return 2 * x
"""
USE_TINY = """
import sys
import tempfile
import warnings

if "read-only" in sys.argv:  # root may write anywhere: Numba asks by writing such a file
    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied")

    tempfile.TemporaryFile = refuse
import tiny

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    print(tiny.double(21), tiny.double.stats.cache_hits[next(iter(tiny.double.signatures))])
    if "other" in sys.argv:
        print(tiny.double(1.5))
    print(len(caught), *(str(each.message).partition(',')[0] for each in caught))
"""


def test_a_folder_of_kernels_that_cannot_be_written_to_is_read(tmp_path):
    (tmp_path / "tiny.py").write_text(TINY)
    kept = tmp_path / "kernels"

    def use(*arguments):
        environment = {
            **os.environ,
            "NUMBA_CACHE_DIR": str(kept),
            "PYTHONPATH": os.pathsep.join([str(tmp_path), str(compiling.PACKAGE.parent)]),
        }
        command = [sys.executable, "-c", USE_TINY, *arguments]
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    def list_kept():
        return {path: path.stat().st_mtime_ns for path in kept.rglob("*.nb?")}

    lacking = "1 there is no folder to keep compiled kernels in"
    kept.mkdir()
    assert use("read-only") == ["42 0", lacking]
    assert list_kept() == {}
    assert use() == ["42 0", "0"]
    before = list_kept()
    assert len(before) == 2
    assert use("read-only") == ["42 1", "0"]
    # Another type is compiled, which is said: it will be again in the next process.
    assert use("read-only", "other") == [
        "42 1",
        "3.0",
        "1 there is no folder to keep compiled kernels in",
    ]
    assert list_kept() == before
