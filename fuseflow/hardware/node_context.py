"""The facts that the rules of a node need about its graph: the widths of streams, bounds of coordinates, and its tensor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from fuseflow.errors import HardwareError
from fuseflow.firing_rules.context import Fiber, RuleContext
from fuseflow.firing_rules.expressions import Expr, const
from fuseflow.firing_rules.rules import Head, Module
from fuseflow.hardware.arithmetic import Arithmetic, tile_word
from fuseflow.hardware.tile_array import TileArray, TileOperand, fold_work, tile_work
from fuseflow.machine.timing import NodeTiming
from fuseflow.memory.scratchpad_settings import Scratchpad
from fuseflow.memory.settings import TimedMemory
from fuseflow.primitives.scan import computed, listed
from fuseflow.samml import nodes as n
from fuseflow.tile_ops import TileShape

MOST_KEYS = 4096
"""The most entries of one workspace: each has a flip-flop that says whether it holds a value."""


@dataclass(frozen=True, slots=True)
class NodeContext(RuleContext):
    """The context of one node. `types` are the types of its inputs, and `bounds` exclusive bounds of their coordinates.
    Coordinates and references have `index` bits. `timing` is the timing of the node on the machine, and `handover` the depth of
    its link between two processes with workspaces. `memory` is None where the arrays answer at once; its line is a word of the
    scratchpad where the node uses that. `in_order` says that the node reads its arrays from the first element to the last, and `is_early`
    that it waits until its tensor is loaded into the scratchpad. `transfers` are those of a root, between the memory and `scratchpad`."""

    node: n.Node
    types: tuple[n.StreamType, ...]
    bounds: tuple[int, ...]
    declared: Mapping[str, n.TensorDecl]
    index: int
    arithmetic: Arithmetic
    timing: NodeTiming
    handover: int | None = None
    memory: TimedMemory | None = None
    in_order: bool = False
    is_early: bool = False
    transfers: tuple[n.Transfer, ...] = ()
    scratchpad: Scratchpad | None = None

    def width(self, type_: n.StreamType) -> int:
        return self.arithmetic.width * prod(type_.tile) if type_.kind == "val" else self.index

    def constant(self, number: float, tile: TileShape = ()) -> Expr:
        """Return the constant payload of a number, or of a tile whose elements are all equal to the number."""
        arithmetic = self.arithmetic
        return const(tile_word([number] * prod(tile), arithmetic.width, arithmetic.word), arithmetic.width * prod(tile))

    def elements(self, payload: Expr) -> list[Expr]:
        """Return the numbers of a payload: the elements of a tile, row by row."""
        width = self.arithmetic.width
        return [payload.bits(low, width) for low in range(0, payload.width, width)]

    def outputs(self, m: Module) -> list[str]:
        made = self.node.typed(self.types, self.declared)
        return [m.output(f"out{k}", self.width(type_)) for k, type_ in enumerate(made)]

    def number(self, value: float) -> Expr:
        return const(self.arithmetic.word(value), self.arithmetic.width)

    def apply(self, function: str, *operands: Expr) -> Expr:
        return self.arithmetic.apply(function, *operands)

    def holds(self, truth: Expr) -> Expr:
        return truth.is_not(self.arithmetic.word(0.0))

    def fold(self, m: Module, function: str, x: Expr) -> TileArray:
        work = fold_work(function, self.arithmetic, self.types[0].tile)
        return TileArray(m, self.arithmetic, work, [TileOperand(x)], self.timing.emission, keeps=True)

    def compute(self, m: Module, heads: Sequence[Head]) -> TileArray:
        """Return the units that compute an `alu` node on the tokens `heads`: an array for tiles, one unit for scalars. Raises
        `HardwareError` if there is no unit."""
        node, streams, types = self.node, iter(heads), iter(self.types)
        assert isinstance(node, n.Alu)
        tiles = [() if operand.constant else next(types).tile for operand in node.operands]
        work = tile_work(node.function, self.arithmetic, tiles)
        if work is None:
            raise self.refused(f"computes `{node.function}`", "compile without blocks: single elements need no such operator")
        operands = []
        for operand in node.operands:
            constant, head = self.constant(operand.value), None if operand.constant else next(streams)
            operands.append(TileOperand(constant) if head is None else TileOperand(head.payload, head.is_empty, constant))
        return TileArray(m, self.arithmetic, work, operands, self.timing.interval)

    def fiber(self, m: Module, node: n.Scan | n.Range, ref: Head) -> Fiber:
        if isinstance(node, n.Range):
            return computed(m, ref, node.size)
        level = self.level(node)
        if level.full and not level.stored:
            return computed(m, ref, self.size(node))
        return listed(m, ref.payload, own_references=level.follows or not level.unique)

    def room(self, node: n.WriteLevel | n.WriteValues) -> int:
        return self.declared[node.tensor].room(node.level if isinstance(node, n.WriteLevel) else -1) or 0

    def level(self, node: n.Scan | n.Locate | n.WriteLevel) -> Any:
        """Return the level that a node reads or writes."""
        return self.declared[node.tensor].format.levels[node.level]

    def size(self, node: n.Scan | n.Locate | n.WriteLevel) -> int:
        """Return the size of the dimension that the level of a node stores."""
        return self.declared[node.tensor].size(node.level)

    def refused(self, why: str, hint: str) -> HardwareError:
        """Return the error that reports why (`why`, a predicate of the node) this node has no circuit."""
        return HardwareError(f"node `{self.node.name}` ({self.node.op}) {why}", hint=hint)

    def require_keys(self, count: int, bounds: tuple[int, ...]) -> None:
        """Raise `HardwareError` if a workspace with `count` keys, of coordinates with these bounds, has more than `MOST_KEYS`."""
        if count > MOST_KEYS:
            sizes = " x ".join(f"{bound:,}" for bound in bounds)
            raise self.refused(
                f"needs a workspace of {count:,} entries, for coordinates below {sizes}; a circuit has {MOST_KEYS:,}",
                "choose a loop order that reduces in a loop further inside, or split one of these dimensions",
            )
