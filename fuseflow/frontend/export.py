"""torch.export with the real sparse tensors, then a second, dense trace in which every tensor is an argument."""

from __future__ import annotations

import io
import logging
import re
import textwrap
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.export import ExportedProgram
from torch.utils import _pytree as pytree
from torch_mlir.extras.fx_decomp_util import get_decomposition_table

from fuseflow.errors import FrontendError
from fuseflow.frontend import origin, screen
from fuseflow.frontend.densify import Densify
from fuseflow.frontend.names import Names
from fuseflow.frontend.operators import PATTERN


@dataclass(frozen=True, slots=True, eq=False)
class Exported:
    """A dense graph of simple operators whose arguments are `tensors`, in order: weights and buffers by their PyTorch names, inputs by
    the names of forward's arguments."""

    program: ExportedProgram
    tensors: dict[str, Tensor]


def export(module: nn.Module, inputs: tuple[Any, ...]) -> Exported:
    """Trace `module` on `inputs`; raises `FrontendError` for what has no Einsum form."""
    with _quiet(), torch.no_grad():
        traced = _trace(module, inputs)
        tensors = _arguments(traced, inputs)
        screen.screen(traced, tensors)
        dense = _replay(traced, tensors)
        program = dense.run_decompositions(get_decomposition_table())
    screen.screen_lowered(program)
    screen.screen_mutation(program, list(tensors))
    return Exported(program, tensors)


def eager(module: nn.Module, inputs: tuple[Any, ...]) -> list[Tensor]:
    """The tensors that the model returns, in order."""
    with _quiet(), torch.no_grad():
        leaves = pytree.tree_leaves(module(*inputs))
    return [leaf for leaf in leaves if isinstance(leaf, Tensor)]


def _trace(module: nn.Module, inputs: tuple[Any, ...]) -> ExportedProgram:
    try:
        with redirect_stderr(io.StringIO()):  # a failing export prints its unfinished graph
            return torch.export.export(module, inputs, strict=False)
    except Exception as error:  # torch.export raises whatever the model and PyTorch's internals raise
        raise _explained(error, module, inputs) from error


def _explained(error: Exception, module: nn.Module, inputs: tuple[Any, ...]) -> FrontendError:
    """Say why a model cannot be traced: does it not run at all, does its control flow depend on data, is it the sparse layout?"""
    if isinstance(error, FrontendError):
        return error
    span, text = origin.span_of_exception(error), str(error)
    if "data-dependent" in text or "DataDependent" in type(error).__name__:
        hint = "compute the condition outside the model, or use `torch.where`"
        return FrontendError("control flow depends on data", hint=hint, span=span)
    try:
        eager(module, inputs)
    except Exception as failure:
        message = f"the model fails in PyTorch itself: {type(failure).__name__}: {_first_line(failure)}"
        return FrontendError(message, span=origin.span_of_exception(failure))
    for name in sorted(PATTERN.names, key=len, reverse=True):
        if re.search(rf"\b{name}\b", text):
            return FrontendError(f"{PATTERN.what} (`{name}`)", hint=PATTERN.hint, span=span)
    return FrontendError(f"torch.export cannot trace the model: {type(error).__name__}: {_first_line(error)}", span=span)


def _first_line(error: Exception) -> str:
    """What PyTorch says, without the pages that follow: the first sentence."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return textwrap.shorten(lines[0].partition(". ")[0], 200, placeholder=" ...")


def _arguments(traced: ExportedProgram, inputs: tuple[Any, ...]) -> dict[str, Tensor]:
    tensors: dict[str, Tensor] = {}
    names = Names()
    leaves = iter(pytree.tree_leaves((inputs, {})))
    for spec in traced.graph_signature.input_specs:
        kind = spec.kind.name
        if kind == "USER_INPUT":
            name, value = spec.arg.name, next(leaves)
        elif kind in ("PARAMETER", "BUFFER", "CONSTANT_TENSOR"):
            name = str(spec.target)
            value = traced.state_dict[name] if name in traced.state_dict else traced.constants[name]
        else:
            raise FrontendError(f"the model takes a {kind.lower().replace('_', ' ')} as input", hint="pass tensors only")
        if not isinstance(value, Tensor):
            raise FrontendError(
                f"input `{name}` is not a tensor but {value!r}", hint="bind it before import, for example in __init__"
            )
        tensors[names.unique(name)] = value.detach()
    return tensors


class _AllInputs(nn.Module):
    """Weights, buffers and constants become positional inputs, so that no number is ever written into the MLIR."""

    def __init__(self, graph: torch.fx.GraphModule) -> None:
        super().__init__()
        object.__setattr__(self, "graph", graph)  # hidden from nn.Module: its parameters are not ours

    def forward(self, *tensors: Tensor) -> Any:
        return Densify(self.graph).run(*tensors)  # type: ignore[arg-type]


def _replay(traced: ExportedProgram, tensors: dict[str, Tensor]) -> ExportedProgram:
    with FakeTensorMode(allow_non_fake_inputs=True):
        fake = tuple(torch.empty(tuple(t.shape), dtype=t.dtype) for t in tensors.values())
    with torch.fx.traceback.preserve_node_meta():  # keeps module paths and stack traces
        try:
            return torch.export.export(_AllInputs(traced.graph_module), fake, strict=False)
        except FrontendError:
            raise
        except Exception as error:
            raise FrontendError(f"the model has no dense form: {type(error).__name__}: {_first_line(error)}") from error


@contextmanager
def _quiet() -> Iterator[None]:
    """PyTorch warns about its sparse layouts at every turn and logs what it then raises; our errors say what concerns the user."""
    threshold = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(threshold)
