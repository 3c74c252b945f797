"""Install fuseflow into a fresh environment with the lowest or the newest versions of its ranges, and run a part of the suite there.

    python tools/versions_check.py lowest
    python tools/versions_check.py newest --environment DIR
    python tools/versions_check.py newest --wheel dist/fuseflow-0.1.0-py3-none-linux_x86_64.whl

Newest are the versions that pip chooses. Lowest are the lower bounds of all ranges in pyproject.toml; what these packages need in their
turn has the versions that pip chooses. `PART` has tests of every package that fuseflow imports. The environment is removed at the end,
unless `--environment` names its folder. With `--wheel`, that file is installed where `NEIGHBOURS` are already, and the commands run alone.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

import click
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[1]
EXTRAS = "cluster,parquet,report"
"""The extras whose packages have tests in `PART`."""
TOOLS = ("hypothesis", "pytest", "pytest-timeout", "pytest-xdist", "mpmath")
"""The packages of the extra `test` that `PART` needs."""
PART = (
    "tests/cli/test_cli.py",  # click, rich
    "tests/cli/test_doctor.py",  # packaging
    "tests/cli/test_schedule.py",  # ortools, pydantic
    "tests/cli/test_report.py",  # jinja2
    "tests/frontend/test_import.py",  # torch, torch-mlir
    "tests/fusion/test_order_search.py",  # networkx
    "tests/samml/test_protobuf.py",  # protobuf
    "tests/schedule/test_schedule.py",  # pydantic, ruamel.yaml
    "tests/sim/test_simulators.py",  # numba, llvmlite
    "tests/sparsity/grouped",  # scipy.optimize
    "tests/sweep",  # psutil, distributed, matplotlib, pyarrow
    "tests/tensors/test_mtx_files.py",  # scipy.io
    "tests/tensors/test_npy_files.py",  # scipy.sparse
    "tests/test_cp_sat.py",
)
NEIGHBOURS = ("numpy", "pandas", "ortools", "jupyter")
"""What people have in the environments that they install a wheel into."""
COMMANDS = (
    ("doctor",),
    ("run", "models/gcn.py", "--fuse", "layer1"),
    ("schedule", "models/paper/sae.py", "--small", "--machine", "ideal", "--budget", "small", "--top", "1", "--no-store"),
)


@click.command()
@click.argument("versions", type=click.Choice(["lowest", "newest"]))
@click.option("--environment", type=click.Path(path_type=Path), help="Where the environment is made, and stays.")
@click.option("--jobs", default=2, show_default=True)
@click.option("--wheel", type=click.Path(exists=True, path_type=Path), help="Install this file, not the checkout.")
def main(versions: str, environment: Path | None, jobs: int, wheel: Path | None) -> None:
    """Install, let pip check, run the commands and the tests."""
    with tempfile.TemporaryDirectory() as folder:
        place, bounds = environment or Path(folder) / "environment", Path(folder) / "constraints.txt"
        bounds.write_text("".join(lowest()) if versions == "lowest" else "", encoding="utf-8")
        _execute(sys.executable, "-m", "venv", place)
        python = place / "bin" / "python"
        pip = (python, "-m", "pip", "--disable-pip-version-check")
        install = (*pip, "install", "--quiet", "--constraint", bounds)
        if wheel is None:
            tools = [str(requirement) for requirement in requirements() if requirement.name in TOOLS]
            _execute(*install, "--editable", f".[{EXTRAS}]", *tools)
        else:
            _execute(*install, *NEIGHBOURS)
            _execute(*install, wheel)
        _execute(*pip, "check")
        for words in COMMANDS:
            _execute(place / "bin" / "fuseflow", *words)
        if wheel is None:
            _execute(python, "-m", "pytest", "--numprocesses", jobs, *PART)


def requirements() -> list[Requirement]:
    """Return what pyproject.toml asks for, extras included."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lists = (project["dependencies"], *project["optional-dependencies"].values())
    return [Requirement(text) for requirements in lists for text in requirements]


def lowest() -> list[str]:
    """Return the lines of constraints with the lower bound of each range."""
    bounds = {
        requirement.name: spec.version
        for requirement in requirements()
        for spec in requirement.specifier
        if spec.operator == ">="
    }
    return [f"{name}=={version}\n" for name, version in sorted(bounds.items())]


def _execute(*words: object) -> None:
    command = [str(word) for word in words]
    print("$", *command, flush=True)
    if subprocess.run(command, cwd=ROOT, env={k: v for k, v in os.environ.items() if k != "PYTHONPATH"}).returncode:
        raise SystemExit(f"failed: {' '.join(command)}")


if __name__ == "__main__":
    main()
