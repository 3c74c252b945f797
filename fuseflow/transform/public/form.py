"""The public form of a graph, made by one rule for each primitive that the public schema lacks.

Precondition: a verified graph without FIFO depths. Effect: a verified graph that writes the same tensors, in other cycles, and that readers
of the public schema execute; or the graph as it was, with the reasons why there is no such form. The writer of the protobuf form knows what
these readers lack: a graph is public if it has no warning.

    range_j = range(rep_i) 5                         ->  range_j = scan(rep_i) dimension@5.0
    left_j = join(range_j; A_j.crd, A_j.ref) left    ->  left_j = join(range_j.crd, range_j.ref; A_j.crd, A_j.ref) union
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from fuseflow.samml.nodes import Align, Alu, Drop, Graph, Join, Locate, Primitive, Range, Repeat
from fuseflow.samml.protobuf import compatibility
from fuseflow.transform.public.arithmetic import public_alu
from fuseflow.transform.public.joins import align_as_identity, drop_by_coordinates, public_join
from fuseflow.transform.public.levels import locate_as_join, range_as_scan, repeat_by_payload
from fuseflow.transform.public.rewriter import GraphRewriter, Rule

RULES: Mapping[type[Primitive], Rule] = {
    Range: range_as_scan,
    Locate: locate_as_join,
    Join: public_join,
    Align: align_as_identity,
    Repeat: repeat_by_payload,
    Alu: public_alu,
    Drop: drop_by_coordinates,
}


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


def public_form(graph: Graph) -> PublicForm:
    """Return the public form of a graph, or the graph with the reasons why there is none."""
    rewriter = GraphRewriter(graph)
    public = rewriter.run(RULES)
    warnings = compatibility(public, rewriter.proven)
    return PublicForm(graph, warnings) if warnings else PublicForm(public, sources=rewriter.sources)
