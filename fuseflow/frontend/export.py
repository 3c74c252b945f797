"""Export of a PyTorch model: it is traced with its sparse tensors, PyTorch evaluates the values that depend on no data, and a
second, dense trace decomposes the rest into simple operators."""

from __future__ import annotations

import operator
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx import Graph, GraphModule, Node
from torch.utils import _pytree as pytree

from fuseflow.errors import FrontendError, SparsityError, TensorError, TrainingError
from fuseflow.frontend.decompositions.complex_pairs import separate_complex
from fuseflow.frontend.decompositions.dense_graph import compare_alike, dense_graph
from fuseflow.frontend.decompositions.training_step import StepContinuation, training_step
from fuseflow.frontend.draws import Draw
from fuseflow.frontend.foreign_errors import ForeignFailure, foreign_message, quiet
from fuseflow.frontend.linalg.sparse_encodings import Storage
from fuseflow.frontend.positions.chosen_matrix import chosen_to_matrices
from fuseflow.frontend.positions.ranking import tie_notices, ties
from fuseflow.frontend.positions.selection_pass import select_data
from fuseflow.frontend.positions.selections import Selections
from fuseflow.frontend.positions.sliced_products import slice_matrices
from fuseflow.frontend.torch_tensors import ranks_of, storage_of, unsigned_types
from fuseflow.frontend.trace import fx_origin
from fuseflow.frontend.trace.complete_trace import complete_trace
from fuseflow.frontend.trace.constant_folding import fold_constants
from fuseflow.frontend.trace.dependence import dependences, remove_unused, shares_memory
from fuseflow.frontend.trace.emptiness import settle_empty
from fuseflow.frontend.trace.expert_modules import grouped_experts
from fuseflow.frontend.trace.layer_rewrites import split_linear_columns, write_batch_norms
from fuseflow.frontend.trace.model_call import ModelCall, named_leaves
from fuseflow.frontend.trace.refusals import (
    raise_all,
    screen_empty,
    screen_lowered,
    screen_mutation,
    screen_program,
    screen_reads,
    untraceable,
)
from fuseflow.frontend.trace.sparsified_tensors import mark_kept, stored_tensors, unstored_masks, weight_patterns
from fuseflow.frontend.trace.stored_places import settle_places
from fuseflow.frontend.trace.tracing import Trace
from fuseflow.frontend.trace.training import Training, drawn_inputs
from fuseflow.sparsity.sparsifiers.sparsifier import KeepRule
from fuseflow.tensors.format import exact_formats


@dataclass(frozen=True, slots=True, eq=False)
class ExportedGraph:
    """A dense graph of simple operators whose arguments are `tensors`, in order.

    Weights and buffers have their PyTorch names, and inputs have the names of the arguments of `forward`. `stored` has the storage of each
    tensor. `notices` tell the user what PyTorch evaluated before, which took `evaluated_flops`. A product with an argument in `kept`
    stands for a `keep` of the other factor by its rule. `constants` are the names of weights, buffers, and of tensors that follow from them
    alone. `element_types` has the types of elements of tensors that MLIR has no type for. `masks` are true at the entries of pruned
    weights that are not pruned, where the storage of a weight does not say it. `sampling` are the names of masks at whose places alone
    products are computed. `weight_masks` are the masks of all pruned weights, and `step` is what a training step computes behind the loss.
    """

    graph: Graph
    tensors: dict[str, Tensor]
    stored: dict[str, Storage]
    notices: list[str]
    evaluated_flops: int
    kept: Mapping[str, KeepRule]
    constants: frozenset[str]
    element_types: Mapping[str, str]
    masks: Mapping[str, npt.NDArray[np.bool_]]
    sampling: frozenset[str]
    weight_masks: Mapping[str, Tensor]
    step: StepContinuation | None


def export_graph(call: ModelCall, formats: Mapping[str, str], training: Training | None = None) -> ExportedGraph:
    """Trace a call of a model, or with `training` the whole step whose loss the call returns. `formats` overrides the layouts of tensors
    by names and patterns. Raise `FrontendError` for an operator that has no Einsum form."""
    with quiet(), torch.no_grad():
        traced, grouped = _trace(call)
        draws: tuple[Draw, ...] = ()
        if training is not None:
            with call.repeatable():
                draws = drawn_inputs(traced)
        refusals = screen_empty(traced)
        settle_empty(traced)
        settle_places(traced)
        split_linear_columns(traced.graph_module)
        patterns = weight_patterns(call.module, all_kept=training is not None)
        write_batch_norms(traced, patterns)
        loops, notices = screen_reads(traced, dependences(traced, of_reads=True))
        refusals += loops
        tied = ties(traced)
        chosen = Selections(traced, dependences(traced))
        depends_on = dependences(traced) if chosen_to_matrices(chosen) else chosen.dependences
        folded, evaluated_flops = fold_constants(traced, depends_on, patterns, formats)
        notices += folded
        constants = frozenset(argument.name for argument in traced.arguments.values() if argument.kind != "input")
        notices += [f"an output of the model that is no tensor but a {kind} is left out" for kind in traced.other_outputs]
        notices += tie_notices(traced, tied)
        if grouped:
            what = "1 module of experts loops" if grouped == 1 else f"{grouped} modules of experts loop"
            notices.append(f"{what} over the experts that tokens chose, and takes the form of `grouped_mm` in the program")
        remove_unused(traced)
        selections = Selections(traced, depends_on, chosen.kept)
        refusals += separate_complex(selections)
        select_data(selections)
        slice_matrices(selections)
        kept = mark_kept(traced, selections.kept, trains=training is not None)
        refusals += kept.refusals
        blocked = screen_program(traced, trains=training is not None)
        refusals += [refusal for node_refusals in blocked.values() for refusal in node_refusals]
        if refusals:
            raise_all([*refusals, *_later_refusals(traced, blocked)], call.module, trains=training is not None)
        step = None if training is None else training_step(traced, training, _trainable(call.module), patterns, draws)
        exact = exact_formats(tuple(formats.items()), ranks_of(traced.tensors), dict, _format_refusal)
        tensors, stored_formats = stored_tensors(
            traced.tensors, {**patterns, **kept.patterns}, {**selections.formats, **exact.formats}
        )
        stored = storage_of(tensors, stored_formats)
        masks = unstored_masks(patterns, tensors)
        graph, without_dense_form = _replay(traced.graph_module, tensors, stored, step)
    refusals = [*without_dense_form, *screen_lowered(graph)]
    refusals = refusals or screen_mutation(graph, list(tensors), trains=training is not None)
    raise_all(refusals, call.module, trains=training is not None)
    return ExportedGraph(
        graph,
        tensors,
        stored,
        [*notices, *exact.notices],
        evaluated_flops,
        kept.rules,
        constants,
        {**unsigned_types(tensors), **traced.element_types},
        masks,
        frozenset({*selections.masks, *(() if step is None else step.patterns)}),
        {name: pattern.mask for name, pattern in patterns.items()},
        step,
    )


def _trainable(module: nn.Module) -> list[str]:
    """Return the names of the parameters that a step trains. Raise `TrainingError` for complex numbers, which no optimizer here knows."""
    parameters = {name: parameter for name, parameter in module.named_parameters() if parameter.requires_grad}
    for name, parameter in parameters.items():
        if parameter.is_complex():
            raise TrainingError(
                f"the parameter `{name}` has complex numbers, and optimizers are formulas of real ones",
                hint="make its real and imaginary parts one parameter of real numbers, and use `torch.view_as_complex` in `forward`",
            )
    return [*parameters]


def _format_refusal(pattern: str, error: TensorError) -> FrontendError:
    return FrontendError(f"format of `{pattern}`: {error.message}", hint=error.hint)


def _later_refusals(traced: Trace, blocked: Collection[Node]) -> list[FrontendError]:
    """Return the refusals of later steps for a model that is refused already. In these steps, an argument replaces each value of
    a `blocked` node, so that users of the value are checked, too. The operands of blocked nodes become outputs, so that they are
    computed and checked."""
    if any(isinstance(node.target, torch._ops.HigherOrderOperator) for node in blocked):
        return []  # No later step knows what to do with its graphs.
    graph = traced.graph_module.graph
    output = graph.output_node()
    operands = [operand for node in blocked for operand in node.all_input_nodes]
    output.args = ([*pytree.tree_leaves(output.args[0]), *dict.fromkeys(operands)],)
    for node in blocked:
        for value_node in [user for user in node.users if user.target is operator.getitem] or [node]:
            value = value_node.meta.get("val")
            if not isinstance(value, Tensor):
                return []
            stand_in = torch.zeros((), dtype=value.dtype).expand(value.shape)
            value_node.replace_all_uses_with(traced.add(f"blocked.{value_node.name}", stand_in))
    graph.eliminate_dead_code()
    stored, refusals = dict[str, Storage](), list[FrontendError]()
    for name, tensor in traced.tensors.items():
        try:
            stored |= storage_of({name: tensor}, {})
        except FrontendError as error:
            refusals.append(error)
    if refusals:
        return refusals
    try:
        dense, without_dense_form = _replay(traced.graph_module, traced.tensors, stored)
        return [*without_dense_form, *screen_lowered(dense)]
    except FrontendError as error:
        return [error]


def run_eagerly(call: ModelCall) -> list[Tensor]:
    """Return the tensors that the model returns, in order. Raise `FrontendError` if PyTorch cannot run the model, and `SparsityError` if a
    rule does not fit what it computes."""
    try:
        with quiet():
            leaves = pytree.tree_leaves(_result(call))
    except SparsityError:  # of a rule that does not fit an intermediate
        raise
    except Exception as error:  # whatever the model and PyTorch raise
        message = f"the model fails in PyTorch itself: {foreign_message(error)}"
        sparse = any(isinstance(x, Tensor) and x.layout != torch.strided for x in pytree.tree_leaves((call.args, call.kwargs)))
        advice = "`.to_dense()` in the model changes nothing in how a tensor is stored here"
        hint = advice if sparse and "sparse" in message.lower() else ""
        if "dtype" in message or "scalar type" in message:
            hint = 'give all arguments one type: NumPy computes in 64 bits, and layers in 32: `x.astype("float32")`'
        raise ForeignFailure(
            message, hint=hint, notes=_argument_notes(call, message), span=fx_origin.exception_span(error)
        ) from error
    return [leaf.detach() for leaf in leaves if isinstance(leaf, Tensor)]


def _argument_notes(call: ModelCall, message: str) -> tuple[str, ...]:
    """Return a note with the arguments of a call, for a message about shapes or types. A call of many tensors has none."""
    tensors = [(name, leaf) for name, leaf in named_leaves(call) if isinstance(leaf, Tensor)]
    if len(tensors) > 8 or not re.search(r"shape|size|dtype|scalar type|dimension", message):
        return ()
    kinds = (f"`{name}` {list(tensor.shape)} {str(tensor.dtype).removeprefix('torch.')}" for name, tensor in tensors)
    return (f"the arguments are {', '.join(kinds)}",) if tensors else ()


def _result(call: ModelCall) -> Any:
    """Return what a model returns. Gradients cost memory, so PyTorch keeps what they need only if the model fails without."""
    try:
        with torch.no_grad():
            return call()
    except RuntimeError as error:
        if "require grad" not in str(error):
            raise
    with torch.enable_grad():
        return call()


def _trace(call: ModelCall) -> tuple[Trace, int]:
    """Return the trace of a call, and how many modules of experts multiplied in groups in it."""
    try:
        # MKLDNN's own kernels cannot all be traced.
        with torch.backends.mkldnn.flags(enabled=False), grouped_experts(call.module) as grouped:
            return complete_trace(call), grouped
    except (FrontendError, TrainingError):
        raise
    except Exception as error:  # whatever the model and PyTorch raise
        run_eagerly(call)  # says so if the model itself fails
        raise untraceable(error) from error


def _replay(
    traced: GraphModule, tensors: dict[str, Tensor], stored: dict[str, Storage], step: StepContinuation | None = None
) -> tuple[Graph, Sequence[FrontendError]]:
    """Return the graph in its dense form, of simple operators, and the errors for operators without a dense form. With a `step`, the graph
    goes on with what the step computes behind the loss."""
    # MLIR has no sparse tensors of truth values, so they arrive as integers.
    truths = [t.dtype == torch.bool and not stored[name][0].all_dense for name, t in tensors.items()]
    with FakeTensorMode(allow_non_fake_inputs=True):
        dtypes = [torch.int32 if truth else t.dtype for t, truth in zip(tensors.values(), truths, strict=True)]
        fake = [torch.empty(tuple(t.shape), dtype=dtype) for t, dtype in zip(tensors.values(), dtypes, strict=True)]
        graph, refusals = dense_graph(traced, fake, truths, step)
    _forget_places_of_writes(graph)
    compare_alike(graph)
    graph.eliminate_dead_code()
    return graph, refusals


def _forget_places_of_writes(graph: Graph) -> None:
    """Let operators that write to their operand, which PyTorch's own decompositions contain, return their result. In the trace,
    each later use of the operand is a use of the result. A write to a view stays, since the tensor that it views changes, too."""
    for node in graph.nodes:
        name = fx_origin.short_name(node.target) if isinstance(node.target, torch._ops.OpOverload) else ""
        if name.endswith("_") and not name.startswith("_") and not shares_memory(getattr(node.args[0], "target", None)):
            packet = getattr(torch.ops.aten, name.removesuffix("_"), None)
            node.target = getattr(packet, node.target._overloadname, None) or node.target
