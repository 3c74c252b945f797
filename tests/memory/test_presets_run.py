"""Programs run at every memory that a machine may name, in both simulators in the same cycles, and on the machines of the page."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import graph_fuzz
import pytest
from click.testing import CliRunner
from doc_blocks import blocks

from fuseflow.cli.main import main
from fuseflow.machine.files import read_machine
from fuseflow.memory.settings import DramMemory, FixedMemory
from fuseflow.memory.table_files import preset, preset_names

ROOT = Path(__file__).parents[2]
SPMM = (str(ROOT / "docs/example/spmm.ein"), "--tensors", str(ROOT / "docs/example/tensors.yaml"))
MACHINES = [block for block in blocks(ROOT / "docs" / "reference" / "machine-files.md") if block.language == "yaml machine"]


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


@pytest.mark.slow
def test_random_graphs_at_random_drams(draws: Callable[[int], range]) -> None:
    """Presets and tables of one's own, with any refresh, queues and mapping, in every cycle and statistic."""
    for seed in draws(200):
        assert not graph_fuzz.check(seed, "small", dram=True).lines, f"seed {seed}"


def test_a_slower_memory_takes_longer() -> None:
    assert sum(cycles("lpddr5-6400", "fast")) > sum(cycles("hbm3-6400", "fast"))


@pytest.mark.parametrize("block", MACHINES, ids=lambda block: block.label)
def test_a_machine_of_the_page(block: Any, tmp_path: Path) -> None:
    path = tmp_path / "machine.yaml"
    path.write_text(block.text)
    assert run("--machine", str(path))["regions"]


def test_the_page_has_the_machines_that_it_names() -> None:
    """HBM3 with 16 channels, a laptop with DDR4, a small device with LPDDR5, a chip that holds everything, and a table of one's own."""
    memories = [read_machine(block.text).memory for block in MACHINES]
    drams = {(memory.model, memory.channels) for memory in memories if isinstance(memory, DramMemory)}
    assert {("hbm3-6400", 16), ("ddr4-3200", 1), ("lpddr5-6400", 2), ("dram", 4)} <= drams
    assert any(isinstance(memory, FixedMemory) for memory in memories)
