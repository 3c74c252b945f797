"""Export of a PyTorch model: torch.export traces it with its sparse tensors, then a dense trace decomposes it and makes every tensor
an argument."""

from __future__ import annotations

import io
import logging
import re
import textwrap
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stderr
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.export import ExportedProgram
from torch.fx import Graph
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils import _pytree as pytree
from torch_mlir.extras.fx_decomp_util import get_decomposition_table

from fuseflow.errors import FrontendError
from fuseflow.frontend import fx_origin, operator_screen
from fuseflow.frontend.aten_operators import STORED_PATTERN
from fuseflow.frontend.column_split import split_linear_columns
from fuseflow.frontend.constant_folding import fold_constants
from fuseflow.frontend.densify import DensifyingInterpreter
from fuseflow.frontend.einsum_names import NameAllocator
from fuseflow.frontend.sparse_encodings import Storage
from fuseflow.frontend.torch_tensors import storage_of


@dataclass(frozen=True, slots=True, eq=False)
class ExportedGraph:
    """A dense graph of simple operators whose arguments are `tensors`, in order.

    Weights and buffers have their PyTorch names, and inputs have the names of the arguments of `forward`. `stored` has the storage of each
    tensor. `notices` tell the user what PyTorch evaluated before.
    """

    graph: Graph
    tensors: dict[str, Tensor]
    stored: dict[str, Storage]
    notices: list[str]


def export_graph(module: nn.Module, inputs: tuple[Any, ...], formats: Mapping[str, str]) -> ExportedGraph:
    """Trace `module` on `inputs`. `formats` overrides the layouts of tensors by name. Raise `FrontendError` for an operator that has
    no Einsum form."""
    inputs = pytree.tree_map_only(Tensor, _without_base, inputs)
    with _quiet(), torch.no_grad():
        traced = _trace(module, inputs)
        tensors = _arguments(traced, inputs)
        split_linear_columns(traced)
        notices = fold_constants(traced, tensors)
        operator_screen.screen_program(traced, tensors)
        stored = storage_of(tensors, formats)
        graph = _replay(traced, tensors, stored)
    operator_screen.screen_lowered(graph)
    operator_screen.screen_mutation(graph, list(tensors))
    return ExportedGraph(graph, tensors, stored, notices)


def run_eagerly(module: nn.Module, inputs: tuple[Any, ...]) -> list[Tensor]:
    """Return the tensors that the model returns, in order. Raise `FrontendError` if PyTorch cannot run the model."""
    try:
        with _quiet(), torch.no_grad():
            leaves = pytree.tree_leaves(module(*inputs))
    except Exception as error:  # whatever the model and PyTorch raise
        message = f"the model fails in PyTorch itself: {type(error).__name__}: {_first_line(error)}"
        raise FrontendError(message, span=fx_origin.exception_span(error)) from error
    return [leaf for leaf in leaves if isinstance(leaf, Tensor)]


def _without_base(tensor: Tensor) -> Tensor:
    """Detach a sparse tensor, because PyTorch cannot trace views of sparse tensors such as `adj.t()`."""
    return tensor.detach() if tensor.layout != torch.strided else tensor


def _trace(module: nn.Module, inputs: tuple[Any, ...]) -> ExportedProgram:
    try:
        with redirect_stderr(io.StringIO()):  # a failing export prints its unfinished graph
            return torch.export.export(module, inputs, strict=False)
    except Exception as error:  # torch.export raises whatever the model and PyTorch's internals raise
        raise _explain_failure(error, module, inputs) from error


def _explain_failure(error: Exception, module: nn.Module, inputs: tuple[Any, ...]) -> FrontendError:
    """Return an error that says why a model cannot be traced. It may not run at all, its control flow may depend on data, or PyTorch
    may not support a sparse layout."""
    if isinstance(error, FrontendError):
        return error
    span, text = fx_origin.exception_span(error), str(error)
    if "data-dependent" in text or "DataDependent" in type(error).__name__:
        hint = "compute the condition outside the model, or use `torch.where`"
        return FrontendError("control flow depends on data", hint=hint, span=span)
    try:
        run_eagerly(module, inputs)
    except FrontendError as failure:
        return failure
    for name in sorted(STORED_PATTERN.names, key=len, reverse=True):
        if re.search(rf"\b{name}\b", text):
            return FrontendError(f"{STORED_PATTERN.description} (`{name}`)", hint=STORED_PATTERN.hint, span=span)
    message = f"torch.export cannot trace the model: {type(error).__name__}: {_first_line(error)}"
    return FrontendError(message, hint=_sparse_attribute(module), span=span)


def _sparse_attribute(module: nn.Module) -> str:
    """Return a hint if the module holds a sparse tensor that PyTorch cannot trace because it is not a buffer or is a view of another
    tensor."""
    for path, part in module.named_modules():
        for name, value in (*vars(part).items(), *part.named_buffers(recurse=False)):
            if isinstance(value, Tensor) and value.layout != torch.strided and (name in vars(part) or value._is_view()):
                place = f" in module `{path}`" if path else ""
                return f'write `self.register_buffer("{name}", ...clone())`{place}: `{name}` is a sparse tensor'
    return ""


def _first_line(error: Exception) -> str:
    """Return the first sentence of an error message of PyTorch, which may have pages."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return textwrap.shorten(lines[0].partition(". ")[0], 200, placeholder=" ...")


def _arguments(traced: ExportedProgram, inputs: tuple[Any, ...]) -> dict[str, Tensor]:
    tensors: dict[str, Tensor] = {}
    names = NameAllocator()
    leaves = iter(pytree.tree_leaves((inputs, {})))
    canonical_names = _names_of_shared(traced)
    for spec in traced.graph_signature.input_specs:
        kind = spec.kind.name
        if kind == "USER_INPUT":
            name, value = spec.arg.name, next(leaves)
        elif kind in ("PARAMETER", "BUFFER", "CONSTANT_TENSOR"):
            name = canonical_names.get(str(spec.target), str(spec.target))
            value = traced.state_dict.get(str(spec.target), traced.constants.get(str(spec.target)))
        else:
            raise FrontendError(f"the model takes a {kind.lower().replace('_', ' ')} as input", hint="pass tensors only")
        if not isinstance(value, Tensor):
            raise FrontendError(
                f"input `{name}` is not a tensor but {value!r}", hint="bind it before import, for example in __init__"
            )
        tensors[names.unique(name)] = value.detach()
    return tensors


def _names_of_shared(traced: ExportedProgram) -> dict[str, str]:
    """Return new names for weights that several modules share, since PyTorch calls them by the first module and the trace by the last."""
    used = {node.name for node in traced.graph.nodes if node.users}
    unused = {str(spec.target) for spec in traced.graph_signature.input_specs if spec.arg.name not in used}
    groups: dict[int, list[str]] = {}
    for name, value in traced.state_dict.items():
        groups.setdefault(id(value), []).append(name)
    return {old: new for group in groups.values() for old, new in zip(sorted(group, key=unused.__contains__), group, strict=True)}


class _TensorsAsInputs(nn.Module):
    """A module whose weights, buffers and constants are positional inputs, so that none of their numbers is written into the MLIR.

    `truths` says which inputs are truth values that arrive as integers.
    """

    def __init__(self, graph: torch.fx.GraphModule, truths: list[bool]) -> None:
        super().__init__()
        self.truths = truths
        object.__setattr__(self, "graph", graph)  # nn.Module must not see it, because its parameters are inputs here

    def forward(self, *tensors: Tensor) -> list[Tensor]:
        arguments = [t != 0 if truth else t for t, truth in zip(tensors, self.truths, strict=True)]
        results = pytree.tree_leaves(DensifyingInterpreter(self.graph).run(*arguments))  # type: ignore[arg-type]
        return [result for result in results if result is not None]


def _replay(traced: ExportedProgram, tensors: dict[str, Tensor], stored: dict[str, Storage]) -> Graph:
    # MLIR has no sparse tensors of truth values, so they arrive as integers.
    truths = [t.dtype == torch.bool and not stored[name][0].all_dense for name, t in tensors.items()]
    with FakeTensorMode(allow_non_fake_inputs=True):
        fake = tuple(
            torch.empty(tuple(t.shape), dtype=torch.int32 if truth else t.dtype)
            for t, truth in zip(tensors.values(), truths, strict=True)
        )
    run = torch.func.functionalize(_TensorsAsInputs(traced.graph_module, truths).forward, remove="mutations")
    with torch.fx.traceback.preserve_node_meta():  # keeps module paths and stack traces
        try:
            graph = make_fx(run, decomposition_table=get_decomposition_table())(*fake).graph
        except FrontendError:
            raise
        except Exception as error:
            raise FrontendError(f"the model has no dense form: {type(error).__name__}: {_first_line(error)}") from error
    graph.eliminate_dead_code()
    return graph


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence PyTorch inside the block. It warns about every use of a sparse layout and logs errors that it also raises."""
    threshold = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(threshold)
