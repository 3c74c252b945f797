"""The whole way of a PyTorch module through the front end, from the module and its inputs to an Einsum program and packed tensors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fuseflow.counted_loops import counted
from fuseflow.einsum.nodes import Program
from fuseflow.einsum.verify import verify
from fuseflow.errors import FrontendError
from fuseflow.frontend import linalg_modules
from fuseflow.frontend.export import export_graph, run_eagerly
from fuseflow.frontend.export_to_linalg import lower_to_linalg
from fuseflow.frontend.exported_text import exported_text
from fuseflow.frontend.flops import flops_notice
from fuseflow.frontend.imported_model import ModelImport, ReferenceOutputs
from fuseflow.frontend.intermediates import with_keeps
from fuseflow.frontend.linalg_to_einsum import extract_program
from fuseflow.frontend.model_call import ModelCall
from fuseflow.frontend.node_values import node_values
from fuseflow.frontend.torch_tensors import dense_array, from_torch, unsigned_types


def import_model(call: ModelCall, formats: Mapping[str, str], name: str) -> ModelImport:
    """Import a call of a PyTorch model as a program called `name`; see `fuseflow.frontend.import_model`."""
    exported = export_graph(call, formats)
    linalg = lower_to_linalg(exported.graph, exported.stored, unsigned_types(exported.tensors), name)
    program = with_keeps(extract_program(linalg), exported.kept)
    if not program.outputs:
        raise FrontendError("the model returns no tensor", hint="return one from its `forward`")
    verify(program)
    tensors = {t.name: from_torch(exported.tensors[t.name], t) for t in counted(program.inputs, "packing tensors")}
    expected = ReferenceOutputs(program.outputs, lambda: _outputs(program, call))
    notice = flops_notice(exported.evaluated_flops, program)
    notices = (*exported.notices, *([notice] if notice else []))
    constants = tuple(t.name for t in program.inputs if t.name in exported.constants)
    return ModelImport(
        program,
        tensors,
        expected,
        linalg_modules.print_module(linalg),
        notices,
        exported.masks,
        constants,
        lambda: exported_text(call),
        lambda: node_values(call, formats, program),
    )


def _outputs(program: Program, call: ModelCall) -> list[Any]:
    results = run_eagerly(call)
    return [dense_array(result, name) for name, result in zip(program.outputs, results, strict=True)]
