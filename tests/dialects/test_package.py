"""The folder at the top of the repository is the package `fuseflow.dialects`, in a clone, a wheel and a source distribution."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from fuseflow.dialects import DIALECTS, declaration
from fuseflow.native.processor import has_levels
from fuseflow.sim.engine.ahead import make_all

ROOT = Path(__file__).parents[2]
PACKED = {"fuseflow/dialects/__init__.py", "fuseflow/dialects/module.py", *(f"fuseflow/dialects/{d}.irdl.mlir" for d in DIALECTS)}


def test_the_package_is_a_relative_link():
    link = ROOT / "fuseflow" / "dialects"
    assert link.is_symlink()
    assert link.readlink() == Path("../dialects")
    assert all(declaration(dialect).is_file() for dialect in DIALECTS)


def test_git_has_the_link():
    if not (ROOT / ".git").exists() or shutil.which("git") is None:
        pytest.skip("no clone")
    listed = subprocess.run(["git", "ls-files", "-s", "fuseflow/dialects"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert listed.stdout.startswith("120000 ")


def test_importing_the_package_does_not_import_mlir():
    script = "import sys, fuseflow, fuseflow.dialects, fuseflow.dialects.text_screen; assert 'torch_mlir' not in sys.modules"
    subprocess.run([sys.executable, "-c", script], check=True)


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package's sources where a build may leave files. The kernels are made before they are copied, as those that the simulator's
    tests need, so that they are compiled once: the build finds them and compiles nothing."""
    if has_levels():
        make_all(jobs=min(os.cpu_count() or 1, 4))
    project = tmp_path_factory.mktemp("project")
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE", "NOTICE"):
        shutil.copy(ROOT / name, project / name)
    unwanted = shutil.ignore_patterns("__pycache__")
    for name in ("fuseflow", "dialects"):
        shutil.copytree(ROOT / name, project / name, symlinks=True, ignore=unwanted)
    shutil.copytree(ROOT / "tools" / "wheel", project / "tools" / "wheel", ignore=unwanted)  # the build backend
    return project


def test_a_wheel_has_it(copy: Path, tmp_path: Path):
    wheel = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "--no-index",
        "-w",
        tmp_path,
        ".",
    ]
    subprocess.run(wheel, cwd=copy, check=True, env=dict(os.environ, PIP_DISABLE_PIP_VERSION_CHECK="1"))
    (built,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(built) as archive:
        names = archive.namelist()
    assert set(names) >= PACKED
    assert built.name.endswith("-py3-none-any.whl") != has_levels()  # the kernels are machine code
    assert not [name for name in names if name.startswith("dialects/")]


def test_a_source_distribution_has_it(copy: Path, tmp_path: Path):
    """Built as an installer does, and a wheel from it has the declarations too."""
    script = f"import setuptools.build_meta as b; b.build_sdist({str(tmp_path)!r})"
    subprocess.run([sys.executable, "-c", script], cwd=copy, check=True, capture_output=True)
    (built,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(built) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert names >= PACKED
