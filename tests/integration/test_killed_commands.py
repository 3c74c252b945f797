"""Results survive kill -9: of `run -o`, of `report`, and of the first compilation of kernels; and full disks, and two commands at once.

A command is killed at random moments, every second time when its temporary file has appeared. After each kill the old result or the new one
is there, whole. At the end the command runs in peace, and nothing temporary is left.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from killed import Kills, finish, kill, start

import fuseflow

pytestmark = pytest.mark.slow

PROGRAM = "tensor A[40, 40] csr\ntensor B[40, 40] csr\nC[i, j] = sum(k) A[i, k] * B[k, j]\ny[i, j] = relu(C[i, j])\noutput y\n"
RUN = ("run", "p.ein", "--tensors", "t.yaml", "-q")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "p.ein").write_text(PROGRAM)
    (tmp_path / "t.yaml").write_text("A: {path: a.npy}\nB: {path: a.npy}\n")
    values = np.random.default_rng(0).random((40, 40))
    np.save(tmp_path / "a.npy", np.where(values < 0.1, values, 0))
    return tmp_path


@pytest.fixture
def chance(draws: Callable[[int], range]) -> random.Random:
    """Of the moments."""
    return random.Random(draws(25).start)


@pytest.fixture
def kills(draws: Callable[[int], range]) -> Kills:
    return Kills(len(draws(25)))


def whole(directory: Path) -> str:
    """Return the FIFO depth that a directory of results was made with, whose files are all there."""
    about = json.loads((directory / "about.json").read_text())
    result = json.loads((directory / "result.json").read_text())
    there = {p.relative_to(directory).as_posix() for p in directory.rglob("*") if not p.is_dir()}
    assert set(about["files"]) - there <= {"report.html"}
    return str(result["machine_settings"]["fifo_depth"])


def temporaries(folder: Path) -> list[Path]:
    names = ((inside, name) for inside, folders, files in os.walk(folder) for name in (*folders, *files))
    return [Path(inside, name) for inside, name in names if name.startswith(".") and name.count(".") >= 4]


def test_runs(folder: Path, kills: Kills, chance: random.Random) -> None:
    words = (*RUN, "-o", "out", "--set")
    seconds, old = finish(folder, *words, "fifo_depth=100"), "100"
    for number in kills:
        new, before = str(101 + number), set(temporaries(folder))
        process = start(folder, *words, f"fifo_depth={new}")
        appeared = (lambda before=before: bool(set(temporaries(folder)) - before)) if number % 2 else None
        kills.killed += kill(process, chance.uniform(0, seconds), appeared, chance)
        found = whole(folder / "out")
        assert found in (old, new)
        old = found
    finish(folder, *words, "fifo_depth=99")
    assert not temporaries(folder) and whole(folder / "out") == "99"


def test_reports(folder: Path, kills: Kills, chance: random.Random) -> None:
    finish(folder, *RUN, "-o", "out")
    seconds, page = finish(folder, "report", "out", "-q"), folder / "out" / "report.html"
    for number in kills:
        if number % 3 == 0:
            page.unlink(missing_ok=True)
        process = start(folder, "report", "out", "-q")
        appeared = (lambda: bool(temporaries(folder))) if number % 2 else None
        kills.killed += kill(process, chance.uniform(seconds / 2, seconds), appeared, chance)
        whole(folder / "out")
        assert not page.exists() or page.read_text().rstrip().endswith("</html>")
    finish(folder, "report", "out", "-q")
    finish(folder, *RUN, "-o", "out")
    assert not temporaries(folder)


def test_kernels(folder: Path, kills: Kills, chance: random.Random) -> None:
    """First runs that compile kernels into an empty cache are killed, and then what they kept is spoiled.

    The package brings kernels that were compiled ahead of time, with which nothing would be compiled. So a copy of it runs, without these.
    """
    leave = shutil.ignore_patterns("objects", "__pycache__")
    shutil.copytree(Path(fuseflow.__file__).parent, folder / "copy" / "fuseflow", ignore=leave)
    words, cache = (*RUN, "--engine", "fast"), folder / "cache"
    variables = {"PYTHONPATH": str(folder / "copy"), "FUSEFLOW_CACHE_DIR": str(cache)}
    seconds = finish(folder, *words, **{**variables, "FUSEFLOW_CACHE_DIR": str(folder / "peace")})
    all_kernels = len(list((folder / "peace").rglob("*.kernel")))
    assert all_kernels > 0
    for number in kills:
        if number % 5 == 0:
            shutil.rmtree(cache, ignore_errors=True)
        kept = len(list(cache.rglob("*.kernel")))
        begun = (lambda k=kept: len(list(cache.rglob("*.kernel"))) > k) if number % 2 and kept < all_kernels else None
        kills.killed += kill(start(folder, *words, **variables), chance.uniform(seconds / 10, seconds), begun, chance)
        assert len(list(cache.rglob("*.kernel"))) >= kept
    finish(folder, *words, **variables)
    kernels = sorted(cache.rglob("*.kernel"))
    assert len(kernels) == all_kernels
    for kernel in kernels:
        content = bytearray(kernel.read_bytes())
        content[chance.randrange(len(content))] ^= 255
        kernel.write_bytes(bytes(content) if chance.random() < 0.5 else content[: len(content) // 2])
    finish(folder, *words, **variables)


def test_two_runs_at_once(folder: Path) -> None:
    """On one directory, and with one cache that is empty at first."""
    for number in range(5):
        depths = (str(200 + number), str(300 + number))
        words = [(*RUN, "-o", "out", "--set", f"fifo_depth={depth}") for depth in depths]
        both = [start(folder, *each, FUSEFLOW_CACHE_DIR=str(folder / "shared")) for each in words]
        assert [process.wait() for process in both] == [0, 0] and whole(folder / "out") in depths
    assert not temporaries(folder)


@contextmanager
def small_disk(at: Path, options: str = "size=16k") -> Iterator[Path]:
    at.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(at)], capture_output=True).returncode:
        pytest.skip("no right to mount a small file system")
    try:
        yield at
    finally:
        subprocess.run(["umount", str(at)], check=True)


def refused(folder: Path, *words: str) -> None:
    done = subprocess.run([sys.executable, "-m", "fuseflow", *RUN, *words], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 2 and "error[file]" in done.stderr and "Traceback" not in done.stderr, done.stderr


def test_full_disks(folder: Path) -> None:
    """Under the results, and under the cache, which a run can do without."""
    with small_disk(folder / "small") as small:
        refused(folder, "-o", "small/out")
        (small / "full").write_bytes(bytes(16 << 10))
        refused(folder, "--json", "small/r.json")
        finish(folder, *RUN, FUSEFLOW_CACHE_DIR=str(small / "cache"))
        assert {path.name for path in small.iterdir()} <= {"cache", "full"}


def test_places_where_nothing_can_be_written(folder: Path) -> None:
    """A file system that is read-only: permissions do not hold back whoever may mount one."""
    (folder / "file").write_text("")
    refused(folder, "-o", "file/out")
    with small_disk(folder / "read-only", "ro,size=16k"):
        for option, name in (("-o", "out"), ("--json", "r.json"), ("--trace", "t.json"), ("--dump-dir", "d")):
            refused(folder, option, f"read-only/{name}", *(["--dump-after", "einsum"] if option == "--dump-dir" else []))


def test_a_directory_that_is_removed_meanwhile(folder: Path, chance: random.Random) -> None:
    """Results appear in a new one, or not at all."""
    for _ in range(3):
        (folder / "gone").mkdir(exist_ok=True)
        process = start(folder, *RUN, "-o", "gone/out")
        time.sleep(chance.uniform(0.1, 2))
        shutil.rmtree(folder / "gone", ignore_errors=True)
        assert process.wait() in (0, 2)
        assert not (folder / "gone" / "out").exists() or whole(folder / "gone" / "out")
        assert not temporaries(folder)
