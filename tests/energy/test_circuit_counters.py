"""The counts of energies are those of counters of a circuit in Verilog: operators, tokens, and bytes that the memory moved."""

from __future__ import annotations

import pytest
from energy_counters import circuit_counters, energy_counters
from hardware_tools import require

import fuseflow as ff
from fuseflow.hardware.cosimulate import cosimulate
from fuseflow.hardware.rtl_simulators import PYTHON
from fuseflow.sim import load_machine

SETTINGS = {"arithmetic": "f32", "memory": "hbm2", "fifo_depth_start": 8}


@pytest.mark.parametrize("tool", [PYTHON, "icarus"])
def test_counts_are_those_of_counters_in_the_circuit(tool: str) -> None:
    """Larger models in Verilator: `pytest -m slow tests/hardware/test_hardware_models.py`."""
    if tool == "icarus":
        require("pycde", "iverilog", "vvp")
    machine = load_machine("rda", SETTINGS)
    compiled = ff.compile("docs/example/spmm.ein", tensors="docs/example/tensors.yaml", machine=machine)
    (region,) = compiled.regions
    memory = compiled.memory()
    run = cosimulate(region.graph, {name: memory[name] for name in region.graph.inputs}, machine, tool)
    assert run.difference is None
    counters = circuit_counters(region.graph, machine, run)
    assert counters == energy_counters(region.graph, machine, run)
    assert min(counters.operators, counters.fifo_bits, counters.moved_bits) > 0
