"""A graph as Graphviz text, with a box for each node and an arrow for each reader. Coordinates are dashed, references dotted, values
solid."""

from __future__ import annotations

from fuseflow.errors import visible
from fuseflow.samml import nodes as n
from fuseflow.samml.node import Role
from fuseflow.samml.text import show_attributes

COLORS: dict[Role, str] = {
    "source": "gray90", "level": "palegreen", "value": "lightyellow", "join": "plum", "move": "lightcyan", "lane": "lightcyan",
    "compute": "lightsalmon", "write": "lightyellow",
}  # fmt: skip
STYLES: dict[n.Kind, str] = {"crd": "dashed", "ref": "dotted", "val": "solid"}


def dot(graph: n.Graph) -> str:
    """Return a verified graph as Graphviz text."""
    types, readers, by_name = graph.types(), graph.readers(), graph.by_name
    whole = {(edge.node, edge.input) for edge in graph.fiber_fifos}
    lines = [f"digraph {_quote(graph.name)} {{", '  node [shape=box style=filled fontname="monospace"];']
    for node in graph.nodes:
        label = f"{node.name}\n{node.word or node.op} {show_attributes(node)}".rstrip()
        lines.append(f"  {_quote(node.name)} [label={_quote(label)} fillcolor={COLORS[node.role]}];")
    for port, edges in readers.items():
        names = by_name[port.node].port_names()
        label = f"{names[port.output]}({types[port].depth})"
        for edge in edges:
            bold = " penwidth=3" if (edge.node, edge.input) in whole else ""
            style = STYLES[types[port].kind]
            lines.append(f"  {_quote(port.node)} -> {_quote(edge.node)} [label={_quote(label)} style={style}{bold}];")
    return "\n".join([*lines, "}"]) + "\n"


def _quote(text: str) -> str:
    escaped = visible(text).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
