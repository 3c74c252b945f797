"""FIFOs, ports and workspaces at every size from 1 to 70 and at 256, in front of Icarus, a linter and a synthesizer.

    python tools/hardware_sizes.py [--only fifos|ports|workspaces]

In Icarus FIFOs and ports must do in every cycle what their models say, and workspaces what the reference simulator does. Verilator must
have nothing to say with `-Wall`, and yosys must make gates without a latch, a loop or a wire that nothing drives. The suite of tests does
the same at some sizes, and runs FIFOs, ports and the rules of workspaces at all of them. Exit status 1 if something differs or is refused.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import click

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "hardware"))

from module_sizes import lint, save_modules, synthesis
from test_modules import test_channels, test_ports
from workspace_graphs import SIZES, workspace_graph, workspace_tensors

from fuseflow.hardware.cosimulate import cosimulate
from fuseflow.sim import load_machine

KINDS = ("fifos", "ports", "workspaces")


@click.command(help=__doc__.partition("\n")[0])
@click.option("--only", multiple=True, type=click.Choice(KINDS), help="of these modules")
def main(only: tuple[str, ...]) -> None:
    good = [accepted(kind) for kind in only or KINDS]
    sys.exit(not all(good))


def accepted(kind: str) -> bool:
    """Whether all tools accept all sizes of a module."""
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        top = save_modules(folder / "sources", kind, SIZES)
        steps: dict[str, Callable[[], str]] = {
            "Icarus": lambda: in_icarus(kind, folder),
            "lint": lambda: lint(folder / "sources", top),
            "gates": lambda: synthesis(folder / "sources", top),
        }
        return all(accepts(f"{kind}, {len(SIZES)} sizes, {name}", step) for name, step in steps.items())


def in_icarus(kind: str, folder: Path) -> str:
    """The first difference, or nothing."""
    if kind == "workspaces":
        difference = cosimulate(workspace_graph(SIZES), workspace_tensors(SIZES), load_machine("rtl"), "icarus").difference
        return "" if difference is None else str(difference)
    try:
        {"fifos": test_channels, "ports": test_ports}[kind](folder)
    except AssertionError as error:
        return str(error)
    return ""


def accepts(name: str, step: Callable[[], str]) -> bool:
    started = time.perf_counter()
    said = step()
    click.echo(f"{name}: {said if said else 'fine'}, {time.perf_counter() - started:.0f} s")
    return not said


if __name__ == "__main__":
    main()
