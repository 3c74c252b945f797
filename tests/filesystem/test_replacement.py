"""Files written in one step: the old content or the new, never half, and nothing left behind."""

from __future__ import annotations

import json
import os
import threading

import pytest

from fuseflow.errors import FileError
from fuseflow.filesystem import list_files, replace_directory, replace_file, write_text


def test_a_file_and_its_folder_are_made(tmp_path):
    write_text(tmp_path / "a/b/file.txt", "hé\n")
    assert (tmp_path / "a/b/file.txt").read_text(encoding="utf-8") == "hé\n"


def test_a_block_that_fails_leaves_the_old_file(tmp_path):
    path = tmp_path / "file.txt"
    path.write_text("old")

    def fail():
        with replace_file(path) as temporary:
            temporary.write_text("half")
            raise KeyError("stop")

    with pytest.raises(KeyError):
        fail()
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["file.txt"]


def test_the_old_file_is_there_until_the_block_ends(tmp_path):
    path = tmp_path / "file.txt"
    path.write_text("old")
    with replace_file(path) as temporary:
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


def test_a_link_stays_and_its_target_is_replaced(tmp_path):
    (tmp_path / "link").symlink_to("target")
    for text in ("old", "new"):
        write_text(tmp_path / "link", text)
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_text() == "new"


def test_a_pipe_is_written_to_not_replaced(tmp_path):
    """As any device: `--json /dev/null` must not make a file of it."""
    os.mkfifo(tmp_path / "pipe")
    read = list[str]()
    reader = threading.Thread(target=lambda: read.append((tmp_path / "pipe").read_text()))
    reader.start()
    write_text(tmp_path / "pipe", "text")
    reader.join()
    assert read == ["text"]
    assert (tmp_path / "pipe").is_fifo()


def test_standard_output_by_its_path_may_be_a_pipe():
    """`--json /dev/stdout | jq`: a link to what is no path."""
    read, write = os.pipe()
    write_text(f"/dev/fd/{write}", "text")
    os.close(write)
    with open(read) as stream:
        assert stream.read() == "text"


def write_folder(path, **files):
    with replace_directory(path, "about.json") as folder:
        for name, text in files.items():
            (folder / name).write_text(text)
        (folder / "about.json").write_text(json.dumps({"files": list_files(folder)}))


def test_a_directory_is_replaced_whole(tmp_path):
    write_folder(tmp_path / "d", a="1", b="2")
    write_folder(tmp_path / "d", a="3")
    assert list_files(tmp_path / "d") == ["a", "about.json"]
    assert (tmp_path / "d" / "a").read_text() == "3"


def test_a_link_to_a_directory_stays(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    write_folder(tmp_path / "link", a="1")
    assert (tmp_path / "link").is_symlink()
    assert list_files(tmp_path / "real") == ["a", "about.json"]


@pytest.mark.parametrize("manifest", ['{"files": ["a"]}', "{}", "[]", "not JSON"])
def test_a_file_that_somebody_added_is_not_lost(tmp_path, manifest):
    write_folder(tmp_path / "d", a="1")
    (tmp_path / "d" / "about.json").write_text(manifest)
    (tmp_path / "d" / "thesis").write_text("precious")
    with pytest.raises(FileError, match="is not from an earlier run"):
        write_folder(tmp_path / "d", a="2")
    assert (tmp_path / "d" / "thesis").read_text() == "precious"


def test_the_current_directory_is_not_pulled_away(tmp_path, monkeypatch):
    write_folder(tmp_path / "d", a="1")
    monkeypatch.chdir(tmp_path / "d")
    with pytest.raises(FileError, match="is where you are"):
        write_folder(".", a="2")


def test_a_directory_whose_block_fails_is_as_before(tmp_path):
    write_folder(tmp_path / "d", a="1")

    def fail():
        with replace_directory(tmp_path / "d", "about.json") as folder:
            (folder / "a").write_text("half")
            raise KeyError("stop")

    with pytest.raises(KeyError):
        fail()
    assert (tmp_path / "d" / "a").read_text() == "1"
    assert [p.name for p in tmp_path.iterdir()] == ["d"]
