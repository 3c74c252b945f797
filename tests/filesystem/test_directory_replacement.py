"""Directories of results: the old one or the new one is there, what somebody else put there stays, and nothing is left behind."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys

import pytest

from fuseflow.errors import FileError
from fuseflow.filesystem import directory_replacement as exchanging
from fuseflow.filesystem import list_files, replace_directory, replace_file
from fuseflow.filesystem.replacement import temporary_name


def write_folder(path, meanwhile=lambda: None, **files):
    with replace_directory(path, "about.json") as folder:
        for name, text in files.items():
            (folder / name).write_text(text)
        (folder / "about.json").write_text(json.dumps({"files": list_files(folder)}))
        meanwhile()


def dead_name(target, monkeypatch):
    """The temporary name of a process that has ended."""
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    with monkeypatch.context() as patch:
        patch.setattr(os, "getpid", lambda: child.pid)
        return temporary_name(target)


def test_a_file_that_is_put_there_during_the_run_is_kept_and_so_is_the_result(tmp_path):
    write_folder(tmp_path / "d", a="1")
    with pytest.raises(FileError, match="`thesis` was put there meanwhile") as caught:
        write_folder(tmp_path / "d", lambda: (tmp_path / "d" / "thesis").write_text("precious"), a="2")
    assert (tmp_path / "d" / "thesis").read_text() == "precious"
    assert (tmp_path / "d" / "a").read_text() == "1"
    assert caught.value.notes == (f"the new result is in `{tmp_path / 'd.new'}`",)
    assert (tmp_path / "d.new" / "a").read_text() == "2"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["d", "d.new"]


def test_the_directory_of_another_process_that_was_faster_is_replaced(tmp_path):
    write_folder(tmp_path / "d", lambda: write_folder(tmp_path / "d", a="faster"), a="slower")
    assert (tmp_path / "d" / "a").read_text() == "slower"
    assert [p.name for p in tmp_path.iterdir()] == ["d"]


@pytest.mark.parametrize("answer", [errno.ENOSYS, errno.EINVAL])
def test_a_system_that_cannot_exchange_renames_three_times(tmp_path, monkeypatch, answer):
    def refuse(*_):
        exchanging.ctypes.set_errno(answer)
        return -1

    monkeypatch.setattr(exchanging, "_renameat2", lambda: refuse)
    for text in ("1", "2"):
        write_folder(tmp_path / "d", a=text)
    assert (tmp_path / "d" / "a").read_text() == "2"
    assert [p.name for p in tmp_path.iterdir()] == ["d"]


def test_what_was_on_its_way_aside_comes_back(tmp_path, monkeypatch):
    write_folder(tmp_path / "d", a="1")
    (tmp_path / "d").rename(tmp_path / f"{dead_name(tmp_path / 'd', monkeypatch).name}.old")
    with pytest.raises(FileError):
        write_folder(tmp_path / "d", lambda: (tmp_path / "d" / "mine").write_text("x"), a="2")
    assert (tmp_path / "d" / "a").read_text() == "1"


def test_what_a_killed_process_left_behind_is_removed(tmp_path, monkeypatch):
    """Also what was beside a file. What looks like it, and is of a living process or of another target, stays."""
    (tmp_path / temporary_name(tmp_path / "d").name).mkdir()
    (tmp_path / dead_name(tmp_path / "other", monkeypatch).name).mkdir()
    kept = sorted(p.name for p in tmp_path.iterdir())
    (tmp_path / dead_name(tmp_path / "d", monkeypatch).name / "01").mkdir(parents=True)
    (tmp_path / dead_name(tmp_path / "f", monkeypatch).name).write_text("half")
    write_folder(tmp_path / "d", a="1")
    with replace_file(tmp_path / "f") as temporary:
        temporary.write_text("whole")
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted([*kept, "d", "f"])


def test_a_file_of_somebody_in_what_was_left_behind_stays(tmp_path, monkeypatch):
    write_folder(tmp_path / "d", a="1")
    left = tmp_path / dead_name(tmp_path / "d", monkeypatch).name
    (tmp_path / "d").rename(left)
    (left / "thesis").write_text("precious")
    write_folder(tmp_path / "d", a="2")
    assert (left / "thesis").read_text() == "precious"


def test_a_temporary_file_of_a_killed_process_is_nobodys(tmp_path, monkeypatch):
    """`report` replaces the manifest of a run, and may be killed while it does."""
    write_folder(tmp_path / "d", a="1")
    (tmp_path / "d" / dead_name(tmp_path / "d" / "about.json", monkeypatch).name).write_text("half")
    write_folder(tmp_path / "d", a="2")
    assert list_files(tmp_path / "d") == ["a", "about.json"]


def test_a_directory_that_is_removed_meanwhile_is_an_error(tmp_path):
    def remove():
        for path in (tmp_path / "in").iterdir():
            for file in path.iterdir():
                file.unlink()
            path.rmdir()
        (tmp_path / "in").rmdir()

    with pytest.raises(FileError, match=r"cannot write `.*in/d`: No such file or directory"):
        write_folder(tmp_path / "in" / "d", remove, a="1")


def test_a_long_name_is_replaced_as_any_other(tmp_path):
    for text in ("1", "2"):
        write_folder(tmp_path / ("d" * 250), a=text)
    assert (tmp_path / ("d" * 250) / "a").read_text() == "2"
