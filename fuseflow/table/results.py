"""Builds the whole table of a region: the streams of each completed tree become a stored tensor (rule L11)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fuseflow.einsum.blocks import tile_indices
from fuseflow.einsum.nodes import TensorType
from fuseflow.errors import FusionError
from fuseflow.fusion.region import FusedRegion, RegionOutput
from fuseflow.fusion.tree import Constant
from fuseflow.samml.nodes import (
    Drop,
    Join,
    Permute,
    Port,
    Primitive,
    Range,
    Repeat,
    Root,
    Scan,
    TensorDecl,
    Workspace,
    WriteLevel,
    WriteValues,
)
from fuseflow.table.builder import TableBuilder
from fuseflow.table.nest import Nest
from fuseflow.table.node_interning import Cells
from fuseflow.table.table import FusionTable
from fuseflow.table.value_row import Term
from fuseflow.tensors import DTYPES, Format
from fuseflow.tensors.blocks import block_text
from fuseflow.tensors.levels import Level, names


def build_table(region: FusedRegion) -> FusionTable:
    """Return the fusion table of a region whose order is chosen (Algorithm 2). Raises `FusionError` if the order cannot be streamed."""
    builder = TableBuilder(region)
    tensors, writes = write_results(builder)
    assert builder.cells.recorder is not None
    return FusionTable(
        region=region.name,
        order=tuple([v for v in region.order if v not in builder.memo.single]),
        steps=builder.cells.recorder.steps(),
        nodes=tuple(builder.cells.nodes.values()),
        writes=writes,
        tensors=tuple(tensors[n] for n in sorted(tensors)),
        outputs=tuple(r.name for r in region.results),
        evaluations=tuple(builder.evaluations),
        loops=builder.cells.loops,
        stages={name: stage for name, stage in builder.cells.used.items() if not isinstance(builder.cells.nodes[name], Root)},
    )


def write_results(builder: TableBuilder) -> tuple[dict[str, TensorDecl], tuple[Primitive, ...]]:
    """Fill the table with all results of its region. Return the tensors that are read and written, and the nodes that store the results."""
    tensors = dict(builder.memo.read_tensors)
    writes: list[Primitive] = []
    for result in builder.region.results:
        declared, nodes = _write(builder, result)
        builder.cells.claim(builder.memo.roots[result.name].label)
        tensors[declared.name] = declared
        writes += nodes
    return tensors, tuple(writes)


def _write(builder: TableBuilder, result: RegionOutput) -> tuple[TensorDecl, list[Primitive]]:
    """Return the declaration of one result and the nodes that store it, in loop order or in the order of its `levels`."""
    tree, tensor, type = result.tree, result.tensor, DTYPES[result.tensor.dtype]
    if isinstance(tree, Constant):
        raise FusionError(
            f"`{result.name}` is the constant {tree.value:g}: nothing is left to compute", hint="use the number itself"
        )
    fill = type.nearest(builder.region.fill[tree])
    if type.is_integer and not float(fill).is_integer():
        raise FusionError(
            f"`{result.name}` is declared {tensor.dtype}; where its operands are not stored it is {fill:g}",
            hint="declare it with a floating-point dtype",
        )
    node = builder.memo.roots[result.name]
    bundle = builder.bundle(Nest(node))
    builder.cells.begin("{}: store", result.name)
    value = Term(fill, bundle.value, builder.arithmetic.axes(node))
    stored = builder.arithmetic.turned(value, tile_indices(result.indices, tensor.block)).port
    assert stored is not None
    streams = _permuted(builder, result, ResultStreams(bundle.indices, tuple(crd for _, crd in bundle.levels), stored))
    if tensor.like:
        return _at_places(result, streams)
    levels = tuple(_level(result, v) for v in streams.loops)
    for p, level in enumerate(levels):
        if level.full and not all(below.full for below in levels[p:]):
            streams = _densified(builder, p, streams)
    streams = _dropped(builder, result, levels, streams, fill)
    format = Format(levels, tuple(result.indices.index(v) for v in streams.loops))
    declared = TensorDecl(result.name, tensor.stored_shape, format, tensor.dtype, fill, tensor.tile)
    level_writers = [
        WriteLevel(f"write_{result.name}_{v}", (crd,), result.name, p)
        for p, (v, crd) in enumerate(zip(streams.loops, streams.crds, strict=True))
    ]
    return declared, [*level_writers, WriteValues(f"write_{result.name}_val", (streams.value,), result.name)]


def _at_places(result: RegionOutput, streams: ResultStreams) -> tuple[TensorDecl, list[Primitive]]:
    """Return what `_write` returns, for a result at the places of another tensor: it has the coordinates of these, so that its values
    alone are written."""
    tensor, format = result.tensor, result.tensor.format
    assert format is not None, "formats are inferred"
    if result.drop_zeros:
        raise FusionError(
            f"zeros of `{result.name}` cannot be dropped: it has the places of `{tensor.like}`",
            hint="leave it out of `drop_zeros`",
        )
    outer = tensor.like, format.rank
    declared = TensorDecl(result.name, tensor.stored_shape, format, tensor.dtype, tile=tensor.tile, outer=outer)
    return declared, [WriteValues(f"write_{result.name}_val", (streams.value,), result.name)]


@dataclass(frozen=True, slots=True)
class ResultStreams:
    """The streams of a result: the loops and the coordinates of its levels, outermost first, and the values."""

    loops: tuple[str, ...]
    crds: tuple[Port, ...]
    value: Port


def _permuted(builder: TableBuilder, result: RegionOutput, streams: ResultStreams) -> ResultStreams:
    """Return the streams with their levels in the order in which the result stores them."""
    if result.levels in ((), streams.loops):
        return streams
    order = tuple(streams.loops.index(v) for v in result.levels)
    *crds, value = builder.cells.put(Permute(f"permute_{result.name}", (*streams.crds, streams.value), order))
    builder.cells.note(result.name, "val", f"Permute to {','.join(result.levels)} = {{}}", value)
    return ResultStreams(result.levels, tuple(crds), value)


def _dropped(
    builder: TableBuilder, result: RegionOutput, levels: tuple[Level, ...], streams: ResultStreams, fill: float
) -> ResultStreams:
    """Return the streams without coordinates that have no entries below them (rule L12), and without zeros if the result drops
    zeros. `fill` is the implicit value.

    Coordinates are dropped below the innermost dense level that has a compressed one below it, which needs a fiber for each of
    its coordinates.
    """
    first = len(levels)
    while first > 0 and levels[first - 1].full:
        first -= 1
    if result.drop_zeros and result.tensor.block:
        raise FusionError(
            f"zeros of `{result.name}` cannot be dropped: it is stored in blocks of {block_text(result.tensor.block)}",
            hint="a block is stored whole; leave it out of `drop_zeros`",
        )
    if first == 0 and result.drop_zeros:
        raise FusionError(
            f"zeros of `{result.name}` cannot be dropped: it is stored {result.tensor.format}",
            hint=f"give it compressed levels, as in `--format {result.name}=csr`",
        )
    while first > 0 and not levels[first - 1].full:
        first -= 1
    inner = streams.crds[first + 1 :]
    empty = any(may_be_empty(crd, builder.cells, builder.declared) for crd in inner)
    if first == len(levels) or levels[first].full or not (empty or result.drop_zeros):
        return streams
    ports = (*streams.crds[first:], streams.value)
    *crds, value = builder.cells.put(Drop(f"drop_{result.name}", ports, fill if result.drop_zeros else None))
    builder.cells.note(result.name, "val", f"Drop({', '.join(streams.loops[first:])}) = {{}}", value)
    return ResultStreams(streams.loops, (*streams.crds[:first], *crds), value)


def _level(result: RegionOutput, index: str) -> Level:
    """Return the level format in which a result stores the dimension of `index`."""
    format = result.tensor.format
    assert format is not None
    level = format.levels[format.order.index(result.indices.index(index))]
    if not level.written:
        able = names(lambda level: level.written)
        raise FusionError(
            f"result `{result.name}` cannot be written as {format.short()}: results have {able} levels",
            hint=f"`--format {result.name}=dcsr` stores the same entries",
        )
    return level


def _densified(builder: TableBuilder, p: int, streams: ResultStreams) -> ResultStreams:
    """Return the streams with level p full, so that a compressed level below it has a fiber for every coordinate."""
    loops, crds, old = streams.loops, streams.crds, streams.crds[p]
    if _is_full(builder, old):
        return streams
    v, ctx = loops[p], tuple(zip(loops[:p], crds[:p], strict=True))
    full = builder.everywhere(v, ctx)
    (new,) = builder.cells.put(Join(f"fill_{v}", (full, old), "left", (0, 0)))
    below = tuple(builder.cells.align("fill", w, crd, old, new) for crd, w in zip(crds[p + 1 :], loops[p + 1 :], strict=True))
    return ResultStreams(loops, (*crds[:p], new, *below), builder.cells.align("fill", "val", streams.value, old, new))


def _is_full(builder: TableBuilder, crd: Port) -> bool:
    """Return whether a coordinate stream holds every coordinate of its dimension below each of its parents."""
    node = builder.cells.nodes[crd.node]
    if isinstance(node, Scan):
        format = builder.declared[node.tensor].format
        return format is not None and format.levels[node.level].full
    if isinstance(node, Join) and node.kind == "left":
        return _is_full(builder, node.inputs[0])
    return isinstance(node, Range)


def may_be_empty(port: Port, cells: Cells, tensors: Mapping[str, TensorType]) -> bool:
    """Return whether a fiber of this coordinate stream can be empty, as far as formats and sizes tell. Above one, a compressed
    result would store coordinates without entries (rule L12)."""
    node = cells.nodes[port.node]
    match node:
        case Range():
            return node.size == 0
        case Scan():
            tensor, above = tensors[node.tensor], _scanned(node.inputs[0], cells)
            assert tensor.format is not None
            if tensor.format.levels[node.level].full:
                return tensor.shape[tensor.format.order[node.level]] == 0 or (node.level > 0 and above is None)
            return above is None or tensor.format.levels[above.level].full
        case Join():
            sides = [may_be_empty(node.inputs[crd], cells, tensors) for crd, _ in node.sides()]
            return {"intersect": True, "union": all(sides), "left": sides[0]}[node.kind]
        case Workspace() if port.output == 0:
            return any(may_be_empty(p, cells, tensors) for p in node.inputs[:-1])
        case Workspace() | Drop() if port.output > 0:
            return False  # a coordinate without a value below it is not given
        case _:
            return True  # nothing is known, or all of a fiber may leave it


def _scanned(port: Port, cells: Cells) -> Scan | None:
    """Return the scan that the references of a stream come from, or None if one of them may be absent."""
    node = cells.nodes[port.node]
    if isinstance(node, Repeat):
        return _scanned(node.inputs[0], cells)
    if isinstance(node, Join):
        at = [(s, p) for s, (_, payloads) in enumerate(node.sides()) for p in payloads]
        side, place = at[port.output - 1]
        may_be_absent = node.kind == "union" or (node.kind == "left" and side > 0)
        return None if may_be_absent else _scanned(node.inputs[place], cells)
    return node if isinstance(node, Scan) else None
