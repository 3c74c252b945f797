"""Lowering of an exported graph to Linalg on tensors, whose arguments carry names and sparse encodings.

No other file uses torch-mlir's importer. Its hooks are private, which is why the version of torch-mlir is pinned exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from torch.fx import Graph, Node
from torch_mlir import ir
from torch_mlir.extras.fx_importer import ContextCache, FxImporter

from fuseflow.errors import FrontendError
from fuseflow.frontend.foreign_errors import foreign_message
from fuseflow.frontend.linalg import module_io
from fuseflow.frontend.linalg.locations import Origin, to_location
from fuseflow.frontend.linalg.sparse_encodings import Storage, has_encoding, is_encodable, to_encoding
from fuseflow.tensors import Format

BACKEND_PIPELINE = (
    "builtin.module(func.func(torch-match-quantized-custom-ops),torchdynamo-export-to-torch-backend-pipeline{extra-library=})"
)
LINALG_PIPELINE = "builtin.module(torch-backend-to-linalg-on-tensors-backend-pipeline{allow-non-finites=true})"


class _Locations(ContextCache):  # type: ignore[misc]  # torch_mlir is untyped
    """A cache that gives every operation the location of its node."""

    def __init__(self, context: Any, origin_of: Callable[[Node], Origin], **settings: Any) -> None:
        super().__init__(context, **settings)
        self._origin_of = origin_of

    def get_node_location(self, node: Node) -> Any:
        return to_location(self._origin_of(node) if node.op == "call_function" else Origin(), self._c)


def lower_to_linalg(
    graph: Graph, stored: Mapping[str, Storage], dtypes: Mapping[str, str], name: str, origin_of: Callable[[Node], Origin]
) -> Any:
    """Return a Linalg module with one function `name`. `stored` has the storage of each argument, in order, and `dtypes` the element types
    that no type of MLIR has. `origin_of` gives the location of the operations of a node. Raise `FrontendError` if torch-mlir
    cannot lower the graph."""
    context = module_io.new_context()
    importer = FxImporter(context=context)
    importer._cc = _Locations(context, origin_of, py_attr_tracker=importer._py_attr_tracker)
    try:
        importer.import_stateless_graph(graph, func_name=name)
    except Exception as error:  # the importer has no exception of its own
        raise FrontendError(f"torch-mlir cannot import the model: {foreign_message(error)}") from error
    module = importer.module
    module_io.run_pipeline(module, BACKEND_PIPELINE, "lowering to torch-mlir's backend form")
    module_io.run_pipeline(module, LINALG_PIPELINE, "lowering to Linalg")
    module_io.run_pipeline(module, module_io.CLEANUP_PIPELINE, "cleaning up the Linalg")
    with context, ir.Location.unknown():
        _attach_storage(module, stored, dtypes)
    module_io.verify_module(module)
    return module


def _attach_storage(module: Any, stored: Mapping[str, Storage], dtypes: Mapping[str, str]) -> None:
    """Give the arguments their names and encodings. Operations accept a sparse operand with a dense result, so nothing else changes."""
    function = module_io.main_function(module)
    arguments = function.body.blocks[0].arguments
    attributes = []
    for argument, (name, (format, block)) in zip(arguments, stored.items(), strict=True):
        kind, is_sparse = argument.type, bool(block) or format != Format.dense(format.rank)
        is_encoded = is_sparse and is_encodable(str(kind.element_type), block)
        if is_encoded:
            encoding = ir.Attribute.parse(to_encoding(format, block))
            argument.set_type(ir.RankedTensorType.get(kind.shape, kind.element_type, encoding))
        stated = {module_io.NAME_ATTRIBUTE: name}
        if not has_encoding(format) or is_sparse != is_encoded:  # an encoding cannot express the format completely
            stated[module_io.FORMAT_ATTRIBUTE] = str(format)
        if name in dtypes:
            stated[module_io.DTYPE_ATTRIBUTE] = dtypes[name]
        attributes.append(ir.DictAttr.get({key: ir.StringAttr.get(text) for key, text in stated.items()}))
    (*_, return_op) = function.body.blocks[0].operations
    types = ir.FunctionType.get([a.type for a in arguments], [result.type for result in return_op.operands])
    function.attributes["function_type"] = ir.TypeAttr.get(types)
    function.arg_attrs = ir.ArrayAttr.get(attributes)
