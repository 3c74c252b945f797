"""What the engine allocates beside the tensors: no copy of a large level where its coordinates can stay as they are."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

from fuseflow.memory.memory import Memory
from fuseflow.memory.memory_interface import Controller
from fuseflow.memory.models import Dram
from fuseflow.native.kernel_library import library
from fuseflow.samml.nodes import Port
from fuseflow.samml.text import parse
from fuseflow.sim import load_machine, with_settings
from fuseflow.sim.engine.execute import DEFAULT_LIMITS
from fuseflow.sim.engine.network_layout import NetworkLayout, _least_ring, lay_out
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
    controller = Controller(lambda ports: Memory(Dram(), ports)) if is_remote else None
    tracemalloc.start()
    layout = lay_out(graph, tensors, IDEAL, library(), DEFAULT_LIMITS, controller=controller)
    allocated, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert layout.parts and allocated < bytes_an_entry * ENTRIES


@pytest.mark.parametrize(("runs", "size"), [(256, 256), (8, 8)])
def test_rings_of_shallow_fifos_have_room_for_many_steps(runs: int, size: int) -> None:
    """A ring that holds no more than a FIFO of 4 tokens is full at every step. Limits are smaller still where tests want rings to wrap."""
    graph, machine = parse(TWO_SCANS), with_settings(IDEAL, {"fifo_depth": 4})
    level = CompressedFibers(2 * ENTRIES, np.array([0, 2]), np.array([1, 5], dtype=np.int32))
    tensors = {"A": Tensor((2 * ENTRIES,), graph.declared["A"].format, (level,), np.ones(2, np.float32))}
    layout = lay_out(graph, tensors, machine, library(), replace(DEFAULT_LIMITS, runs=runs))
    assert {len(ring) for ring in layout.rings} == {size}


def test_rings_of_many_streams_stay_small() -> None:
    """Those of thousands of streams are no larger than FIFOs of 64 tokens need."""
    layout = NetworkLayout(parse(TWO_SCANS), {}, DEFAULT_LIMITS)
    layout.keys = [Port("root", "ref")] * 3000
    assert _least_ring(layout) == 64
