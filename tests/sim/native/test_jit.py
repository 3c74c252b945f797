"""Kernels are compiled once a machine, and the log says so once. Without a directory for them, they are compiled in every
process."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from fuseflow.sim.engine.kernels.root import run_root
from fuseflow.sim.native import jit


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> Iterator[Path]:
    caplog.set_level(logging.INFO, "fuseflow.sim.native.jit")
    monkeypatch.setenv("FUSEFLOW_CACHE_DIR", str(tmp_path / "cache"))
    jit.cache_directory.cache_clear()
    yield tmp_path / "cache"
    jit.cache_directory.cache_clear()


def test_a_kernel_is_compiled_once_and_that_is_said(place: Path, caplog: pytest.LogCaptureFixture) -> None:
    first, second = jit.Library(), jit.Library()
    assert first.address(run_root) == first.address(run_root) != 0
    assert [record.getMessage() for record in caplog.records] == [
        f"compiling the simulator's kernels, some 20 seconds, once: they are kept in {jit.cache_directory()}"
    ]
    time_by_file = {file: file.stat().st_mtime_ns for file in place.rglob("*.nbc")}
    assert len(time_by_file) == 1
    second.address(run_root)
    assert len(caplog.records) == 1
    assert {file: file.stat().st_mtime_ns for file in place.rglob("*.nbc")} == time_by_file


def test_without_a_place_kernels_are_compiled_all_the_same(place: Path, caplog: pytest.LogCaptureFixture) -> None:
    place.write_text("a file where the directory should be")
    assert jit.cache_directory() is None
    assert jit.Library().address(run_root) != 0
    assert "in every run: the cache directory cannot be written" in caplog.text


def test_the_directory_is_named_after_the_sources(place: Path) -> None:
    names = {file.name for file in jit._sources()}
    assert {"ops.py", "tile_ops.py", "records.py", "stream_rings.py", "node_records.py", "scan.py"} <= names
    directory = jit.cache_directory()
    assert directory is not None and directory.is_relative_to(place)
