"""A PyTorch model with the arguments that it is called with. Whatever the user hands over becomes a module.

Graphs of PyTorch are models, too: graphs of exported programs, and graphs that Dynamo captures for `torch.compile`. A graph runs node by
node. So each operator keeps the module path and the line of the user's code, which the code that PyTorch generates for a graph does not
tell.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import chain, count
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.export import ExportedProgram, export
from torch.fx import GraphModule, Interpreter
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree

from fuseflow.errors import FrontendError, UsageError
from fuseflow.frontend.exported_file.reader import call_arguments
from fuseflow.frontend.foreign_errors import quiet, without_addresses
from fuseflow.frontend.trace.flex_attention import uncompiled
from fuseflow.frontend.trace.fx_origin import export_error, shown_path
from fuseflow.frontend.trace.named_region import region
from fuseflow.tensors.pack import is_scipy

_PART = re.compile(r"\.?_(?:modules|parameters|buffers)\['([^']+)'\]|\.([^.\[]+)")
"""A part of the path of a tensor in the model, as Dynamo writes it: `L['self']._modules['layers']._parameters['weight']`."""
_PLACE = re.compile(r"(# File: )(.+?)(:\d+ in )")


@dataclass(frozen=True, slots=True, eq=False)
class Criterion:
    """What a training step makes of the output of a model: a function of the output and the target that returns the loss."""

    function: Callable[[Any, Any], torch.Tensor]
    target: Any


@dataclass(frozen=True, slots=True, eq=False)
class ModelCall:
    """A module and the arguments of one call of it; and the exported `program` that the module is, if it is one. Every call draws
    the random numbers that PyTorch would draw next where the call is made, and takes the same way through the module: not the
    fast path of PyTorch's transformers, which writes other numbers at padded places, and nothing that `torch.compile` made of the
    user's functions. With a `criterion`, the call is the forward of a training step, and returns the loss. NumPy and scipy arrays become
    tensors."""

    module: nn.Module
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    program: ExportedProgram | None = None
    generator_state: torch.Tensor = field(default_factory=torch.get_rng_state)
    criterion: Criterion | None = None

    def __post_init__(self) -> None:
        for name in ("args", "kwargs"):
            object.__setattr__(self, name, with_tensors(getattr(self, name)))

    def __call__(self) -> Any:
        with self.repeatable():
            return self.on(pytree.tree_leaves(self._inputs))

    @property
    def _inputs(self) -> tuple[Any, ...]:
        target = () if self.criterion is None else (self.criterion.target,)
        return self.args, dict(self.kwargs), *target

    def on(self, leaves: Sequence[Any]) -> Any:
        """Call the module on other leaves of its inputs."""
        args, kwargs, *target = pytree.tree_unflatten(leaves, pytree.tree_structure(self._inputs))
        output = self.module(*args, **kwargs)
        if self.criterion is None:
            return output
        with region("loss"):
            return self.criterion.function(output, *target)

    def with_leaves(self, leaves: Sequence[Any]) -> ModelCall:
        """Return the call with other leaves of its inputs."""
        args, kwargs, *target = pytree.tree_unflatten(leaves, pytree.tree_structure(self._inputs))
        criterion = None if self.criterion is None else replace(self.criterion, target=target[0])
        return replace(self, args=args, kwargs=kwargs, criterion=criterion)

    @contextmanager
    def repeatable(self) -> Iterator[None]:
        """Inside the block, set the random generator to its state when the call was made, and be `deterministic`. All is restored behind
        it."""
        with torch.random.fork_rng(devices=()), self.deterministic():
            torch.set_rng_state(self.generator_state)
            yield

    @contextmanager
    def deterministic(self) -> Iterator[None]:
        """Inside the block, switch fast paths off, and let PyTorch check the sparse tensors that the model makes. All are restored behind
        it."""
        fast = torch.backends.mha.get_fastpath_enabled()
        with uncompiled():
            torch.backends.mha.set_fastpath_enabled(False)
            try:
                with _CheckedPlaces():
                    yield
            finally:
                torch.backends.mha.set_fastpath_enabled(fast)


class _CheckedPlaces(TorchFunctionMode):
    """While it is active, a sparse tensor cannot be made of places that are not valid. By default PyTorch does not check them, and reads
    other memory where they lie outside."""

    _CONSTRUCTORS = frozenset(
        getattr(torch, f"sparse_{kind}_tensor") for kind in ("coo", "compressed", "csr", "csc", "bsr", "bsc")
    )

    def __torch_function__(
        self, func: Callable[..., Any], types: object, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        checked = {"check_invariants": True} if func in self._CONSTRUCTORS else {}
        return func(*args, **(checked | (kwargs or {})))


def model_call(model: object, inputs: Sequence[Any] | Mapping[str, Any] | None, kwargs: Mapping[str, Any] | None) -> ModelCall:
    """Return a call of a module, of a function or of an exported program.

    `inputs` are the positional arguments, or the keyword arguments if they are a mapping. An exported program takes arguments that are not
    given from its example inputs. Raise `FrontendError` for an object that is no model, and `UsageError` for missing arguments.
    """
    name = model_name(model)
    module = _module(model)
    if isinstance(inputs, Mapping) and kwargs is None:
        return model_call(model, (), inputs)
    if isinstance(model, ExportedProgram) and isinstance(inputs, list | tuple | None):
        return ModelCall(module, *call_arguments(model, "the exported program", inputs or (), kwargs or {}), model)
    if inputs is None and kwargs is None:
        raise UsageError(f"the module `{name}` needs inputs to be traced with", hint="compile(module, inputs)")
    if isinstance(inputs, Mapping):
        raise UsageError(f"the inputs of `{name}` are given by name twice", hint="give a mapping as `inputs` or as `kwargs`")
    if inputs is not None and not isinstance(inputs, list | tuple):
        hint = "pass a tuple with one element for each argument of forward, or a mapping with the names of the arguments"
        raise UsageError(f"the inputs of `{name}` are a {type(inputs).__name__}", hint=hint)
    return ModelCall(module, tuple(inputs or ()), dict(kwargs or {}))


def model_name(model: object) -> str:
    """Return the name of a model: the name of a function, or of the class of a module."""
    if isinstance(model, nn.Module | ExportedProgram):
        return type(model).__name__
    return str(getattr(model, "__name__", type(model).__name__))


def _module(model: object) -> nn.Module:
    match model:
        case nn.Module():
            return model
        case ExportedProgram():
            return _keep_origins(model.module(check_guards=False))
        case Callable():
            return _FunctionModule(model)
    hint = "pass a torch.nn.Module, an exported program, or a function of tensors"
    raise FrontendError(f"the model is a {type(model).__name__}", hint=hint)


class _FunctionModule(nn.Module):
    """A function as a module without weights."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.forward = function


def named_leaves(call: ModelCall) -> list[tuple[str, Any]]:
    """Return the leaves of the inputs, container by container, each with the name of its argument of `forward` and its place in it.

    For example, the second tensor of a list `xs` is `xs_1`.
    """
    positional = _names_of_positional(call.module, call.args)
    named: list[tuple[str, Any]] = []
    for path, leaf in pytree.tree_leaves_with_path(call._inputs):
        container, *inner = map(_key, path)
        match container:
            case "0":
                inner[0] = positional[int(inner[0])]
            case "2":
                inner.insert(0, "target")
        named.append(("_".join(inner), leaf))
    return named


def _names_of_positional(module: nn.Module, args: tuple[Any, ...]) -> list[str]:
    try:
        parameters = inspect.signature(module.forward).parameters.values()
    except ValueError:  # a function that is not written in Python, such as `torch.floor`
        return [f"arg{n}" for n in range(len(args))]
    names: list[str] = []
    for parameter in parameters:
        if parameter.kind is parameter.VAR_POSITIONAL:
            names += [f"{parameter.name}_{n}" for n in range(len(args) - len(names))]
        elif parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            names.append(parameter.name)
    return [*names, *(f"arg{n}" for n in range(len(names), len(args)))]


def _key(entry: Any) -> str:
    match entry:
        case pytree.SequenceKey():
            return str(entry.idx)
        case pytree.MappingKey():
            return str(entry.key)
        case pytree.GetAttrKey():
            return str(entry.name)
    return str(entry)


def exported_text(call: ModelCall) -> str:
    """Return the exported program of a call as PyTorch prints it: the given one, or the module's. Paths of files are relative to
    the working directory, or to the folder of libraries, so that equal files have equal texts.

    Raise `FrontendError` if PyTorch cannot export the module.
    """
    program = call.program
    if program is None:
        with quiet(), torch.no_grad(), call.repeatable():
            try:
                program = export(call.module, call.args, dict(call.kwargs), strict=False)
            except Exception as error:  # whatever the model and PyTorch raise
                raise export_error(error) from error
    lines = without_addresses(_PLACE.sub(lambda place: place[1] + shown_path(place[2]) + place[3], str(program))).splitlines()
    return "".join(f"{line.rstrip()}\n" for line in lines).rstrip("\n") + "\n"


def _keep_origins(graph_module: GraphModule) -> GraphModule:
    """Let a graph with a signature run node by node. PyTorch still checks the inputs before."""
    forward = graph_module.forward
    spec = graph_module._in_spec

    @functools.wraps(forward)
    def run(*args: Any, **kwargs: Any) -> Any:
        keywords = spec.child(1).context if spec.num_children == 2 else kwargs
        leaves = pytree.tree_leaves((args, {name: kwargs[name] for name in keywords if name in kwargs}))
        return _run(graph_module, leaves)

    graph_module.forward = run
    return graph_module


class DynamoGraph(nn.Module):
    """A graph that Dynamo captured.

    Parameters and buffers of the user's model, which are inputs of the graph, are parameters and buffers of this module, with the
    names that they have in the model. The other tensors are the arguments of `forward`, in order. Arguments that are numbers keep
    their positions.
    """

    def __init__(self, graph_module: GraphModule, sources: Sequence[str], values: Sequence[Any]) -> None:
        super().__init__()
        object.__setattr__(self, "graph_module", graph_module)  # not a part of this module, which has the user's paths
        owners = {source.partition("]")[0] for source in sources if _state_name(source)}
        prefix = len(owners) > 1  # several models, each in a variable of its own
        self.states = [_state_name(source, prefix) for source in sources]
        self.values = [None if isinstance(value, Tensor) else value for value in values]
        self.inputs: dict[str, Tensor] = {}
        for name, source, value in zip(self.states, sources, values, strict=True):
            if not isinstance(value, Tensor):
                continue
            if name:
                _put(self, name, value)
            else:
                self.inputs[_argument_name(source, self.inputs)] = value

    def forward(self, **inputs: Tensor) -> list[Any]:
        """Run the graph on inputs in their order, and return its outputs in a list."""
        rest = iter(inputs[name] for name in self.inputs)
        arguments = []
        for name, value in zip(self.states, self.values, strict=True):
            if value is not None:
                arguments.append(value)
            else:
                arguments.append(functools.reduce(getattr, name.split("."), self) if name else next(rest))
        outputs: list[Any] = list(_run(self.graph_module, arguments))  # type: ignore[arg-type]
        return outputs


def _run(graph_module: GraphModule, leaves: Sequence[Any]) -> Any:
    with torch.fx.traceback.preserve_node_meta():
        return Interpreter(graph_module).run(*leaves, enable_io_processing=False)


def input_sources(graph_module: GraphModule) -> list[str]:
    """Return the user's expressions for the inputs of a graph, such as `L['x']`. Dynamo drops them when its back end returns."""
    placeholders = [node for node in graph_module.graph.nodes if node.op == "placeholder"]
    names = [getattr(getattr(node.meta.get("grapharg"), "source", None), "name", node.name) for node in placeholders]
    return [str(name() if callable(name) else name) for name in names]


def _state_name(source: str, prefix: bool = False) -> str:
    """Return the path of a parameter or a buffer in the model, or '' for any other input. With a prefix, it begins with the variable.

    >>> _state_name("L['self']._modules['layers']._modules['0']._parameters['weight']"), _state_name("L['x']")
    ('layers.0.weight', '')
    """
    if "._parameters[" not in source and "._buffers[" not in source:
        return ""
    owner, _, path = source.partition("]")
    parts = [key or attribute for key, attribute in _PART.findall(path)]
    return ".".join([*re.findall(r"\w+", owner)[1:], *parts] if prefix else parts)


def _argument_name(source: str, taken: dict[str, Tensor]) -> str:
    """Return a name that is not in `taken` for an input of the user: `k_a` for `L['k']['a']`."""
    words = re.findall(r"\w+", source.removeprefix("L"))
    base = "_".join(words) or "input"
    return next(name for name in chain([base], (f"{base}_{n}" for n in count(2))) if name not in taken)


def _put(module: nn.Module, path: str, tensor: Tensor) -> None:
    """Make a tensor a part of a module by its path. The modules on the way are made."""
    *parents, name = path.split(".")
    for parent in parents:
        if parent not in module._modules:
            module.add_module(parent, nn.Module())
        module = module._modules[parent]  # type: ignore[assignment]
    module.register_buffer(name, tensor.detach())


_LAYOUTS = {"csr": torch.sparse_csr, "csc": torch.sparse_csc, "bsr": torch.sparse_bsr}
"""The PyTorch layout of each format of scipy that PyTorch has as it is."""


def with_tensors(arguments: Any) -> Any:
    """Return arguments with PyTorch tensors in the place of NumPy and scipy arrays, in lists, tuples and dictionaries, too.

    CSR, CSC and BSR stay what they are, and any other sparse array becomes COO; entries at one place are added up. A dense array is
    copied, and a scalar of NumPy becomes a number. Types are kept: an array of 64-bit floats does not fit a layer of 32-bit ones.

    Raise `UsageError` for an array whose elements PyTorch does not have.
    """
    if not any(_is_array(leaf) for leaf in pytree.tree_leaves(arguments)):
        return arguments
    return pytree.tree_map(lambda leaf: _as_tensor(leaf) if _is_array(leaf) else leaf, arguments)


def _is_array(value: Any) -> bool:
    return isinstance(value, np.ndarray | np.generic) or is_scipy(value)


def _as_tensor(array: Any) -> Any:
    if isinstance(array, np.generic):
        return array.item()
    if array.dtype.kind not in "buif" or array.dtype.itemsize > 8:
        hint = "pass integers, truth values or real numbers of at most 64 bits"
        raise UsageError(f"an argument is an array with elements of type `{array.dtype}`", hint=hint)
    if isinstance(array, np.ndarray):
        return torch.from_numpy(np.array(array, order="C", subok=False))
    return _as_sparse_tensor(array)


def _as_sparse_tensor(array: Any) -> torch.Tensor:
    layout = _LAYOUTS.get(array.format) if array.ndim == 2 else None
    if layout is None:
        coo = array.tocoo()
        places = torch.from_numpy(np.stack(coo.coords).astype(np.int64))
        return torch.sparse_coo_tensor(places, torch.from_numpy(coo.data.copy()), coo.shape, check_invariants=True).coalesce()
    array = array.copy()
    array.sum_duplicates()
    above, below, values = (torch.from_numpy(part) for part in (array.indptr, array.indices, array.data))
    with quiet():
        return torch.sparse_compressed_tensor(above, below, values, array.shape, layout=layout, check_invariants=True)
