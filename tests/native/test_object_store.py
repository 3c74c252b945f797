"""Machine code of others is never run: a file that was changed, or that others own or could write, counts as missing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from fuseflow.native import object_store
from fuseflow.native.object_store import SUFFIX, ObjectCode, ObjectStore

DIGEST = "0123456789abcdef" * 4
KERNEL = ObjectCode(b"\x7fELF\n\x00code", "cpython-311 abc")


@pytest.fixture
def store(tmp_path: Path) -> ObjectStore:
    store = ObjectStore(tmp_path / "kernels", private=True)
    assert store.write(DIGEST, KERNEL)
    return store


def file_of(store: ObjectStore) -> Path:
    return store.folder / f"{DIGEST}{SUFFIX}"


def test_what_was_written_is_read(store: ObjectStore) -> None:
    assert store.read(DIGEST) == KERNEL
    assert store.read(DIGEST[::-1]) is None
    assert [file.name for file in store.folder.iterdir()] == [file_of(store).name]  # no temporary file stays


def test_files_are_this_users_alone_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        store = ObjectStore(tmp_path / "kernels", private=True)
        store.write(DIGEST, KERNEL)
    finally:
        os.umask(before)
    assert (store.folder.stat().st_mode & 0o777, file_of(store).stat().st_mode & 0o777) == (0o700, 0o600)
    assert store.read(DIGEST) == KERNEL


@pytest.mark.parametrize("place", range(0, 90, 7))
def test_a_file_that_was_changed_counts_as_missing(store: ObjectStore, place: int) -> None:
    data = bytearray(file_of(store).read_bytes())
    data[place % len(data)] ^= 1
    file_of(store).write_bytes(bytes(data))
    assert store.read(DIGEST) is None


@pytest.mark.parametrize("data", [b"", b"\n", b"nothing", b"\xff\n\xff\n\xff"])
def test_a_file_of_anything_counts_as_missing(store: ObjectStore, data: bytes) -> None:
    file_of(store).write_bytes(data)
    assert store.read(DIGEST) is None


def test_a_file_that_ends_early_counts_as_missing(store: ObjectStore) -> None:
    file_of(store).write_bytes(file_of(store).read_bytes()[:-1])
    assert store.read(DIGEST) is None


@pytest.mark.parametrize("mode", [0o620, 0o602])
def test_a_file_that_others_may_write_counts_as_missing(store: ObjectStore, mode: int) -> None:
    file_of(store).chmod(mode)
    assert store.read(DIGEST) is None


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o1777])
def test_a_folder_that_others_may_write_is_not_used(store: ObjectStore, mode: int) -> None:
    store.folder.chmod(mode)
    assert store.read(DIGEST) is None
    assert not store.write(DIGEST, KERNEL)
    assert not store.is_writable()


def test_links_are_not_followed(store: ObjectStore, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    file_of(store).rename(elsewhere)
    file_of(store).symlink_to(elsewhere)
    assert store.read(DIGEST) is None
    linked = ObjectStore(tmp_path / "link", private=True)
    linked.folder.symlink_to(store.folder)
    assert not linked.write(DIGEST, KERNEL)


def test_a_store_of_another_user_is_not_used(store: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> None:
    other = os.geteuid() + 1
    monkeypatch.setattr(object_store.os, "geteuid", lambda: other)
    assert store.read(DIGEST) is None
    assert not store.write(DIGEST, KERNEL)


def test_a_file_of_another_user_in_a_folder_of_this_one_is_not_used(store: ObjectStore) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a file away")
    os.chown(file_of(store), 12345, -1)
    assert store.read(DIGEST) is None


def test_kernels_of_the_package_are_as_trusted_as_the_package(tmp_path: Path) -> None:
    store = ObjectStore(tmp_path / "package", private=False)
    store.write(DIGEST, KERNEL)
    store.folder.chmod(0o775)  # of a checkout with the umask 002
    assert store.read(DIGEST) == KERNEL
    store.keep_only([])
    assert store.read(DIGEST) is None
