"""Refusals of a model: everything in it that has no Einsum form, each with its place, in one error.

Operators without an Einsum form are refused before the graph is lowered, because lowering some of them ends the process. The first check
looks at the graph as the user wrote it, and refuses known operators with a reason and a hint. The second one looks at the decomposed graph,
where only the operators of a list are allowed. Both return everything that is in the way.
"""

from __future__ import annotations

import operator
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.fx import Graph, Node
from torch.utils import _pytree as pytree

from fuseflow.errors import FrontendError, Span
from fuseflow.frontend.foreign_errors import foreign_message
from fuseflow.frontend.hints import HINT_EVAL, HINT_LIBRARY, HINT_OUTSIDE
from fuseflow.frontend.trace import fx_origin
from fuseflow.frontend.trace.dependence import Dependence, ancestors_of, dependences, stores_nonzeros
from fuseflow.frontend.trace.operator_support import (
    LOWERABLE,
    MOVEMENTS,
    PATTERN_DEPENDENT,
    SIZED_BY_DATA,
    TRAINING_FLAGS,
    UNSUPPORTED_FAMILIES,
)
from fuseflow.frontend.trace.tracing import Argument, Trace

_PLACES_IN_NOTE = 4
_WRAPPING = (torch.int8, torch.uint8, torch.int16)
"""The integers whose arithmetic leaves their range soon. Results wrap around in PyTorch, and saturate in a program."""


@dataclass(frozen=True, slots=True)
class OperatorPlace:
    """Where an operator stands: the path of its module, the line of the library that calls it, or '' for both, and the shape of
    its value, or None if that is no tensor."""

    module: str
    library: str
    shape: tuple[int, ...] | None


class OperatorError(FrontendError):
    """An operator of the model has no Einsum form."""

    def __init__(
        self, message: str, place: OperatorPlace, *, hint: str = "", notes: Sequence[str] = (), span: Span | None = None
    ) -> None:
        super().__init__(message, hint=hint, notes=notes, span=span)
        self.place = place


class BlockedError(FrontendError):
    """Several things are in the way of a model. The text is that of the first one, with a note for each kind of the others."""

    def __init__(self, refusals: Sequence[FrontendError]) -> None:
        first, *others = refusals
        super().__init__(first.message, hint=first.hint, notes=(*first.notes, *_summary(others)), span=first.span)
        self.refusals = tuple(refusals)


def refusal(node: Node, message: str, hint: str) -> OperatorError:
    """Return an error that names the module and the user's line, and in a note the line of a library and the shape of the result."""
    line, path, value = fx_origin.library_line(node), fx_origin.module_path(node), node.meta.get("val")
    if isinstance(value, tuple | list) and value:
        value = value[0]  # An operator of several results is told by its first one.
    shape = tuple(value.shape) if isinstance(value, Tensor) else None
    notes = [f"it computes values{'' if shape is None else f' of shape {shape}'} in {line}"] if line else []
    if line and hint == HINT_OUTSIDE:
        hint = HINT_LIBRARY
    message += f" at module `{path}`" if path else ""
    place, span = OperatorPlace(path, line, shape), fx_origin.source_span(node)
    return OperatorError(message, place, hint=hint, notes=notes, span=span)


def refusals_of(error: FrontendError) -> tuple[FrontendError, ...]:
    """Return all errors that an error combines: the refusals of a model."""
    return error.refusals if isinstance(error, BlockedError) else (error,)


def raise_all(refusals: Sequence[FrontendError], module: nn.Module, *, trains: bool = False) -> None:
    """Raise one error for all refusals of a module, if there are any. The hint to call `.eval()` is left out if no part of the module is
    in training mode, or a step `trains` it."""
    if trains or not any(part.training for part in module.modules()):
        for error in refusals:
            if error.hint.startswith(HINT_EVAL):
                error.hint = error.hint.removeprefix(HINT_EVAL).removeprefix(", or ").removeprefix("; ") or HINT_OUTSIDE
    if refusals:
        raise BlockedError(refusals)


def _summary(refusals: Sequence[FrontendError]) -> list[str]:
    """Return one note for each kind of refusal: `also a sliding window (...) at module `stem`, and 3 more`."""
    by_problem: dict[str, list[str]] = {}
    for error in refusals:
        problem, _, place = error.message.partition(" at module ")
        by_problem.setdefault(problem, []).append(place)
    notes = []
    for problem, places in by_problem.items():
        where = ", ".join(list(dict.fromkeys(place for place in places if place))[:_PLACES_IN_NOTE])
        count = f", {len(places)} times" if len(places) > 1 else ""
        notes.append(f"also {problem}{count}" + (f", at module {where}" if where else ""))
    return notes


def screen_reads(traced: Trace, depends_on: Mapping[Node, Dependence]) -> tuple[list[FrontendError], list[str]]:
    """Return an error for each place where the control flow of a model depends on weights or features, and a notice for each loop that ends
    on them, which is unrolled. Control flow may depend on the structure of inputs."""
    refusals: list[FrontendError] = []
    tests = Counter[Span | None]()
    for read in traced.reads:
        if depends_on.get(read.node) == "data" and read.ends_loop:
            tests[read.span] += 1
        elif depends_on.get(read.node) == "data":
            number = f"a Python number, taken out of a tensor by `{read.method}`,"
            problem = "control flow" if read.method == "__bool__" else number
            hint = "use `torch.where`, give the model the number as an argument, or let a loop compare the tensor where it ends"
            if "tensor" in read.method:
                hint = "use `torch.stack`, which takes tensors"
            refusals.append(FrontendError(f"{problem} depends on data", hint=hint, span=read.span))
    notices = [
        f"the loop that ends at {span} is unrolled: the given inputs take {count:,} test{'s' if count > 1 else ''} of its condition, and "
        "others may take more or fewer"
        for span, count in tests.items()
    ]
    return refusals, notices


def screen_program(traced: Trace, *, trains: bool = False) -> dict[Node, list[FrontendError]]:
    """Return, by node, the errors for the user's own operators that are known to have no Einsum form. A step that `trains` has
    statistics of batches."""
    by_node = {node: list(_refusals(node, traced.arguments, trains)) for node in _live_calls(traced.graph_module.graph)}
    return {node: refusals for node, refusals in by_node.items() if refusals}


def _refusals(node: Node, arguments: Mapping[Node, Argument], trains: bool) -> Iterator[FrontendError]:
    """Yield the errors for an operator of the user."""
    name = fx_origin.short_name(node.target)
    if name in TRAINING_FLAGS:
        problem, position, hint = TRAINING_FLAGS[name]
        changes_nothing = name in ("batch_norm", "instance_norm") and node.args[3] is None  # there are no stored statistics
        changes_nothing |= trains and name == "batch_norm"
        if len(node.args) > position and node.args[position] and not changes_nothing:
            yield refusal(node, f"{problem}: `{name}` in training mode", hint)
    yield from _screen_stored_zeros(node, arguments)
    if isinstance(node.target, torch._ops.HigherOrderOperator):
        yield refusal(node, f"control flow or a nested graph (`{fx_origin.shown_operator(node)}`)", HINT_OUTSIDE)
    if _counts_elements(node):
        yield _refusal_of_size(node)
        return
    for family in UNSUPPORTED_FAMILIES:
        if name in family.names and not fx_origin.is_whole_slice(node):
            yield refusal(node, f"{family.description} (`{fx_origin.shown_operator(node)}`)", family.hint)


def screen_empty(traced: Trace) -> list[FrontendError]:
    """Return the errors for operators that return no element here, and as many as the numbers of the data say for other data."""
    calls = [node for node in _live_calls(traced.graph_module.graph) if _counts_elements(node)]
    empty = [node for node in calls if any(value.numel() == 0 for value in pytree.tree_leaves(node.meta.get("val")))]
    depends_on = dependences(traced) if empty else {}
    return [_refusal_of_size(node) for node in empty if any(depends_on[operand] == "data" for operand in _masks_of(node))]


def _counts_elements(node: Node) -> bool:
    """Return whether an operator returns as many elements as its operand or its mask has of some kind."""
    name = fx_origin.short_name(node.target)
    counts = name in SIZED_BY_DATA or node.target == torch.ops.aten.where.default  # places, of a mask alone
    return counts or (name == "index" and any(map(_is_mask, node.all_input_nodes)))


def _masks_of(node: Node) -> list[Node]:
    """Return the operands whose numbers say how many elements an operator returns."""
    return list(filter(_is_mask, node.all_input_nodes)) or node.all_input_nodes


def _refusal_of_size(node: Node) -> OperatorError:
    message = f"the size of the result of `{fx_origin.shown_operator(node)}` depends on data"
    return refusal(node, message, "keep the whole tensor, with 0 for what does not count: `torch.where(mask, x, 0)`")


def _is_mask(node: Node) -> bool:
    value = node.meta.get("val")
    return isinstance(value, Tensor) and value.dtype == torch.bool


def screen_mutation(graph: Graph, names: list[str], *, trains: bool = False) -> list[FrontendError]:
    """Return the errors for a model that writes to its buffers, weights or inputs, or in a step that `trains` it to its weights or inputs.
    After functionalization, such a write is a copy at the end."""
    arguments = dict(zip((node for node in graph.nodes if node.op == "placeholder"), names, strict=True))
    for node in graph.nodes:
        if node.op == "call_function" and fx_origin.short_name(node.target) == "copy_":
            target = arguments.get(node.args[0], "a constant")
            hint = (
                "let the optimizer change parameters"
                if trains
                else f"{HINT_EVAL}, or return the new value instead of writing it in place"
            )
            return [FrontendError(f"the model mutates `{target}`", hint=hint)]
    return []


def screen_lowered(graph: Graph) -> list[FrontendError]:
    """Return the errors for operators that are not known to lower to Linalg, and for values of a type that no Einsum can hold."""
    refusals: list[FrontendError] = []
    for node in _live_calls(graph):
        name = fx_origin.short_name(node.target)
        if name not in LOWERABLE:
            user_operator = fx_origin.operator_name(node).removesuffix(".")
            through = f", through `{fx_origin.shown_operator(node)}`," if user_operator != name else ""
            refusals.append(refusal(node, f"`{user_operator}`{through} has no Einsum form", HINT_OUTSIDE))
            continue
        values = [value for value in pytree.tree_leaves(node.meta.get("val")) if isinstance(value, Tensor)]
        if any(value.is_complex() for value in values):
            shown = fx_origin.shown_operator(node)
            problem = f"complex numbers in an operator that has no form on pairs of real ones (`{shown}`)"
            refusals.append(refusal(node, problem, "compute with `.real` and `.imag`, and return real tensors"))
        elif name not in MOVEMENTS and any(value.dtype in _WRAPPING for value in values):
            problem = f"arithmetic in {values[0].dtype}, which wraps around (`{fx_origin.shown_operator(node)}`)"
            refusals.append(refusal(node, problem, "convert the operands to int32 or to a float first"))
    return refusals


def _screen_stored_zeros(node: Node, arguments: Mapping[Node, Argument]) -> Iterator[FrontendError]:
    """Refuse stored zeros where they count: the dense form of an operator on a pattern takes the nonzero elements as the pattern."""
    position = PATTERN_DEPENDENT.get(str(node.target))
    argument = None if position is None else node.args[position]
    if not isinstance(argument, Node) or "sum" in node.args or stores_nonzeros(argument, arguments):
        return
    if argument not in arguments:
        problem = f"`{fx_origin.shown_operator(node)}` depends on which elements the result of `{fx_origin.operator_name(argument)}` stores"
        yield refusal(node, problem, "apply it to a sparse matrix that is an input or a constant")
        return
    name, tensor = arguments[argument].name, arguments[argument].tensor
    stored = tensor._values() if tensor.layout == torch.sparse_coo else tensor.values()
    if (stored == 0).any():
        message = f"`{fx_origin.shown_operator(node)}` counts the zeros that `{name}` stores"
        yield refusal(node, message, f"leave them out, for example `{name}.to_dense().to_sparse_csr()`")


def _live_calls(graph: Graph) -> list[Node]:
    """Return the calls that some output needs, in order. A call whose result is not used is harmless."""
    needed = ancestors_of(graph.output_node())
    calls = [node for node in graph.nodes if node in needed and node.op == "call_function"]
    return [node for node in calls if node.target is not operator.getitem]


_CAUSES = (
    (
        re.compile(r"get value out of a tracing tensor with (?P<operator>\S+?)(\.default)? "),
        "a Python number is taken out of a tensor by `{operator}`",
        "use `torch.where`, or give the model the number as an argument",
    ),
    (
        re.compile(r"NestedTensorImpl"),
        "a nested tensor in the strided layout cannot be recorded",
        "make it with `layout=torch.jagged`, or compute with plain tensors, padded to one length, and a mask",
    ),
    (
        re.compile(r"argument of type: <class 'torch.storage."),
        "the model takes the memory of a tensor, as `copy.deepcopy` and `untyped_storage` do",
        "use `.clone()`",
    ),
)
"""Patterns of what PyTorch says, each with the message and the hint that tell it."""


def untraceable(error: Exception) -> FrontendError:
    """Return the error for a model that runs and cannot be traced."""
    span = fx_origin.exception_span(error)
    for pattern, message, hint in _CAUSES:
        if cause := pattern.search(str(error)):
            return FrontendError(message.format(**cause.groupdict()), hint=hint, span=span)
    return FrontendError(f"the model cannot be traced: {foreign_message(error)}", span=span)
