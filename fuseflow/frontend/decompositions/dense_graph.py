"""The dense graph of a traced graph, which computes the same with simple operators on dense tensors: of a model, or of a training step."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch._functorch.compile_utils import fx_graph_cse
from torch.fx import Graph, GraphModule, Node
from torch.fx._lazy_graph_module import _use_lazy_graph_module
from torch.fx.experimental.proxy_tensor import make_fx
from torch_mlir.extras.fx_decomp_util import get_decomposition_table

from fuseflow.errors import FrontendError
from fuseflow.frontend.decompositions.backward_operators import BACKWARD_DECOMPOSITIONS
from fuseflow.frontend.decompositions.densify import DensifyingInterpreter
from fuseflow.frontend.decompositions.graph_writer import GraphWriter
from fuseflow.frontend.decompositions.operator_formulas import INNER_IDENTITIES
from fuseflow.frontend.decompositions.slices_and_windows import SLICE_WRITES
from fuseflow.frontend.foreign_errors import foreign_message
from fuseflow.frontend.trace import fx_origin
from fuseflow.loop_progress import tell

Continuation = Callable[[GraphWriter, Sequence[Node]], Sequence[Node]]
"""What a training step computes behind the model: it gets the outputs of the model, and returns those of the step."""


def dense_graph(
    traced: GraphModule, arguments: Sequence[Tensor], truths: Sequence[bool], continuation: Continuation | None = None
) -> tuple[Graph, Sequence[FrontendError]]:
    """Return the dense graph of a traced graph, and the errors for operators without a dense form. `arguments` are fake tensors of the mode
    that is active, and `truths` says which of them are truth values in the traced graph. Behind its calls come those of a
    `continuation`. Raise `FrontendError` for an operator that PyTorch cannot trace."""
    calls = [node for node in traced.graph.nodes if node.op not in ("placeholder", "output")]
    try:
        return _traced(traced, arguments, truths, [[call] for call in calls], continuation)
    except FrontendError:
        raise
    except Exception:  # A write to memory that values share, or to a shape, is known to a trace of all calls alone.
        pass
    try:
        return _traced(traced, arguments, truths, [calls], continuation)
    except FrontendError:
        raise
    except Exception as error:
        raise FrontendError(f"the model cannot be written in simple operators: {foreign_message(error)}") from error


def _traced(
    traced: GraphModule,
    arguments: Sequence[Tensor],
    truths: Sequence[bool],
    parts: Sequence[list[Node]],
    continuation: Continuation | None,
) -> tuple[Graph, Sequence[FrontendError]]:
    """Return the dense graph and the errors, where the calls in each of `parts` are traced together."""
    interpreter = DensifyingInterpreter(traced, trains=continuation is not None)

    def run(*tensors: Tensor) -> list[Tensor]:
        writer = GraphWriter(interpreter, [t != 0 if truth else t for t, truth in zip(tensors, truths, strict=True)])
        for done, part in enumerate(parts, 1):
            writer.write(part)
            tell("simplifying operators", done, len(parts))
        outputs: Sequence[Node] = writer.outputs()
        outputs = outputs if continuation is None else continuation(writer, outputs)
        for argument, content in writer.written_arguments().items():
            writer.graph.call_function(torch.ops.aten.copy_.default, (argument, content))
        return [writer.tensor(node) for node in outputs]

    decompositions = {**get_decomposition_table(), **SLICE_WRITES, **INNER_IDENTITIES}
    if continuation is not None:
        decompositions = {**BACKWARD_DECOMPOSITIONS, **decompositions}
    # The graph needs no code. The metadata has module paths and stack traces.
    with _use_lazy_graph_module(True), torch.fx.traceback.preserve_node_meta():
        graph = make_fx(run, decomposition_table=decompositions)(*arguments).graph
    return graph if continuation is None else fx_graph_cse(graph), interpreter.refusals


_NAMES = ("eq", "ne", "lt", "le", "gt", "ge")
_INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)


def compare_alike(graph: Graph) -> None:
    """Replace, in place, numbers with which tensors are compared by numbers of the type of the tensor: integers or floats."""
    for node in graph.nodes:
        name = fx_origin.short_name(node.target) if node.op == "call_function" else ""
        if name not in _NAMES or len(node.args) != 2 or not isinstance(node.args[0], Node):
            continue
        tensor, number = node.args
        value = tensor.meta.get("val")
        if not isinstance(value, Tensor) or not isinstance(number, int | float) or isinstance(number, bool):
            continue
        if value.dtype.is_floating_point:
            node.args = (tensor, float(number))
        elif value.dtype in _INTEGERS and isinstance(number, float):
            name, whole = _whole_comparison(name, number, torch.iinfo(value.dtype).min)
            node.target, node.args = getattr(torch.ops.aten, name).Scalar, (tensor, whole)


def _whole_comparison(name: str, number: float, least: int) -> tuple[str, int]:
    """Return the comparison of integers that is true where their comparison with a float is. `least` is the least integer.

    >>> _whole_comparison("lt", 1.5, -128), _whole_comparison("eq", 1.5, -128), _whole_comparison("ge", float("inf"), -128)
    (('lt', 2), ('lt', -128), ('lt', -128))
    """
    if math.isfinite(number) and number == math.floor(number):
        return name, int(number)
    always, never = ("ge", least), ("lt", least)
    if math.isnan(number) or name in ("eq", "ne"):
        return always if name == "ne" else never
    if math.isinf(number):
        return always if (name in ("lt", "le")) == (number > 0) else never
    return name, math.ceil(number) if name in ("lt", "ge") else math.floor(number)
