"""Files: a file is replaced only once the new one is complete."""

import os

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
