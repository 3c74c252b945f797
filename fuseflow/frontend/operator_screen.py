"""A check that refuses operators without an Einsum form before the graph is lowered, because lowering some of them ends the process.

The check has two parts. The first one looks at the graph as the user wrote it, and refuses known operators with a reason and a hint.
The second one looks at the decomposed graph, where only the operators of a list are allowed.
"""

from __future__ import annotations

import operator

import torch
from torch import Tensor
from torch.export import ExportedProgram
from torch.export.graph_signature import ConstantArgument
from torch.fx import Graph, Node

from fuseflow.errors import FrontendError
from fuseflow.frontend import fx_origin
from fuseflow.frontend.aten_operators import (
    HINT_EDGE_INDEX,
    HINT_EVAL,
    HINT_OUTSIDE,
    INDEXING,
    LOWERABLE,
    PATTERN_DEPENDENT,
    TRAINING_FLAGS,
    UNSUPPORTED_FAMILIES,
)
from fuseflow.frontend.torch_tensors import COLUMN_LAYOUTS, ROW_LAYOUTS


def screen_program(program: ExportedProgram, tensors: dict[str, Tensor]) -> None:
    """Raise `FrontendError` with module path and line if the user's own operators include one that is known to have no Einsum form."""
    for name, tensor in tensors.items():
        _screen_tensor(name, tensor)
    for position, output in enumerate(program.graph_signature.output_specs, 1):
        if isinstance(output.arg, ConstantArgument) and output.arg.value is not None:
            raise FrontendError(
                f"output {position} of the model is not a tensor but {output.arg.value!r}", hint="return tensors only"
            )
    edge_index = any("edge_index" in name for name in tensors)
    arguments = dict(zip((n for n in program.graph.nodes if n.op == "placeholder"), tensors.items(), strict=True))
    for node in _live_calls(program.graph):
        _screen_training(node)
        _screen_stored_zeros(node, arguments)
        if isinstance(node.target, torch._ops.HigherOrderOperator):
            block = str(node.target).startswith("wrap_with_")  # enable_grad, autocast
            hint = "leave the `with` block out of forward" if block else "write it without `torch.cond` and the like"
            raise _refusal(node, f"control flow or a nested graph (`{node.target}`)", hint)
        name = fx_origin.short_name(node.target)
        for family in UNSUPPORTED_FAMILIES:
            if name in family.names:
                hint = HINT_EDGE_INDEX if edge_index and family is INDEXING else family.hint
                raise _refusal(node, f"{family.description} (`{node.target}`)", hint)


def screen_mutation(graph: Graph, names: list[str]) -> None:
    """Raise `FrontendError` for a model that writes to its buffers, weights or inputs. After functionalization, such a write is a copy
    at the end."""
    arguments = dict(zip((node for node in graph.nodes if node.op == "placeholder"), names, strict=True))
    for node in graph.nodes:
        if node.op == "call_function" and fx_origin.short_name(node.target) == "copy_":
            target = arguments.get(node.args[0], "a constant")
            raise FrontendError(
                f"the model mutates `{target}`", hint=f"{HINT_EVAL}, or return the new value instead of writing it in place"
            )


def screen_lowered(graph: Graph) -> None:
    """Raise `FrontendError` for an operator that is not known to lower to Linalg, and for values of a type that an Einsum cannot hold."""
    for node in _live_calls(graph):
        name = fx_origin.short_name(node.target)
        if name not in LOWERABLE:
            user_operator = fx_origin.operator_name(node).removesuffix(".")
            through = f", through `{node.target}`," if user_operator != name else ""
            raise _refusal(node, f"`{user_operator}`{through} has no Einsum form", HINT_OUTSIDE)
        for value in torch.utils._pytree.tree_leaves(node.meta.get("val")):
            if isinstance(value, Tensor) and (value.is_complex() or value.dtype in (torch.float16, torch.bfloat16)):
                raise _refusal(node, f"values of type {value.dtype} (`{node.target}`)", "use float32 or float64")


def _screen_training(node: Node) -> None:
    name = fx_origin.short_name(node.target)
    if name in TRAINING_FLAGS:
        problem, position, hint = TRAINING_FLAGS[name]
        if len(node.args) > position and node.args[position]:
            raise _refusal(node, f"{problem}: `{name}` in training mode", hint)


def _screen_stored_zeros(node: Node, arguments: dict[Node, tuple[str, Tensor]]) -> None:
    """Refuse stored zeros where they count. The dense form of an operator on a pattern (`densify`) takes the nonzero elements as the
    pattern."""
    position = PATTERN_DEPENDENT.get(str(node.target))
    argument = None if position is None else node.args[position]
    if not isinstance(argument, Node) or argument not in arguments or "sum" in node.args:
        return
    name, tensor = arguments[argument]
    stored = tensor._values() if tensor.layout == torch.sparse_coo else tensor.values()
    if (stored == 0).any():
        message = f"`{node.target}` counts the zeros that `{name}` stores"
        raise _refusal(node, message, f"leave them out, for example `{name}.to_dense().to_sparse_csr()`")


def _screen_tensor(name: str, tensor: Tensor) -> None:
    if tensor.is_meta:
        raise FrontendError(f"tensor `{name}` is on the meta device: it has no numbers", hint="build the model on the CPU")
    if tensor.layout not in (torch.strided, torch.sparse_coo, *ROW_LAYOUTS, *COLUMN_LAYOUTS):
        raise FrontendError(f"tensor `{name}` has the layout {tensor.layout}", hint="use CSR, CSC, BSR, BSC, COO or dense")
    if tensor.layout != torch.strided and (tensor.dense_dim() or tensor.sparse_dim() != tensor.dim()):
        message = f"tensor `{name}` is a batch of sparse matrices or has dense dimensions"
        raise FrontendError(message, hint="use COO, or a dense tensor with a format")
    if tensor.layout != torch.strided and (problem := _index_problem(tensor)):
        raise FrontendError(f"tensor `{name}` is not a valid sparse tensor: {problem}", hint="check what it was constructed from")


def _index_problem(tensor: Tensor) -> str:
    """Return what is wrong with the indices of a sparse tensor, or ''. PyTorch does not check them unless it is asked to."""
    try:
        if tensor.layout == torch.sparse_coo:
            torch._validate_sparse_coo_tensor_args(tensor._indices(), tensor._values(), tensor.shape, tensor.is_coalesced())
        else:
            by_row = tensor.layout in ROW_LAYOUTS
            positions, minor = (
                (tensor.crow_indices(), tensor.col_indices()) if by_row else (tensor.ccol_indices(), tensor.row_indices())
            )
            torch._validate_sparse_compressed_tensor_args(positions, minor, tensor.values(), tensor.shape, tensor.layout)
    except RuntimeError as error:
        return str(error).partition("\n")[0]
    return ""


def _refusal(node: Node, message: str, hint: str) -> FrontendError:
    return FrontendError(f"{message}{fx_origin.module_suffix(node)}", hint=hint, span=fx_origin.source_span(node))


def _live_calls(graph: Graph) -> list[Node]:
    """Return the calls that some output needs, in order. A call whose result is not used is harmless."""
    needed: set[Node] = set()
    for node in reversed(list(graph.nodes)):
        if node.op == "output" or node in needed:
            needed.add(node)
            needed.update(node.all_input_nodes)
    calls = [node for node in graph.nodes if node in needed and node.op == "call_function"]
    return [node for node in calls if node.target is not operator.getitem]
