"""Results: the streams of a completed tree become a stored tensor (rule L11), and the whole region a table."""

from __future__ import annotations

from fuseflow.errors import FusionError
from fuseflow.fusion.region import FusedRegion, Result
from fuseflow.fusion.tree import Number, Reduction
from fuseflow.samml.nodes import Join, Node, Port, Range, Scan, TensorDecl, WriteLevel, WriteValues
from fuseflow.table.build import Builder
from fuseflow.table.table import Column, FusionTable
from fuseflow.tensors import DTYPES, Format
from fuseflow.tensors.levels import Compressed, Dense, Level

LAST_COLUMNS = ("repeat", "alu", "range", "fill", "join")


def build_table(region: FusedRegion) -> FusionTable:
    """Algorithm 2 on a region whose order is chosen. Raises `FusionError` if the order cannot be streamed (`enclosed loop`)."""
    builder = Builder(region)
    tensors = {t.name: TensorDecl(t.name, t.shape, t.format, t.dtype, t.fill) for t in region.stored.values() if t.format}
    writes: list[Node] = []
    for result in region.results:
        declared, nodes = _write(builder, result)
        tensors[declared.name] = declared
        writes += nodes
    columns = sorted(builder.grid, key=lambda c: LAST_COLUMNS.index(c) if c in LAST_COLUMNS else -1)
    return FusionTable(
        region=region.name,
        order=region.order,
        columns=tuple(Column(c, tuple((row, tuple(cell)) for row, cell in builder.grid[c].items())) for c in columns),
        nodes=tuple(builder.cells.nodes.values()),
        writes=tuple(writes),
        tensors=tuple(tensors[n] for n in sorted(tensors)),
        outputs=tuple(r.name for r in region.results),
        evaluations=tuple(builder.evaluations),
    )


def _write(builder: Builder, result: Result) -> tuple[TensorDecl, list[Node]]:
    """The nodes that store one result. Its stored mode order is the loop order; its level kinds are those of its declared format."""
    tree, fill = result.tree, builder.region.fill[result.tree]
    if isinstance(tree, Number):
        raise FusionError(
            f"`{result.name}` is the constant {tree.value:g}: nothing is left to compute", hint="use the number itself"
        )
    if DTYPES[result.tensor.dtype].kind == "i" and not float(fill).is_integer():
        raise FusionError(
            f"`{result.name}` is declared {result.tensor.dtype}; where its operands are not stored it is {fill:g}",
            hint="declare it with a floating-point dtype",
        )
    same = isinstance(tree, Reduction) and set(tree.free) == set(result.indices)
    node = tree if isinstance(tree, Reduction) and same else Reduction("sum", (), result.indices, tree, result.name)
    bundle = builder.nest(node, (), {})
    value = bundle.value
    loops = [v for v, _ in bundle.levels]
    crds = [crd for _, crd in bundle.levels]
    levels = [_level(result, v) for v in loops]
    for p, level in enumerate(levels):
        if level.full and not all(below.full for below in levels[p:]):
            crds, value = _densify(builder, p, loops, crds, value, fill)
    format = Format(tuple(levels), tuple(result.indices.index(v) for v in loops))
    declared = TensorDecl(result.name, result.tensor.shape, format, result.tensor.dtype, fill)
    nodes: list[Node] = [
        WriteLevel(f"write_{result.name}_{v}", (crd,), result.name, p) for p, (v, crd) in enumerate(zip(loops, crds, strict=True))
    ]
    return declared, [*nodes, WriteValues(f"write_{result.name}_val", (value,), result.name)]


def _level(result: Result, index: str) -> Level:
    """The level format in which a result stores the dimension of `index`."""
    format = result.tensor.format
    assert format is not None
    level = format.levels[format.order.index(result.indices.index(index))]
    if level not in (Dense(), Compressed()):
        raise FusionError(
            f"result `{result.name}` cannot be written as {format.short()}: results have dense and compressed levels",
            hint=f"`--format {result.name}=dcsr` stores the same entries",
        )
    return level


def _densify(builder: Builder, p: int, loops: list[str], crds: list[Port], value: Port, fill: float) -> tuple[list[Port], Port]:
    """Make level p full, so that a compressed level below it gets a fiber for every coordinate: its range, and the rest aligned."""
    old = crds[p]
    if _is_full(builder, old):
        return crds, value
    v, ctx = loops[p], tuple(zip(loops[:p], crds[:p], strict=True))
    (full,) = builder.cells.put(Range(f"range_{v}", (builder.lift(builder.root, ctx, p, "range"),), builder.region.sizes[v]))
    (new,) = builder.cells.put(Join(f"fill_{v}", (full, old), "left", (0, 0)))
    below = [builder.align("fill", old, new, crd, w) for crd, w in zip(crds[p + 1 :], loops[p + 1 :], strict=True)]
    return [*crds[:p], new, *below], builder.align("fill", old, new, value, "val")


def _is_full(builder: Builder, crd: Port) -> bool:
    """Whether a coordinate stream holds every coordinate of its dimension, below every parent that it has."""
    node = builder.cells.nodes[crd.node]
    match node:
        case Range():
            return True
        case Scan():
            format = builder.region.stored[node.tensor].format
            return format is not None and format.levels[node.level].full
        case Join(kind="left"):
            return _is_full(builder, node.inputs[0])
        case _:
            return False
