"""Tracing: a model runs once, eagerly, and every operator that it calls becomes a node of a graph.

The model runs on the tensors that it was given, so every question of its control flow about an index has an answer: `edge_index.max()` is a
number, and a mask selects as many edges as it selects. For numbers that depend on weights or features, such an answer would hold
for one input alone. Each `NumberRead` says where the model asked, so that a pass that knows the dependences can refuse it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import reduce
from itertools import compress, islice
from typing import Any, Literal
from unittest.mock import patch

import torch
from torch import Tensor, nn
from torch.fx import Graph, GraphModule, Node, proxy
from torch.fx._lazy_graph_module import _use_lazy_graph_module
from torch.fx.experimental import proxy_tensor
from torch.fx.experimental.proxy_tensor import disable_proxy_modes_tracing, make_fx
from torch.nn.modules.module import register_module_forward_hook
from torch.nn.utils.stateless import _reparametrize_module
from torch.utils import _pytree as pytree

from fuseflow.errors import FrontendError
from fuseflow.frontend.linalg.locations import NameAllocator
from fuseflow.frontend.torch_tensors import COLUMN_LAYOUTS, ROW_LAYOUTS, compressed_indices, sorted_entries
from fuseflow.frontend.trace import fx_origin
from fuseflow.frontend.trace.block_scales import BlockScaledWeight, RoundedInputs, block_scaled
from fuseflow.frontend.trace.control_operators import called_directly
from fuseflow.frontend.trace.flex_attention import broadcast_flex_attention
from fuseflow.frontend.trace.input_values import InputValues
from fuseflow.frontend.trace.jagged_tensors import JaggedTensor, jagged_tensors
from fuseflow.frontend.trace.model_call import ModelCall, named_leaves
from fuseflow.frontend.trace.number_reads import NumberRead, NumberReads
from fuseflow.frontend.trace.training_trace import training_trace
from fuseflow.loop_progress import tell
from fuseflow.tensors.dtypes import DTYPES

ArgumentKind = Literal["state", "input", "constant", "draw"]
"""The kind of an argument of a graph: a weight or a buffer, a tensor that the user gave, a tensor that the model made in Python, or one
that a training step draws."""

_ENTER_AUTOCAST, _EXIT_AUTOCAST = torch.amp.autocast_mode._enter_autocast, torch.amp.autocast_mode._exit_autocast
_SWITCHES = (torch._C._set_grad_enabled, _ENTER_AUTOCAST, _EXIT_AUTOCAST)
"""Functions that tracing records and that compute nothing."""
_SHAPED_LIKE = {
    torch.ops.aten.expand_as.default: (torch.ops.aten.expand.default, 1),
    torch.ops.aten.view_as.default: (torch.ops.aten.reshape.default, 1),
    torch.ops.aten.reshape_as.default: (torch.ops.aten.reshape.default, 1),
}
"""Operators that take the shape of a tensor from another one, with the operators that take a shape, and how many operands these keep."""
_MADE_LIKE = {
    torch.ops.aten.new_zeros.default: 0,
    torch.ops.aten.new_ones.default: 1,
    torch.ops.aten.new_full.default: None,
    torch.ops.aten.new_empty.default: 0,
    torch.ops.aten.empty_like.default: 0,
    torch.ops.aten.empty.memory_format: 0,
}
"""Operators that make a tensor, with the number that fills it if they always fill the same. Any number fills an empty one."""

STRIDES = "strides"
"""The entry of the data of a node that has the strides of its result, None for results that have none."""
_RESHAPING_IN_PLACE = frozenset({"squeeze_", "unsqueeze_", "transpose_", "t_", "swapaxes_", "swapdims_"})


@dataclass(frozen=True, slots=True, eq=False)
class Argument:
    """An argument of a traced graph: its name in the model, its tensor, and its kind. `element_type` is the type of its elements where
    PyTorch has none. A `trainable` one is a parameter that a training step changes."""

    name: str
    tensor: Tensor
    kind: ArgumentKind
    element_type: str = ""
    trainable: bool = False

    @property
    def bits(self) -> int:
        """The bits of all elements of a dense tensor."""
        return self.tensor.numel() * (DTYPES[self.element_type].bits if self.element_type else 8 * self.tensor.dtype.itemsize)


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """A traced model. The placeholders of `graph_module` stand for `arguments`, in order. `other_outputs` describes the outputs
    of the model that are no tensors. `unrecorded` are the constants among the arguments that hold what was computed from inputs."""

    graph_module: GraphModule
    arguments: dict[Node, Argument]
    reads: tuple[NumberRead, ...]
    other_outputs: tuple[str, ...]
    unrecorded: list[Node] = field(default_factory=list)

    @property
    def tensors(self) -> dict[str, Tensor]:
        """The tensors of the arguments by name, in order."""
        return {argument.name: argument.tensor for argument in self.arguments.values()}

    @property
    def element_types(self) -> dict[str, str]:
        """The types of elements of the arguments for which PyTorch has none, by name."""
        return {argument.name: argument.element_type for argument in self.arguments.values() if argument.element_type}

    def names(self) -> NameAllocator:
        """Return an allocator in which the names of the arguments are taken."""
        names = NameAllocator()
        for argument in self.arguments.values():
            names.unique(argument.name)
        return names

    def add(self, name: str, tensor: Tensor, element_type: str = "", kind: ArgumentKind = "constant") -> Node:
        """Add an argument behind the others, and return its placeholder."""
        graph = self.graph_module.graph
        with graph.inserting_after(next(reversed(self.arguments))) if self.arguments else graph.inserting_before():
            node = graph.placeholder(f"known_{len(self.arguments)}")
        node.meta["val"] = _element_description(tensor)
        self.arguments[node] = Argument(name, tensor, kind, element_type)
        return node


def trace(call: ModelCall, *, composite: bool = True) -> Trace:
    """Run a model on its inputs and return what it computed as a graph. Raise whatever the model raises, and `FrontendError` for a weight,
    a buffer or an input that is not valid.

    A `composite` trace has the operators that the model calls, such as `linear`. It has none that PyTorch calls inside of function
    transforms (`torch.func.vmap`) and backward passes; the other trace has all, but what a composite operator consists of in its place.
    """
    module = call.module
    leaves = named_leaves(call)
    state = {**dict(module.named_parameters()), **dict(module.named_buffers())}
    names = NameAllocator()
    inputs = [(name, leaf) for name, leaf in leaves if isinstance(leaf, Tensor)]
    scaled = {name: block_scaled(name, value) for name, value in state.items()}
    arguments = list[Argument]()
    for name, value in state.items():
        blocks = scaled[name]
        types = blocks.element_types if blocks else {}
        for part, tensor in (blocks.parts if blocks else {name: value}).items():
            trainable = call.criterion is not None and value.requires_grad
            arguments.append(
                Argument(names.unique(part), sorted_entries(tensor.detach()), "state", types.get(part, ""), trainable)
            )
    arguments += [Argument(names.unique(name), sorted_entries(leaf.detach()), "input") for name, leaf in inputs]
    for argument in arguments:
        _require_valid(argument)  # PyTorch crashes on some tensors that are not
    body = _Body(call, scaled, [leaf for _, leaf in leaves])
    tensors = [_unshared(argument.tensor) for argument in arguments]
    for tensor, (_, leaf) in zip(tensors[len(tensors) - len(inputs) :], inputs, strict=True):
        tensor.requires_grad_(leaf.requires_grad)
    are_floats = [a.tensor.is_floating_point() or a.tensor.is_complex() for a in arguments]
    are_data = [floats and (a.kind == "input" or a.trainable) for a, floats in zip(arguments, are_floats, strict=True)]
    body.input_values.add(compress(tensors, are_data))
    described = list[tuple[Tensor, tuple[int, ...]]]()

    def describe(value: Any, include_real: bool = False) -> Any:
        """Return the description of a result, and note its strides: a dropout draws in their order."""
        description = _element_description(value, include_real)
        if isinstance(value, Tensor) and value.layout == torch.strided:
            described.append((description, value.stride()))
        return description

    # The graph needs no code. Weights and inputs ask for no gradients, but the model may compute some.
    with (
        patch.object(proxy_tensor, "extract_val", describe),
        _lines_of(module.forward),
        _own_matmul(),
        called_directly(),
        broadcast_flex_attention(),
        jagged_tensors(),
        _use_lazy_graph_module(True),
        torch.enable_grad(),
        nullcontext() if call.criterion is None else training_trace(),
    ):
        tracing = make_fx(body, pre_dispatch=composite, record_module_stack=True, record_stack_traces=True)
        shared = [a.trainable and tensor.layout == torch.strided for a, tensor in zip(arguments, tensors, strict=True)]
        memories = [
            tensor.untyped_storage()._cdata if is_shared else 0 for is_shared, tensor in zip(shared, tensors, strict=True)
        ]
        graph_module = tracing(*tensors)
        for argument, tensor, memory in zip(arguments, tensors, memories, strict=True):
            if memory and tensor.untyped_storage()._cdata != memory:
                raise FrontendError(f"the model writes to `{argument.name}`", hint="let the optimizer change parameters")
    strides = {id(description): strides for description, strides in described}
    for node in graph_module.graph.nodes:
        node.meta[STRIDES] = strides.get(id(node.meta.get("val")))
    _write_conversions(graph_module.graph)
    _erase_switches(graph_module.graph)
    _return_views(graph_module.graph)
    _forget_models_of_shape(graph_module.graph)
    placeholders = [node for node in graph_module.graph.nodes if node.op == "placeholder"]
    traced = Trace(graph_module, dict(zip(placeholders, arguments, strict=True)), tuple(body.reads), tuple(body.other_outputs))
    _lift_constants(traced, module, names, body.input_values)
    return traced


class _Body(nn.Module):
    """A model as a function of its weights, its buffers and the tensors among its inputs, which are the leaves of a call. A weight in
    `state` that has parts is computed from them."""

    def __init__(self, call: ModelCall, state: Mapping[str, BlockScaledWeight | None], leaves: list[Any]) -> None:
        super().__init__()
        self.reads: list[NumberRead] = []
        self.other_outputs: list[str] = []
        self.input_values = InputValues()
        self._call, self._state, self._leaves = call, state, leaves
        object.__setattr__(self, "_orig_mod", call.module)  # where `make_fx` looks for module paths

    def forward(self, *tensors: Tensor) -> list[Tensor]:
        inputs = iter(tensors)
        state = {
            name: next(inputs) if blocks is None else blocks.weight(*islice(inputs, len(blocks.parts)))
            for name, blocks in self._state.items()
        }
        rounding = {id(state[name]): blocks for name, blocks in self._state.items() if blocks is not None and blocks.rounds_to}
        leaves = [next(inputs) if isinstance(leaf, Tensor) else leaf for leaf in self._leaves]
        module: nn.Module = self._orig_mod  # type: ignore[assignment]
        with (
            _reparametrize_module(module, state, tie_weights=True),
            NumberReads(self.reads),
            self.input_values,
            RoundedInputs(rounding),
            _modules_that_ran(module),
        ):
            outputs = pytree.tree_leaves(self._call.on(leaves))
        if any(isinstance(leaf, JaggedTensor) for leaf in outputs):
            raise FrontendError("the model returns a nested tensor", hint="return its `values()`")
        self.other_outputs += [type(leaf).__name__ for leaf in outputs if leaf is not None and not isinstance(leaf, Tensor)]
        return [leaf for leaf in outputs if isinstance(leaf, Tensor)]


def _require_valid(argument: Argument) -> None:
    """Raise `FrontendError` for a tensor without numbers, in an unknown layout, or whose indices are not valid."""
    name, tensor = argument.name, argument.tensor
    if tensor.is_meta:
        raise FrontendError(f"tensor `{name}` is on the meta device: it has no numbers", hint="build the model on the CPU")
    if tensor.layout not in (torch.strided, torch.sparse_coo, *ROW_LAYOUTS, *COLUMN_LAYOUTS):
        raise FrontendError(f"tensor `{name}` has the layout {tensor.layout}", hint="use CSR, CSC, BSR, BSC, COO or dense")
    if tensor.layout not in (torch.strided, torch.sparse_coo) and tensor.dim() != 2:
        message = f"tensor `{name}` is a batch of sparse matrices or a sparse matrix of arrays"
        raise FrontendError(message, hint="use COO, or a dense tensor with a format")
    if tensor.layout != torch.strided and (problem := _index_problem(tensor)):
        raise FrontendError(f"tensor `{name}` is not a valid sparse tensor: {problem}", hint="check what it was constructed from")


def _index_problem(tensor: Tensor) -> str:
    """Return the fault in the indices of a sparse tensor, or ''. PyTorch does not check them by default."""
    try:
        if tensor.layout == torch.sparse_coo:
            torch._validate_sparse_coo_tensor_args(tensor._indices(), tensor._values(), tensor.shape, tensor.is_coalesced())
        else:
            positions, minor = compressed_indices(tensor)
            torch._validate_sparse_compressed_tensor_args(positions, minor, tensor.values(), tensor.shape, tensor.layout)
    except RuntimeError as error:
        return str(error).partition("\n")[0]
    return ""


def _lines_of(function: Callable[..., Any]) -> AbstractContextManager[object]:
    """Let a trace note the lines of a function inside the block, as it does for functions that are called `forward`."""
    code = getattr(function, "__code__", None)
    return nullcontext() if code is None else patch.object(proxy, "_STACK_TRACE_ANCHORS", {(code.co_filename, code.co_name)})


@contextmanager
def _own_matmul() -> Iterator[None]:
    """Let `matmul` run as it does without a trace. Its rewriting in Python, which PyTorch uses in a trace, expands a sparse matrix for a
    batch, and no sparse tensor can be expanded."""
    matmul = torch.ops.aten.matmul.default
    with patch.object(matmul, "py_kernels", {}):
        matmul._dispatch_cache.clear()
        try:
            yield
        finally:
            matmul._dispatch_cache.clear()


@contextmanager
def _modules_that_ran(model: nn.Module) -> Iterator[None]:
    """Report, as progress, how many modules of a model have run in the block, of those that have their own `forward`."""
    modules = {id(module._modules) for module in model.modules() if type(module).forward is not nn.Module.forward}
    ran = set[int]()

    def note(module: nn.Module, _inputs: object, _outputs: object) -> None:
        ran.add(id(module._modules))  # which a module shares with the stand-ins that `make_fx` puts in its place
        tell("running the model", len(ran & modules), len(modules))

    tell("running the model", 0, len(modules))
    with register_module_forward_hook(note):
        yield


def _element_description(value: Any, include_real: bool = False) -> Any:
    """Return the description of the result that `make_fx` stores at a node: a tensor without numbers that has the shape and the
    type of the result. A compressed sparse tensor has no strides, which its own function asks for, so it is described as a dense
    one."""
    if isinstance(value, Tensor):
        with torch._C.DisableTorchFunctionSubclass(), disable_proxy_modes_tracing():
            return torch.empty(tuple(value.shape), dtype=value.dtype, device="meta")
    if isinstance(value, list | tuple):
        return type(value)([_element_description(part) for part in value]) if type(value) in (list, tuple) else None
    return value if isinstance(value, int | float | bool) else None


def _unshared(tensor: Tensor) -> Tensor:
    """Return a tensor that a model may write to, without a change to the user's. It is copied only if that happens, or at once if
    PyTorch does not own its memory, since a later copy is not possible then."""
    try:
        return torch._lazy_clone(tensor) if tensor.untyped_storage().resizable() else tensor.clone()
    except RuntimeError:  # It is sparse, or other processes share it.
        return tensor.clone()


def _write_conversions(graph: Graph) -> None:
    """Convert, in place, the operands of operators in autocast regions whose results have another type than their operands promote to.

    PyTorch chooses in such a region, operator by operator, the type in which it computes. The trace has the types of all results, but not
    the conversions. For example, a product of two float32 matrices with a result of bfloat16 rounded both matrices first.
    """
    regions: list[bool] = []
    for node in list(graph.nodes):
        names_its_type = any(isinstance(argument, torch.dtype) for argument in (*node.args, *node.kwargs.values()))
        if node.target is _ENTER_AUTOCAST:
            regions.append(bool(node.args[2]))
        elif node.target is _EXIT_AUTOCAST:
            regions.pop()
        elif regions and regions[-1] and node.op == "call_function" and not names_its_type:
            _convert_operands(node)


def _convert_operands(node: Node) -> None:
    result = node.meta.get("val")
    if not isinstance(result, Tensor) or not result.dtype.is_floating_point:
        return
    values = {operand: operand.meta.get("val") for operand in node.all_input_nodes}
    tensors = {operand: value for operand, value in values.items() if isinstance(value, Tensor)}
    # A tensor without dimensions does not change the type of a result.
    floats = {operand: value for operand, value in tensors.items() if value.dtype.is_floating_point and value.dim() > 0}
    if not floats or reduce(torch.promote_types, [value.dtype for value in floats.values()]) == result.dtype:
        return
    for operand, value in floats.items():
        if value.dtype != result.dtype:
            with node.graph.inserting_before(node):
                converted = node.graph.call_function(torch.ops.aten.to.dtype, (operand, result.dtype))
            converted.meta = {**node.meta, "val": torch.empty_like(value, dtype=result.dtype)}
            node.replace_input_with(operand, converted)


def _erase_switches(graph: Graph) -> None:
    """Remove functions that compute nothing, and note at each call whether gradients were switched off."""
    no_gradient = False
    for node in list(graph.nodes):
        if node.target is torch._C._set_grad_enabled:
            no_gradient = not node.args[0]
        elif no_gradient:
            node.meta[fx_origin.NO_GRADIENT] = True
    for node in reversed(graph.nodes):
        if node.target in _SWITCHES:
            graph.erase_node(node)


def _return_views(graph: Graph) -> None:
    """Replace operators that change the shape of a tensor in place by those that return a view of it. A trace uses the result of such an
    operator wherever the model uses the tensor afterwards."""
    for node in graph.nodes:
        name = fx_origin.short_name(node.target)
        if name in _RESHAPING_IN_PLACE:
            node.target = getattr(getattr(torch.ops.aten, name.removesuffix("_")), node.target._overloadname)


def _forget_models_of_shape(graph: Graph) -> None:
    """Replace operators that read a tensor for its shape alone, as `index.expand_as(x)` does, by operators that name the shape:
    their result does not depend on the numbers."""
    for node in list(graph.nodes):
        if node.target in _SHAPED_LIKE:
            target, operands = _SHAPED_LIKE[node.target]
            node.args = (*node.args[:operands], list(node.meta["val"].shape))
        elif node.target in _MADE_LIKE:
            target, value = torch.ops.aten.full.default, _MADE_LIKE[node.target]
            node.args = (list(node.meta["val"].shape), node.args[2] if value is None else value)
            node.kwargs = {"dtype": node.meta["val"].dtype}
        else:
            continue
        node.target = target


def _lift_constants(traced: Trace, module: nn.Module, names: NameAllocator, input_values: InputValues) -> None:
    """Make every tensor that the model holds in an attribute, or made in Python, an argument."""
    attributes = (
        (fx_origin.joined(path, name), value) for path, part in module.named_modules() for name, value in vars(part).items()
    )
    held = {id(value): name for name, value in attributes if isinstance(value, Tensor)}
    lifted: dict[object, Node] = {}
    for node in list(traced.graph_module.graph.nodes):
        if node.op == "get_attr":
            value = getattr(traced.graph_module, str(node.target))
            if not isinstance(value, Tensor) or torch._C._functorch.is_functorch_wrapped_tensor(value):
                if any(isinstance(user.target, torch._ops.OpOverload) for user in node.users):
                    traced.unrecorded.append(node)  # an operator inside of a function transform
                continue  # a nested graph, or what belongs to one
            if node.target not in lifted:
                name = names.unique(held.get(id(value), "constant"))
                lifted[node.target] = traced.add(name, sorted_entries(value.detach()))
                if input_values.holds(value):
                    traced.unrecorded.append(lifted[node.target])
            node.replace_all_uses_with(lifted[node.target])
            traced.graph_module.graph.erase_node(node)
