"""The action of the command `fuseflow doctor`, which `cli/doctor.py` declares."""

from __future__ import annotations

import importlib.metadata
import platform
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path

import click
import numpy as np
from packaging.requirements import Requirement

import fuseflow as ff
from fuseflow.cli.common import JsonFile, require_writable
from fuseflow.cp_sat import CpSatProblem, Objective
from fuseflow.native.kernel_library import package_stores, user_store
from fuseflow.native.processor import has_levels
from fuseflow.native.sources import source_digest
from fuseflow.report.table_width import print_table
from fuseflow.report.tables import CheckRow, check_table
from fuseflow.requirements import install_command

MODEL = """\
import torch

def build(data):
    return torch.nn.Linear(data.features.shape[1], 2).eval(), (data.features.to_dense(),)
"""


def doctor(json_file: JsonFile, quiet: bool) -> None:
    rows = [*check_packages(), *(_attempt(name, check) for name, check in CHECKS.items())]
    json_file.write(lambda: {"schema": 1, "checks": [asdict(row) for row in rows]})
    if not quiet:
        print_table(json_file.console(), check_table(rows))
    if wrong := [row.name for row in rows if not row.passed]:
        click.echo(f"wrong: {', '.join(wrong)}", err=True)
        raise click.exceptions.Exit(1)


def check_packages() -> Iterator[CheckRow]:
    """Check Python and every dependency against the versions that fuseflow requires."""
    yield CheckRow("python", sys.version_info >= (3, 11), f"{platform.python_version()}, wanted 3.11 or newer")
    for requirement in map(Requirement, importlib.metadata.requires("fuseflow") or ()):
        if requirement.marker is not None and not requirement.marker.evaluate():  # of an extra
            continue
        wanted = f"wanted {str(requirement.specifier).removeprefix('==')}: {install_command(requirement.name)}"
        try:
            version = importlib.metadata.version(requirement.name)
        except importlib.metadata.PackageNotFoundError:
            yield CheckRow(requirement.name, False, f"not installed, {wanted}")
            continue
        right = requirement.specifier.contains(version, prereleases=True)
        yield CheckRow(requirement.name, right, version if right else f"{version}, {wanted}")


def _attempt(name: str, check: Callable[[], str]) -> CheckRow:
    try:
        return CheckRow(name, True, check())
    except Exception as error:  # whatever a broken installation raises is the finding
        return CheckRow(name, False, f"{type(error).__name__}: {error}")


def _jit() -> str:
    import numba  # takes a while, and other commands do without

    double = numba.njit(lambda x: x + x)
    if not np.array_equal(double(np.arange(3)), [0, 2, 4]):
        raise ArithmeticError("compiled code computes wrong numbers")
    return "a function, with the right results"


def _cp_sat() -> str:
    problem = CpSatProblem([3, 3])
    problem.require({0: 1, 1: 1}, least=4)
    solution = problem.minimize([Objective(np.array([2, 1]), 9)])
    if solution is None or solution.tolist() != [1, 3]:
        raise ArithmeticError(f"CP-SAT finds {solution}, and not [1, 3]")
    return "the best of a problem"


def _made_ahead() -> str:
    """Return words for the number of kernels that are compiled already. None is no fault: numba compiles a kernel when needed."""
    from fuseflow.sim.engine.ahead import all_kernels

    stores = package_stores()
    digests = [source_digest(*kernel) for kernel in all_kernels().values()]
    count = sum(any(store.read(digest) is not None for store in stores) for digest in digests)
    if count == len(digests):
        return f"all {count}, for {stores[0].folder.name}"
    reason = "compiled when first needed, up to a minute in all"
    if not has_levels():
        return f"none: they are made ahead for x86-64 on Linux only; {reason}"
    return f"{count} of {len(digests)}; the others are {reason}: `python -m fuseflow.sim.engine.ahead` makes them"


def _kernels() -> str:
    store = user_store()
    if not store.is_writable():
        raise PermissionError(
            f"{store.folder} cannot be written, or is not this user's alone, so every run compiles what was not made ahead: "
            "set FUSEFLOW_CACHE_DIR"
        )
    return str(store.folder)


def _front_end() -> str:
    with tempfile.TemporaryDirectory() as directory:
        model = Path(directory) / "linear.py"
        model.write_text(MODEL, encoding="utf-8")
        result = ff.compile(model, data="karate").run()
    return f"exported, compiled, simulated, checked: {result.cycles} cycles"


def _writable(directory: Path) -> str:
    require_writable(directory, directory=True)
    return str(directory)


CHECKS: dict[str, Callable[[], str]] = {
    "numba compiles": _jit,
    "CP-SAT solves": _cp_sat,
    "kernels made ahead": _made_ahead,
    "keeps compiled kernels": _kernels,
    "PyTorch model runs": _front_end,
    "writes here": lambda: _writable(Path.cwd()),
    "writes temporary files": lambda: _writable(Path(tempfile.gettempdir())),
}
