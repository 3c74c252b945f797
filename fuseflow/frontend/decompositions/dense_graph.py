"""The dense graph of a traced graph, which computes the same with simple operators on dense tensors: of a model, or of a training step."""

from __future__ import annotations

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
