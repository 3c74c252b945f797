"""Netlists of graphs, against recorded ones and against the sizes that another program counted."""

from __future__ import annotations

from collections import Counter

import pytest
from arrays import SIZES, recorded_graph, recorded_netlists, with_footprint

from fuseflow.array.grid import Grid, Placement
from fuseflow.array.netlist import Cell, Net, Netlist, netlist_of
from fuseflow.array.settings import load_array
from fuseflow.errors import ArrayError
from fuseflow.sim import load_machine

ONYX = load_array("onyx")


@pytest.mark.parametrize(("region", "lanes", "footprint", "cells", "nets"), SIZES)
def test_sizes(region: str, lanes: int, footprint: str, cells: int, nets: int) -> None:
    netlist = netlist_of(recorded_graph(region, lanes), with_footprint(ONYX, footprint))
    assert (len(netlist.cells), len(netlist.nets)) == (cells, nets)


def test_the_netlist_of_a_region_is_the_recorded_one() -> None:
    recorded = next(r for r in recorded_netlists() if r.name == "onyx_gcn_full_full").netlist
    netlist = netlist_of(recorded_graph("gcn", 1), with_footprint(ONYX, "simple"))
    assert set(netlist.cells) == set(recorded.cells)
    assert _nets(netlist) == _nets(recorded)


def test_every_stream_that_is_read_is_a_net_once() -> None:
    graph = recorded_graph("decoder-3", 2)
    streams = Counter((net.stream, edge) for net in netlist_of(graph, ONYX).nets for edge in net.readers)
    assert set(streams.values()) == {1}
    read = {(port, edge) for port, edges in graph.readers().items() for edge in edges if graph.by_name[port.node].op != "root"}
    assert streams.keys() == read


def test_ports_are_shared_where_there_are_too_few() -> None:
    shared = ONYX.model_copy(update={"ports": ONYX.ports.model_copy(update={"share": 3})})
    for lanes, streams, count in ((1, 18, 18), (4, 60, 32), (8, 116, 39)):
        netlist = netlist_of(recorded_graph("gcn", lanes), shared)
        ports = [k for k, cell in enumerate(netlist.cells) if cell.kind == "IO"]
        assert len(ports) == count
        asking = Counter(net.source for net in netlist.nets if net.source in ports for _ in net.sinks)
        asking.update(net.sinks[0] for net in netlist.nets if net.sinks[0] in ports)
        assert sum(asking.values()) == streams and max(asking.values()) <= 3 and set(asking) == set(ports)


def test_what_a_fifo_holds_beyond_its_tile_has_tiles_beside_its_node() -> None:
    graph = recorded_graph("sae", 1)
    reader = next(edges for port, edges in graph.readers().items() if graph.by_name[port.node].op != "root")[0]
    netlist = netlist_of(graph.with_depths({reader: 2000}), ONYX, load_machine("ideal"))
    assert [cell.kind for cell in netlist.cells if cell.name.startswith(f"{reader.node}@bytes")] == ["MEM", "MEM"]
    links = [(netlist.cells[net.source].name, netlist.cells[net.sinks[0]].name) for net in netlist.nets if net.stream is None]
    banks = [f"{reader.node}@bytes0", f"{reader.node}@bytes1"]
    assert [pair for pair in links if pair[1] in banks] == [(f"{reader.node}@1", banks[0]), (banks[0], banks[1])], (
        "they are a chain"
    )


@pytest.mark.parametrize("recorded", recorded_netlists(), ids=lambda recorded: recorded.name)
def test_a_recorded_placement_has_the_length_that_was_recorded(recorded) -> None:
    recorded.netlist.verify()
    placement = Placement(recorded.netlist, recorded.sites)
    placement.verify(Grid.of(recorded.array))
    assert placement.wirelength == recorded.wirelength


def test_wrong_placements_and_netlists_are_refused() -> None:
    recorded = recorded_netlists()[0]
    grid, sites = Grid.of(recorded.array), recorded.sites
    for wrong, said in (
        (sites[:-1], "of 16 cells"),
        ((sites[1], *sites[1:]), "needs a tile MEM, and there is a tile IO"),
        ((sites[2], *sites[1:]), "both lie at"),
        (((99, 99), *sites[1:]), "there is no tile"),
    ):
        with pytest.raises(ArrayError, match=said):
            Placement(recorded.netlist, wrong).verify(grid)
    cells = (Cell("a", "PE"), Cell("b", "PE"))
    for nets in ((Net(0, ()),), (Net(0, (2,)),)):
        with pytest.raises(ArrayError):
            Netlist(cells, nets).verify()


def _nets(netlist: Netlist) -> Counter[tuple[str, tuple[str, ...]]]:
    names = [cell.name for cell in netlist.cells]
    return Counter((names[net.source], tuple(sorted(names[sink] for sink in net.sinks))) for net in netlist.nets)
