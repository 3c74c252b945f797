"""What a writer in front of links waits for: slots and ways back, counted on paper."""

from __future__ import annotations

import numpy as np

from fuseflow.native.kernel_library import library
from fuseflow.native.records import get_int
from fuseflow.samml.nodes import Port
from fuseflow.samml.text import parse
from fuseflow.sim import load_machine, with_settings
from fuseflow.sim.engine.execute import DEFAULT_LIMITS
from fuseflow.sim.engine.network_layout import NetworkLayout, lay_out
from fuseflow.sim.engine.node_layout import Limits
from fuseflow.sim.engine.past_links import look_past_links
from fuseflow.sim.engine.stream_rings import reader_at
from fuseflow.tensors import Format, pack

GRAPH = """
tensor x[3] dense f64
tensor y[3] dense f64
output y
root = root()
x_i = scan(root) x.0
near = link(x_i.ref)
far = link(near)
first = load(near) x
second = load(far) x
sum = alu(first, second) add N->0,N->0
y_i = write(x_i.crd) y.0
y_v = write(sum) y.vals
hops near[0] 3
hops second[0] 2
"""


def laid_out(limits: Limits = DEFAULT_LIMITS, links: bool = True) -> NetworkLayout:
    """FIFOs of 5 slots, and 4 cycles from a firing of the scan to its token."""
    text = GRAPH if links else GRAPH.replace("(near)", "(x_i.ref)").replace("(far)", "(x_i.ref)")
    graph = parse("\n".join(line for line in text.splitlines() if links or ("near" not in line and "far" not in line)))
    machine = with_settings(load_machine("ideal"), {"fifo_depth": 5, "latency.default": 4})
    return lay_out(graph, {"x": pack(np.ones(3), Format.parse("dense", 1))}, machine, library(), limits)


def witnesses(layout: NetworkLayout, port: Port) -> list[tuple[str, int, int]]:
    """The nodes that read behind the links of a stream, with the slots and the way back that its writer sees."""
    stream, names = layout.streams[layout.keys.index(port)], [owner.name if owner else "" for owner in layout.owners]
    numbers = range(int(stream["count"]), int(stream["count"] + stream["beyond"]))
    seen = [reader_at(get_int(int(stream["readers"]), k)) for k in numbers]
    return [(names[witness.part], witness.depth, witness.back) for witness in seen]


def test_a_writer_counts_the_slots_behind_links() -> None:
    """The FIFO of `near` has 2 + 2 * 3 + 3 slots, three cycles away; that of `far` has 2, that of `first` 5 and that of `second` 5 + 2 * 2,
    two cycles away. Each link takes a cycle more to learn of a slot."""
    layout = laid_out()
    depths = layout.readers["depth"].copy()
    past_links = look_past_links(layout)
    assert past_links is not None
    assert witnesses(layout, Port("x_i", 1)) == [("first", 11 + 5, 3 + 1), ("second", 11 + 2 + 9, 3 + 1 + 2 + 1)]
    assert witnesses(layout, Port("near")) == [("second", 2 + 9, 2 + 1)]
    assert (depths != layout.readers["depth"]).sum() == 2
    past_links.remove()
    assert not witnesses(layout, Port("x_i", 1)) and (depths == layout.readers["depth"]).all()


def test_without_links_or_without_room_for_pops_writers_look_at_their_readers_alone() -> None:
    assert look_past_links(laid_out(links=False)) is None
    assert look_past_links(laid_out(Limits(pops=16))) is None  # 22 slots need 32
