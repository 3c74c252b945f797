"""docs/develop/extending.md is true: what it shows is added to a copy of the package, at the places that it names, and runs there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SNIPPETS = ROOT / "tests" / "data" / "extending"
PAGE = (ROOT / "docs" / "develop" / "extending.md").read_text(encoding="utf-8")


@dataclass(frozen=True, slots=True)
class Addition:
    """A snippet and its place: a new file, or below a line of a file that begins with `after`, or in the place of the line `instead_of`."""

    file: str
    snippet: str
    after: str = ""
    instead_of: str = ""


EXTENSIONS: dict[str, tuple[str, tuple[Addition, ...]]] = {
    "operator": (
        "An operator",
        (
            Addition("fuseflow/ops.py", "operator.py", after='Operator("tanh"'),
            Addition("fuseflow/frontend/linalg/scalars.py", "mlir.py", after='"math.absi"'),
            Addition("fuseflow/frontend/trace/operator_support.py", "decomposed.txt", after="exp exp2 expm1"),
            Addition("tests/support/torch_oracle.py", "oracle.py", after='"tanh": torch.tanh'),
        ),
    ),
    "dtype": ("An element type", (Addition("fuseflow/tensors/dtypes.py", "row.py", after='_integer("i16"'),)),
    "sparsifier": (
        "A sparsifier",
        (
            Addition("fuseflow/sparsity/sparsifiers/band.py", "band.py"),
            Addition(
                "fuseflow/sparsity/sparsifiers/listing.py", "import.py", after="from fuseflow.sparsity.sparsifiers.sparsifier"
            ),
            Addition("fuseflow/sparsity/sparsifiers/listing.py", "row.py", instead_of="c.name: c for c in"),
        ),
    ),
    "layout": (
        "A layout",
        (
            Addition("fuseflow/sparsity/layouts/bitmap.py", "bitmap.py"),
            Addition("fuseflow/sparsity/layouts/listing.py", "import.py", after="from fuseflow.errors import SparsityError"),
            Addition("fuseflow/sparsity/layouts/listing.py", "row.py", instead_of="LAYOUTS: dict"),
        ),
    ),
    "rule": (
        "A rule of propagation",
        (
            Addition(
                "fuseflow/frontend/model_propagation/operator_rules.py",
                "rule.py",
                after="# Padding, gathering, pooling",
            ),
        ),
    ),
    "machine": (
        "A machine key",
        (
            Addition("fuseflow/machine/machine.py", "setting.py", after="tile_macs: Count"),
            Addition(
                "fuseflow/machine/timing.py",
                "timing.py",
                instead_of="latency, interval = machine.latency.of(unit.latency), 1 if unit.pipelined else "
                "machine.interval.of(unit.latency)",
            ),
        ),
    ),
    "section": (
        "A section of a schedule",
        (
            Addition("fuseflow/schedule/sections.py", "row.py", after='Word(key="repeat",'),
            Addition(
                "fuseflow/schedule/schedule.py", "field.py", after='"""The number of ports that read a tensor once, in order,'
            ),
            Addition("fuseflow/schedule/schedule.py", "method.py", instead_of="def _with(self, key: str,"),
        ),
    ),
    "pass": (
        "A pass",
        (
            Addition("fuseflow/transform/share.py", "share.py"),
            Addition("fuseflow/lower/graphs.py", "import.py", after="from fuseflow.transform import mark_fiber_fifos"),
            Addition("fuseflow/lower/graphs.py", "call.py", instead_of="marked = mark_fiber_fifos(graph)"),
        ),
    ),
    "dataset": (
        "A data set",
        (
            Addition("fuseflow/frontend/datasets/ring.py", "ring.py"),
            Addition("fuseflow/frontend/data.py", "import.py", after="from fuseflow.frontend.datasets.graph_files import"),
            Addition("fuseflow/frontend/data.py", "name.py", instead_of='DATASET_NAMES = ("karate",'),
            Addition("fuseflow/frontend/data.py", "branch.py", after='adj = options.choice("adj"'),
        ),
    ),
    "model": (
        "A model",
        (
            Addition("models/one_layer.py", "one_layer.py"),
            Addition("models/autoencoder.py", "autoencoder.py"),
        ),
    ),
}
"""Of every extension, its section of the page and all that is added."""


RUN_CHECKS = """
import runpy, sys, traceback
failures = 0
for path in sys.argv[1:]:
    try:
        runpy.run_path(path, run_name="__main__")
    except Exception:
        failures += 1
        print(path, traceback.format_exc(), sep="\\n")
sys.exit(failures > 0)
"""
"""A program that runs every file that it is given, also after one that failed."""


def section(title: str) -> str:
    """The text of a section of the page."""
    match = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert match is not None, f"docs/develop/extending.md has no section `{title}`"
    return match[1]


def add(addition: Addition, snippet: str, tree: Path) -> None:
    """Make one addition in a tree of the project."""
    path = tree / addition.file
    start = addition.after or addition.instead_of
    if not start:
        assert not path.exists(), f"{addition.file} exists"
        path.write_text(snippet, encoding="utf-8")
        return
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    places = [k for k, line in enumerate(lines) if line.lstrip().startswith(start)]
    assert len(places) == 1, f"{addition.file} has {len(places)} lines that begin with `{start}`"
    (place,) = places
    indent = lines[place][: len(lines[place]) - len(lines[place].lstrip())]
    added = [indent + line for line in snippet.splitlines(keepends=True)]
    lines[place + bool(addition.after) : place + 1] = added
    path.write_text("".join(lines), encoding="utf-8")


@pytest.mark.parametrize("name", EXTENSIONS)
def test_the_page_names_every_place_and_shows_every_addition(name: str) -> None:
    title, additions = EXTENSIONS[name]
    text = section(title)
    for addition in additions:
        assert f"`{addition.file}`" in text, f"section `{title}` does not name {addition.file}"
        snippet = (SNIPPETS / name / addition.snippet).read_text(encoding="utf-8")
        assert snippet.strip() in text, f"section `{title}` does not show {addition.snippet}"


def test_what_the_page_adds_runs(tmp_path: Path) -> None:
    """All extensions stand in one copy of the package, so that they are imported once, and so that none is in the way of another.

    Bytecode is copied, too: a file that is changed has another time than its bytecode says, and is compiled anew.
    """
    for folder in ("fuseflow", "models", "tests/support"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    for name, (_, additions) in EXTENSIONS.items():
        for addition in additions:
            add(addition, (SNIPPETS / name / addition.snippet).read_text(encoding="utf-8"), tmp_path)
    run = subprocess.run(
        [sys.executable, "-c", RUN_CHECKS, *(str(SNIPPETS / name / "check.py") for name in EXTENSIONS)],
        cwd=tmp_path,
        # Kernels are run as plain Python: compiling those of a changed package would take minutes.
        env={**os.environ, "PYTHONPATH": f"{tmp_path}:{tmp_path / 'tests/support'}", "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stdout + run.stderr
