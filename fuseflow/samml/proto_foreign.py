"""Completion of another tool's graph, which declares neither tensors nor the levels that its locates address and its writes
store.

Tensors are declared as they are stored: dimension p is storage level p, so a matrix that is stored by columns is declared
transposed. Level formats come from the lookups and writes; a level that is only located is dense. The size of a dimension is the
size of its index in `sizes` if that is given, else the size that a write states, else 0 for unknown.

Arrays that are `blocked` hold square tiles, as large as their `stream_shape`. The meaning of an operation then follows from the
tiles that reach it: MUL of two is the matrix product, all else is element by element, and a reduction by ADDSUM adds up the rows
of its sum, too. There the other tool repeats the resulting column to a tile; here it stays a column, which operators broadcast.
Which dimensions the rows and the columns of tiles are follows from those of the tensors that are read (`tile_indices`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn, TypeAlias

from fuseflow.errors import GraphError, counted
from fuseflow.samml import nodes as n
from fuseflow.samml import tortilla_pb2 as pb
from fuseflow.tensors import Format
from fuseflow.tensors.levels import is_family
from fuseflow.tile_ops import TileShape

Indices: TypeAlias = tuple[str, str]
"""The indices of the rows and of the columns of a tile. An index is "" if it is unknown, or if there is one row or column only."""


@dataclass(frozen=True, slots=True)
class LevelUsage:
    """What the operations of a graph tell about one storage level of a tensor."""

    format: str = "dense"
    index: str = ""
    size: int = 0


@dataclass(slots=True)
class ForeignGraph:
    """Another tool's graph that is to be completed. `messages` are its operations by node name, `sizes` the sizes of its indices."""

    graph: n.Graph
    messages: Mapping[str, Any]
    sizes: Mapping[str, int]
    levels: dict[str, dict[int, LevelUsage]] = field(default_factory=dict)

    def complete(self) -> n.Graph:
        readers = self.graph.readers()
        types: dict[n.Port, n.StreamType] = {}
        tiles: dict[str, TileShape] = {}
        nodes: list[n.Primitive] = []
        for original in self.graph.nodes:
            for node in self.on_tiles(original, [types[port].tile for port in original.inputs]):
                if isinstance(node, n.Locate) and not node.tensor:
                    node = replace(node, tensor=self.addressed(node, readers))
                if isinstance(node, n.WriteLevel) and node.level < 0:
                    node = replace(node, level=types[node.inputs[0]].depth - 1)
                nodes.append(node)
                self.look(node)
                self.note_tile(node, types, tiles)
                decl = {t: n.TensorDecl(t, (), Format.of(), tile=tile) for t, tile in tiles.items()}
                if len(node.inputs) != len(node.takes()) or (not node.inputs and node.role != "source"):
                    count = counted(len(node.inputs), "input")
                    raise GraphError(f"graph `{self.graph.name}`: `{node.name}` has {count}, which is not what it takes")
                stream_types = node.typed([types[port] for port in node.inputs], decl)
                types |= {n.Port(node.name, k): kind for k, kind in enumerate(stream_types)}
        outputs = dict.fromkeys(node.tensor for node in nodes if isinstance(node, n.TensorWriter))
        tensors = tuple(replace(self.declare(tensor), tile=tiles.get(tensor, ())) for tensor in sorted(self.levels))
        return replace(self.graph, tensors=tensors, nodes=tuple(nodes), outputs=tuple(outputs))

    def on_tiles(self, node: n.Primitive, tiles: Sequence[TileShape]) -> list[n.Primitive]:
        """Return the nodes that replace the node of an operation where its inputs have tiles of these shapes."""
        message: Any = self.messages.get(node.name)
        square = (message.stream_shape,) * 2 if getattr(message, "blocked", False) and message.stream_shape > 1 else ()
        is_product = [stage.op for stage in getattr(message, "stages", ())][:1] == [pb.ALU.MUL]
        match node:
            case n.Load():
                return [node]
            case n.Alu() | n.Reduce() | n.Accumulate() if square and not any(tile[:1] == square[:1] for tile in tiles):
                shown = " and ".join(
                    n.show_tile(tile) or "scalars" for tile in tiles if tile or not isinstance(node, n.Accumulate)
                )
                self.refuse(node, f"says that it works on tiles of {n.show_tile(square)}; what reaches it are {shown}")
            case n.Alu() if node.function == "mul" and is_product and len(tiles) == 2 and all(tiles):
                return [replace(node, function="matmul")]
            case n.Reduce() if message.reduce_type == pb.Reduce.ADDSUM and any(tiles):
                whole = replace(node, name=f"{node.name}.sum")
                return [whole, n.Alu(node.name, (n.Port(whole.name),), "row_sum", (n.Operand(0.0),))]
        return [node]

    def note_tile(self, node: n.Node, types: Mapping[n.Port, n.StreamType], tiles: dict[str, TileShape]) -> None:
        """Record in `tiles` the shape of a node's values. Raises `GraphError` if another node has another shape."""
        if isinstance(node, n.Load):
            message: Any = self.messages[node.name]
            tile: TileShape = (message.stream_shape,) * 2 if message.blocked and message.stream_shape > 1 else ()
        elif isinstance(node, n.WriteValues):
            tile = types[node.inputs[0]].tile
        else:
            return
        if tiles.setdefault(node.tensor, tile) != tile:
            both = " and of ".join(n.show_tile(t) or "scalars" for t in (tiles[node.tensor], tile))
            self.refuse(node, f"takes the values of `{node.tensor}` for tiles of {both}")

    def indices(self) -> dict[str, tuple[str, ...]]:
        """Return the index of each storage level of every tensor of the completed graph, outermost first; "" where none is named."""
        return {tensor: tuple(level.index for level in self.usages(tensor)) for tensor in sorted(self.levels)}

    def usages(self, tensor: str) -> list[LevelUsage]:
        """Return the recorded usage of each storage level of a tensor, outermost first."""
        levels = self.levels[tensor]
        return [levels.get(p, LevelUsage()) for p in range(max(levels, default=-1) + 1)]

    def addressed(self, node: n.Locate, readers: Mapping[n.Port, tuple[n.Edge, ...]]) -> str:
        """Return the name of the tensor to which a locate belongs: the one that the readers of its references read."""
        waiting = [n.Port(node.name)]
        for port in waiting:
            for edge in readers.get(port, ()):
                reader = self.graph.by_name[edge.node]
                if isinstance(reader, n.Scan) and reader.level != 1:
                    where = f"level {reader.level - 1} of `{reader.tensor}`"
                    self.refuse(node, f"locates {where} by coordinates alone; only level 0 can be located so")
                if isinstance(reader, n.Scan | n.Load):
                    return reader.tensor
                waiting += [n.Port(reader.name, k) for k, carried in enumerate(reader.carries()) if edge.input in carried]
        self.refuse(node, "nothing reads the references that it locates")

    def look(self, node: n.Node) -> None:
        """Record the format, index and size that a node implies for the level that it reads or writes."""
        message: Any = self.messages.get(node.name)
        if isinstance(node, n.Scan):
            self.note(node.tensor, node.level, LevelUsage(message.format, message.index))
        elif type(node) is n.WriteLevel:
            size = int(message.size) if message.size.isdecimal() else 0
            self.note(node.tensor, node.level, LevelUsage(message.format or "compressed", message.index, size))
        elif isinstance(node, n.Locate):
            self.note(node.tensor, node.level, LevelUsage(index=self.index(node.inputs[0])))
        elif isinstance(node, n.TensorUser):
            self.levels.setdefault(node.tensor, {})

    def note(self, tensor: str, level: int, usage: LevelUsage) -> None:
        if is_family(usage.format):
            raise GraphError(
                f"graph `{self.graph.name}`: level {level} of `{tensor}` is {usage.format}, which the public schema does not have",
                hint="export the graph with fuseflow, which declares its tensors, or store that level `compressed`",
            )
        self.levels.setdefault(tensor, {}).setdefault(level, usage)

    def index(self, port: n.Port) -> str:
        """Return the name of the index whose coordinates a stream holds, or "" if it is unknown."""
        while not getattr(self.messages.get(port.node), "index", ""):
            if not isinstance(self.graph.by_name[port.node], n.Join | n.Repeat | n.Fork | n.Merge):
                return ""
            port = self.graph.by_name[port.node].inputs[0]
        return str(self.messages[port.node].index)

    def declare(self, tensor: str) -> n.TensorDecl:
        usages = self.usages(tensor)
        shape = tuple(self.sizes.get(level.index, level.size) for level in usages)
        return n.TensorDecl(tensor, shape, Format.of(*(level.format for level in usages)))

    def refuse(self, node: n.Node, why: str) -> NoReturn:
        raise GraphError(f"graph `{self.graph.name}`, operation `{node.name}`: {why}")


def tile_indices(graph: n.Graph, loads: Mapping[str, Indices]) -> dict[str, Indices]:
    """Return the indices of the tiles of each output; `loads` has those of the tensors that are read. Raises `GraphError` at an
    operator whose operands do not fit together, because the tiles of a tensor are transposed."""
    indices: dict[n.Port, Indices] = {}
    results: dict[str, Indices] = {}
    for node in graph.nodes:
        inputs = [indices[port] for port in node.inputs]
        if isinstance(node, n.WriteValues):
            results[node.tensor] = inputs[0]
        for k, carried in enumerate(node.carries()):
            indices[n.Port(node.name, k)] = inputs[carried[0]] if carried else ("", "")
        if isinstance(node, n.Load):
            indices[n.Port(node.name)] = loads.get(node.tensor, ("", ""))
        elif isinstance(node, n.Alu):
            indices[n.Port(node.name)] = _of_operator(graph, node, inputs)
    return results


def _of_operator(graph: n.Graph, node: n.Alu, inputs: Sequence[Indices]) -> Indices:
    match node.function, inputs:
        case "matmul", [(row, left), (right, column)]:
            _agree(graph, node, inputs, left, right)
            return row, column
        case "matmul_t", [(row, left), (column, right)]:
            _agree(graph, node, inputs, left, right)
            return row, column
        case "transpose", [(row, column)]:
            return column, row
        case str(name), [(row, column)] if name.startswith(("row_", "col_")):
            return (row, "") if name.startswith("row_") else ("", column)
    row, column = "", ""
    for other in inputs:
        _agree(graph, node, inputs, row, other[0])
        _agree(graph, node, inputs, column, other[1])
        row, column = row or other[0], column or other[1]
    return row, column


def _agree(graph: n.Graph, node: n.Alu, inputs: Sequence[Indices], one: str, other: str) -> None:
    if one and other and one != other:
        shown = " and ".join(" x ".join(f"`{index or '?'}`" for index in tile) for tile in inputs)
        raise GraphError(
            f"graph `{graph.name}`, operation `{node.name}`: `{node.function}` of tiles of {shown}: `{one}` meets `{other}`",
            hint="a tensor whose tiles lie the other way round has its dimensions in the wrong order: name them in `indices`",
        )
