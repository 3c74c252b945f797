"""Whether results survive kill -9: of `run -o`, of `report`, of a sweep, and of the first compilation of kernels.

    python tools/kill_output.py [--kills 25] [--seed 0] [--only run|report|sweep|kernels|pairs|disk]

A command is killed at random moments, every second time when its temporary file has appeared. After each kill the old result or the new one
must be there, whole. At the end the command runs in peace, and nothing temporary may be left. `pairs` runs two commands at once on one
directory and one cache. `disk` fills a small file system (which needs the right to mount one), makes a directory read-only, and removes one
meanwhile. Ends with 1 if anything was lost.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import click
import numpy as np

import fuseflow

PROGRAM = "tensor A[40, 40] csr\ntensor B[40, 40] csr\nC[i, j] = sum(k) A[i, k] * B[k, j]\ny[i, j] = relu(C[i, j])\noutput y\n"
SWEEP = "model: p.ein\ntensors: t.yaml\nvary:\n  fuse: [none, full]\n  par: [{}, {i: 2}, {i: 4}]\n"


class Lost(Exception):
    """A result that is neither the old one nor the new one."""


def start(folder: Path, *words: str, **variables: str) -> subprocess.Popen[bytes]:
    environment = {**os.environ, **variables}
    null = subprocess.DEVNULL
    return subprocess.Popen([sys.executable, "-m", "fuseflow", *words], cwd=folder, env=environment, stdout=null, stderr=null)


def finish(folder: Path, *words: str, **variables: str) -> float:
    """Run a command to its end, and return its seconds."""
    began = time.monotonic()
    if (status := start(folder, *words, **variables).wait()) != 0:
        raise Lost(f"`{' '.join(words)}` ended with {status}")
    return time.monotonic() - began


def kill(process: subprocess.Popen[bytes], seconds: float, appeared: Callable[[], bool] | None, chance: random.Random) -> bool:
    """Kill a process after so many seconds, or shortly after something has appeared. Return whether it was alive until then."""
    end = time.monotonic() + (seconds if appeared is None else 60)
    while time.monotonic() < end and process.poll() is None and not (appeared is not None and appeared()):
        time.sleep(0.001)
    time.sleep(0 if appeared is None else chance.uniform(0, 0.05))
    process.send_signal(signal.SIGKILL)
    return process.wait() == -signal.SIGKILL


class Kills:
    """A loop that goes on until so many processes were killed. `number` counts the attempts, and `killed` those that were alive."""

    def __init__(self, wanted: int) -> None:
        self.wanted, self.number, self.killed = wanted, 0, 0

    def __iter__(self) -> Iterator[int]:
        while self.killed < self.wanted:
            if self.number >= 10 * self.wanted:
                raise Lost(f"only {self.killed} of {self.number} processes were alive when they were killed")
            yield self.number
            self.number += 1

    def __str__(self) -> str:
        return f"{self.killed} kills of {self.number} processes"


def whole(directory: Path) -> str:
    """Return what a directory of results was made with. Raise `Lost` for one that is not whole."""
    try:
        about = json.loads((directory / "about.json").read_text())
        result = json.loads((directory / "result.json").read_text())
        there = {p.relative_to(directory).as_posix() for p in directory.rglob("*") if not p.is_dir()}
        missing = set(about["files"]) - there - {"report.html"}
    except (OSError, ValueError, KeyError) as error:
        raise Lost(f"`{directory}` is not whole: {error}") from error
    if missing:
        raise Lost(f"`{directory}` lacks {sorted(missing)[0]}")
    return str(result["machine_settings"]["fifo_depth"])


def temporaries(folder: Path) -> list[Path]:
    names = ((inside, name) for inside, folders, files in os.walk(folder) for name in (*folders, *files))
    return [Path(inside, name) for inside, name in names if name.startswith(".") and name.count(".") >= 4]


def kill_runs(folder: Path, kills: int, chance: random.Random) -> None:
    words = ("run", "p.ein", "--tensors", "t.yaml", "-o", "out", "-q", "--set")
    seconds = finish(folder, *words, "fifo_depth=100")
    old, replaced, deaths = "100", 0, Kills(kills)
    for number in deaths:
        new = str(101 + number)
        process = start(folder, *words, f"fifo_depth={new}")
        before = set(temporaries(folder))
        deaths.killed += kill(
            process,
            chance.uniform(0, seconds),
            (lambda b=before: set(temporaries(folder)) - b != set()) if number % 2 else None,
            chance,
        )
        found = whole(folder / "out")
        if found not in (old, new):
            raise Lost(f"`out` is of {found}, not of {old} or {new}")
        replaced += found == new
        old = found
    left = len(temporaries(folder))
    finish(folder, *words, "fifo_depth=99")
    if temporaries(folder) or whole(folder / "out") != "99":
        raise Lost(f"{temporaries(folder)} is left behind")
    click.echo(f"run -o: {deaths}, {replaced} new results, {left} temporary directories were left and removed")


def kill_reports(folder: Path, kills: int, chance: random.Random) -> None:
    finish(folder, "run", "p.ein", "--tensors", "t.yaml", "-o", "out", "-q")
    seconds = finish(folder, "report", "out", "-q")
    deaths = Kills(kills)
    for number in deaths:
        (folder / "out" / "report.html").unlink() if number % 3 == 0 and (folder / "out" / "report.html").exists() else None
        process = start(folder, "report", "out", "-q")
        appeared = (lambda: bool(temporaries(folder))) if number % 2 else None
        deaths.killed += kill(process, chance.uniform(seconds / 2, seconds), appeared, chance)
        whole(folder / "out")
        page = folder / "out" / "report.html"
        if page.exists() and not page.read_text().rstrip().endswith("</html>"):
            raise Lost("half a page is there")
    finish(folder, "report", "out", "-q")
    finish(folder, "run", "p.ein", "--tensors", "t.yaml", "-o", "out", "-q")
    if temporaries(folder):
        raise Lost(f"{temporaries(folder)} is left behind")
    click.echo(f"report: {deaths}, and the next run replaced the directory")


def kill_sweeps(folder: Path, kills: int, chance: random.Random) -> None:
    (folder / "s.yaml").write_text(SWEEP)
    seconds, rows = finish(folder, "sweep", "s.yaml", "--store", "peace.sqlite", "-q", "--jobs", "1"), 0
    deaths = Kills(kills)
    for number in deaths:
        if number % 5 == 4:  # what is done is not measured again, so that the sweep would end at once
            for path in folder.glob("s.sqlite*"):
                path.unlink()
            rows = 0
        process = start(folder, "sweep", "s.yaml", "--store", "s.sqlite", "-q", "--jobs", "1")
        deaths.killed += kill(process, chance.uniform(0, seconds), None, chance)
        now = _rows(folder / "s.sqlite")
        if now < rows:
            raise Lost(f"{rows - now} rows of the sweep are gone")
        rows = now
    finish(folder, "sweep", "s.yaml", "--store", "s.sqlite", "-q", "--jobs", "1")
    if _rows(folder / "s.sqlite") != _rows(folder / "peace.sqlite"):
        raise Lost("the sweep has other rows")
    click.echo(f"sweep: {deaths}, {_rows(folder / 's.sqlite')} rows")


def _rows(store: Path) -> int:
    if not store.exists():
        return 0
    with closing(sqlite3.connect(store, timeout=30)) as database:
        if database.execute("PRAGMA integrity_check").fetchone()[0] != "ok":
            raise Lost(f"{store} is damaged")
        made = database.execute("SELECT count(*) FROM sqlite_master WHERE name = 'rows'").fetchone()[0]
        return int(database.execute("SELECT count(*) FROM rows").fetchone()[0]) if made else 0


def kill_kernels(folder: Path, kills: int, chance: random.Random) -> None:
    """Kill first runs that compile kernels into an empty cache, then spoil what they kept.

    The package brings kernels that were compiled ahead of time, with which nothing would be compiled. So a copy of it runs, without these.
    """
    package, cache = _without_kernels(folder), folder / "cache"
    words = ("run", "p.ein", "--tensors", "t.yaml", "--engine", "fast", "-q")
    variables = {"PYTHONPATH": str(package), "FUSEFLOW_CACHE_DIR": str(cache)}
    seconds = finish(folder, *words, PYTHONPATH=str(package), FUSEFLOW_CACHE_DIR=str(folder / "peace"))
    all_kernels = len(list((folder / "peace").rglob("*.kernel")))
    if all_kernels == 0:
        raise Lost("the first run compiled no kernel")
    deaths = Kills(kills)
    for number in deaths:
        if number % 5 == 0:
            shutil.rmtree(cache, ignore_errors=True)
        kept = len(list(cache.rglob("*.kernel")))
        begun = (lambda k=kept: len(list(cache.rglob("*.kernel"))) > k) if number % 2 and kept < all_kernels else None
        process = start(folder, *words, **variables)
        deaths.killed += kill(process, chance.uniform(seconds / 10, seconds), begun, chance)
        if len(list(cache.rglob("*.kernel"))) < kept:
            raise Lost("a kernel that was kept is gone")
    finish(folder, *words, **variables)
    kernels = sorted(cache.rglob("*.kernel"))
    if len(kernels) != all_kernels:
        raise Lost(f"{len(kernels)} kernels are kept, not {all_kernels}")
    for kernel in kernels:
        content = bytearray(kernel.read_bytes())
        content[chance.randrange(len(content))] ^= 255
        kernel.write_bytes(bytes(content) if chance.random() < 0.5 else content[: len(content) // 2])
    finish(folder, *words, **variables)
    stray = [path for path in cache.rglob("*") if path.is_file() and path.suffix not in (".kernel", ".import")]
    click.echo(f"kernels: {deaths}, {len(kernels)} kernels, all spoiled and compiled again; {len(stray)} stray files")


def _without_kernels(folder: Path) -> Path:
    """Return a folder with a copy of the package that has no machine code."""
    root = Path(fuseflow.__file__).parent
    leave = shutil.ignore_patterns("objects", "__pycache__")
    shutil.copytree(root, folder / "copy" / "fuseflow", ignore=leave)
    return folder / "copy"


def run_pairs(folder: Path, kills: int, chance: random.Random) -> None:
    """Run two commands at once on one directory, with one cache that is empty at first."""
    cache = str(folder / "shared")
    for number in range(max(kills // 5, 2)):
        both = [
            start(
                folder,
                "run",
                "p.ein",
                "--tensors",
                "t.yaml",
                "-o",
                "out",
                "-q",
                "--set",
                f"fifo_depth={depth}",
                FUSEFLOW_CACHE_DIR=cache,
            )
            for depth in (200 + number, 300 + number)
        ]
        statuses = [process.wait() for process in both]
        if statuses != [0, 0] or whole(folder / "out") not in (str(200 + number), str(300 + number)):
            raise Lost(f"two runs at once ended with {statuses}")
    if temporaries(folder):
        raise Lost(f"{temporaries(folder)} is left behind")
    click.echo(f"pairs: {max(kills // 5, 2)} pairs of runs on one directory and one cache")


def fill_disks(folder: Path, kills: int, chance: random.Random) -> None:
    """A full disk under the results and under the cache, a directory that is read-only, and one that is removed meanwhile."""
    small = folder / "small"
    small.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", str(small)], capture_output=True).returncode:
        click.echo("disk: skipped, no right to mount a small file system")
        return
    try:
        words = ["run", "p.ein", "--tensors", "t.yaml", "-q"]
        _refused(folder, [*words, "-o", "small/out"], "a disk that becomes full")
        (small / "full").write_bytes(bytes(16 << 10))
        _refused(folder, [*words, "--json", "small/r.json"], "a full disk")
        finish(folder, *words, FUSEFLOW_CACHE_DIR=str(small / "cache"))
        if left := [path.name for path in small.iterdir() if path.name not in ("cache", "full")]:
            raise Lost(f"{left} is left behind on the full disk")
    finally:
        subprocess.run(["umount", str(small)], check=True)
    (folder / "file").write_text("")
    _refused(folder, [*words, "-o", "file/out"], "a directory that cannot be made")
    _refuse_read_only(folder, words)
    _remove_meanwhile(folder, words, chance)
    click.echo("disk: full under results and cache, read-only, removed meanwhile, and no directory: status 2 and nothing left")


def _refuse_read_only(folder: Path, words: list[str]) -> None:
    """Ask for results on a file system that is read-only: permissions do not hold back whoever may mount one."""
    there = folder / "read-only"
    there.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "ro,size=16k", "tmpfs", str(there)], check=True)
    try:
        for option, name in (("-o", "out"), ("--json", "r.json"), ("--trace", "t.json"), ("--dump-dir", "d")):
            more = ["--dump-after", "einsum"] if option == "--dump-dir" else []
            _refused(folder, [*words, option, f"read-only/{name}", *more], f"`{option}` in a directory that is read-only")
    finally:
        subprocess.run(["umount", str(there)], check=True)


def _remove_meanwhile(folder: Path, words: list[str], chance: random.Random) -> None:
    """Remove the directory in which results are to appear, while they are computed. They appear in a new one, or not at all."""
    for _ in range(3):
        (folder / "gone").mkdir(exist_ok=True)
        process = start(folder, *words, "-o", "gone/out")
        time.sleep(chance.uniform(0.1, 2))
        shutil.rmtree(folder / "gone", ignore_errors=True)
        status = process.wait()
        if status not in (0, 2) or ((folder / "gone" / "out").exists() and whole(folder / "gone" / "out") == ""):
            raise Lost(f"a directory that was removed meanwhile: status {status}")
        if left := temporaries(folder):
            raise Lost(f"{left} is left behind where a directory was removed")


def _refused(folder: Path, words: list[str], what: str) -> None:
    done = subprocess.run([sys.executable, "-m", "fuseflow", *words], cwd=folder, capture_output=True, text=True)
    if done.returncode != 2 or "error[file]" not in done.stderr or "Traceback" in done.stderr:
        raise Lost(f"{what}: status {done.returncode}: {done.stderr[-300:]}")


PARTS: dict[str, Callable[[Path, int, random.Random], None]] = {
    "run": kill_runs,
    "report": kill_reports,
    "sweep": kill_sweeps,
    "kernels": kill_kernels,
    "pairs": run_pairs,
    "disk": fill_disks,
}


@click.command(help=__doc__.partition("\n")[0])
@click.option(
    "--kills", default=25, show_default=True, type=click.IntRange(1), help="Of each command, of processes that are alive."
)
@click.option("--seed", default=0, show_default=True, help="Of the moments.")
@click.option("--only", type=click.Choice(list(PARTS)))
def main(kills: int, seed: int, only: str | None) -> None:
    for name in [only] if only else PARTS:
        folder = Path(tempfile.mkdtemp())
        try:
            _inputs(folder)
            PARTS[name](folder, kills, random.Random(seed))
        except Lost as error:
            raise click.ClickException(f"{name}: {error}") from error
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _inputs(folder: Path) -> None:
    (folder / "p.ein").write_text(PROGRAM)
    (folder / "t.yaml").write_text("A: {path: a.npy}\nB: {path: a.npy}\n")
    values = np.random.default_rng(0).random((40, 40))
    np.save(folder / "a.npy", np.where(values < 0.1, values, 0))


if __name__ == "__main__":
    main()
