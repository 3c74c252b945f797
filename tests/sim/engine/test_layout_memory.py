"""What the engine allocates beside the tensors: no copy of a large level where its coordinates can stay as they are."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from fuseflow.samml.text import parse
from fuseflow.sim import load_machine
from fuseflow.sim.engine.execute import DEFAULT_LIMITS
from fuseflow.sim.engine.network_layout import lay_out
from fuseflow.sim.memory.controller import Controller
from fuseflow.sim.memory.memory import Memory
from fuseflow.sim.memory.models import Hbm2
from fuseflow.sim.native.jit import library
from fuseflow.tensors import Tensor
from fuseflow.tensors.levels.compressed import CompressedFibers

IDEAL = load_machine("ideal")
ENTRIES = 1 << 22
TWO_SCANS = f"""
graph twice
tensor A[{2 * ENTRIES}]  (compressed) f32
tensor Y[{2 * ENTRIES}]  (compressed) f32
tensor Z[{2 * ENTRIES}]  (compressed) f32
output Y, Z

root = root()
A_i = scan(root) A.0
A_val = load(A_i.ref) A
write_Y_i = write(A_i.crd) Y.0
write_Y_val = write(A_val) Y.vals
B_i = scan(root) A.0
B_val = load(B_i.ref) A
write_Z_i = write(B_i.crd) Z.0
write_Z_val = write(B_val) Z.vals
"""


@pytest.mark.parametrize(("is_remote", "bytes_an_entry"), [(True, 5), (False, 12)])
def test_narrow_coordinates_are_not_copied_and_wide_ones_once(is_remote: bool, bytes_an_entry: float) -> None:
    """At a memory that takes time nothing is copied: what is left is what is noted of each line of 64 bytes. The autoencoder of the size
    of NIH once had 860 MB of such copies. Without such a memory, scans of one level share a copy."""
    graph = parse(TWO_SCANS)
    level = CompressedFibers(2 * ENTRIES, np.array([0, ENTRIES]), np.arange(0, 2 * ENTRIES, 2, dtype=np.int32))
    tensors = {"A": Tensor((2 * ENTRIES,), graph.declared["A"].format, (level,), np.ones(ENTRIES, np.float32))}
    controller = Controller(lambda ports: Memory(Hbm2(), ports)) if is_remote else None
    tracemalloc.start()
    layout = lay_out(graph, tensors, IDEAL, library(), DEFAULT_LIMITS, controller=controller)
    allocated, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert layout.parts and allocated < bytes_an_entry * ENTRIES
