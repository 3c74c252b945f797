"""A graph as MLIR text in the `samml` dialect, and back. Needs torch-mlir (not torch); not imported with `fuseflow.samml`.

Everything of the graph is in the text: `from_mlir(to_mlir(graph)) == graph`. Every call has a new MLIR context.
"""

from __future__ import annotations

from torch_mlir import ir

from fuseflow.dialects import attributes as a
from fuseflow.dialects import module as m
from fuseflow.errors import GraphError
from fuseflow.samml import nodes as n
from fuseflow.samml.mlir_nodes import (
    LIKE,
    OUTPUT,
    PLACEMENTS,
    TENSOR,
    check_types,
    locate_error,
    read_node,
    read_tensors,
    write_nodes,
    write_tensor,
)
from fuseflow.samml.verify import verify

GRAPH, FIBER_FIFO, FIFO_DEPTH = "samml.graph", "samml.fiber_fifo", "samml.fifo_depth"
HOPS, TURN, NODE_HOPS = "samml.hops", "samml.turn", "samml.node_hops"
_INSIDE = ("inner", "loop", "port")


def to_mlir(graph: n.Graph) -> str:
    """Return the MLIR module that holds the graph, in generic form. Raises `GraphError` if the graph does not verify."""
    verify(graph)
    with m.context("samml", error=GraphError):
        module = ir.Module.create()
        with ir.InsertionPoint(module.body):
            ir.Operation.create(GRAPH, attributes={"name": a.string(graph.name)})
            for tensor in graph.tensors:
                write_tensor(tensor)
            for name in graph.outputs:
                ir.Operation.create(OUTPUT, attributes={"tensor": a.string(name)})
            write_nodes(graph.nodes, graph.types())
            for edge in graph.fiber_fifos:
                ir.Operation.create(FIBER_FIFO, attributes=_edge_attributes(edge))
            for edge, depth in graph.depths:
                ir.Operation.create(FIFO_DEPTH, attributes={**_edge_attributes(edge), "depth": a.integer(depth)})
            for edge, hops in graph.hops:
                numbers = {"count": a.integer(hops.count), "slots": a.integer(hops.slots)}
                ir.Operation.create(HOPS, attributes={**_edge_attributes(edge), **numbers})
            for node, turn in graph.turns:
                numbers = {"number": a.integer(turn.number), "of": a.integer(turn.of)}
                ir.Operation.create(TURN, attributes={"node": a.string(node), **numbers})
            for node, inside in graph.node_hops:
                numbers = {key: a.integer(getattr(inside, key)) for key in _INSIDE}
                ir.Operation.create(NODE_HOPS, attributes={"node": a.string(node), **numbers})
        return m.show(module)


def from_mlir(text: str, file: str = "<mlir>") -> n.Graph:
    """Return the graph that an MLIR module holds. `file` is its name in errors.

    Raises `GraphError` if the module does not parse or the graph does not verify.
    """
    with m.context("samml", error=GraphError, file=file):
        module = m.parse(text, file, ("samml",), GraphError)
        operations = module.operations
        head = module.only(GRAPH)
        around = (GRAPH, TENSOR, LIKE, *PLACEMENTS, OUTPUT, FIBER_FIFO, FIFO_DEPTH, HOPS, TURN, NODE_HOPS)
        by_name = {kind: [op for op in operations if op.name == kind] for kind in around}
        nodes = [(op, read_node(op)) for op in operations if op.name not in around]
        graph = n.Graph(
            head.string("name"),
            tensors=read_tensors(operations),
            nodes=tuple(node for _, node in nodes),
            outputs=tuple(op.string("tensor") for op in by_name[OUTPUT]),
            fiber_fifos=tuple(map(_edge, by_name[FIBER_FIFO])),
            depths=tuple((_edge(op), op.integer("depth")) for op in by_name[FIFO_DEPTH]),
            hops=tuple((_edge(op), n.Hops(op.integer("count"), op.integer("slots"))) for op in by_name[HOPS]),
            turns=tuple((op.string("node"), n.Turn(op.integer("number"), op.integer("of"))) for op in by_name[TURN]),
            node_hops=tuple((op.string("node"), n.NodeHops(*map(op.integer, _INSIDE))) for op in by_name[NODE_HOPS]),
        )
        try:
            verify(graph)
        except GraphError as error:
            raise locate_error(error, operations, head) from None
        types = graph.types()
        for op, node in nodes:
            check_types(op, node, types)
    return graph


def _edge_attributes(edge: n.Edge) -> dict[str, ir.Attribute]:
    return {"node": a.string(edge.node), "input": a.integer(edge.input)}


def _edge(op: m.Operation) -> n.Edge:
    return n.Edge(op.string("node"), op.integer("input"))
