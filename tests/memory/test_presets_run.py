"""Programs run at every memory that a machine may name, in both simulators in the same cycles, and on the machines of the page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from doc_blocks import blocks

from fuseflow.cli.main import main
from fuseflow.machine.files import load_machine
from fuseflow.memory.settings import DramMemory
from fuseflow.memory.table_files import preset, preset_names

ROOT = Path(__file__).parents[2]
SPMM = (str(ROOT / "docs/example/spmm.ein"), "--tensors", str(ROOT / "docs/example/tensors.yaml"))
MACHINES = [block for block in blocks(ROOT / "docs" / "memory.md") if block.language == "yaml machine"]


def run(*options: str) -> dict[str, Any]:
    result = CliRunner().invoke(main, ["run", *SPMM, *options, "--json", "-"])
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def cycles(name: str, engine: str) -> list[int]:
    return [region["cycles"] for region in run("--machine", name, "--engine", engine)["regions"]]


@pytest.mark.parametrize("name", preset_names())
def test_both_simulators_agree(name: str) -> None:
    assert cycles(name, "fast") == cycles(name, "reference")


@pytest.mark.parametrize("name", preset_names())
def test_every_kind_of_refresh(name: str) -> None:
    for table in preset(name).tables:
        assert run("--machine", name, "--set", f"memory.refresh={table.refresh}")["regions"][0]["cycles"] > 0


def test_a_slower_memory_takes_longer() -> None:
    assert sum(cycles("lpddr5-6400", "fast")) > sum(cycles("hbm3-6400", "fast"))


@pytest.mark.parametrize("block", MACHINES, ids=lambda block: block.label)
def test_a_machine_of_the_page(block: Any, tmp_path: Path) -> None:
    path = tmp_path / "machine.yaml"
    path.write_text(block.text)
    assert run("--machine", str(path))["regions"]


def test_the_page_has_the_machines_that_it_names() -> None:
    found = []
    for block in MACHINES:
        path = Path(f"{block.label}.yaml")
        with CliRunner().isolated_filesystem():
            path.write_text(block.text)
            memory = load_machine(path).memory
        found.append((memory.model, memory.dram.channels) if isinstance(memory, DramMemory) else (memory.model, 0))
    assert {("hbm3-6400", 16), ("ddr4-3200", 1), ("lpddr5-6400", 2), ("fixed", 0), ("dram", 4)} <= set(found)
