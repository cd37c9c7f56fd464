"""Files: a file is replaced only once the new one is complete."""

import os
import pty
import socket
import stat
import subprocess
import sys
import threading

import pytest

from cqrf._runtime.files import replacing


def write(path, *parts):
    with replacing(path) as file:
        for part in parts:
            file.write(part)
            file.flush()


def test_a_file_is_written_and_replaced(tmp_path):
    path = tmp_path / "model"
    for text in (b"first", b"second, longer", b""):
        write(path, text)
        assert path.read_bytes() == text
        assert os.listdir(tmp_path) == ["model"]


@pytest.mark.parametrize("exists", [False, True])
def test_an_error_leaves_the_old_file_and_nothing_else(tmp_path, exists):
    path = tmp_path / "model"
    if exists:
        path.write_bytes(b"old")
    with pytest.raises(TypeError):
        write(path, b"new", "text in a file of bytes")
    assert os.listdir(tmp_path) == (["model"] if exists else [])
    assert not exists or path.read_bytes() == b"old"


def test_until_it_is_complete_readers_find_the_old_file(tmp_path):
    path = tmp_path / "model"
    path.write_bytes(b"old")
    with replacing(path) as file:
        file.write(b"new")
        file.flush()
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"


def test_a_link_keeps_its_target_and_a_file_its_permissions(tmp_path):
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_bytes(b"old")
    target.chmod(0o640)
    link.symlink_to(target)
    write(link, b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"
    assert target.stat().st_mode & 0o777 == 0o640


def test_a_folder_is_refused(tmp_path):
    with pytest.raises(IsADirectoryError, match="give the name of a file"), replacing(tmp_path):
        pass


def test_a_folder_that_does_not_exist_is_named(tmp_path):
    path = tmp_path / "nowhere" / "model"
    with pytest.raises(FileNotFoundError) as caught, replacing(path):
        pass
    assert caught.value.filename == str(path)


def test_a_pipe_is_written_to_and_stays_a_pipe(tmp_path):
    path, found = tmp_path / "pipe", []
    os.mkfifo(path)
    reader = threading.Thread(target=lambda: found.append(path.read_bytes()))
    reader.start()
    write(path, b"first", b"second")
    reader.join()
    assert found == [b"firstsecond"]
    assert stat.S_ISFIFO(path.stat().st_mode)
    assert os.listdir(tmp_path) == ["pipe"]


@pytest.mark.skipif(os.name != "posix", reason="there are no terminals as files")
def test_a_character_device_is_written_to_and_stays_one():
    ours, theirs = pty.openpty()
    try:
        path = os.ttyname(theirs)
        write(path, b"text")
        assert os.read(ours, 100) == b"text"
        assert stat.S_ISCHR(os.stat(path).st_mode)
    finally:
        os.close(ours)
        os.close(theirs)


def test_a_socket_is_refused(tmp_path):
    path = tmp_path / "socket"
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(path))
        with pytest.raises(OSError, match="give the name of a file") as caught:
            write(path, b"new")
    assert caught.value.filename == str(path)


def test_a_link_to_itself_is_named(tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    first.symlink_to(second)
    second.symlink_to(first)
    with pytest.raises(OSError, match="link that leads to itself") as caught:
        write(first, b"new")
    assert caught.value.filename == str(first)


def test_a_full_disk_names_the_file():
    if not os.path.exists("/dev/full"):
        pytest.skip("there is no /dev/full")
    with pytest.raises(OSError, match="No space") as caught:
        write("/dev/full", b"new")
    assert caught.value.filename == "/dev/full"


KILLED = """
import os, signal, sys
from cqrf._runtime.files import replacing
with replacing(sys.argv[1]) as file:
    file.write(b"half")
    file.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_parts_of_killed_processes_are_removed_and_those_of_others_kept(tmp_path):
    path = tmp_path / "model"
    for _ in range(2):
        subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False)
    parts = [name for name in os.listdir(tmp_path) if name.endswith(".part")]
    assert len(parts) == 1  # the second process removed what the first had left
    others = tmp_path / ".model2.0123abcd.part", tmp_path / ".model.notes.part"
    for other in others:
        other.write_bytes(b"not ours")
    with replacing(path) as file:
        file.write(b"slow")
        write(path, b"meanwhile")  # another save of the same file
        assert path.read_bytes() == b"meanwhile"
    assert path.read_bytes() == b"slow"
    assert sorted(os.listdir(tmp_path)) == sorted(["model", *(other.name for other in others)])
