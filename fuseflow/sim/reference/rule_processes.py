"""Processes of the nodes whose primitives are defined by firing rules (`fuseflow.primitives`), and the readers of the fibers that these
rules open, which count the elements requested from memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from math import inf
from typing import Any, assert_never

from fuseflow.firing_rules.context import Builder
from fuseflow.float32.operator_precision import folded_function
from fuseflow.memory.layout import ArrayKind
from fuseflow.ops import reducer
from fuseflow.primitives import RULES as FIRING_RULES
from fuseflow.primitives.pointwise import alu
from fuseflow.primitives.scan import scan
from fuseflow.samml import nodes as n
from fuseflow.samml.node_content import with_names
from fuseflow.samml.tokens import N
from fuseflow.sim.reference.functions import Operators, fold_function
from fuseflow.sim.reference.node_context import NodeContext, Rule
from fuseflow.sim.reference.step_code import step_function
from fuseflow.sim.reference.timed_process import Process, Steps
from fuseflow.sim.reference.token_rules import TokenContext, TokenModule
from fuseflow.sim.reference.write import written_by
from fuseflow.tensors import Tensor
from fuseflow.tensors.levels.base import Computed, Listed
from fuseflow.tile_ops import constant_tile


class FiberReader:
    """A call opens the fiber below a reference (empty for `N`) and returns its size. Then `crds` has the coordinates of the
    fiber, `refs` the reference of each in the next level, and `end` the element after the entries of the fiber. `requested`
    counts the elements read of each array, by its kind. References are smaller than `parents`."""

    crds: Sequence[int]
    refs: Sequence[int]
    size = end = 0

    def __init__(self, tensor: Tensor, level: int) -> None:
        fibers = tensor.levels[level]
        arrays = tensor.format.levels[level].arrays(fibers.size)
        self.scanned = tuple((array.kind, array.scanned) for array in arrays if array.scanned)
        self.entries = tuple(array.kind for array in arrays if array.entry)
        self.requested: dict[ArrayKind, int] = {array.kind: 0 for array in arrays}
        self.look = fibers.look()
        match walk := fibers.walk():
            case Computed() | Listed():
                self.parents: float = inf if walk.parents is None else walk.parents
            case _:
                assert_never(walk)

    def __call__(self, p: Process, ref: Any) -> int:
        """Open the fiber below a reference, for the process `p`, and return its size. Raises `SimulationError` if the tensor has
        no such reference."""
        if ref is N:
            self.crds, self.refs, self.size = (), (), 0
            return 0
        if not 0 <= ref < self.parents:
            raise p.outside()
        self.crds, self.refs, entries = self.look(ref)
        self.size = len(self.crds)
        for kind, count in self.scanned:
            self.requested[kind] += count
        for kind in self.entries:
            self.requested[kind] += entries
        self.end = self.refs[0] + entries if entries else 0
        return self.size


class RangeReader:
    """The reader of a `range`, whose fibers all have the coordinates 0 to `size` - 1."""

    def __init__(self, size: int) -> None:
        self.crds = self.refs = range(size)
        self.size = size

    def __call__(self, p: Process, ref: Any) -> int:
        return self.size


def interpret(node: n.Node, context: NodeContext, build: Builder | None = None) -> Sequence[Process]:
    """Return a list with the process of a node that fires by the rules of its primitive, or by the rules that `build` makes."""
    functions = {"operators": Operators(context.arithmetic), **_functions(node, context)}
    outputs, room = context.outputs, 0
    if isinstance(node, n.WriteLevel | n.WriteValues):
        outputs, room = (written_by(node, context),), context.room(node)
    shape = TokenContext(context.types, len(context.outputs), room)
    steps = _steps(build or FIRING_RULES[type(node)], with_names(node, "", ()), shape, tuple(functions))
    process = Process(node, context.inputs, outputs, context.interval)
    process.steps = steps(process, **functions)
    if isinstance(node, n.Scan):
        process.elements = functions["fiber"].requested
    return [process]


def _functions(node: n.Node, context: NodeContext) -> Mapping[str, Any]:
    """Return the functions that the rules of a node call, by name."""
    match node:
        case n.Scan():
            return {"fiber": FiberReader(context.tensors[node.tensor], node.level)}
        case n.Range():
            return {"fiber": RangeReader(node.size)}
        case n.Reduce():
            op, (value,) = reducer(node.function), context.types
            fold, identity = fold_function(op, context), constant_tile(value.tile, op.identity)
            return {"fold": fold, "identity": identity, "folded": folded_function(context.arithmetic)}
        case n.Root() | n.Repeat() | n.Join() | n.Align() | n.Drop() | n.Fork() | n.Merge() | n.Flatten() | n.SplitLevel():
            return {}
        case n.Pointwise() | n.TensorWriter():
            return {}
        case unknown:
            raise AssertionError(f"{unknown.op} `{unknown.name}` fires by rules, but what these call is not stated")


def walk_steps(p: Process, fiber: FiberReader) -> Steps:
    """Return the steps of a process that reads references and emits their fibers, as a `scan` does."""
    return _steps(scan, n.Scan("", (), "", 0), TokenContext((n.StreamType("ref", 0),), 2), ("fiber",))(p, fiber=fiber)


def elementwise(p: Process, function: Callable[..., Any] | None, build: Builder = alu) -> Steps:
    """Return the steps of a process that fires once for each token; `function` maps the tokens of its inputs to the emitted
    token."""
    shape = TokenContext((n.StreamType("val", 0),) * len(p.inputs), 1)
    return _steps(build, None, shape, ("compute",))(p, compute=function)


@cache
def _steps(build: Builder, node: n.Node | None, context: TokenContext, functions: tuple[str, ...]) -> Callable[..., Steps]:
    module = TokenModule("alu" if node is None else node.op)
    build(node, context, module)
    return step_function(module, functions)


RULES: dict[type[n.Node], Rule] = dict.fromkeys(FIRING_RULES, interpret)
