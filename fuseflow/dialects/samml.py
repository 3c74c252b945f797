"""The `samml` MLIR dialect, declared in Python on IRDL: stream types, attributes, one operation for each primitive.

Streams are typed `!samml.crd<2>`, `!samml.ref<1>`, `!samml.val<3>` (with `: i64` after the depth), so kinds are checked by the
declarations below and depths by `depths`. Operands and results stand in the order of the node's inputs and outputs; `node` is its
name. What MLIR cannot see (tensors, alignment) is checked by `fuseflow.samml.verify`. Needs torch-mlir, not torch.

The annotations are read when the classes are made: this file does not postpone them.
"""

# The base classes are made at run time: mypy sees neither them nor their class arguments.
# mypy: disable-error-code="call-arg,misc,name-defined"

from collections.abc import Sequence
from typing import TypeVar

from torch_mlir import ir
from torch_mlir.dialects.ext import Dialect, Operand, Pure, Region, Result, attribute


class Samml(Dialect, name="samml"):
    pass


# Types ----------------------------------------------------------------------------------------------------------------------


class Crd(Samml.Type, name="crd"):
    depth: ir.IntegerAttr


class Ref(Samml.Type, name="ref"):
    depth: ir.IntegerAttr


class Val(Samml.Type, name="val"):
    depth: ir.IntegerAttr


AnyStream = Crd | Ref | Val
STREAM_TYPES: dict[str, type[ir.DynamicType]] = {"crd": Crd, "ref": Ref, "val": Val}

# The same variable twice in an operation: the two types are equal.
X = TypeVar("X", bound=AnyStream)
R = TypeVar("R", bound=Ref)
V = TypeVar("V", bound=Val)


def depth(value: ir.Value) -> int:
    """The depth of a stream."""
    return int(ir.IntegerAttr(value.type.depth).value)


# Attributes -----------------------------------------------------------------------------------------------------------------


class Tensor(Samml.Attribute, name="tensor"):
    """A declared tensor: levels outermost first, `order` the dimension that each stores; `tile` the shape of its values."""

    tensor: ir.StringAttr
    shape: ir.ArrayAttr
    levels: ir.ArrayAttr
    order: ir.ArrayAttr
    dtype: ir.StringAttr
    fill: ir.FloatAttr
    tile: ir.ArrayAttr


class Slot(Samml.Attribute, name="slot"):
    """An operand slot of an `alu`: the implicit value of the next stream, or a constant."""

    value: ir.FloatAttr
    constant: ir.IntegerAttr


class Edge(Samml.Attribute, name="edge"):
    node: ir.StringAttr
    input: ir.IntegerAttr


class Depth(Samml.Attribute, name="depth"):
    edge: Edge
    depth: ir.IntegerAttr


# Operations -----------------------------------------------------------------------------------------------------------------


class Graph(Samml.Operation, name="graph", traits=[ir.NoTerminatorTrait, ir.IsIsolatedFromAboveTrait]):
    sym_name: ir.StringAttr
    tensors: ir.ArrayAttr
    outputs: ir.ArrayAttr
    fiber_fifos: ir.ArrayAttr
    depths: ir.ArrayAttr
    body: Region


class Primitive(Samml.Operation):
    """Base of the primitives. `expected` gives the depth of every operand and result from that of the first.

    MLIR calls `verify_invariants` before it checks the declarations, so what those refuse is passed over here.
    """

    node: ir.StringAttr

    def expected(self, d: int) -> list[int]:
        """Depths of operands, then of results, where the first stream has depth `d`."""
        return [d] * (len(self.operands) + len(self.results))

    def verify_invariants(self) -> bool:
        streams = [*self.operands, *self.results]
        if not streams or not all(isinstance(stream.type, AnyStream) for stream in streams):
            return True
        depths = self.expected(depth(streams[0]))
        for k, (stream, wanted) in enumerate(zip(streams, depths, strict=False)):
            if depth(stream) != wanted:
                place = f"operand {k}" if k < len(self.operands) else f"result {k - len(self.operands)}"
                return self.refuse(f"{place} is {stream.type}, its depth should be {wanted}")
        return True

    def whole(self, name: str) -> int | None:
        """The value of an integer attribute, None if it is missing or of another kind."""
        found = self.attributes[name] if name in self.attributes else None  # noqa: SIM401 (no `get`)
        return int(found.value) if isinstance(found, ir.IntegerAttr) else None

    def refuse(self, why: str) -> bool:
        self.location.emit_error(f"'{self.OPERATION_NAME}' op {why}")
        return False


class Root(Primitive, name="root", traits=[Pure]):
    ref: Result[Ref]

    def expected(self, d: int) -> list[int]:
        return [0]


class Scan(Primitive, name="scan", traits=[Pure]):
    parent: Operand[Ref]
    crd: Result[Crd]
    ref: Result[Ref]
    tensor: ir.StringAttr = attribute(kw_only=True)
    level: ir.IntegerAttr = attribute(kw_only=True)
    sequential: ir.IntegerAttr = attribute(kw_only=True)

    def expected(self, d: int) -> list[int]:
        return [d, d + 1, d + 1]


class Range(Primitive, name="range", traits=[Pure]):
    parent: Operand[Ref]
    crd: Result[Crd]
    size: ir.IntegerAttr = attribute(kw_only=True)

    def expected(self, d: int) -> list[int]:
        return [d, d + 1]


class Locate(Primitive, name="locate", traits=[Pure]):
    crd: Operand[Crd | Ref]
    parent: Operand[R] | None
    ref: Result[R]
    tensor: ir.StringAttr = attribute(kw_only=True)
    level: ir.IntegerAttr = attribute(kw_only=True)


class Join(Primitive, name="join", traits=[Pure]):
    """Operands: the coordinates of every side, then the references, then the values that the sides carry.

    `payloads` says for each side what it carries, in order: `[["ref"], ["ref", "val"]]`.
    """

    crds: Sequence[Operand[Crd]]
    refs: Sequence[Operand[R]]
    vals: Sequence[Operand[V]]
    crd: Result[Crd]
    out_refs: Sequence[Result[R]]
    out_vals: Sequence[Result[V]]
    kind: ir.StringAttr = attribute(kw_only=True)
    payloads: ir.ArrayAttr = attribute(kw_only=True)

    def verify_invariants(self) -> bool:
        kinds = [stream.type.type_name for stream in self.operands if isinstance(stream.type, AnyStream)]
        sides = self.attributes["payloads"] if "payloads" in self.attributes else None  # noqa: SIM401 (no `get`)
        if not isinstance(sides, ir.ArrayAttr):
            return True
        if not all(isinstance(side, ir.ArrayAttr) and set(map(str, side)) <= {'"ref"', '"val"'} for side in sides):
            return self.refuse('\'payloads\' should be a list of "ref" and "val" for each side')
        carried = [str(payload).strip('"') for side in sides for payload in side]
        wanted = [f"samml.{kind}" for kind in ["crd"] * len(sides) + sorted(carried)]
        if kinds != wanted:
            return self.refuse(f"has operands {kinds}; its payloads ask for {wanted}")
        return super().verify_invariants()


class Align(Primitive, name="align", traits=[Pure]):
    old: Operand[Crd]
    new: Operand[Crd]
    stream: Operand[X]
    out: Result[X]

    def expected(self, d: int) -> list[int]:
        below = max(d + 1, depth(self.operands[2]))
        return [d, d, below, below]


class Repeat(Primitive, name="repeat", traits=[Pure]):
    stream: Operand[AnyStream]
    signal: Operand[AnyStream]
    out: Result[Ref | Val]

    def expected(self, d: int) -> list[int]:
        return [d, d + 1, d + 1]

    def verify_invariants(self) -> bool:
        if isinstance(self.operands[0].type, Val) != isinstance(self.results[0].type, Val):
            return self.refuse(f"repeats {self.operands[0].type} as {self.results[0].type}")
        return super().verify_invariants()


class Load(Primitive, name="load", traits=[Pure]):
    ref: Operand[Ref]
    val: Result[Val]
    tensor: ir.StringAttr = attribute(kw_only=True)
    sequential: ir.IntegerAttr = attribute(kw_only=True)


class Alu(Primitive, name="alu", traits=[Pure]):
    streams: Sequence[Operand[V]]
    val: Result[V]
    function: ir.StringAttr = attribute(kw_only=True)
    slots: ir.ArrayAttr = attribute(kw_only=True)


class Reduce(Primitive, name="reduce", traits=[Pure]):
    stream: Operand[Val]
    val: Result[Val]
    function: ir.StringAttr = attribute(kw_only=True)

    def expected(self, d: int) -> list[int]:
        return [d, d - 1]


class Nested(Primitive):
    """Base of the primitives that take coordinates of several levels, outermost first.

    One operand a level, because all operands of a variadic have one type and these differ in depth.
    """

    crd0: Operand[Crd]
    crd1: Operand[Crd] | None
    crd2: Operand[Crd] | None
    crd3: Operand[Crd] | None
    crd4: Operand[Crd] | None
    crd5: Operand[Crd] | None
    crd6: Operand[Crd] | None
    crd7: Operand[Crd] | None
    out0: Result[Crd]
    out1: Result[Crd] | None
    out2: Result[Crd] | None
    out3: Result[Crd] | None
    out4: Result[Crd] | None
    out5: Result[Crd] | None
    out6: Result[Crd] | None
    out7: Result[Crd] | None


MAX_LEVELS = 8
"""How many levels of coordinates a `Nested` primitive can take."""


class Accumulate(Nested, name="accumulate", traits=[Pure]):
    stream: Operand[Val]
    val: Result[Val]
    function: ir.StringAttr = attribute(kw_only=True)
    order: ir.IntegerAttr = attribute(kw_only=True)

    def expected(self, d: int) -> list[int]:
        order = len(self.operands) - 2
        kept = range(d, d + order)
        return [*kept, d + order, d + order, *kept, d + order - 1]

    def verify_invariants(self) -> bool:
        order = self.whole("order")
        if order is not None and (len(self.operands), len(self.results)) != (order + 2, order + 1):
            return self.refuse(f"has {len(self.operands)} operands and {len(self.results)} results at order {order}")
        return super().verify_invariants()


class Permute(Nested, name="permute", traits=[Pure]):
    stream: Operand[V]
    val: Result[V]
    order: ir.ArrayAttr = attribute(kw_only=True)

    def expected(self, d: int) -> list[int]:
        levels = len(self.operands) - 1
        depths = [*range(d, d + levels), d + levels - 1]
        return [*depths, *depths]

    def verify_invariants(self) -> bool:
        order = self.attributes["order"] if "order" in self.attributes else None  # noqa: SIM401 (no `get`)
        levels = len(order) if isinstance(order, ir.ArrayAttr) else len(self.operands) - 1
        if (len(self.operands), len(self.results)) != (levels + 1, levels + 1):
            return self.refuse(f"has {len(self.operands)} operands and {len(self.results)} results, its order {levels} levels")
        return super().verify_invariants()


class Drop(Nested, name="drop", traits=[Pure]):
    stream: Operand[X]
    out: Result[X]
    value: ir.FloatAttr | ir.UnitAttr = attribute(kw_only=True)

    def expected(self, d: int) -> list[int]:
        levels = len(self.operands) - 1
        depths = [*range(d, d + levels), d + levels - 1]
        return [*depths, *depths]

    def verify_invariants(self) -> bool:
        if len(self.operands) != len(self.results):
            return self.refuse(f"has {len(self.operands)} operands and {len(self.results)} results")
        return super().verify_invariants()


class Flatten(Primitive, name="flatten", traits=[Pure]):
    outer: Operand[Crd]
    inner: Operand[Crd]
    crd: Result[Crd]
    size: ir.IntegerAttr = attribute(kw_only=True)

    def expected(self, d: int) -> list[int]:
        return [d, d + 1, d]


class Split(Primitive, name="split", traits=[Pure]):
    crd: Operand[Crd]
    outer: Result[Crd]
    inner: Result[Crd]
    size: ir.IntegerAttr = attribute(kw_only=True)

    def expected(self, d: int) -> list[int]:
        return [d, d, d + 1]


class Fork(Primitive, name="fork", traits=[Pure]):
    stream: Operand[X]
    outs: Sequence[Result[X]]
    lanes: ir.IntegerAttr = attribute(kw_only=True)

    def verify_invariants(self) -> bool:
        lanes = self.whole("lanes")
        if lanes is not None and len(self.results) != lanes:
            return self.refuse(f"has {len(self.results)} results for {lanes} lanes")
        return super().verify_invariants()


class Merge(Primitive, name="merge", traits=[Pure]):
    lanes: Sequence[Operand[X]]
    out: Result[X]
    levels: ir.IntegerAttr = attribute(kw_only=True)


class WriteLevel(Primitive, name="write"):
    crd: Operand[Crd]
    tensor: ir.StringAttr = attribute(kw_only=True)
    level: ir.IntegerAttr = attribute(kw_only=True)

    def expected(self, d: int) -> list[int]:
        level = self.whole("level")
        return [] if level is None else [level + 1]


class WriteValues(Primitive, name="write_values"):
    val: Operand[Val]
    tensor: ir.StringAttr = attribute(kw_only=True)
