"""The primitives that the cells of a table name. They are made as the table is filled, and equal primitives are one (rule L10)."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from fuseflow.fusion.tree import View
from fuseflow.samml.node import content
from fuseflow.samml.nodes import Align, Port, Primitive, Repeat, Root, StreamType, stream_name
from fuseflow.table.table import Recorder

LoopContext: TypeAlias = tuple[tuple[str, Port], ...]
"""The loops that have run, outermost first, each with its final coordinate stream (after every join of that loop)."""


@dataclass(slots=True)
class NodeNames:
    """Makes the names of the nodes of a table. Nodes that want one name get `mul`, `mul'2`, `mul'3`."""

    _taken: set[str] = field(default_factory=set)
    _uses: dict[str, int] = field(default_factory=dict)

    def fresh(self, wanted: str) -> str:
        """Return a new name: the wanted one if no node has it, else with a number."""
        count = self._uses[wanted] = self._uses.get(wanted, 0) + 1
        name = wanted if count == 1 else f"{wanted}'{count}"
        if name in self._taken:
            return self.fresh(wanted)
        self._taken.add(name)
        return name


@dataclass(slots=True)
class Cells:
    """The nodes and stream types of a table that is being filled, or of several tables that share equal nodes. The name of a node
    says what it does: `A_i`, `intersect_k`, `mul'2`.

    `used` has the names of the nodes of the table that is being filled, in the order in which the table first needed them, each
    with its stage: the label of the producer in whose nest it is, or "" while that nest is not filled yet. The `recorder` keeps
    the text of each cell. Without a recorder nothing is kept, and nodes have numbers instead of names.
    """

    nodes: dict[str, Primitive] = field(default_factory=dict)
    types: dict[Port, StreamType] = field(default_factory=dict)
    loops: dict[str, frozenset[str]] = field(default_factory=dict)  # by scan and range: the indices of the level that it makes
    recorder: Recorder | None = field(default_factory=Recorder)
    used: dict[str, str] = field(default_factory=dict)
    _ports: dict[Hashable, tuple[Port, ...]] = field(default_factory=dict)
    _repeated: dict[tuple[Port, Port, str], Port] = field(default_factory=dict)  # by what is repeated, by what, and in which loop
    _names: NodeNames = field(default_factory=NodeNames)

    def put(self, node: Primitive) -> tuple[Port, ...]:
        """Add a node unless an equal one exists, and return the output ports. `node.name` is the wanted base name."""
        key = content(node)
        ports = self._ports.get(key)
        if ports is None:
            ports = self._ports[key] = self._added(node)
        self.use(ports[0].node, node.name)
        return ports

    def use(self, name: str, wanted: str) -> None:
        """Record that the table uses a node, which wants to be called `wanted` there."""
        self.used.setdefault(name, "")

    def use_all(self, used: Mapping[str, str]) -> None:
        """Record that the table uses the nodes of a step: `used` has them with their stages."""
        self.used.update(used)

    def _added(self, node: Primitive) -> tuple[Port, ...]:
        name = str(len(self.nodes)) if self.recorder is None else self._names.fresh(node.name)
        self.nodes[name] = node if self.recorder is None or name == node.name else replace(node, name=name)
        outputs = node.outputs([self.types[p] for p in node.inputs])
        ports = tuple([Port(name, k) for k in range(len(outputs))])
        self.types.update(zip(ports, outputs, strict=True))
        return ports

    def needs(self, port: Port) -> None:
        """Learn that the table certainly needs a stream. Nothing is done here; subclasses may count its cost."""

    def level(self, node: Primitive, index: str) -> tuple[Port, ...]:
        """Add a node that makes the level of `index`, and return the output ports. One node may make the levels of several indices."""
        ports = self.put(node)
        self.loops[ports[0].node] = self.loops.get(ports[0].node, frozenset()) | {index}
        return ports

    def claim(self, stage: str) -> None:
        """Put all used nodes without a stage into this one."""
        self.used = {name: own or stage for name, own in self.used.items()}

    def begin(self, title: str, *words: str) -> None:
        """Begin a step of the table. Its title is `title`, formatted with the `words`."""
        if self.recorder is not None:
            self.recorder.begin(title.format(*words))

    def note(self, column: str | View, row: str, text: str, *streams: Port) -> None:
        """Record the text of a cell: `text`, formatted with the names of the streams."""
        if self.recorder is not None:
            self.recorder.note(str(column), row, text.format(*map(self.text, streams)))

    def lift(self, port: Port, loops: LoopContext, depth: int, column: str | View) -> Port:
        """Return a stream repeated into the loops that it lacks, down to a depth, by their final coordinate streams (L1)."""
        lacking = self.types[port].depth
        if lacking >= depth:
            return port
        for v, crd in loops[lacking:depth]:
            source, repeated = port, self._repeated.get((port, crd, v))
            if repeated is None:
                (repeated,) = self.put(Repeat(f"rep_{v}", (port, crd)))
                self._repeated[port, crd, v] = repeated
            else:
                self.use(repeated.node, f"rep_{v}")
            self.note(column, v, "Rep({} by {})", source, crd)
            port = repeated
        return port

    def align(self, column: str, row: str, stream: Port, old: Port, new: Port) -> Port:
        """Return a stream that is below the coordinates `old` aligned to the coordinates `new` (L5)."""
        if old == new:
            return stream
        (aligned,) = self.put(Align(f"align_{row}", (old, new, stream)))
        self.note(column, row, "Align({}: {} -> {}) = {}", stream, old, new, aligned)
        return aligned

    def root(self) -> Port:
        return self.put(Root("root", ()))[0]

    def depth(self, port: Port) -> int:
        return self.types[port].depth

    def text(self, port: Port) -> str:
        """Return how a cell refers to a stream: `<A_i.crd>`, or the bare name of a node with one output."""
        node = self.nodes[port.node]
        return "root" if isinstance(node, Root) else f"<{stream_name(node, port.output)}>"
