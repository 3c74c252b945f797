"""The build of the package makes the kernels, and goes on without them where that fails."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


@pytest.fixture
def backend(monkeypatch: pytest.MonkeyPatch) -> Any:
    pytest.importorskip("setuptools")
    monkeypatch.syspath_prepend(str(ROOT / PROJECT["build-system"]["backend-path"][0]))
    module = pytest.importorskip(PROJECT["build-system"]["build-backend"])
    yield module
    sys.modules.pop(module.__name__, None)


def test_the_compiler_has_the_versions_that_the_package_takes(
    backend: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The hooks write metadata where they run, which imports of other tests read. So they run elsewhere."""
    for name in ("pyproject.toml", "README.md", "LICENSE", "NOTICE"):
        shutil.copy(ROOT / name, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(backend.sys, "platform", "linux")
    monkeypatch.setattr(backend.platform, "machine", lambda: "x86_64")
    requirements = backend.compiler_requirements()
    assert {re.split("[=<>]", requirement)[0] for requirement in requirements} == set(backend.COMPILER)
    assert set(requirements) <= set(PROJECT["project"]["dependencies"])
    for hook in (backend.get_requires_for_build_wheel, backend.get_requires_for_build_editable):
        assert set(requirements) <= set(hook())
    monkeypatch.setattr(backend.platform, "machine", lambda: "aarch64")
    assert backend.compiler_requirements() == []


def test_the_compiler_imports_nothing_else(backend: Any) -> None:
    """The build has no other packages than these and what they depend on."""
    script = """
import importlib.metadata, re, sys

def normal(name):
    return re.sub("[-_.]+", "-", name).lower()

names, waiting = {"fuseflow", "setuptools"}, sys.argv[1:]
while waiting:
    name = normal(waiting.pop())
    if name not in names:
        names.add(name)
        needed = [text for text in importlib.metadata.requires(name) or () if "extra ==" not in text]
        waiting += [re.match("[a-zA-Z0-9_.-]+", text)[0] for text in needed]

class Absent:
    owners = importlib.metadata.packages_distributions()
    def find_spec(self, name, path=None, target=None):
        owners = self.owners.get(name, ())
        if owners and not {normal(owner) for owner in owners} & names:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
import fuseflow.sim.engine.ahead, fuseflow.native.numba_compiler
try:
    import click
except ModuleNotFoundError:
    print("click is absent")
"""
    command = [sys.executable, "-c", script, *backend.COMPILER]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n")[0] == "click is absent"


@pytest.mark.parametrize("failure", [subprocess.CalledProcessError(1, "ahead"), FileNotFoundError("python"), None])
@pytest.mark.parametrize("hook", ["build_wheel", "build_editable"])
def test_a_failure_of_the_compiler_is_told_and_not_one_of_the_build(
    backend: Any,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    hook: str,
    failure: Exception | None,
) -> None:
    """Nor does a half of the kernels go into the package: which half would depend on the machine."""
    monkeypatch.setattr(backend, "ROOT", tmp_path)
    monkeypatch.setattr(backend, "OBJECTS", tmp_path / "objects")
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")

    def run(command: list[str], **limits: Any) -> None:
        assert command[1:] == ["-m", "fuseflow.sim.engine.ahead"]
        assert "timeout" not in limits
        (tmp_path / "objects" / "x86-64-v3").mkdir(parents=True)
        (tmp_path / "objects" / "x86-64-v3" / "first.kernel").touch()
        if failure is not None:
            raise failure

    monkeypatch.setattr(backend.subprocess, "run", run)
    monkeypatch.setattr(backend.build_meta, hook, lambda *arguments: f"built into {arguments[0]}")
    assert getattr(backend, hook)("here") == "built into here"
    assert ("no kernels are made ahead of time" in capsys.readouterr().err) == (failure is not None)
    assert (tmp_path / "objects").exists() == (failure is None)


def test_a_wheel_has_no_times_and_nothing_of_an_earlier_build(
    backend: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    stale = tmp_path / "build" / "lib.linux-x86_64-cpython-311" / "fuseflow" / "removed.py"
    stale.parent.mkdir(parents=True)
    stale.touch()
    monkeypatch.setattr(backend, "ROOT", tmp_path)
    monkeypatch.setattr(backend, "make_kernels", lambda: None)
    monkeypatch.setattr(backend.build_meta, "build_wheel", lambda *_: os.environ["SOURCE_DATE_EPOCH"])
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    assert backend.build_wheel("dist") == "1700000000"  # what a distributor sets
    monkeypatch.delenv("SOURCE_DATE_EPOCH")
    assert backend.build_wheel("dist") == backend.EARLIEST
    assert not stale.exists()
