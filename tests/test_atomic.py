"""Files written in one step: the old content or the new, never half, and nothing left behind."""

from __future__ import annotations

import pytest

from fuseflow.atomic import replacing, write_text
from fuseflow.errors import FileError


def test_a_file_and_its_folder_are_made(tmp_path):
    write_text(tmp_path / "a/b/file.txt", "hé\n")
    assert (tmp_path / "a/b/file.txt").read_text(encoding="utf-8") == "hé\n"


def test_a_block_that_fails_leaves_the_old_file(tmp_path):
    path = tmp_path / "file.txt"
    path.write_text("old")

    def fail():
        with replacing(path) as temporary:
            temporary.write_text("half")
            raise KeyError("stop")

    with pytest.raises(KeyError):
        fail()
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["file.txt"]


def test_the_old_file_is_there_until_the_block_ends(tmp_path):
    path = tmp_path / "file.txt"
    path.write_text("old")
    with replacing(path) as temporary:
        temporary.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"


def test_a_place_that_cannot_be_written_is_a_file_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match=r"cannot write `.*file/x.txt`"):
        write_text(tmp_path / "file/x.txt", "")
    (tmp_path / "folder").mkdir()
    with pytest.raises(FileError, match=r"cannot write `.*folder`"):
        write_text(tmp_path / "folder", "")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file", "folder"]
