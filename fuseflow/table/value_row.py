"""The `val` row of a table: the operators that a nest computes after its loops, and the operators that fold inside tiles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from fuseflow.errors import FusionError
from fuseflow.fusion.region import FusedRegion
from fuseflow.fusion.tree import Constant, Producer, Tree, View, free_indices
from fuseflow.samml.nodes import Alu, Operand, Port
from fuseflow.table.node_interning import Cells, LoopContext
from fuseflow.table.tile_axes import Axes, Contraction, Tiling, needs_transpose, remaining_axes


class Term(NamedTuple):
    """An operand: a stream with the axes of its tiles and its implicit value, or a number if it has no stream. `column` is that
    of its repeats."""

    value: float
    port: Port | None = None
    axes: Axes = ("", "")
    column: str | View = "alu"


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """Builds operators, and repeats their operands until all are equally deep."""

    region: FusedRegion
    cells: Cells
    tiling: Tiling

    def term(self, node: Tree, port: Port | None) -> Term:
        if isinstance(node, Constant) or port is None:
            assert isinstance(node, Constant)
            return Term(node.value)
        return Term(self.region.fill[node], port, self.axes(node), column_of(node))

    def axes(self, node: Tree) -> Axes:
        """Return the axes of a node. Raises `FusionError` if its values would need tiles of three dimensions."""
        axes = self.tiling.axes[node]
        if axes is None:
            names = [v for v in free_indices(node)[node] if v in self.tiling.blocks]
            raise FusionError(
                f"region `{self.region.name}` computes a value for every {', '.join(names)}, all in blocks: "
                "a tile has two dimensions at most",
                hint=f"leave one of them in single elements, or store what is computed for {names[0]},{names[1]} (`--fuse none`)",
            )
        return axes

    def apply(self, function: str, terms: Sequence[Term], axes: Axes, ctx: LoopContext) -> Port:
        """Add an operator at the depth of its deepest operand: it is hoisted out of the loops (`ctx`) that all operands lack."""
        return self.applied(function, [self.turned(term, axes) for term in terms], ctx)

    def applied(self, function: str, terms: Sequence[Term], ctx: LoopContext) -> Port:
        """Add an operator as `apply` does, on terms whose tiles stand as they are needed."""
        depth = max([self.cells.depth(term.port) for term in terms if term.port is not None])
        inputs = tuple(self.cells.lift(t.port, ctx, depth, t.column) for t in terms if t.port is not None)
        slots = tuple(Operand(term.value, constant=term.port is None) for term in terms)
        return self.cells.put(Alu(function, inputs, function, slots))[0]

    def elementwise(
        self, function: str, operands: Sequence[tuple[Tree, Port]], slots: tuple[Operand, ...], ctx: LoopContext
    ) -> Port:
        """Add an operator on values without tiles, as `apply` does."""
        depth = max([self.cells.depth(port) for _, port in operands])
        inputs = tuple([self.cells.lift(port, ctx, depth, column_of(node)) for node, port in operands])
        return self.cells.put(Alu(function, inputs, function, slots))[0]

    def turned(self, term: Term, axes: Axes) -> Term:
        """Return a term with its tiles transposed if that puts their rows and columns where `axes` has them."""
        if term.port is None or not needs_transpose(term.axes, axes):
            return term
        (port,) = self.cells.put(Alu("transpose", (term.port,), "transpose", (Operand(term.value),)))
        return Term(term.value, port, (term.axes[1], term.axes[0]), term.column)

    def fold(self, op: str, over: tuple[str, ...], term: Term, ctx: LoopContext) -> Port:
        """Return the stream of a term with the axes that are reduced (`over`) folded inside each tile."""
        assert term.port is not None
        row, column = term.axes
        for name, v in (("row", column), ("col", row)):
            if v and v in over:
                axes = remaining_axes(term.axes, (v,))
                term = Term(term.value, self.apply(f"{name}_{op}", (term,), term.axes, ctx), axes)
        assert term.port is not None
        return term.port

    def contract(self, node: Tree, plan: Contraction, ports: Mapping[Tree, Port], ctx: LoopContext) -> Port:
        """Add the operators of a sum of products inside the tiles, and return their stream. `ports` has those of the operands."""
        rows, columns, k = plan.rows, plan.columns, plan.over

        def product(factors: Sequence[Tree], axes: Axes) -> Term:
            first, *others = (self.term(f, ports.get(f)) for f in factors)
            for other in others:
                first = Term(0.0, self.apply("mul", (first, other), axes, ctx), axes)
            return self.turned(first, axes)

        wide = self.tiling.joined(plan.right) == (columns, k)
        left = product(plan.left, (rows, k))
        right = product(plan.right, (columns, k) if wide else (k, columns))
        value = self.applied("matmul_t" if wide else "matmul", (left, right), ctx)
        axes, at = (rows, columns), self.axes(node)
        for function, others in (("mul", plan.rest), ("div", plan.divisors)):
            for other in others:
                value = self.apply(function, (Term(0.0, value, axes), self.term(other, ports.get(other))), at, ctx)
                axes = at
        if plan.negative:
            value = self.apply("neg", (Term(0.0, value, axes),), axes, ctx)
        return value


def column_of(node: Tree) -> str | View:
    """Return the table column in which the repeats of a node's value are shown."""
    if isinstance(node, View):
        return node
    return node.label if isinstance(node, Producer) else "alu"
