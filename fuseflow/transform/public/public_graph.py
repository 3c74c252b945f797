"""A graph in the primitives that a schedule asks for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from fuseflow.samml.nodes import Graph


@dataclass(frozen=True, slots=True)
class PublicForm:
    """A graph in public primitives; or unchanged, if `private` names what has no public form. `sources` has, for each new node,
    the node of the graph before that it replaces."""

    graph: Graph
    private: tuple[str, ...] = ()
    sources: Mapping[str, str] = field(default_factory=dict)

    def origins(self) -> dict[str, str]:
        """Return, for each node, the node of the graph before that it replaces or is."""
        return {node.name: self.sources.get(node.name, node.name) for node in self.graph.nodes}
