"""Whether graphs fit arrays, against a table that another program counted."""

from __future__ import annotations

import numpy as np
import pytest
from arrays import CAPACITY, LANES, recorded_graph, with_footprint
from numpy.typing import NDArray

import fuseflow as ff
from fuseflow.array.capacity import require_fit, storages, tile_use
from fuseflow.array.settings import load_array
from fuseflow.einsum.parse import parse
from fuseflow.errors import ArrayError
from fuseflow.resources.graph_resources import HeldEntries
from fuseflow.sim import load_machine

ONYX = load_array("onyx")


@pytest.mark.parametrize("region", CAPACITY)
def test_fused_regions_take_the_tiles_that_were_counted(region: str) -> None:
    for lanes, counted in zip(LANES, CAPACITY[region], strict=True):
        use = tile_use(recorded_graph(region, lanes), ONYX)
        assert tuple(use.needed.values()) == counted
        assert use.fits == (counted[2] <= 32 and counted[1] <= 128 and counted[0] <= 384)


@pytest.mark.parametrize(
    ("region", "ports"),
    [("gcn", 18), ("graphsage", 31), ("decoder", 35), ("decoder-3", 24), ("sae", 0), ("attention", 0), ("decoder-2", 0)],
)
def test_ports_are_what_a_checkerboard_lacks(region: str, ports: int) -> None:
    use = tile_use(recorded_graph(region, 1), load_array("plasticine"))
    assert use.needed["IO"] == ports if ports else use.fits
    assert set(use.missing) == ({"IO"} if ports else set())


def test_compiled_regions_take_the_tiles_of_the_recorded_ones() -> None:
    for path, region in (("models/gcn.py", "gcn"), ("models/sae.py", "sae")):
        compiled = ff.compile(path, options={"small": "true"}, schedule=ff.Schedule.fuse("full"))
        assert tuple(tile_use(compiled.regions[0].graph, ONYX).needed.values()) == CAPACITY[region][0]


def test_what_does_not_fit_is_said_with_both_numbers() -> None:
    use = tile_use(recorded_graph("decoder", 1), ONYX)
    with pytest.raises(ArrayError) as refused:
        require_fit(use, "h.0")
    assert refused.value.message == "region `h.0` needs 35 ports, and array `onyx` has 32 (PE 84 of 384, MEM 44 of 128)"
    assert refused.value.hint == (
        "a cut (`--fuse`), fewer lanes (`--par`), or `ports: {share: 2}` in the array file (35 streams at 32 ports)"
    )
    require_fit(tile_use(recorded_graph("gcn", 2), ONYX), "full")


def test_ports_that_are_shared_are_fewer() -> None:
    shared = ONYX.model_copy(update={"ports": ONYX.ports.model_copy(update={"share": 2})})
    use = tile_use(recorded_graph("gcn", 4), shared)
    assert (use.needed["IO"], use.fits) == (32, True)
    assert tile_use(recorded_graph("gcn", 8), shared).needed["IO"] == 58


def test_a_workspace_that_is_larger_than_the_memories_of_its_node_takes_more_tiles() -> None:
    text = "tensor A[4000, 40] csr\ntensor B[40, 4000] csr\nC[i, j] = sum(k) A[i, k] * B[k, j]\noutput C"
    compiled = ff.compile(parse(text), tensors={"A": _sparse(4000, 40), "B": _sparse(40, 4000)})
    (region,) = compiled.regions
    (node,) = (node.name for node in region.graph.nodes if node.op == "accumulate")
    size, machine = 2 * 8 * 4000, load_machine("rda")  # two buffers of coordinates and values
    (storage,) = storages(region.graph, ONYX, machine, {})
    assert (storage.node, storage.bytes, storage.tiles, storage.exact) == (node, size, -(-size // 4096) - 2, False)
    (counted,) = storages(region.graph, ONYX, machine, {node: HeldEntries(1000)})
    assert (counted.tiles, counted.exact) == (4 - 2, True)
    assert tile_use(region.graph, ONYX, machine).needed["MEM"] == tile_use(region.graph, ONYX).needed["MEM"] + storage.tiles


def test_a_fifo_that_is_deeper_than_that_of_a_tile_takes_a_memory() -> None:
    graph = recorded_graph("sae", 1)
    reader = next(edge for edges in graph.readers().values() for edge in edges)
    deep = graph.with_depths({reader: 2000})
    assert [(s.node, s.bytes, s.tiles) for s in storages(deep, ONYX, load_machine("ideal"), {})] == [(reader.node, 8000, 2)]


def test_a_resident_tensor_asks_no_port() -> None:
    text = "tensor A[8, 8] csr\ntensor x[8] dense\ny[i] = sum(k) A[i, k] * x[k]\noutput y"
    tensors = {"A": _sparse(8, 8), "x": [1.0] * 8}
    ports = [
        tile_use(ff.compile(parse(text), tensors=tensors, schedule=schedule).regions[0].graph, ONYX).needed["IO"]
        for schedule in (ff.Schedule(), ff.Schedule(resident=("x",)))
    ]
    assert ports[1] == ports[0] - 1


@pytest.mark.parametrize(("footprint", "cells"), [("simple", (31, 21, 18)), ("onyx", (57, 26, 18))])
def test_footprints_of_one_graph(footprint: str, cells: tuple[int, int, int]) -> None:
    needed = tile_use(recorded_graph("gcn", 1), with_footprint(ONYX, footprint)).needed
    assert sum(needed.values()) == (70 if footprint == "simple" else 101)
    assert needed["IO"] == cells[2]


def test_a_graph_of_a_primitive_without_a_row_is_refused() -> None:
    rows = {"memory": {"MEM": 1, "port": 1}, "repeat": {"PE": 1}}
    array = type(ONYX).model_validate({**ONYX.model_dump(), "footprint": rows})
    with pytest.raises(ArrayError, match="has no row"):
        tile_use(recorded_graph("sae", 1), array)


def _sparse(rows: int, columns: int) -> NDArray[np.float64]:
    rng = np.random.default_rng(0)
    return rng.random((rows, columns)) * (rng.random((rows, columns)) < 0.1)
