"""Writing of a scheduled program as a Linalg module, which `named_reader` reads again.

A fused region is a function that the main one calls, and operations in the main function are regions of single Einsums. An Einsum
is a `linalg.generic` with a name, whose loops run in the order of the Einsum. Each reduction inside of its right side is one
without a name before it: no tensor is stored there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count

import networkx as nx

from fuseflow.einsum.format_inference import infer
from fuseflow.einsum.nodes import (
    Access,
    Affine,
    Const,
    Einsum,
    Expr,
    Index,
    Program,
    Reduce,
    TensorType,
    children,
    free_indices,
    index_names,
    walk,
)
from fuseflow.einsum.text import show_einsum
from fuseflow.einsum.verify import extents
from fuseflow.errors import FrontendError
from fuseflow.frontend.linalg import module_io as names
from fuseflow.frontend.linalg.roundtrip_reader import read_module
from fuseflow.frontend.linalg.scalars import COMBINERS
from fuseflow.frontend.linalg.sparse_encodings import has_encoding, is_encodable, to_encoding
from fuseflow.frontend.linalg.text import (
    UNSIGNED,
    ScalarBody,
    affine_map,
    computed_in,
    converted,
    element_type,
    float_attribute,
    parenthesized,
    quoted,
    quoted_list,
    symbol_name,
    tensor_type,
)
from fuseflow.ops import REDUCERS
from fuseflow.tensors import DTYPES, Format

_VALUE_NAME = re.compile(r"[A-Za-z_][\w.]*", re.ASCII)
_ENCODING = re.compile(r"#sparse_tensor\.encoding<{[^{}]*}>")


def write_program(program: Program) -> str:
    """Return a program as the text of a Linalg module, which reads as the same program. Einsums say their region (`Location.region`; '' is
    one of the name of the Einsum) and their loops (`order`), and the program the loops of regions (`region_orders`).

    Raise `FrontendError`, with its place, for an Einsum that has no form in Linalg.
    """
    grouped = _in_regions(program)
    text = _module(grouped, infer(grouped))
    _refuse_difference(grouped, read_module(names.parse_own_module(text), ""))
    return text


def _in_regions(program: Program) -> Program:
    """Return the program with the Einsums of each region one after the other, and the regions in an order in which they can run."""
    einsums = program.einsums
    home = {e.name: _region_of(e) for e in einsums}
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_nodes_from(home.values())
    graph.add_edges_from(
        (home[t], home[e.name]) for e in einsums for t in e.operands if home.get(t, home[e.name]) != home[e.name]
    )
    if not nx.is_directed_acyclic_graph(graph):
        raise FrontendError("regions that need each other cannot be functions", hint="fuse other Einsums")
    first = {region: n for n, region in reversed(list(enumerate(home.values())))}
    place = {region: n for n, region in enumerate(nx.lexicographical_topological_sort(graph, key=first.__getitem__))}
    return replace(program, einsums=tuple(sorted(einsums, key=lambda e: place[home[e.name]])))


def _region_of(einsum: Einsum) -> str:
    return einsum.location.region or einsum.name


def _refuse_difference(program: Program, read: Program) -> None:
    """Raise `FrontendError` unless the written text reads as the same program: some right sides become others in Linalg."""
    for einsum in program.einsums:
        again = read.defined.get(einsum.name)
        if again != einsum or (again.order, _region_of(again)) != (einsum.order, _region_of(einsum)):
            meant = "nothing" if again is None else f"`{show_einsum(again)}`"
            problem = f"`{show_einsum(einsum)}` has no form in Linalg: it would read as {meant}"
            raise FrontendError(problem, hint="write it in several statements", span=einsum.location.span)
    if infer(read).declared != infer(program).declared or read.outputs != program.outputs:
        hint = "`--emit einsum-mlir` has one for every program"
        raise FrontendError("the types of the program have no form in Linalg", hint=hint)


@dataclass(frozen=True, slots=True)
class _Value:
    """A tensor as a value of MLIR: its name and type there, its element type, and the attributes that say what neither of them says."""

    ssa: str
    type: str
    dtype: str
    attributes: tuple[str, ...]


def _module(program: Program, typed: Program) -> str:
    """Return a program as a module. `typed` is the program with all types."""
    regions: dict[str, list[Einsum]] = {}
    for einsum in program.einsums:
        regions.setdefault(_region_of(einsum), []).append(einsum)
    values = {t.name: _value(program, n, t) for n, t in enumerate(typed.tensors)}
    aliases = _aliases(typed, values)
    values = {n: replace(v, type=_ENCODING.sub(lambda found: aliases[found[0]], v.type)) for n, v in values.items()}
    main, functions = _Function(typed, values), list[str]()
    for region, einsums in regions.items():
        if len(einsums) == 1 and region == einsums[0].name and region not in dict(program.region_orders):
            main.state(einsums[0])
            continue
        if region == names.MAIN:
            hint = "call it otherwise"
            raise FrontendError(f"a region is called `{region}`, as the function of the whole program is", hint=hint)
        inside = {e.name for e in einsums}
        read = tuple(dict.fromkeys(t for e in einsums for t in e.operands if t not in inside))
        wanted = {*program.outputs, *(t for e in program.einsums if e.name not in inside for t in e.operands)}
        results = tuple(e.name for e in einsums if e.name in wanted)
        main.call(region, read, results)
        function = _Function(typed, values)
        for einsum in einsums:
            function.state(einsum)
        order = dict(program.region_orders).get(region, ())
        attributes = (f"{names.ORDER} = {quoted_list(order)}",) if order else ()
        functions.append(function.text(f"private {symbol_name(region)}", read, results, attributes))
    inputs = tuple(t.name for t in program.inputs)
    text = main.text(f"@{names.MAIN}", inputs, program.outputs, named=True)
    head = "".join(f"{alias} = {encoding}\n" for encoding, alias in aliases.items())
    return f"{head}module attributes {{{names.PROGRAM} = {quoted(program.name)}}} {{\n{text}{''.join(functions)}}}\n"


def _value(program: Program, number: int, type: TensorType) -> _Value:
    """Return a tensor as a value. The format of a result that the user has not declared is left to inference again."""
    computed, declared = type.name in program.defined, program.declared.get(type.name)
    format, block = (type.format, type.block) if not computed else (declared.format, declared.block) if declared else (None, ())
    merged = computed and program.defined[type.name].indices != index_names(program.defined[type.name].indices)
    is_sparse = format is not None and not merged and (bool(block) or format != Format.dense(format.rank))
    is_encoded = is_sparse and is_encodable(element_type(type.dtype), block)
    attributes = [f"{names.NAME_ATTRIBUTE} = {quoted(type.name)}"]
    if declared is not None and computed and format is None:
        attributes.append(names.DECLARED)
    if format is not None and (not has_encoding(format) or is_sparse != is_encoded or (computed and not is_encoded)):
        attributes.append(f"{names.FORMAT_ATTRIBUTE} = {quoted(str(format))}")
    if type.dtype in UNSIGNED:
        attributes.append(f"{names.DTYPE_ATTRIBUTE} = {quoted(type.dtype)}")
    if type.fill != 0 and (declared is not None or not computed):
        attributes.append(f"{names.FILL} = {float_attribute(type.fill, 'f64')}")
    ssa = f"%{type.name}" if _VALUE_NAME.fullmatch(type.name) else f"%v${number}"
    encoding = f", {to_encoding(format, block)}" if is_encoded and format is not None else ""
    return _Value(ssa, tensor_type(type.shape, type.dtype, encoding), type.dtype, tuple(attributes))


def _aliases(typed: Program, values: Mapping[str, _Value]) -> dict[str, str]:
    """Return a short name for each encoding: the name of its format, if it has one."""
    aliases = dict[str, str]()
    for name, value in values.items():
        format = typed.declared[name].format
        for encoding in _ENCODING.findall(value.type):
            short = format.short() if format is not None and not typed.declared[name].block else ""
            base = f"#{short}" if re.fullmatch("[a-z]+", short) else "#format"
            free = (base if n == 1 else f"{base}{n}" for n in count(1))
            if encoding not in aliases:
                aliases[encoding] = next(alias for alias in free if alias not in aliases.values())
    return aliases


@dataclass(slots=True)
class _Function:
    """A function whose lines are being written. `count` numbers its values that have no name, and `depth` says in how many operations the
    next line stands."""

    typed: Program
    values: Mapping[str, _Value]
    lines: list[str] = field(default_factory=list)
    count: int = 0
    depth: int = 0

    def text(
        self, symbol: str, read: Sequence[str], results: Sequence[str], attributes: Sequence[str] = (), named: bool = False
    ) -> str:
        arguments = [
            f"{v.ssa}: {v.type}" + (f" {{{', '.join(v.attributes)}}}" if named else "")
            for v in map(self.values.__getitem__, read)
        ]
        returned = [self.values[t] for t in results]
        suffix = f" attributes {{{', '.join(attributes)}}}" if attributes else ""
        types = ", ".join(v.type for v in returned)
        head = f"  func.func {symbol}({', '.join(arguments)}) -> {parenthesized([v.type for v in returned])}{suffix} {{\n"
        end = f"    return {', '.join(v.ssa for v in returned)} : {types}\n  }}\n" if returned else "    return\n  }\n"
        return head + "".join(f"    {line}\n" for line in self.lines) + end

    def call(self, region: str, read: Sequence[str], results: Sequence[str]) -> None:
        operands, returned = [self.values[t] for t in read], [self.values[t] for t in results]
        types = f"({', '.join(v.type for v in operands)}) -> {parenthesized([v.type for v in returned])}"
        called = f"call {symbol_name(region)}({', '.join(v.ssa for v in operands)})"
        self.line(f"{', '.join(v.ssa for v in returned)}{' = ' if returned else ''}{called} : {types}")

    def line(self, text: str) -> None:
        self.lines.append("  " * self.depth + text)

    def fresh(self) -> str:
        self.count += 1
        return f"%{self.count - 1}"

    def new(self, text: str) -> str:
        """Write an operation with a new value, and return the value."""
        value = self.fresh()
        self.line(f"{value} = {text}")
        return value

    def state(self, einsum: Einsum) -> None:
        """Write an Einsum. Raise `FrontendError` with its place if it has no form in Linalg."""
        try:
            _Statement(self, einsum, extents(self.typed)[einsum.name]).write()
        except FrontendError as error:
            message = f"`{einsum.name}` has no form in Linalg: {error.message}"
            raise FrontendError(message, hint=error.hint, span=einsum.location.span) from None


@dataclass(frozen=True, slots=True)
class _Operand:
    """An operand of a generic: a value of MLIR at an index along each dimension. `expr` is its element in the program."""

    expr: Expr
    value: _Value
    indices: tuple[Index, ...]


@dataclass(slots=True)
class _Statement:
    """The operations of one Einsum. `sizes` are the extents of its indices."""

    function: _Function
    einsum: Einsum
    sizes: Mapping[str, int]

    def write(self) -> None:
        einsum, value = self.einsum, self.function.values[self.einsum.name]
        free = index_names(einsum.indices)
        heads = [*value.attributes, *([f"{names.PATH} = {quoted(einsum.location.path)}"] if einsum.location.path else [])]
        if not einsum.order:
            heads.append(names.UNORDERED)
        if free == einsum.indices:
            self._generic(einsum.body, free, value, heads)
            return
        inner = self._unnamed(free, value.dtype)
        self._generic(einsum.body, free, inner, [])
        places = count()
        groups = [str([next(places) for _ in index_names((index,))]) for index in einsum.indices]
        heads.append(f"{names.INDICES} = {quoted_list(free)}")
        if einsum.order:
            heads.append(f"{names.ORDER} = {quoted_list(einsum.order)}")
        collapse = f"tensor.collapse_shape {inner.ssa} [{', '.join(groups)}] {{{', '.join(heads)}}}"
        self.function.line(f"{value.ssa} = {collapse} : {inner.type} into {value.type}")

    def _unnamed(self, indices: Sequence[str], dtype: str) -> _Value:
        shape = tuple(self.sizes[v] for v in indices)
        return _Value(self.function.fresh(), tensor_type(shape, dtype), dtype, ())

    def _generic(self, expr: Expr, free: tuple[str, ...], result: _Value, heads: Sequence[str]) -> None:
        """Write a generic with the value of an expression at its free indices. `heads` are the attributes of an Einsum."""
        folded = expr if isinstance(expr, Reduce) else None
        right = expr if folded is None else folded.body
        operands = [
            self._part(leaf) if isinstance(leaf, Reduce) else self._tensor(leaf) for leaf in dict.fromkeys(_leaves(right))
        ]
        dtype = computed_in(right, [o.value.dtype for o in operands], result.dtype)
        if folded is not None and dtype != result.dtype:  # it is rounded once, when all is summed up
            operands, folded = [self._part(folded)], None
            dtype = operands[0].value.dtype
        loops = self._loops((*free, *(folded.over if folded else ())))
        plain = {i for operand in operands for i in operand.indices}
        unseen = tuple(v for v in loops if v not in plain and v not in free)
        if unseen:  # a loop has its extent from an operand that has it as a dimension
            shape = self._unnamed(unseen, "f32")
            self.function.line(f"{shape.ssa} = tensor.empty() : {shape.type}")
            operands.append(_Operand(Const(0.0), shape, unseen))
        start = self.function.new(f"tensor.empty() : {result.type}")
        if folded is not None:
            identity = self.function.new(f"arith.constant {float_attribute(REDUCERS[folded.op].identity, result.dtype)}")
            filled = f"ins({identity} : {element_type(result.dtype)}) outs({start} : {result.type})"
            start = self.function.new(f"linalg.fill {filled} -> {result.type}")
        maps = [affine_map(loops, indices) for indices in (*(o.indices for o in operands), free)]
        kinds = ", ".join('"parallel"' if v in free else '"reduction"' for v in loops)
        read = (
            f" ins({', '.join(o.value.ssa for o in operands)} : {', '.join(o.value.type for o in operands)})" if operands else ""
        )
        attributes = [*heads, f"{names.INDICES} = {quoted_list(loops)}"]
        if heads and self.einsum.order not in ((), loops):
            attributes.append(f"{names.ORDER} = {quoted_list(self.einsum.order)}")
        if folded is not None and folded.over != tuple(v for v in loops if v in folded.over):
            attributes.append(f"{names.OVER} = {quoted_list(folded.over)}")
        self.function.line(f"{result.ssa} = linalg.generic {{indexing_maps = [{', '.join(maps)}], iterator_types = [{kinds}]}}")
        self.function.line(f"   {read} outs({start} : {result.type})")
        self.function.line(f"    attrs = {{{', '.join(attributes)}}} {{")
        arguments = [self.function.fresh() for _ in (*operands, result)]
        types = [*(o.value.dtype for o in operands), result.dtype]
        self.function.line("^bb0(" + ", ".join(f"{a}: {element_type(t)}" for a, t in zip(arguments, types, strict=True)) + "):")
        self.function.depth += 1
        elements = {o.expr: (a, o.value.dtype) for o, a in zip(operands, arguments, strict=False) if o.expr != Const(0.0)}
        body = ScalarBody(self.function.new, elements, dtype)
        if folded is None:
            yielded = converted(self.function.new, body.value(expr), dtype, result.dtype)
        else:
            yielded = body.operation(COMBINERS[folded.op], (arguments[-1], body.value(folded.body)))
        self.function.line(f"linalg.yield {yielded} : {element_type(result.dtype)}")
        self.function.depth -= 1
        self.function.line(f"}} -> {result.type}")

    def _loops(self, indices: tuple[str, ...]) -> tuple[str, ...]:
        order = self.einsum.order
        return tuple(sorted(indices, key=order.index)) if set(indices) <= set(order) else indices

    def _part(self, node: Reduce) -> _Operand:
        """Write a reduction inside of the right side, and return it as an operand."""
        free = free_indices(node)
        dtypes = [self.function.values[a.tensor].dtype for a in walk(node) if isinstance(a, Access)]
        part = self._unnamed(free, computed_in(node, dtypes, "f32"))
        self._generic(node, free, part, [])
        return _Operand(node, part, free)

    def _tensor(self, access: Access) -> _Operand:
        """Return an access as an operand. A tensor that is read outside of its dimensions has zeros around it."""
        value, shape = self.function.values[access.tensor], self.function.typed.declared[access.tensor].shape
        bounds = [self._bounds(index, size) for index, size in zip(access.indices, shape, strict=True)]
        if not any(low or high for low, high in bounds):
            return _Operand(access, value, access.indices)
        is_integer = DTYPES[value.dtype].is_integer
        number = f"0 : {element_type(value.dtype)}" if is_integer else float_attribute(0.0, value.dtype)
        zero = self.function.new(f"arith.constant {number}")
        wide = tuple(low + size + high for (low, high), size in zip(bounds, shape, strict=True))
        padded = _Value(self.function.fresh(), tensor_type(wide, value.dtype), value.dtype, ())
        sides = (f"{word}[{', '.join(str(b[n]) for b in bounds)}]" for n, word in enumerate(("low", "high")))
        self.function.line(f"{padded.ssa} = tensor.pad {value.ssa} {' '.join(sides)} {{")
        self.function.line("^bb0(" + ", ".join(f"{self.function.fresh()}: index" for _ in shape) + "):")
        self.function.line(f"  tensor.yield {zero} : {element_type(value.dtype)}")
        self.function.line(f"}} : {value.type} to {padded.type}")
        moved = tuple(
            replace(i, offset=i.offset + low) if isinstance(i, Affine) else i
            for i, (low, _) in zip(access.indices, bounds, strict=True)
        )
        return _Operand(access, padded, moved)

    def _bounds(self, index: Index, size: int) -> tuple[int, int]:
        """Return the number of coordinates by which an index runs below a dimension of this size, and beyond it."""
        if not isinstance(index, Affine):
            return 0, 0
        ends = [factor * (self.sizes[name] - 1) for name, factor in index.terms]
        low = max(0, -index.offset - sum(end for end in ends if end < 0))
        high = max(0, index.offset + sum(end for end in ends if end > 0) - size + 1)
        is_plain = [factor for _, factor in index.terms] == [1] and index.offset + low == 0
        return low + is_plain, high  # a plain index would have to run along the whole dimension


def _leaves(expr: Expr) -> Iterator[Access | Reduce]:
    """Yield the accesses and reductions in an expression, reductions as a whole."""
    if isinstance(expr, Access | Reduce):
        yield expr
    else:
        for child in children(expr):
            yield from _leaves(child)
