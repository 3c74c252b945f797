"""Processes of the nodes whose primitives are defined by firing rules (`fuseflow.primitives`), with what these rules call: the readers of
fibers, which count the elements requested from memory, and operators and reductions as functions of tokens. Locate, load and operators have
aligned inputs and fire once for each token."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from math import inf, prod
from typing import Any, assert_never

from fuseflow.firing_rules.context import Builder
from fuseflow.float32.operator_precision import Arithmetic, array_rounding, folded_function, rounded_value, scalar_function
from fuseflow.memory.layout import ArrayKind
from fuseflow.ops import Reducer, operator, reducer
from fuseflow.primitives import RULES as FIRING_RULES
from fuseflow.primitives.pointwise import alu as alu_rules
from fuseflow.primitives.scan import scan
from fuseflow.samml import nodes as n
from fuseflow.samml.node import with_names
from fuseflow.samml.tokens import N
from fuseflow.sim.reference.node_context import NodeContext, Rule, written_by
from fuseflow.sim.reference.step_code import step_function
from fuseflow.sim.reference.timed_process import Process, Steps
from fuseflow.sim.reference.token_rules import TokenContext, TokenModule
from fuseflow.tensors import Tensor
from fuseflow.tensors.levels import Fibers
from fuseflow.tensors.levels.base import Computed, Listed
from fuseflow.tile_ops import TILE_OPERATORS, constant_tile, map_elements


def fold_function(op: Reducer, context: NodeContext) -> Callable[[Any, Any], Any]:
    """Return the step of a reduction as a function of two values; tiles are combined element by element."""
    scalar = scalar_function(op, context.arithmetic)
    return partial(map_elements, scalar) if context.types[-1].tile else scalar


class Operators(dict[str, Callable[..., float]]):
    """A mapping from the names of operators to functions on numbers in an arithmetic, which are made at the first use."""

    def __init__(self, arithmetic: Arithmetic) -> None:
        self.arithmetic = arithmetic

    def __missing__(self, name: str) -> Callable[..., float]:
        self[name] = scalar_function(operator(name), self.arithmetic)
        return self[name]


def alu_function(node: n.Alu, context: NodeContext) -> Callable[..., Any]:
    """Return the operator of a node as a function of the tokens of its streams. In the arithmetic `rounded`, an operator that exists
    on tiles only rounds its result, not its steps."""
    tiles, arithmetic = [type_.tile for type_ in context.types], context.arithmetic
    shapes = iter(tiles)
    slots = [(o.value if o.constant else constant_tile(next(shapes), o.value), o.constant) for o in node.operands]
    if node.function not in TILE_OPERATORS:
        scalar = scalar_function(operator(node.function), arithmetic)
        return _stream_function(partial(map_elements, scalar) if any(tiles) else scalar, slots)
    array = TILE_OPERATORS[node.function].array
    if arithmetic == "rounded":
        return _stream_function(lambda *tiles: rounded_value(array(array_rounding("f64"), *tiles)), slots)
    return _stream_function(partial(array, array_rounding(arithmetic)), slots)


def _stream_function(function: Callable[..., Any], slots: Sequence[tuple[Any, bool]]) -> Callable[..., Any]:
    """Return the operator as a function of the tokens of the streams only: constants are filled in, and `N` is replaced by the
    implicit value of its operand. `slots` has for each operand its constant, or its value for `N`, and whether it is a constant."""
    match slots:
        case [(x, False)]:
            return lambda a: function(x if a is N else a)
        case [(x, False), (y, False)]:
            return lambda a, b: function(x if a is N else a, y if b is N else b)
        case [(x, False), (y, True)]:
            return lambda a: function(x if a is N else a, y)
        case [(x, True), (y, False)]:
            return lambda b: function(x, y if b is N else b)

    def call(*tokens: Any) -> Any:
        rest = iter(tokens)
        values = [value if constant or (t := next(rest)) is N else t for value, constant in slots]
        return function(*values)

    return call


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
        """Open the fiber below a reference and return its size. Raises `SimulationError` if the tensor has no such reference."""
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


def elementwise(p: Process, function: Callable[..., Any] | None, build: Builder = alu_rules) -> Steps:
    """Return the steps of a process that fires for each token and emits `function` of the tokens of its inputs."""
    shape = TokenContext((n.StreamType("val", 0),) * len(p.inputs), 1)
    return _steps(build, None, shape, ("compute",))(p, compute=function)


@cache
def _steps(build: Builder, node: n.Node | None, context: TokenContext, functions: tuple[str, ...]) -> Callable[..., Steps]:
    module = TokenModule("alu" if node is None else node.op)
    build(node, context, module)
    return step_function(module, functions)


def locate(node: n.Locate, context: NodeContext) -> Sequence[Process]:
    size, level = context.size(node.tensor, node.level), context.level(node)
    if level.kept:
        return context.process(_locate_kept, context.fibers(node))
    if level.stored:
        return context.process(_locate, context.fibers(node), [array.kind for array in level.points(size)])
    if len(node.inputs) == 1:  # the outermost level: its only parent is reference 0
        return context.process(elementwise, lambda crd: crd)
    return context.process(elementwise, lambda crd, ref: N if crd is N or ref is N else ref * size + crd)


def load(node: n.Load, context: NodeContext) -> Sequence[Process]:
    return context.process(_load, *loaded_values(node, context), prod(context.declared[node.tensor].tile))


def loaded_values(node: n.Load, context: NodeContext) -> tuple[list[Any], Any]:
    """Return the stored values of a node's tensor, as numbers or tiles, and its implicit value."""
    decl, values = context.declared[node.tensor], context.tensors[node.tensor].values.astype(float)
    values.flags.writeable = False
    return list(values) if decl.tile else values.tolist(), constant_tile(decl.tile, decl.fill)


def alu(node: n.Alu, context: NodeContext) -> Sequence[Process]:
    return context.process(elementwise, alu_function(node, context))


def reference_lookup(p: Process, fibers: Fibers) -> Callable[[int, int], Any]:
    """Return a function from a coordinate and the reference above it to the coordinate's reference, `N` if nothing is stored there."""
    parents = fibers.walk().parents

    def reference(crd: int, ref: int) -> Any:
        if ref < 0 or (parents is not None and ref >= parents):
            raise p.outside()
        below = fibers.locate(ref, crd)
        return N if below is None else below

    return reference


def _locate(p: Process, fibers: Fibers, kinds: Sequence[ArrayKind]) -> Steps:
    """Run a locate in a stored level. Each lookup reads one element of each of the arrays `kinds`."""
    lookups, reference = 0, reference_lookup(p, fibers)

    def at(crd: Any, ref: Any = 0) -> Any:
        nonlocal lookups
        if crd is N or ref is N:
            return N
        lookups += 1
        return reference(crd, ref)

    yield from elementwise(p, at)
    p.elements = dict.fromkeys(kinds, lookups)


def kept_references(fibers: Fibers) -> Callable[[Any], Any]:
    """Return a function from a coordinate of an outermost level to its reference, which is `N` if nothing is stored there."""
    kept = dict(zip(*fibers.fiber(0), strict=True))
    return lambda crd: kept.get(crd, N)


def _locate_kept(p: Process, fibers: Fibers) -> Steps:
    """Run a locate that first keeps the coordinates of an outermost level, one in each firing, and then fires for each token."""
    for _ in range(fibers.entries):
        p.fire(0)
    yield from elementwise(p, kept_references(fibers))
    p.elements = {"crd": fibers.entries}


def _load(p: Process, values: list[Any], fill: Any, words: int) -> Steps:
    absent = 0

    def lookup(ref: Any) -> Any:
        nonlocal absent
        if ref is N:
            absent += 1
            return fill
        if not 0 <= ref < len(values):
            raise p.outside()
        return values[ref]

    yield from elementwise(p, lookup)
    p.elements = {"val": (p.values - absent) * words}


RULES: dict[type[n.Node], Rule] = {**dict.fromkeys(FIRING_RULES, interpret), n.Locate: locate, n.Load: load, n.Alu: alu}
