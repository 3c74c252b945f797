"""The front end from end to end: a module and its inputs to Einsums and numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import nn

from fuseflow.einsum.nodes import Program
from fuseflow.einsum.verify import verify
from fuseflow.errors import FrontendError
from fuseflow.frontend import mlir
from fuseflow.frontend.export import eager, export
from fuseflow.frontend.export_to_linalg import lower
from fuseflow.frontend.linalg_to_einsum import extract
from fuseflow.frontend.model_import import ModelImport, ReferenceOutputs
from fuseflow.frontend.torch_tensors import dense_array, packed


def import_model(module: nn.Module, inputs: tuple[Any, ...], formats: Mapping[str, str], name: str) -> ModelImport:
    if not isinstance(module, nn.Module):
        raise FrontendError(f"the model is a {type(module).__name__}", hint="pass a torch.nn.Module")
    exported = export(module, inputs, formats)
    linalg = lower(exported.graph, exported.stored, name)
    program = extract(linalg)
    verify(program)
    tensors = {t.name: packed(exported.tensors[t.name], t) for t in program.inputs}
    expected = ReferenceOutputs(program.outputs, lambda: _outputs(program, module, inputs))
    return ModelImport(program, tensors, expected, mlir.print_module(linalg), tuple(exported.notices))


def _outputs(program: Program, module: nn.Module, inputs: tuple[Any, ...]) -> list[Any]:
    try:
        results = eager(module, inputs)
    except FrontendError as error:  # some products of sparse layouts can be traced, but have no kernel
        error.hint = "`.to_dense()` in the model changes nothing in how a tensor is stored here; `--no-check` needs no PyTorch"
        raise
    return [dense_array(result, name) for name, result in zip(program.outputs, results, strict=True)]
