"""The whole way of a PyTorch module through the front end, from the module and its inputs to an Einsum program and packed tensors.

The values on the way to the outputs are known, too, where something asks for them. For that, the model is exported once more, with the
names of the nodes of its graph as the locations of its operations. So each Einsum names its node, and PyTorch runs that graph. The last
Einsum of a node has its value; Einsums before it are pieces of one operator.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from torch.fx import GraphModule, Interpreter, Node

from fuseflow.einsum.index_names import with_output_names
from fuseflow.einsum.nodes import Access, Apply, Einsum, Program, TensorType
from fuseflow.einsum.phases import GRADIENT, NEXT
from fuseflow.einsum.sampling_products import sampled_products
from fuseflow.einsum.verify import verify
from fuseflow.errors import FrontendError, UsageError, did_you_mean
from fuseflow.frontend.decompositions.training_step import StepContinuation, TrainedParameter
from fuseflow.frontend.export import ExportedGraph, export_graph, run_eagerly
from fuseflow.frontend.foreign_errors import quiet
from fuseflow.frontend.imported_program import NodeValues, ReferenceOutputs, Source, StepInterface, StepModel
from fuseflow.frontend.linalg.locations import Origin
from fuseflow.frontend.linalg.module_io import print_module
from fuseflow.frontend.linalg.to_einsum import extract_program
from fuseflow.frontend.linalg.torch_mlir import lower_to_linalg
from fuseflow.frontend.torch_tensors import MAX_DENSE_ELEMENTS, dense_array, from_torch
from fuseflow.frontend.trace import fx_origin
from fuseflow.frontend.trace.constant_folding import flops_notice
from fuseflow.frontend.trace.model_call import ModelCall, exported_text, model_call, model_name, named_leaves, with_tensors
from fuseflow.frontend.trace.sparsified_tensors import with_keeps
from fuseflow.frontend.trace.training import Training
from fuseflow.loop_progress import counted
from fuseflow.tensors import Tensor
from fuseflow.training.reference import Reference

if TYPE_CHECKING:
    from fuseflow.frontend.model_spec import TorchModel


def import_model(
    model: TorchModel,
    inputs: Sequence[Any] | Mapping[str, Any] | None = None,
    formats: Mapping[str, str] | None = None,
    name: str = "",
    kwargs: Mapping[str, Any] | None = None,
    training: Training | None = None,
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
    call = call if training is None else training.call_of(call)
    exported = export_graph(call, formats, training)
    linalg, program = _imported_program(exported, name)
    if not program.outputs:
        raise FrontendError("the model returns no tensor", hint="return one from its `forward`")
    verify(program)
    tensors = _packed(exported, program)
    if training is not None:  # PyTorch's own steps change the memory of the module.
        tensors = {name: replace(tensor, values=tensor.values.copy()) for name, tensor in tensors.items()}
    notice = flops_notice(exported.evaluated_flops, program)

    def imported(other: ModelCall) -> Mapping[str, Tensor]:
        again = export_graph(other, formats, training)
        if _imported_program(again, name)[1] != program:
            raise UsageError("these values of the inputs give another program", hint="compile a step for each program")
        return _packed(again, program)

    step = None if training is None else step_interface(training, call, exported, imported)

    def outputs() -> list[npt.NDArray[np.generic]]:
        if step is not None:
            return step_outputs(step, program.outputs)
        return [dense_array(result, name) for name, result in zip(program.outputs, run_eagerly(call), strict=True)]

    return Source(
        program.name,
        program,
        tensors,
        ReferenceOutputs(program.outputs, outputs),
        print_module(linalg),
        notices=(*exported.notices, *(exported.step.notices if exported.step else ()), *([notice] if notice else [])),
        constants=tuple(t.name for t in program.inputs if t.name in exported.constants),
        masks=exported.masks,
        intermediates=dict if step is not None else lambda: _node_values(call, formats, program),
        exported=lambda: exported_text(call),
        step=step,
    )


def _imported_program(exported: ExportedGraph, name: str) -> tuple[Any, Program]:
    """Return the Linalg module of a graph, and its program with the names of the user."""
    linalg, program = _lowered(exported, name, _user_origin)
    if exported.step is not None:
        program = with_shared_places(with_output_names(program, exported.step.outputs), exported.step)
    return linalg, program


def _packed(exported: ExportedGraph, program: Program) -> dict[str, Tensor]:
    types = [replace(program.declared[t.like], name=t.name) if t.like else t for t in program.inputs]
    return {t.name: from_torch(exported.tensors[t.name], t) for t in counted(types, "packing tensors")}


def _lowered(exported: ExportedGraph, name: str, origin_of: Callable[[Node], Origin]) -> tuple[Any, Program]:
    """Return the Linalg module of a graph, and its program. `origin_of` gives the location of the operations of a node."""
    linalg = lower_to_linalg(exported.graph, exported.stored, exported.element_types, name, origin_of)
    return linalg, sampled_products(with_keeps(extract_program(linalg), exported.kept), exported.sampling)


def _user_origin(node: Node) -> Origin:
    """Return the module path, the operator and the line of the user that a node comes from. Without a module, only the name of an Einsum
    begins with the phase of a training step, since a path would say that all such Einsums belong together."""
    name = fx_origin.operator_name(node)
    phase = node.meta.get(fx_origin.PHASE, "")
    if phase and fx_origin.module_path(node) == phase == GRADIENT:
        return Origin("", f"{phase}.{name if name.endswith('.') else ''}", fx_origin.source_span(node))
    if fx_origin.in_library_module(node):
        name = name.removesuffix(".")  # For a LayerNorm called `ln`, `ln.sum` is clear enough.
    return Origin(fx_origin.module_path(node), name, fx_origin.source_span(node))


def _node_values(call: ModelCall, formats: Mapping[str, str], program: Program) -> NodeValues:
    """Return the values that PyTorch computes in a call of a model, by the names of the Einsums of `program`, the import of that call.

    An Einsum that is a piece of one operator has no value, nor has one that only moves elements. A value may have another shape than its
    Einsum, where an operator that moves elements comes after it. An Einsum that depends on a `keep` has none either, since the graph of
    operators does not say which entries are kept. And a value that is NaN somewhere is left out: the graph has dense products in the place
    of sparse ones, in which 0 times infinity is NaN. Raises `FrontendError` if an argument is too large as a dense array.
    """
    exported = export_graph(call, formats)
    _, named = _lowered(exported, program.name, lambda node: Origin(node.name))
    if len(named.einsums) != len(program.einsums):
        raise FrontendError("the model is exported otherwise the second time", hint="its `forward` may draw random numbers")
    last = {node.location.path: einsum for einsum, node in zip(program.einsums, named.einsums, strict=True)}
    nodes = {einsum.name: node for node, einsum in last.items() if node and not isinstance(einsum.body, Access)}
    values = _run(exported, frozenset(nodes.values()))
    return {einsum: values[node] for einsum, node in nodes.items() if node in values}


def _run(exported: ExportedGraph, wanted: frozenset[str]) -> dict[str, npt.NDArray[np.generic]]:
    """Run the graph of a model on its arguments, and return the values of the nodes that are wanted and can be trusted."""
    arguments = [_argument(name, tensor, exported) for name, tensor in exported.tensors.items()]
    kept = _kept(exported)
    interpreter = Interpreter(GraphModule(torch.nn.Module(), exported.graph), garbage_collect_values=False)
    with quiet(), torch.no_grad():
        interpreter.run(*arguments)
        values = {node.name: value for node, value in interpreter.env.items() if isinstance(value, torch.Tensor)}
        trusted = [name for name, value in values.items() if name in wanted - kept and not value.isnan().any()]
    return {name: dense_array(values[name], name) for name in trusted}


def _argument(name: str, tensor: torch.Tensor, exported: ExportedGraph) -> torch.Tensor:
    """Return an argument as the graph takes it: dense, and integers for the truth values of a sparse tensor."""
    if tensor.numel() > MAX_DENSE_ELEMENTS:
        shape = " x ".join(map(str, tensor.shape))
        raise FrontendError(f"`{name}` ({shape}) is too large as a dense array to compute in PyTorch on the way")
    dense = tensor if tensor.layout == torch.strided else tensor.to_dense()
    return dense.to(torch.int32) if dense.dtype == torch.bool and not exported.stored[name][0].all_dense else dense


def _kept(exported: ExportedGraph) -> frozenset[str]:
    """Return the nodes that depend on the marker of a `keep`, which represents a rule and is no tensor of the model."""
    placeholders = (node for node in exported.graph.nodes if node.op == "placeholder")
    dependent = {node for node, name in zip(placeholders, exported.tensors, strict=True) if name in exported.kept}
    for node in exported.graph.nodes:
        if any(operand in dependent for operand in node.all_input_nodes):
            dependent.add(node)
    return frozenset(node.name for node in dependent)


def step_interface(
    training: Training, call: ModelCall, exported: ExportedGraph, imported: Callable[[ModelCall], Mapping[str, Any]]
) -> StepInterface:
    """Return what the inputs and outputs of the program of a training step mean. `imported` returns the inputs for another call. Raise
    `TrainingError` for an optimizer that has taken different numbers of steps of its parameters, if numbers of a step depend on that."""
    step = exported.step
    assert step is not None
    names = {parameter.name: parameter.original for parameter in step.parameters}
    trained = {name: original for name, original in names.items() if original not in step.untouched}
    masks = {names[name]: mask.numpy() for name, mask in exported.weight_masks.items() if name in trained}
    first_step = 1 + training.start.steps_before(trained.values())
    model = StepModel(training.spec, call, imported)
    return StepInterface(trained, tuple(step.draws), masks, training.start.states, first_step, lambda: model)


def step_reference(interface: StepInterface, call: ModelCall, dtype: torch.dtype | None = None) -> Reference:
    """Return what takes steps in PyTorch of the model of a call, with real numbers of a type if one is given."""
    return Reference(call.module, interface.model().training, step_masks(interface), dtype)


def step_masks(interface: StepInterface) -> dict[str, torch.Tensor]:
    """Return the patterns of pruned weights by their names in the model, as PyTorch has them."""
    return {name: torch.from_numpy(mask) for name, mask in interface.masks.items()}


def step_outputs(interface: StepInterface, outputs: Sequence[str]) -> list[npt.NDArray[np.generic]]:
    """Return the outputs of the first step as PyTorch computes them. Raise `FrontendError` for a gradient that PyTorch does not compute."""
    call = interface.model().call
    assert call.criterion is not None
    reference = step_reference(interface, call)
    values = {**reference.initial, **interface.states}
    with quiet(), call.repeatable():
        results = reference.step(values, interface.first_step, call.args, call.criterion.target, kwargs=call.kwargs).results
    names = {name: _original(interface, name) for name in outputs}
    missing = next((name for name, original in names.items() if original not in results), None)
    if missing is not None:
        raise FrontendError(f"the step computes `{missing}`, and PyTorch does not", hint="please report the model")
    return [dense_array(results[original], name) for name, original in names.items()]


def rebound(interface: StepInterface, program: Program, batch: Mapping[str, Any]) -> tuple[ModelCall, dict[str, Any]]:
    """Return the call of a model with other arguments, by name, and the inputs of the program that differ with them.

    Raise `UsageError` for a name that is no argument, and for an argument of another shape or type. Integers and targets decide what a
    program is made of, so with other ones the model is imported again; raise `UsageError` if that gives another program.
    """
    model, batch = interface.model(), with_tensors(dict(batch))
    leaves = dict(named_leaves(model.call))
    for name, value in batch.items():
        if name not in leaves:
            raise UsageError(f"the model has no argument `{name}`", hint=did_you_mean(name, leaves))
        old = leaves[name]
        if (
            not isinstance(value, torch.Tensor)
            or not isinstance(old, torch.Tensor)
            or (value.shape, value.dtype) != (old.shape, old.dtype)
        ):
            raise UsageError(
                f"`{name}` of the batch is {_described(value)}, and the step was compiled for {_described(old)}",
                hint="compile another step for batches of another shape",
            )
    call = model.call.with_leaves([batch.get(name, leaf) for name, leaf in leaves.items()])
    inputs = {tensor.name: tensor for tensor in program.inputs}
    if all(name in inputs and value.is_floating_point() for name, value in batch.items()):
        return call, {name: from_torch(value.detach(), inputs[name]) for name, value in batch.items()}
    own = {*model.training.scalars(1), *(draw.name for draw in interface.draws)}
    carried = {name.removeprefix(f"{NEXT}.") for name in program.outputs}
    return call, {name: tensor for name, tensor in model.imported(call).items() if name in inputs.keys() - own - carried}


def _described(value: Any) -> str:
    return f"{list(value.shape)} of {value.dtype}" if isinstance(value, torch.Tensor) else f"a {type(value).__name__}"


def _original(interface: StepInterface, output: str) -> str:
    """Return the name that PyTorch's step gives an output of a program."""
    kind, dot, name = output.partition(".")
    return f"{kind}{dot}{interface.original(name)}"


def with_shared_places(program: Program, step: StepContinuation) -> Program:
    """Return the program of a step in which the gradient, the states and the new values of a pruned weight have their entries where the
    weight has them (`fuseflow.einsum.structures`), so that no tensor of ones has to say it. A weight that is stored dense has none."""
    for parameter in step.parameters:
        stored = program.declared.get(parameter.name)
        readers = [e for e in program.einsums if parameter.pattern in e.operands] if parameter.pattern else []
        if stored is None or stored.format is None or stored.format.all_dense or len(readers) != 1:
            continue
        (gradient,) = readers
        match gradient.body:
            case Apply(op="mul", args=(Access(tensor=parameter.pattern), body)):
                program = _sharing(program, stored, replace(gradient, body=body), parameter)
    return program


def _sharing(program: Program, weight: TensorType, gradient: Einsum, parameter: TrainedParameter) -> Program:
    """Return a program with another statement for the gradient of a weight, in which all that belongs to the weight is like it."""
    states = set(parameter.states.values())
    results = [gradient.name, *(name for name in program.outputs if name.removeprefix(f"{NEXT}.") in {parameter.name, *states})]
    kept = [t for t in program.tensors if t.name not in (parameter.pattern, *results)]
    tensors = [replace(t, format=None, block=(), like=weight.name) if t.name in states else t for t in kept]
    tensors += [TensorType(name, weight.shape, None, weight.dtype, like=weight.name) for name in results]
    einsums = tuple(gradient if e.name == gradient.name else e for e in program.einsums)
    return replace(program, tensors=tuple(tensors), einsums=einsums)
