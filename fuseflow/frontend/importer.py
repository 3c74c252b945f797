"""The whole way of a PyTorch module through the front end, from the module and its inputs to an Einsum program and packed tensors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import nn

from fuseflow.einsum.nodes import Program
from fuseflow.einsum.verify import verify
from fuseflow.errors import FrontendError
from fuseflow.frontend import linalg_modules
from fuseflow.frontend.export import export_graph, run_eagerly
from fuseflow.frontend.export_to_linalg import lower_to_linalg
from fuseflow.frontend.imported_model import ModelImport, ReferenceOutputs
from fuseflow.frontend.linalg_to_einsum import extract_program
from fuseflow.frontend.torch_tensors import dense_array, from_torch


def import_model(module: nn.Module, inputs: tuple[Any, ...], formats: Mapping[str, str], name: str) -> ModelImport:
    """Import a PyTorch module as a program called `name`; see `fuseflow.frontend.import_model`."""
    if not isinstance(module, nn.Module):
        raise FrontendError(f"the model is a {type(module).__name__}", hint="pass a torch.nn.Module")
    exported = export_graph(module, inputs, formats)
    linalg = lower_to_linalg(exported.graph, exported.stored, name)
    program = extract_program(linalg)
    verify(program)
    tensors = {t.name: from_torch(exported.tensors[t.name], t) for t in program.inputs}
    expected = ReferenceOutputs(program.outputs, lambda: _outputs(program, module, inputs))
    return ModelImport(program, tensors, expected, linalg_modules.print_module(linalg), tuple(exported.notices))


def _outputs(program: Program, module: nn.Module, inputs: tuple[Any, ...]) -> list[Any]:
    try:
        results = run_eagerly(module, inputs)
    except FrontendError as error:  # PyTorch can trace some products of sparse layouts for which it has no kernel.
        error.hint = "`.to_dense()` in the model changes nothing in how a tensor is stored here; `--no-check` needs no PyTorch"
        raise
    return [dense_array(result, name) for name, result in zip(program.outputs, results, strict=True)]
