"""The rules of well-formedness, one for each primitive. `verify` applies them in graph order.

A rule gets the streams that a node reads, refuses what the stream contract does not allow, and returns what it knows of the
streams that the node makes. A new primitive needs a new rule.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn, TypeAlias

from fuseflow.errors import did_you_mean
from fuseflow.ops import REDUCERS
from fuseflow.samml import nodes as n
from fuseflow.samml.coordinate_bounds import UNBOUNDED, output_bounds
from fuseflow.samml.lane_writers import LaneWriter
from fuseflow.samml.rule_context import ROOT, InputFacts, OutputFacts, RuleContext, show_count
from fuseflow.selection import MAX_GROUP
from fuseflow.tensors.levels import names
from fuseflow.tile_ops import ALU_FUNCTIONS, TILE_OPERATORS, result_shape


def _root(c: RuleContext, node: n.Root, inputs: InputFacts) -> list[OutputFacts]:
    c.kinds(node, inputs)
    return [OutputFacts(c.shapes.single, position=ROOT)]


def _scan(c: RuleContext, node: n.Scan, inputs: InputFacts) -> list[OutputFacts]:
    c.kinds(node, inputs)
    tensor = c.level(node, node.tensor, node.level)
    c.indexes(node, inputs, 0, node.tensor, node.level)
    c.access(node)
    (ref,) = inputs
    level = tensor.format.levels[node.level]
    if not level.ordered:
        c.refuse(node, f"the coordinates of level {node.level} of `{node.tensor}` ({level.text}) do not ascend")
    if level.full and not ref.nullable:
        shape = c.shapes.full(ref.shape, tensor.shape[tensor.format.order[node.level]])
    else:
        shape = c.shapes.below(ref.shape, "scan", node.tensor, node.level, node.inputs[0])
    return [OutputFacts(shape), OutputFacts(shape, position=c.position(node.tensor, node.level + 1))]


def _range(c: RuleContext, node: n.Range, inputs: InputFacts) -> list[OutputFacts]:
    c.kinds(node, inputs)
    if node.size < 0:
        c.refuse(node, f"the size is {node.size}")
    return [OutputFacts(c.shapes.full(inputs[0].shape, node.size))]


def _locate(c: RuleContext, node: n.Locate, inputs: InputFacts) -> list[OutputFacts]:
    c.kinds(node, inputs)
    tensor = c.level(node, node.tensor, node.level)
    level = tensor.format.levels[node.level]
    if not level.located and not (level.kept and node.level == 0):
        able, kept = names(lambda level: level.located), names(lambda level: level.kept)
        hint = f"{able} levels are located, and {kept} ones if they are outermost"
        c.refuse(node, f"level {node.level} of `{node.tensor}` is {level.text}", hint=hint)
    if level.kept and len(inputs) == 2:
        c.refuse(node, f"level {node.level} of `{node.tensor}` is {level.text}", hint="it is located by coordinates alone")
    if inputs[0].position is not None:
        c.refuse(node, f"{c.stream(node, 0)} holds references; this node takes coordinates there")
    if len(inputs) == 1 and node.level > 0:
        c.refuse(node, f"level {node.level} needs the references of level {node.level - 1} as its second input")
    if len(inputs) == 2:
        c.indexes(node, inputs, 1, node.tensor, node.level)
        c.aligned(node, inputs, 0, 1)
    c.inside(node, inputs, 0, tensor.shape[tensor.format.order[node.level]], f"the size of level {node.level} of `{node.tensor}`")
    absent = not level.full or any(x.nullable for x in inputs)
    return [OutputFacts(inputs[0].shape, absent, c.position(node.tensor, node.level + 1))]


def _join(c: RuleContext, node: n.Join, inputs: InputFacts) -> list[OutputFacts]:
    if node.kind not in ("intersect", "union", "left"):
        c.refuse(node, f"unknown kind `{node.kind}`", hint=did_you_mean(node.kind, ("intersect", "union", "left")))
    if not node.payloads or min(node.payloads) < 0:
        c.refuse(node, f"the payload counts are {node.payloads}: one number for each side, at least one side")
    c.kinds(node, inputs)
    above = c.deep(node, inputs, 0)
    for crd, payloads in node.sides():
        c.aligned(node, inputs, crd, *payloads)
        if inputs[crd].shape.parent is not above:
            c.refuse(node, f"{c.stream(node, crd)} does not hang below the same stream as {c.stream(node, 0)}")
    sides = [inputs[crd] for crd, _ in node.sides()]
    result = c.shapes.joined(node.kind, [side.shape for side in sides], [side.bound for side in sides])
    bound = output_bounds(node, [x.bound for x in inputs], c.tensors)[0]
    outputs = [OutputFacts(result)]
    for s, (crd, payloads) in enumerate(node.sides()):
        probed = node.kind == "union" or (node.kind == "left" and s > 0)
        complete = inputs[crd].shape is result or (inputs[crd].shape.full and inputs[crd].bound >= bound)
        hidden = probed and not complete
        outputs += [OutputFacts(result, inputs[p].nullable or hidden, inputs[p].position) for p in payloads]
    return outputs


def _align(c: RuleContext, node: n.Align, inputs: InputFacts) -> list[OutputFacts]:
    c.kinds(node, inputs)
    old, new, x = inputs
    if c.deep(node, inputs, 0) is not new.shape.parent:
        c.refuse(node, f"{c.stream(node, 1)} does not hang below the same stream as {c.stream(node, 0)}")
    c.deep(node, inputs, 2, old.type.depth + 1)
    if x.shape.ancestor(x.type.depth - old.type.depth) is not old.shape:
        c.refuse(node, f"{c.stream(node, 2)} does not hang below {c.stream(node, 0)}")
    return [OutputFacts(c.shapes.aligned(x.shape, old.shape, new.shape), x.nullable, x.position)]


def _repeat(c: RuleContext, node: n.Repeat, inputs: InputFacts) -> list[OutputFacts]:
    c.kinds(node, inputs)
    c.nested(node, inputs, 0, 1)
    return [OutputFacts(inputs[1].shape, inputs[0].nullable, inputs[0].position)]


def _load(c: RuleContext, node: n.Load, inputs: InputFacts) -> list[OutputFacts]:
    c.kinds(node, inputs)
    tensor = c.declared(node, node.tensor, written=False)
    c.indexes(node, inputs, 0, node.tensor, tensor.format.rank)
    c.access(node)
    return [OutputFacts(inputs[0].shape)]


def _alu(c: RuleContext, node: n.Alu, inputs: InputFacts) -> list[OutputFacts]:
    c.function(node, node.function, ALU_FUNCTIONS)
    arity = ALU_FUNCTIONS[node.function].arity
    if len(node.operands) != arity:
        c.refuse(node, f"`{node.function}` takes {show_count(arity, 'operand')}, not {len(node.operands)}")
    streams = sum(not slot.constant for slot in node.operands)
    if streams == 0:
        c.refuse(node, "all operands are constants", hint="use the value that they give")
    c.kinds(node, inputs)
    c.aligned(node, inputs, *range(streams))
    if result_shape(node.function, [x.type.tile for x in inputs]) is None:
        _refuse_tiles(c, node, inputs)
    return [OutputFacts(inputs[0].shape)]


def _refuse_tiles(c: RuleContext, node: n.Alu, inputs: InputFacts) -> NoReturn:
    row = TILE_OPERATORS.get(node.function)
    takes = row.operands if row else "tiles of one shape, rows and columns of it, and scalars"
    c.refuse(node, f"`{node.function}` takes {takes}, not {' and '.join(str(x.type) for x in inputs)}")


def _reduce(c: RuleContext, node: n.Reduce, inputs: InputFacts) -> list[OutputFacts]:
    c.kinds(node, inputs)
    c.function(node, node.function, REDUCERS)
    c.solid(node, inputs, 0)
    return [OutputFacts(c.deep(node, inputs, 0))]


def _accumulate(c: RuleContext, node: n.Accumulate, inputs: InputFacts) -> list[OutputFacts]:
    if node.order < 1:
        c.refuse(node, f"the order is {node.order}", hint="a reduction that keeps no inner loop is a `reduce`")
    c.kinds(node, inputs)
    c.function(node, node.function, REDUCERS)
    above = c.deep(node, inputs, 0)
    _chain(c, node, inputs)
    c.solid(node, inputs, node.order + 1)
    levels = c.shapes.chain(above, node.order, "accumulate", inputs[node.order].shape)
    return [OutputFacts(shape) for shape in (*levels, levels[-1])]


def _permute(c: RuleContext, node: n.Permute, inputs: InputFacts) -> list[OutputFacts]:
    m = len(node.order)
    if m < 2 or sorted(node.order) != list(range(m)):
        c.refuse(
            node,
            f"the order is {','.join(map(str, node.order)) or 'empty'}",
            hint="it names every level of the input once, two levels or more: `order=1,0` exchanges two",
        )
    c.kinds(node, inputs)
    above = c.deep(node, inputs, 0)
    _chain(c, node, inputs)
    c.solid(node, inputs, m)
    levels = c.shapes.chain(above, m, "permute", inputs[m - 1].shape, node.order)
    return [OutputFacts(shape) for shape in (*levels, levels[-1])]


def _drop(c: RuleContext, node: n.Drop, inputs: InputFacts) -> list[OutputFacts]:
    if len(inputs) < 2:
        c.refuse(node, f"takes at least 2 inputs (crd, ..., val), not {len(inputs)}")
    c.kinds(node, inputs)
    if node.value is not None and inputs[-1].type.tile:
        c.refuse(node, f"{c.stream(node, len(inputs) - 1)} is {inputs[-1].type}; tiles are not dropped by value")
    above = c.deep(node, inputs, 0)
    _chain(c, node, inputs)
    kept = None if node.value is not None or inputs[-1].nullable else inputs[-1].shape
    levels = c.shapes.dropped(above, len(inputs) - 1, node.name, kept)
    return [*map(OutputFacts, levels), OutputFacts(levels[-1], position=inputs[-1].position)]


def _select(c: RuleContext, node: n.Select, inputs: InputFacts) -> list[OutputFacts]:
    if node.keep < 1:
        c.refuse(node, f"it keeps {node.keep} entries", hint="`keep` is 1 or more; a result without entries needs no node")
    if not 0 <= node.every <= MAX_GROUP:
        hint = f"a group has 1 to {MAX_GROUP} coordinates; `every=0` keeps the largest entries of whole fibers"
        c.refuse(node, f"its groups have {node.every} coordinates", hint=hint)
    if node.every and node.keep > node.every:
        c.refuse(node, f"it keeps {node.keep} of every {node.every} coordinates", hint="leave it out: that keeps all of them")
    if node.levels < 1:
        c.refuse(
            node,
            f"it selects among {show_count(node.levels, 'level')}",
            hint="`levels=1` selects among the entries of each fiber",
        )
    if node.levels > 1 and node.every:
        hint = "keep of every so many coordinates of one level (`levels=1`), or of all entries (`every=0`)"
        c.refuse(node, f"it selects among {node.levels} levels in groups of {node.every} coordinates", hint=hint)
    c.kinds(node, inputs)
    if inputs[-1].type.tile:
        hint = "select before the values are put into blocks"
        c.refuse(node, f"{c.stream(node, node.levels)} is {inputs[-1].type}; magnitudes are those of scalars", hint=hint)
    above = c.deep(node, inputs, 0)
    _chain(c, node, inputs)
    c.solid(node, inputs, node.levels)
    levels = c.shapes.chain(above, node.levels, "select", node.name)
    return [OutputFacts(shape) for shape in (*levels, levels[-1])]


def _chain(c: RuleContext, node: n.Node, inputs: InputFacts) -> None:
    """Refuse coordinates (outermost first) that are not below each other, and a last input not aligned with the innermost."""
    last = len(inputs) - 1
    for k in range(1, last):
        c.nested(node, inputs, k - 1, k)
    c.aligned(node, inputs, last - 1, last)


def _flatten(c: RuleContext, node: n.Flatten, inputs: InputFacts) -> list[OutputFacts]:
    c.kinds(node, inputs)
    _sized(c, node, node.size)
    above = c.deep(node, inputs, 0)
    c.nested(node, inputs, 0, 1)
    c.inside(node, inputs, 1, node.size, "its size")
    if output_bounds(node, [x.bound for x in inputs], c.tensors)[0] > UNBOUNDED:
        c.refuse(node, f"{c.stream(node, 0)} holds coordinates below {inputs[0].bound}: {node.size} times that are too many")
    return [OutputFacts(c.shapes.below(above, "flatten", inputs[1].shape, node.size))]


def _split(c: RuleContext, node: n.SplitLevel, inputs: InputFacts) -> list[OutputFacts]:
    c.kinds(node, inputs)
    _sized(c, node, node.size)
    levels = c.shapes.chain(c.deep(node, inputs, 0), 2, "split", inputs[0].shape, node.size)
    return [*map(OutputFacts, levels)]


def _sized(c: RuleContext, node: n.Node, size: int) -> None:
    if size < 1:
        c.refuse(node, f"the size is {size}")


def _fork(c: RuleContext, node: n.Fork, inputs: InputFacts) -> list[OutputFacts]:
    c.kinds(node, inputs)
    if node.lanes < 1:
        c.refuse(node, f"the number of lanes is {node.lanes}")
    c.deep(node, inputs, 0)
    (x,) = inputs
    return [OutputFacts(c.shapes.lane(x.shape, node.lanes, k), x.nullable, x.position) for k in range(node.lanes)]


def _merge(c: RuleContext, node: n.Merge, inputs: InputFacts) -> list[OutputFacts]:
    if not inputs:
        c.refuse(node, "takes at least 1 input (a lane), not 0")
    if node.levels < 0:
        c.refuse(node, f"the number of levels is {node.levels}")
    first = inputs[0]
    for k, lane in enumerate(inputs):
        if lane.type != first.type:
            c.refuse(node, f"{c.stream(node, k)} is {lane.type}, {c.stream(node, 0)} is {first.type}")
        if lane.position != first.position:
            c.refuse(node, f"{c.stream(node, k)} holds references into something else than {c.stream(node, 0)}")
    shape = c.shapes.merged([lane.shape for lane in inputs], node.levels)
    if shape is None:
        where = f", {show_count(node.levels, 'level')} below it" if node.levels else ""
        c.refuse(
            node,
            f"its inputs are not provably the lanes of one fork{where}",
            hint="give it all lanes in their order; where a lane loses coordinates, it is no longer what the fork dealt",
        )
    return [OutputFacts(shape, any(lane.nullable for lane in inputs), first.position)]


def _write(c: RuleContext, node: n.WriteLevel, inputs: InputFacts) -> list[OutputFacts]:
    c.kinds(node, inputs)
    tensor = c.level(node, node.tensor, node.level, written=True)
    level = tensor.format.levels[node.level]
    if not level.written:
        able = names(lambda level: level.written)
        c.refuse(node, f"level {node.level} of `{node.tensor}` is {level.text}", hint=f"{able} levels are written")
    if level.pads and node.level < tensor.format.rank - 1:
        hint = f"store that level innermost, or store level {node.level} compressed"
        c.refuse(node, f"level {node.level} of `{node.tensor}` is {level.text} and has a level below it", hint=hint)
    _reaches(c, node, inputs, node.level + 1)
    return []


def _write_values(c: RuleContext, node: n.WriteValues, inputs: InputFacts) -> list[OutputFacts]:
    c.kinds(node, inputs)
    tensor = c.declared(node, node.tensor, written=True)
    _reaches(c, node, inputs, tensor.format.rank)
    if inputs[0].type.tile != tensor.tile:
        wanted = f"tiles of {n.show_tile(tensor.tile)}" if tensor.tile else "scalars"
        c.refuse(node, f"{c.stream(node, 0)} is {inputs[0].type}; the values of `{node.tensor}` are {wanted}")
    c.solid(node, inputs, 0)
    return []


def _write_lane(c: RuleContext, node: LaneWriter, inputs: InputFacts) -> list[OutputFacts]:
    outputs = _write(c, node, inputs) if isinstance(node, n.WriteLaneLevel) else _write_values(c, node, inputs)
    tensor = c.tensors[node.tensor]
    if any(level.text != "dense" for level in tensor.format.levels):
        hint = "merge the lanes, and write them once"
        c.refuse(node, f"writes what a lane has of `{node.tensor}`, which is {tensor.format}, not dense", hint=hint)
    if not 0 <= node.lane < node.lanes:
        c.refuse(node, f"writes lane {node.lane} of {node.lanes}")
    if not 0 <= node.levels < inputs[0].type.depth:
        above = show_count(node.levels, "level")
        c.refuse(node, f"its coordinates were dealt {above} above those of {c.stream(node, 0)}, which has no such level")
    return outputs


def _reaches(c: RuleContext, node: n.Node, inputs: InputFacts, depth: int) -> None:
    if inputs[0].type.depth != depth:
        c.refuse(node, f"{c.stream(node, 0)} is {inputs[0].type}; this node takes depth {depth} there")


Rule: TypeAlias = Callable[[RuleContext, Any, InputFacts], list[OutputFacts]]

RULES: dict[type[n.Node], Rule] = {
    n.Root: _root,
    n.Scan: _scan,
    n.Range: _range,
    n.Locate: _locate,
    n.Join: _join,
    n.Align: _align,
    n.Repeat: _repeat,
    n.Load: _load,
    n.Alu: _alu,
    n.Reduce: _reduce,
    n.Accumulate: _accumulate,
    n.Permute: _permute,
    n.Drop: _drop,
    n.Select: _select,
    n.Flatten: _flatten,
    n.SplitLevel: _split,
    n.Fork: _fork,
    n.Merge: _merge,
    n.WriteLevel: _write,
    n.WriteValues: _write_values,
    n.WriteLaneLevel: _write_lane,
    n.WriteLaneValues: _write_lane,
}
