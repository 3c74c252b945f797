"""Values never depend on the memory: a model gives the same at each, to the last bit. (Random graphs: reference/test_remote.py.)"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import fuseflow as ff
from fuseflow.sim import load_machine

MODELS = Path(__file__).resolve().parents[2] / "models"
MEMORIES = (
    {"memory": "comal_fixed"},
    {"memory.line": 32},
    {"memory.channels": 1, "memory.mapping": "RoBaRaCoCh", "memory.outstanding": 1, "memory.prefetch": 0},
    {"memory.channels": 16, "memory.line": 256, "memory.clock_ghz": 0.75, "memory.outstanding": 500},
)


@pytest.mark.parametrize("fuse", ["none", "full"])
def test_a_model_gives_the_same_at_every_memory(fuse: str) -> None:
    compiled = ff.compile(MODELS / "gcn.py", schedule=ff.Schedule.fuse(fuse), machine="ideal")
    ideal = compiled.run(engine="fast")
    for settings in MEMORIES:
        found = replace(compiled, machine=load_machine("rda", settings)).run(engine="fast")
        assert found.cycles > ideal.cycles
        for one, other in zip(found.regions, ideal.regions, strict=True):
            assert (one.simulation.operators, one.simulation.traffic) == (other.simulation.operators, other.simulation.traffic)
        for name, tensor in ideal.tensors.items():
            assert found.tensors[name].values.tobytes() == tensor.values.tobytes(), name
            assert (found.tensors[name].coordinates() == tensor.coordinates()).all()
