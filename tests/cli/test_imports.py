"""Commands and their help import nothing that they do not need."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

import fuseflow as ff
from fuseflow.cli.deferred import ACTIONS, DECLARED
from fuseflow.cli.main import main

EXAMPLE = Path(__file__).parents[2] / "docs" / "example"
MODELS = Path(__file__).parents[2] / "models"
MOST_MODULES = 345
"""The most modules of fuseflow that a run of a GCN loads, if it was made before."""

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
    assert CliRunner().invoke(main, words).exit_code == 0  # compiles what was not made ahead
    imported = modules(*words)
    assert "fuseflow.sim.run" in imported
    assert imported & {*NEEDLESS, *needless} == set()


def test_a_run_that_was_made_before_imports_nothing_that_it_does_not_need(monkeypatch: pytest.MonkeyPatch):
    """Half of the time of a short run is spent on imports, so each has to be of use. A new module may raise the limit by one."""
    monkeypatch.delenv("FUSEFLOW_MODEL_CACHE_MB")  # as outside of tests, where imported models are kept
    words = ["run", str(MODELS / "gcn.py")]
    modules(*words)  # reads the model with PyTorch, and looks for the best cut
    imported = modules(*words)
    needless = [
        "torch", "torch_mlir", "numba", "sympy", "networkx", "jinja2", "google.protobuf", "ortools", "scipy.sparse",
        "scipy.special", "concurrent.futures", "fuseflow.autoscheduler.autoscheduler", "fuseflow.cut.best",
        "fuseflow.energy", "fuseflow.estimate", "fuseflow.explain.fusion", "fuseflow.propagation", "fuseflow.run.artifacts",
        "fuseflow.sampling.sample_request", "fuseflow.sim.events", "fuseflow.sim.reference", "fuseflow.sweep", "fuseflow.plan.decompose",
    ]  # fmt: skip
    assert "fuseflow.sim.engine.execute" in imported
    assert imported & {*needless} == set()
    assert sum(name.startswith("fuseflow") for name in imported) <= MOST_MODULES


def test_the_version_is_printed_by_click_alone():
    imported = modules("--version")
    libraries = {"numpy", "scipy", "pydantic", "ruamel", "llvmlite", "importlib.metadata", "difflib"}
    assert imported & {*NEEDLESS, *libraries, "fuseflow.sim", "fuseflow.samml"} == set()


def test_the_version_is_that_of_the_installation():
    assert ff.__version__ == version("fuseflow")
    assert CliRunner().invoke(main, ["--version"]).output == f"fuseflow, version {ff.__version__}\n"


def test_help_imports_the_declarations_of_commands_alone():
    asks = [[*command, "--help"] for command in _commands(main, ())]
    code = f"import sys\nfrom fuseflow.cli.main import main\nfor words in {asks!r}: main(words, standalone_mode=False)"
    told = "print(*(name for name in sys.modules if '.cli.' not in name), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", f"{code}\n{told}"], capture_output=True, text=True, check=True)
    assert done.stdout.count("Usage: ") == len(asks) > 20
    libraries = {"numpy", "scipy", "pydantic", "ruamel", "ruamel.yaml", "llvmlite", "rich", "torch", "networkx", "numba"}
    assert {*done.stderr.split()} & {
        *libraries,
        "fuseflow.samml",
        "fuseflow.einsum",
        "fuseflow.tensors",
        "fuseflow.compiler",
    } == set()


def _commands(command: click.Command, words: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    yield words
    for name, inner in _inner_commands(command).items():
        yield from _commands(inner, (*words, name))


def _inner_commands(command: click.Command) -> dict[str, click.Command]:
    if not isinstance(command, click.Group):
        return {}
    context = click.Context(command)
    inner = {name: command.get_command(context, name) for name in command.list_commands(context)}
    return {name: found for name, found in inner.items() if found is not None}


def _declarations(command: click.Command) -> Iterator[Callable[..., Any]]:
    """Yield the functions that commands without others inside are declared as."""
    inner = _inner_commands(command)
    for each in inner.values():
        yield from _declarations(each)
    if not inner and command.callback is not None:
        yield inspect.unwrap(command.callback)


def test_every_declaration_has_what_it_does():
    declarations = list(_declarations(main))
    for declaration in declarations:
        action = getattr(import_module(ACTIONS + declaration.__module__.removeprefix(DECLARED)), declaration.__name__)
        assert inspect.isfunction(action) and action is not declaration
    assert len(declarations) > 15


def test_the_names_of_the_package_are_found_when_they_are_used():
    assert set(ff.__all__) <= set(dir(ff))
    assert all(getattr(ff, name) is not None for name in ff.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        ff.nothing  # noqa: B018
