"""The whole way of a PyTorch module through the front end, from the module and its inputs to an Einsum program and packed tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fuseflow.counted_loops import counted
from fuseflow.einsum.nodes import Program
from fuseflow.einsum.verify import verify
from fuseflow.errors import FrontendError
from fuseflow.frontend.export import export_graph, run_eagerly
from fuseflow.frontend.linalg.locations import Origin
from fuseflow.frontend.linalg.lowering import lower_to_linalg
from fuseflow.frontend.linalg.modules import print_module
from fuseflow.frontend.linalg.to_einsum import extract_program
from fuseflow.frontend.node_values import node_values
from fuseflow.frontend.reference_outputs import ReferenceOutputs
from fuseflow.frontend.source import Source
from fuseflow.frontend.torch_tensors import dense_array, from_torch, unsigned_types
from fuseflow.frontend.trace import fx_origin
from fuseflow.frontend.trace.exported_text import exported_text
from fuseflow.frontend.trace.flops import flops_notice
from fuseflow.frontend.trace.intermediates import with_keeps
from fuseflow.frontend.trace.model_call import ModelCall, model_call, model_name

if TYPE_CHECKING:
    from torch.fx import Node

    from fuseflow.frontend.model_spec import TorchModel


def import_model(
    model: TorchModel,
    inputs: Sequence[Any] | Mapping[str, Any] | None = None,
    formats: Mapping[str, str] | None = None,
    name: str = "",
    kwargs: Mapping[str, Any] | None = None,
) -> Source:
    """Import a PyTorch model as the source of an Einsum program called `name`, or like the model itself.

    The model is a module, a function of tensors, or an exported program. It is called once, on `inputs`, which are its positional
    arguments (or its keyword arguments, if they are a mapping), and on `kwargs`. Tensors are in a dense, CSR, CSC, COO, BSR or BSC
    layout, and stand alone or in lists, tuples and dictionaries. An exported program may keep its own example inputs.

    `formats` gives a storage format to tensors that PyTorch holds dense, by their name in the model (`{"attn.mask": "csr"}`). A dimension
    of extent 1 has no information and is dropped everywhere: an input of shape (1, n, d) is declared, packed and expected as (n, d). Dense
    and CSR tensors may share the memory of the module, so a module whose weights change must be imported again.

    Raise `FrontendError` with the operator, the module path and the line of an operation that has no Einsum form.
    """
    call, formats, name = model_call(model, inputs, kwargs), formats or {}, name or model_name(model)
    exported = export_graph(call, formats)
    linalg = lower_to_linalg(exported.graph, exported.stored, unsigned_types(exported.tensors), name, _user_origin)
    program = with_keeps(extract_program(linalg), exported.kept)
    if not program.outputs:
        raise FrontendError("the model returns no tensor", hint="return one from its `forward`")
    verify(program)
    tensors = {t.name: from_torch(exported.tensors[t.name], t) for t in counted(program.inputs, "packing tensors")}
    expected = ReferenceOutputs(program.outputs, lambda: _outputs(program, call))
    notice = flops_notice(exported.evaluated_flops, program)
    notices = (*exported.notices, *([notice] if notice else []))
    constants = tuple(t.name for t in program.inputs if t.name in exported.constants)
    return Source(
        program.name,
        program,
        tensors,
        expected,
        print_module(linalg),
        notices=notices,
        constants=constants,
        masks=exported.masks,
        intermediates=lambda: node_values(call, formats, program),
        exported=lambda: exported_text(call),
    )


def _user_origin(node: Node) -> Origin:
    """Return the module path, the operator and the line of the user that a node comes from."""
    name = fx_origin.operator_name(node)
    if fx_origin.in_library_module(node):
        name = name.removesuffix(".")  # For a LayerNorm called `ln`, `ln.sum` is clear enough.
    return Origin(fx_origin.module_path(node), name, fx_origin.source_span(node))


def _outputs(program: Program, call: ModelCall) -> list[Any]:
    results = run_eagerly(call)
    return [dense_array(result, name) for name, result in zip(program.outputs, results, strict=True)]
