"""Kernels are compiled once a machine, and the log says so once. Without a folder for them, they are compiled in every process."""

from __future__ import annotations

import ctypes
import logging
import os
import subprocess
import sys
from pathlib import Path
from types import FunctionType

import pytest

from fuseflow.native import kernel_library
from fuseflow.native.object_store import SUFFIX, ObjectCode, ObjectStore, symbol_of
from fuseflow.native.processor import FEATURES_BY_LEVEL, host_levels
from fuseflow.native.records import get_int, set_int
from fuseflow.native.signatures import FOLD, KERNEL, Signature
from fuseflow.native.sources import KernelError, bytecode_digest, source_digest


def increment(address: int) -> int:
    set_int(address, 0, get_int(address, 0) + 1)
    return 0


@pytest.fixture
def store(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> ObjectStore:
    caplog.set_level(logging.INFO, "fuseflow.native.kernel_library")
    return ObjectStore(tmp_path / "kernels", private=True)


def library(store: ObjectStore) -> kernel_library.Library:
    """Return a library without kernels that were made ahead."""
    return kernel_library.Library((), store)


def works(library: kernel_library.Library) -> bool:
    """Return whether the kernel of a library adds 1 to the number at its address."""
    number = ctypes.c_int64(41)
    return library.compiled(increment, KERNEL)(ctypes.addressof(number)) == 0 and number.value == 42


def times(store: ObjectStore) -> dict[Path, int]:
    return {file: file.stat().st_mtime_ns for file in store.folder.glob(f"*{SUFFIX}")}


def test_a_kernel_is_compiled_once_and_that_is_said(store: ObjectStore, caplog: pytest.LogCaptureFixture) -> None:
    first = library(store)
    assert works(first) and first.address(increment) == first.address(increment) != 0
    message = f"compiling kernels of the simulator, up to a minute, once: they are kept in {store.folder}"
    assert [record.getMessage() for record in caplog.records] == [message]
    written = times(store)
    assert len(written) == 1
    assert works(library(store))
    assert len(caplog.records) == 1 and times(store) == written


def test_without_a_place_kernels_are_compiled_all_the_same(store: ObjectStore, caplog: pytest.LogCaptureFixture) -> None:
    store.folder.write_text("a file where the folder should be")
    assert works(library(store))
    assert "in every run" in caplog.text and "cannot be written" in caplog.text


@pytest.mark.parametrize("damage", ["tampered", "writable file", "writable folder"])
def test_what_cannot_be_trusted_is_compiled_again(store: ObjectStore, damage: str, caplog: pytest.LogCaptureFixture) -> None:
    works(library(store))
    (file,) = times(store)
    match damage:
        case "tampered":
            code = file.read_bytes()
            file.write_bytes(code[:-20] + bytes(20))
        case "writable file":
            file.chmod(0o666)
        case "writable folder":
            store.folder.chmod(0o777)
    assert works(library(store))
    assert len(caplog.records) == 2
    if damage != "writable folder":
        assert store.read(file.name.removesuffix(SUFFIX)) is not None and file.stat().st_mode & 0o777 == 0o600


def test_code_of_an_edited_file_is_not_taken_for_that_of_this_process(
    store: ObjectStore, caplog: pytest.LogCaptureFixture
) -> None:
    digest, current = source_digest(increment, KERNEL), bytecode_digest(increment)
    python = current.partition(" ")[0]
    store.write(digest, ObjectCode(b"never loaded", f"{python} another digest"))
    assert works(library(store)) and len(caplog.records) == 1
    kept = store.read(digest)
    assert kept is not None and kept.bytecode == current
    assert kernel_library.is_same_code(current, "cpython-399 whatever") and not kernel_library.is_same_code(
        current, f"{python} whatever"
    )


def test_kernels_that_were_made_ahead_come_first(store: ObjectStore, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    works(library(store))
    package = ObjectStore(tmp_path / "package", private=False)
    (file,) = times(store)
    digest = file.name.removesuffix(SUFFIX)
    kernel = store.read(digest)
    assert kernel is not None and package.write(digest, kernel)
    other = ObjectStore(tmp_path / "empty", private=True)
    assert works(kernel_library.Library((package,), other))
    assert len(caplog.records) == 1 and not other.folder.exists()


@pytest.mark.skipif("x86-64-v2" not in host_levels(), reason="only processors of x86-64 have levels")
def test_code_for_every_level_of_this_processor_runs(store: ObjectStore) -> None:
    from fuseflow.native.numba_compiler import object_code, optimized_module

    digest = source_digest(increment, KERNEL)
    module = optimized_module(increment, KERNEL, symbol_of(digest))
    codes = {level: object_code(module, level) for level in host_levels()}
    for level, code in codes.items():
        made = ObjectStore(store.folder / level, private=False)
        made.write(digest, ObjectCode(code, bytecode_digest(increment)))
        chosen = kernel_library.Library((made,), ObjectStore(store.folder / "none", private=True))
        assert works(chosen) and not (store.folder / "none").exists()


def test_the_stores_of_the_package_are_those_of_the_levels_of_the_processor() -> None:
    assert [store.folder.name for store in kernel_library.package_stores()] == list(host_levels())
    assert set(host_levels()) <= set(FEATURES_BY_LEVEL)


def test_the_store_of_a_user_is_where_it_was_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FUSEFLOW_CACHE_DIR", str(tmp_path / "here"))
    assert kernel_library.user_store().folder.is_relative_to(tmp_path / "here")
    monkeypatch.delenv("FUSEFLOW_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "there"))
    assert kernel_library.user_store().folder.is_relative_to(tmp_path / "there" / "fuseflow")


def raises(address: int) -> int:
    if address == 5:
        raise ValueError("five")
    return 0


def prints(address: int) -> int:
    print(address)
    return 0


def allocates(address: int) -> int:
    return len([address] * address)


@pytest.mark.parametrize("kernel", [raises, prints, allocates])
def test_a_kernel_that_raises_prints_or_allocates_is_refused(store: ObjectStore, kernel: FunctionType) -> None:
    with pytest.raises(KernelError, match=f"the kernel `{kernel.__name__}`"):
        library(store).address(kernel)
    assert not times(store)


def test_a_kernel_may_return_a_float_or_nothing(store: ObjectStore) -> None:
    def add(value: float, a: int, b: int, c: int) -> float:
        return value + a * b * c

    def clear(address: int) -> None:
        set_int(address, 0, 0)

    kernels, number = library(store), ctypes.c_int64(7)
    assert kernels.compiled(add, FOLD)(0.5, 2, 3, 4) == 24.5
    assert kernels.compiled(clear, Signature(None, ("int64",)))(ctypes.addressof(number)) is None
    assert number.value == 0


AT_ONCE = """
import time
from concurrent.futures import ThreadPoolExecutor
from fuseflow.native import kernel_library

class Slow:
    def __init__(self):
        time.sleep(0.05)

kernel_library.Library = Slow
with ThreadPoolExecutor(4) as pool:
    print(len(set(map(id, list(pool.map(lambda _: kernel_library.library(), range(4)))))))
"""


def test_threads_that_begin_at_once_get_one_library() -> None:
    """The code of another one would go with it."""
    done = subprocess.run([sys.executable, "-c", AT_ONCE], capture_output=True, text=True, check=True)
    assert done.stdout == "1\n"


def test_numba_is_not_imported_with_the_library() -> None:
    import subprocess

    script = "import sys, fuseflow.sim.engine.execute; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], env=dict(os.environ), check=False).returncode == 0
