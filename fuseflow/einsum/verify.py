"""The rules for an Einsum program, and the sizes that follow from it: `verify`, `shapes`, `extents`."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final, NoReturn, TypeAlias, assert_never

from fuseflow.einsum.nodes import (
    Access,
    Affine,
    Apply,
    Const,
    Einsum,
    Expr,
    Index,
    Keep,
    Program,
    Reduce,
    Split,
    TensorType,
    accesses,
    free_indices,
    index_names,
)
from fuseflow.einsum.structures import verify_structures
from fuseflow.einsum.text import show_einsum, show_expr, show_left
from fuseflow.errors import FuseFlowError, ProgramError, Span, did_you_mean
from fuseflow.keep_rules import Largest, Threshold, refusal, show_keep
from fuseflow.number_literals import show_number
from fuseflow.ops import canonical, operator, reducer
from fuseflow.tensors.dtypes import DTYPES

TENSOR_NAME: Final = re.compile(r"\w+(\.\w+)*")
"""The names of tensors and Einsums are words joined by dots (`layer1.weight`). A number is no name."""
LARGEST_SIZE: Final = 2**31 - 1
INDEX_NAME: Final = re.compile(r"[^\W\d]\w*")


Shapes: TypeAlias = Mapping[str, tuple[int, ...]]
"""The shape of each tensor."""
Extents: TypeAlias = Mapping[str, Mapping[str, int]]
"""The extent of each index, by Einsum."""


def verify(program: Program, verified: Program | None = None) -> None:
    """Raise `ProgramError` unless the program has a meaning; the message names the statement, its tensors and its indices.

    Declarations and statements that the program shares with a `verified` one are not checked one by one again.
    """
    declared, defined = ({}, {}) if verified is None else (verified.declared, verified.defined)
    _check_declarations(program, declared)
    for einsum in program.einsums:
        if defined.get(einsum.name) != einsum:
            _check_indices(einsum)
    shapes(program)
    verify_structures(program)
    _check_outputs(program)


def shapes(program: Program) -> Shapes:
    """Return the shape of every tensor, declared ones first, then the results in order."""
    return shapes_and_extents(program)[0]


def extents(program: Program) -> Extents:
    """Return, by Einsum, the extent of each of its indices in order of appearance, reduced ones included."""
    return shapes_and_extents(program)[1]


def shapes_and_extents(program: Program) -> tuple[Shapes, Extents]:
    """Return `shapes` and `extents` together: each follows from the other. They are computed once for a program."""
    return program.once(_shapes_and_extents)


def with_known_sizes(program: Program, sizes: tuple[Shapes, Extents]) -> Program:
    """Return a program with known shapes and extents."""
    return program.knowing(_shapes_and_extents, sizes)


def _shapes_and_extents(program: Program) -> tuple[Shapes, Extents]:
    declared, defined = program.declared, program.defined
    shape_by_tensor = {t.name: t.shape for t in program.inputs}
    sizes: dict[str, dict[str, int]] = {}
    for einsum in program.einsums:
        for name in einsum.operands:
            if name not in shape_by_tensor:
                reason = "is used before it is defined" if name in defined else "is not declared"
                _fail(einsum, f"tensor `{name}` {reason}", "" if name in defined else did_you_mean(name, [*declared, *defined]))
        sizes[einsum.name] = _extents(einsum, shape_by_tensor, declared.get(einsum.name))
        own = sizes[einsum.name]
        shape_by_tensor[einsum.name] = tuple([math.prod([own[name] for name in index_names((i,))]) for i in einsum.indices])
    return {name: shape_by_tensor[name] for name in (*declared, *defined)}, sizes


def _check_declarations(program: Program, verified: Mapping[str, TensorType]) -> None:
    for name, count in Counter(t.name for t in program.tensors).items():
        if count > 1:
            raise ProgramError(f"tensor `{name}` is declared {count} times", span=program.declared[name].span)
    defined = program.defined
    for tensor in program.tensors:
        if tensor.name in defined and tensor.format is not None and tensor.format.complete and not tensor.like:
            message = f"`{tensor.format.short()}` of `{tensor.name}`, which is computed: `all` says how given numbers are stored"
            raise ProgramError(message, hint="leave `all` out: what is computed is stored, zeros too", span=tensor.span)
        if verified.get(tensor.name) != tensor:
            _check_declaration(tensor)
    for name, count in Counter(e.name for e in program.einsums).items():
        if count > 1:
            _fail(defined[name], f"`{name}` is defined {count} times", "give each result its own name")


def _check_declaration(tensor: TensorType) -> None:
    where = f"tensor `{tensor.name}`"
    _check_name(tensor.name, tensor.span)
    if any(size < 0 for size in tensor.shape):
        raise ProgramError(f"{where} has a negative size: {list(tensor.shape)}", span=tensor.span)
    if any(size > LARGEST_SIZE for size in tensor.shape):
        raise ProgramError(f"{where} has a size beyond {LARGEST_SIZE}, the last 32-bit coordinate", span=tensor.span)
    if tensor.dtype not in DTYPES:
        hint = did_you_mean(tensor.dtype, DTYPES)
        raise ProgramError(f"{where} has the unknown dtype `{tensor.dtype}`", hint=hint, span=tensor.span)
    if DTYPES[tensor.dtype].is_integer and not float(tensor.fill).is_integer():
        raise ProgramError(f"{where} has integers, its implicit value is {show_number(tensor.fill)}", span=tensor.span)
    nearest = DTYPES[tensor.dtype].implicit(tensor.fill)
    if (canonical(nearest),) != (canonical(tensor.fill),):  # in a tuple NaN equals itself
        message = f"{where} has the implicit value {show_number(tensor.fill)}, which is no number of {tensor.dtype}"
        raise ProgramError(message, hint=f"the nearest is {show_number(nearest)}", span=tensor.span)
    if tensor.format is not None and tensor.format.rank != len(tensor.shape):
        message = f"{where} has {len(tensor.shape)} dimensions, its format {tensor.format} has {tensor.format.rank} levels"
        raise ProgramError(message, span=tensor.span)


def _check_name(name: str, span: Span | None) -> None:
    if not TENSOR_NAME.fullmatch(name) or _is_number(name):
        hint = "names are words of letters, digits and `_`, joined by dots: `layer1.weight`"
        raise ProgramError(f"`{name}` cannot name a tensor", hint=hint, span=span)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return text[0].isdigit()


def _check_outputs(program: Program) -> None:
    if not program.outputs:
        raise ProgramError("the program has no outputs", hint="add a line `output NAME`")
    for name, count in Counter(program.outputs).items():
        if name not in program.defined:
            problem = "is an input: nothing computes it" if name in program.declared else "is not defined"
            raise ProgramError(f"output `{name}` {problem}", hint=did_you_mean(name, program.defined))
        if count > 1:
            raise ProgramError(f"`{name}` is an output {count} times")


def _check_indices(einsum: Einsum) -> None:
    """Check the index names, splits and operators of one statement, and the scope of every index."""
    _check_name(einsum.name, einsum.location.span)
    for indices in (einsum.indices, *(a.indices for a in accesses(einsum.body))):
        _check_spelling(einsum, indices)
    left = index_names(einsum.indices)
    for affine in einsum.indices:
        if isinstance(affine, Affine):
            hint = "write the tensor whole: a sum of shifted accesses puts each part in its place"
            _fail(einsum, f"`{affine}` stands on the left side", hint)
    for index, count in Counter(left).items():
        if count > 1:
            _fail(einsum, f"index `{index}` stands {count} times on the left side", "a diagonal can be read, not written")
    _check_scope(einsum, einsum.body, frozenset(left), frozenset())


def _check_spelling(einsum: Einsum, indices: Iterable[Index]) -> None:
    for index in indices:
        if isinstance(index, Split) and index.size < 1:
            _fail(einsum, f"the split `{index}` has the size {index.size}", "an inner index has at least one value")
        if isinstance(index, Affine) and any(abs(n) > LARGEST_SIZE for n in (index.offset, *(f for _, f in index.terms))):
            _fail(einsum, f"`{index}` has a number beyond {LARGEST_SIZE}, the last 32-bit coordinate")
    for name in index_names(tuple(indices)):
        if not INDEX_NAME.fullmatch(name):
            _fail(einsum, f"`{name}` cannot name an index", "index names are words that start with a letter")


def _check_scope(einsum: Einsum, node: Expr, left: frozenset[str], reduced: frozenset[str]) -> None:
    """Check that every index is on the left side or bound by one reduction around it, and that operators have all their operands."""
    match node:
        case Access():
            for name in node.names:
                if name not in left and name not in reduced:
                    hint = f"reduce it, as in `sum({name}) ...`, or add it to the left side"
                    _fail(einsum, f"index `{name}` of `{show_expr(node)}` is neither on the left side nor reduced", hint)
        case Apply():
            _check_arity(einsum, node)
            for arg in node.args:
                _check_scope(einsum, arg, left, reduced)
        case Reduce():
            _check_reduction(einsum, node, left, reduced)
            _check_scope(einsum, node.body, left, reduced | set(node.over))
        case Keep():
            if node is not einsum.body:
                hint = "a `keep` stands at the head of a right side: give it a statement of its own"
                _fail(einsum, f"`{node}` stands inside an expression", hint)
            _check_keep(einsum, node, left)
            _check_scope(einsum, node.body, left, reduced)
        case Const():
            pass
        case unknown:
            assert_never(unknown)


def _check_arity(einsum: Einsum, node: Apply) -> None:
    try:
        arity = operator(node.op).arity
    except FuseFlowError as error:
        _fail(einsum, error.message, error.hint)
    if len(node.args) != arity:
        _fail(einsum, f"operator `{node.op}` takes {arity} operands, not {len(node.args)}")


def _check_reduction(einsum: Einsum, node: Reduce, left: frozenset[str], reduced: frozenset[str]) -> None:
    try:
        reducer(node.op)
    except FuseFlowError as error:
        _fail(einsum, error.message, error.hint)
    reduction = f"{node.op}({', '.join(node.over)})"
    if not node.over or len(set(node.over)) < len(node.over):
        _fail(einsum, f"`{reduction}` must name indices, each once")
    free = free_indices(node.body)
    for name in node.over:
        if name in left:
            _fail(einsum, f"`{reduction}` reduces `{name}`, which is on the left side", "give the reduction an index of its own")
        if name in reduced:
            hint = "give the inner one an index of its own"
            _fail(einsum, f"`{reduction}` reduces `{name}` inside a reduction over `{name}`", hint)
        if name not in free:
            hint = f"indices there: {', '.join(free) or 'none'}"
            _fail(einsum, f"`{reduction}` reduces `{name}`, which its operand does not have", hint)


def _check_keep(einsum: Einsum, node: Keep, left: frozenset[str]) -> None:
    """Check the indices of a `keep`. Its numbers are checked where the extents are known."""
    free = free_indices(node.body)
    if isinstance(node.rule, Threshold) == bool(node.over):
        hint = (
            "a threshold is `keep(threshold 0.1)`, and compares nothing"
            if node.over
            else f"say over what, as in `{show_keep(node.rule, 'j')}`"
        )
        _fail(einsum, f"`{node}` {'has indices' if node.over else 'has no indices'}", hint)
    if isinstance(node.rule, Largest) and node.rule.every and len(node.over) != 1:
        hint = f"as in `{show_keep(node.rule, node.over[:1])}`"
        _fail(einsum, f"`{node}` counts coordinates of one index, not of {len(node.over)}", hint)
    if len(set(node.over)) < len(node.over):
        _fail(einsum, f"`{node}` names an index twice")
    for name in node.over:
        if name not in free or name not in left:
            hint = f"indices there: {', '.join(v for v in free if v in left) or 'none'}"
            _fail(einsum, f"`{node}` is over `{name}`, which its operand does not have", hint)


def _extents(einsum: Einsum, shape_by_tensor: Mapping[str, tuple[int, ...]], declared: TensorType | None) -> dict[str, int]:
    """Return the extents of one statement, which follow from the shapes of its operands and, last, from the declaration of its result."""
    bindings: dict[str, int] = {}
    sources: dict[str, Access] = {}
    for access in einsum.accesses:
        _bind(einsum, access, shape_by_tensor[access.tensor], bindings, sources)
    if declared is not None:
        _bind(einsum, Access(einsum.name, einsum.indices), declared.shape, bindings, sources)
    for name in index_names(einsum.indices):
        if name not in bindings:
            hint = f"declare the result: `tensor {einsum.name}[sizes]`"
            _fail(einsum, f"nothing gives index `{name}` of `{show_left(einsum)}` an extent", hint)
    for name in index_names(tuple([index for access in einsum.accesses for index in access.indices])):
        if name not in bindings:
            hint = f"the extent of `{name}` must follow from another operand, one that is read along a plain `{name}`"
            _fail(einsum, f"nothing gives index `{name}` an extent: it stands in sums only", hint)
    if isinstance(einsum.body, Keep):
        why, hint = refusal(einsum.body.rule, math.prod(bindings[name] for name in einsum.body.over))
        if why:
            _fail(einsum, f"`{einsum.body}`: {why}", hint)
    for index in einsum.indices:
        if isinstance(index, Split) and bindings[index.inner] != index.size:
            extent, where = bindings[index.inner], show_expr(sources[index.inner])
            _fail(einsum, f"index `{index.inner}` has the extent {extent} in `{where}`, not that of the split `{index}`")
    return bindings


def _bind(einsum: Einsum, access: Access, shape: tuple[int, ...], bindings: dict[str, int], sources: dict[str, Access]) -> None:
    """Match the indices of an access with a shape. `bindings` maps an index to its extent, and `sources` to the access that gave it."""
    if len(shape) != len(access.indices):
        text = show_expr(access)
        _fail(einsum, f"`{text}` has {len(access.indices)} indices, `{access.tensor}` has {len(shape)} dimensions: {list(shape)}")
    for dimension, (index, size) in enumerate(zip(access.indices, shape, strict=True)):
        if isinstance(index, str) and bindings.get(index) == size:
            continue  # most are such
        for name, extent in _parts(einsum, access, dimension, index, size):
            if name not in bindings:
                bindings[name], sources[name] = extent, access
            elif bindings[name] != extent:
                where, text = show_expr(sources[name]), show_expr(access)
                _fail(einsum, f"index `{name}` has the extent {bindings[name]} in `{where}` and {extent} in `{text}`")


def _parts(einsum: Einsum, access: Access, dimension: int, index: Index, size: int) -> tuple[tuple[str, int], ...]:
    if isinstance(index, Affine):
        return ()  # it may run beyond the tensor, so that it says nothing of extents
    if not isinstance(index, Split):
        return ((index, size),)
    if index.size < 1 or size % index.size:
        where = f"dimension {dimension} of `{show_expr(access)}`"
        _fail(einsum, f"{where} has {size} entries, which the split size {index.size} does not divide")
    return (index.outer, size // index.size), (index.inner, index.size)


def _fail(einsum: Einsum, message: str, hint: str = "") -> NoReturn:
    raise ProgramError(message, hint=hint, notes=[f"in `{show_einsum(einsum)}`"], span=einsum.location.span)
