"""A primitive that is added to a copy of the package: what that touches, and that it then does all that a primitive does.

`scale` multiplies a stream by a constant. Its additions are in `tests/data/extending/primitive`; docs/develop/extending.md quotes them.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

pytest.importorskip("torch_mlir.ir")

ROOT = Path(__file__).resolve().parents[1]
SNIPPETS = ROOT / "tests" / "data" / "extending" / "primitive"


@dataclass(frozen=True)
class Addition:
    """A snippet, by the name of its file, or a row, that goes into a file of the package: before the one place where `before` stands, or
    into a new file."""

    file: str
    before: str | None = None
    snippet: str = ""
    row: str = ""

    @property
    def text(self) -> str:
        snippet = (SNIPPETS / self.snippet).read_text(encoding="utf-8") if self.snippet else ""
        return self.row or snippet + "\n\n" * (self.before is not None)


ADDITIONS = (
    Addition("samml/compute.py", "@dataclass(frozen=True, slots=True)\nclass Folding(Node):", snippet="primitive.py"),
    Addition("samml/compute.py", " | Reduce | Accumulate", row=" | Scale"),
    Addition("primitives/pointwise.py", "RULES: dict[", snippet="firing.py"),
    Addition("primitives/pointwise.py", "n.Alu: alu}", row="n.Scale: scale, "),
)
KERNEL = Addition("sim/engine/kernels/scale.py", snippet="kernel.py")
"""The engine runs the primitive with it; without it, all graphs that have the primitive run on the reference simulator."""
MOST = 2
"""Files that a new primitive must touch."""


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a copy of the package that has the primitive."""
    root = tmp_path_factory.mktemp("scale")
    shutil.copytree(ROOT / "fuseflow", root / "fuseflow", ignore=shutil.ignore_patterns("__pycache__"))
    for addition in (*ADDITIONS, KERNEL):
        path = root / "fuseflow" / addition.file
        if addition.before is None:
            path.write_text(addition.text, encoding="utf-8")
            continue
        text = path.read_text(encoding="utf-8")
        assert text.count(addition.before) == 1, f"`{addition.before}` is not at one place of {addition.file}"
        path.write_text(text.replace(addition.before, addition.text + addition.before), encoding="utf-8")
    written = run(
        root, "-c", f"import sys; sys.path.append({str(ROOT / 'tools')!r}); import dialects; dialects.write_operations()"
    )
    assert written.returncode == 0, written.stderr
    return root


def run(package: Path, *command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """A command in which `fuseflow` is the copy."""
    settings: Mapping[str, str] = {**os.environ, "PYTHONPATH": str(package), **environment}
    return subprocess.run(
        [sys.executable, "-P", *command], cwd=package, env=settings, capture_output=True, text=True, timeout=600, check=False
    )


def test_few_files_are_touched() -> None:
    must = {addition.file for addition in ADDITIONS}
    assert len(must) <= MOST
    touched = must | {KERNEL.file}
    page = (ROOT / "docs" / "develop" / "extending.md").read_text(encoding="utf-8")
    assert [file for file in sorted(touched) if f"{file}`" not in page] == [], "docs/develop/extending.md does not name them"


@pytest.mark.parametrize("snippet", ["primitive.py", "firing.py", "kernel.py"])
def test_the_page_quotes_the_snippets(snippet: str) -> None:
    page = (ROOT / "docs" / "develop" / "extending.md").read_text(encoding="utf-8")
    assert (SNIPPETS / snippet).read_text(encoding="utf-8").strip() in page, f"copy {snippet} to docs/develop/extending.md"


@pytest.mark.parametrize("engine", ["reference", "fast"])
def test_it_does_all_that_a_primitive_does(package: Path, engine: str) -> None:
    """Without and with its kernel. Nothing is compiled, so that this takes seconds."""
    kernel = package / "fuseflow" / KERNEL.file
    if engine == "reference":
        kernel.rename(kernel.with_suffix(".unused"))
    done = run(package, str(SNIPPETS / "check.py"), engine, NUMBA_DISABLE_JIT="1")
    if engine == "reference":
        kernel.with_suffix(".unused").rename(kernel)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_its_kernel_compiles(package: Path, tmp_path: Path) -> None:
    done = run(package, str(SNIPPETS / "check.py"), "fast", FUSEFLOW_CACHE_DIR=str(tmp_path))
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_its_types_are_right(package: Path) -> None:
    """Every `match` over primitives is complete with it."""
    shutil.copy(ROOT / "pyproject.toml", package)
    done = run(package, "-m", "mypy", "fuseflow")
    assert done.returncode == 0, done.stdout
