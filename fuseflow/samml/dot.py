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
LONGEST = 200
"""The most characters of a name that are shown. Graphviz reads no text of more than 16,384."""


def dot(graph: n.Graph) -> str:
    """Return a verified graph as Graphviz text."""
    types, readers, by_name = graph.types(), graph.readers(), graph.by_name
    ids = {node.name: node.name if len(node.name) <= LONGEST else f"node {k}" for k, node in enumerate(graph.nodes)}
    whole = {(edge.node, edge.input) for edge in graph.fiber_fifos}
    lines = [f"digraph {_quote(_short(graph.name))} {{", '  node [shape=box style=filled fontname="monospace"];']
    for node in graph.nodes:
        label = f"{_short(node.name)}\n{node.word or node.op} {_short(show_attributes(node))}".rstrip()
        lines.append(f"  {_quote(ids[node.name])} [label={_quote(label)} fillcolor={COLORS[node.role]}];")
    for port, edges in readers.items():
        names = by_name[port.node].port_names()
        label = f"{names[port.output]}({types[port].depth})"
        for edge in edges:
            bold = " penwidth=3" if (edge.node, edge.input) in whole else ""
            style = STYLES[types[port].kind]
            lines.append(f"  {_quote(ids[port.node])} -> {_quote(ids[edge.node])} [label={_quote(label)} style={style}{bold}];")
    return "\n".join([*lines, "}"]) + "\n"


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


def _quote(text: str) -> str:
    escaped = visible(text).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
