"""How long replicates are: as the memory of a machine asks for, and no longer on machines as they are."""

from __future__ import annotations

from math import ceil

import numpy as np
import pytest
from memories import without_refresh
from scipy import sparse

import fuseflow as ff
from fuseflow.einsum.parse import parse
from fuseflow.memory.settings import DramMemory
from fuseflow.sampling.region import FILLS, REFRESHES, WALKED, replicate_length
from fuseflow.sim import Machine, load_machine

ROWS, WIDTH = 600, 4
PRODUCT = f"tensor A[{ROWS}, {ROWS}] csr\ntensor X[{ROWS}, {WIDTH}]\nY[i, j] = sum(k) A[i, k] * X[k, j]\noutput Y"
ENTRIES = 8 * ROWS


def length(machine: Machine, resident: tuple[str, ...] = ()) -> tuple[int, int]:
    """The fewest cycles and coordinates of a replicate of a product whose rows have eight entries each."""
    rng = np.random.default_rng(0)
    columns = np.concatenate([rng.choice(ROWS, 8, replace=False) for _ in range(ROWS)])
    a = sparse.csr_array((np.ones(ENTRIES, np.float32), columns, np.arange(0, ENTRIES + 1, 8)), shape=(ROWS, ROWS))
    x = rng.random((ROWS, WIDTH), dtype=np.float32)
    compiled = ff.compile(
        parse(PRODUCT), tensors={"A": a, "X": x}, schedule=ff.Schedule.lower(resident=resident), machine=machine
    )
    (region,) = compiled.regions
    memory = compiled.memory()
    return replicate_length(region.fused, region.graph, {name: memory[name] for name in region.graph.inputs}, compiled.machine)


def memory(**settings: int) -> Machine:
    return without_refresh(memory={"model": "comal_fixed", **settings})


def test_a_replicate_sees_some_refreshes() -> None:
    assert length(load_machine("rda"))[0] == REFRESHES * DramMemory().dram.refresh_period
    assert length(load_machine("ideal")) == (1, 1)


@pytest.mark.parametrize(("outstanding", "held"), [(1, 1), (32, 32), (1 << 20, ROWS * WIDTH * 4 // 64)])
def test_a_replicate_is_long_beside_what_a_port_holds(outstanding: int, held: int) -> None:
    """A port that may hold a million lines holds all of X."""
    assert length(memory(outstanding=outstanding))[0] == FILLS * held * 18


@pytest.mark.parametrize("line", [64, 4096])
def test_a_replicate_walks_through_some_lines(line: int) -> None:
    """The entries of A have 4 bytes each, in memory as in its coordinates."""
    lines = ceil(ENTRIES * 4 / line)
    assert length(memory(line=line))[1] == ceil(ROWS * WALKED / lines)


def test_arrays_that_are_resident_ask_for_nothing() -> None:
    assert length(memory(), ("A", "X")) == (1, 1)
