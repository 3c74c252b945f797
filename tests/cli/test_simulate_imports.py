"""The command `fuseflow simulate` imports nothing that it does not need."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from pathlib import Path

import pytest

import fuseflow as ff
from fuseflow.cli.main import without_collection

EXAMPLE = Path(__file__).parents[2] / "docs" / "example"

SIMULATE = """
import sys
from fuseflow.cli.main import main
main(sys.argv[1:], standalone_mode=False)
print(*sorted(sys.modules), file=sys.stderr)
"""
NEEDLESS = [
    "torch", "torch_mlir", "numba", "rich", "sympy", "networkx", "jinja2", "scipy.special", "scipy.optimize",
    "fuseflow.autoscheduler", "fuseflow.compiler", "fuseflow.estimate", "fuseflow.frontend", "fuseflow.fusion", "fuseflow.lower",
    "fuseflow.schedule", "fuseflow.sweep", "fuseflow.table", "fuseflow.transform",
]  # fmt: skip


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("compiled")
    ff.compile(EXAMPLE / "spmm.ein", tensors=EXAMPLE / "tensors.yaml").save(folder / "out")
    return next((folder / "out").glob("*/graph.bin"))


def modules(*words: str) -> set[str]:
    """Return the modules that a process has imported when the command ends."""
    command = [sys.executable, "-c", SIMULATE, *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=dict(os.environ))
    assert done.returncode == 0, done.stderr
    return set(done.stderr.split())


@pytest.mark.parametrize(("machine", "needless"), [("rda", []), ("comal", []), ("ideal", ["llvmlite"])])
def test_simulate_imports_nothing_that_it_does_not_need(graph: Path, machine: str, needless: list[str]):
    words = ["simulate", str(graph), "--tensors", str(EXAMPLE / "tensors.yaml"), "--machine", machine, "-q"]
    modules(*words)  # compiles what was not made ahead
    imported = modules(*words)
    assert "fuseflow.sim.run" in imported
    assert imported & {*NEEDLESS, *needless} == set()


def test_the_version_is_printed_by_click_alone():
    imported = modules("--version")
    assert imported & {*NEEDLESS, "numpy", "scipy", "pydantic", "ruamel", "llvmlite", "fuseflow.sim", "fuseflow.samml"} == set()


def test_garbage_is_collected_again_after_a_command_was_imported():
    assert gc.isenabled()
    with without_collection():
        assert not gc.isenabled()
    assert gc.isenabled()


def test_the_names_of_the_package_are_found_when_they_are_used():
    assert set(ff.__all__) <= set(dir(ff)) and set(ff.__all__) == set(ff._MODULES)
    assert all(getattr(ff, name) is not None for name in ff.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        ff.nothing  # noqa: B018
