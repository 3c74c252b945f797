"""The arguments of a call by the names of the operator's signature: the signature of a Python function, or the schema of a built-in one."""

from __future__ import annotations

import functools
import inspect
import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

Operator: TypeAlias = Callable[..., Any]

_DUNDERS = {"__add__": "add", "__radd__": "add", "__sub__": "sub", "__mul__": "mul", "__rmul__": "mul", "__truediv__": "div"}
_DUNDERS |= {"__div__": "div", "__matmul__": "matmul", "__neg__": "neg", "__abs__": "abs", "__eq__": "eq", "__pow__": "pow"}


@functools.cache
def canonical(operator: Operator) -> Operator:
    """Return the function that an operator is another spelling of, or the operator itself: `torch.mm` for the method `torch.Tensor.mm`,
    `torch.add` for `+`, and `torch.nn.functional.linear` for the operator of ATen that stands in exported programs.

    Both have the same order of tensors. A method may take numbers one by one where the function takes a list."""
    if isinstance(operator, torch._ops.OpOverload):
        name = operator._schema.name.removeprefix("aten::")
        public: list[Operator] = [getattr(module, name) for module in (torch.nn.functional, torch) if hasattr(module, name)]
        return public[0] if public else operator
    name = getattr(operator, "__name__", "")
    if getattr(torch.Tensor, name, None) is not operator:
        return operator
    function: Operator | None = getattr(torch, _DUNDERS.get(name, name), None)
    return function if callable(function) and not isinstance(function, type) and _is_method(function) else operator


def _is_method(function: Operator) -> bool:
    """Return whether a function has its tensor in the first place, as its method does: `x.where(mask, y)` is `torch.where(mask, x, y)`."""
    return not any("self" in list(signature.parameters)[1:] for signature in _signatures(function))


def operator_name(operator: Operator) -> str:
    """Return how an operator is written, such as `torch.nn.functional.linear`."""
    if isinstance(operator, torch._ops.OpOverload):
        return f"torch.ops.{operator}"
    name = getattr(operator, "__name__", "")
    if name and getattr(torch, name, None) is operator:  # Some functions have several names.
        return f"torch.{name}"
    return str(torch.overrides.resolve_name(operator) or getattr(operator, "__qualname__", repr(operator)))


@dataclass(frozen=True, slots=True)
class Slot:
    """A mark for a tensor among the arguments of a call. Its number is the position in the order of passing."""

    number: int


class Arguments(Mapping[str, Any]):
    """The arguments of a call by their names, with defaults for arguments that were not passed. It notes which were read."""

    def __init__(self, content: Mapping[str, Any], optional: frozenset[str]) -> None:
        self._content, self._unread = dict(content), set(content) - optional

    def __getitem__(self, name: str) -> Any:
        self._unread.discard(name)
        return self._content[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._content)

    def __len__(self) -> int:
        return len(self._content)

    def read_all(self) -> None:
        """Mark all arguments as read."""
        self._unread.clear()

    def release(self) -> None:
        """Forget the tensors, so that no gradient keeps a tensor that it does not need."""
        for name, value in self._content.items():
            if any(isinstance(leaf, torch.Tensor) for leaf in pytree.tree_leaves(value)):
                self._content[name] = None

    def ignored(self) -> list[str]:
        """Return the names of the arguments that nobody has read but that matter: no tensors, and not at their default."""
        return [name for name in self._content if name in self._unread]


@dataclass(frozen=True, slots=True)
class Binding:
    """A call whose tensors are replaced by slots. `names` are its arguments by name, and `order` the slots in the order of the signature.
    `plain` are the names that an implementation need not read: tensors, and arguments with their default value."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    names: dict[str, Any]
    order: tuple[int, ...]
    plain: frozenset[str]


def bind(operator: Operator, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[Binding, list[torch.Tensor]]:
    """Return a call with slots for tensors, and its tensors in the order in which they were passed.

    An operator whose signature is not known has its arguments under the names `0`, `1`, and so on. The old spelling `x.add(2, y)`, which
    PyTorch still takes, is `x.add(y, alpha=2)`.
    """
    if operator is torch.add and len(args) == 3 and isinstance(args[2], torch.Tensor):
        args, kwargs = (args[0], args[2]), {**kwargs, "alpha": args[1]}
    tensors: list[torch.Tensor] = []

    def slot(leaf: Any) -> Any:
        if not isinstance(leaf, torch.Tensor):
            return leaf
        tensors.append(leaf)
        return Slot(len(tensors) - 1)

    slots, named = pytree.tree_map(slot, (tuple(args), dict(kwargs)))
    names, defaults = _names(operator, slots, named)
    order = tuple(leaf.number for leaf in _slots(names))
    plain = frozenset(n for n, v in names.items() if _slots(v) or v is None or (n in defaults and _same(defaults[n], v)))
    return Binding(slots, named, names, order, plain), tensors


def fill(content: Any, tensors: list[torch.Tensor]) -> Any:
    """Return a structure in which each slot is replaced by its tensor."""
    return pytree.tree_map(lambda leaf: tensors[leaf.number] if isinstance(leaf, Slot) else leaf, content)


def _slots(content: Any) -> list[Slot]:
    return [leaf for leaf in pytree.tree_leaves(content) if isinstance(leaf, Slot)]


def _same(first: Any, second: Any) -> bool:
    return type(first) is type(second) and bool(first == second)


def _names(operator: Operator, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the arguments of a call by name, in the order of the signature, and the defaults of its parameters."""
    for signature, passed in itertools.product(_signatures(operator), _spellings(args)):
        names = {"input": "self"} if "self" in signature.parameters and "input" not in signature.parameters else {}
        try:
            bound = signature.bind(*passed, **{names.get(name, name): value for name, value in kwargs.items()})
        except TypeError:
            continue
        if all(_fits(signature.parameters[name], value) for name, value in bound.arguments.items()):
            bound.apply_defaults()
            return dict(bound.arguments), {p.name: p.default for p in signature.parameters.values() if p.default is not p.empty}
    return {**{str(place): value for place, value in enumerate(args)}, **kwargs}, {}


def _spellings(args: tuple[Any, ...]) -> tuple[tuple[Any, ...], ...]:
    """Return the arguments as they are, and with whole numbers at their end as a list: `x.permute(1, 0)` is `x.permute((1, 0))`."""
    numbers = list(itertools.takewhile(lambda value: type(value) is int, reversed(args)))
    return (args, (*args[: -len(numbers)], tuple(reversed(numbers)))) if numbers else (args,)


def _fits(parameter: inspect.Parameter, value: Any) -> bool:
    """Return whether an argument may be passed for a parameter: tensors, and lists of tensors, fit only parameters that a schema
    declares as tensors."""
    if not isinstance(parameter.annotation, torch.Type):
        return True
    wants_tensors = "Tensor" in str(parameter.annotation)
    return (
        wants_tensors == bool(_slots(value))
        or value is None
        or (isinstance(value, Slot) and "Scalar" in str(parameter.annotation))
    )


@functools.cache
def _signatures(operator: Operator) -> tuple[inspect.Signature, ...]:
    """Return the signatures that an operator can be called by: one of a Python function, or one for each schema of a built-in one."""
    if inspect.isfunction(operator):
        return (inspect.signature(operator),)
    packet = aten_packet(operator)
    if packet is None:
        return ()
    return tuple(_signature(schema) for schema in schemas_of(packet))


def aten_packet(operator: Operator) -> Any:
    """Return the operator of ATen that has the name of a built-in function, with all its overloads, or None."""
    if isinstance(operator, torch._ops.OpOverload):
        return operator.overloadpacket
    name = getattr(operator, "__name__", "")
    if inspect.isfunction(operator) or name.startswith("__"):
        return None
    return getattr(torch.ops.aten, name, None)


def schemas_of(packet: Any) -> Iterator[Any]:
    """Return the schemas of all overloads of an operator of ATen."""
    return (getattr(packet, name)._schema for name in packet.overloads())


def _signature(schema: Any) -> inspect.Signature:
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return inspect.Signature(
        [
            inspect.Parameter(
                argument.name if argument.name.isidentifier() and argument.name != "from" else "from_",
                kinds[argument.kwarg_only],
                default=argument.default_value if argument.has_default_value() else inspect.Parameter.empty,
                annotation=argument.type,
            )
            for argument in schema.arguments
        ]
    )


class _Casts(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """A mode that notes the casts of autocast: the new type of each tensor, by its `id`. The operator itself does not run."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.types: dict[int, torch.dtype] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Mapping[str, Any] | None = None) -> Any:
        if func is not torch.ops.aten._to_copy.default:
            raise _Stop
        self.types[id(args[0])] = (kwargs or {})["dtype"]
        return args[0]


class _Stop(Exception):
    """Raised where autocast is done and the operator itself would run now."""


def autocast(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments of a call with the types in which autocast would run it on dense tensors. Casts have gradients."""
    if not torch._C._is_any_autocast_enabled():
        return args, kwargs
    leaves, structure = pytree.tree_flatten((args, kwargs))
    shadows = [  # tensors of the same shape, type and device that take no memory
        torch.empty((), dtype=leaf.dtype, device=leaf.device).expand(leaf.shape) if isinstance(leaf, torch.Tensor) else leaf
        for leaf in leaves
    ]
    casts = _casts(function, *pytree.tree_unflatten(shadows, structure))
    cast = [leaf.to(casts[id(shadow)]) if id(shadow) in casts else leaf for leaf, shadow in zip(leaves, shadows, strict=True)]
    result: tuple[tuple[Any, ...], dict[str, Any]] = pytree.tree_unflatten(cast, structure)
    return result


def _casts(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[int, torch.dtype]:
    casts = _Casts()
    try:
        with torch._C.DisableTorchFunction(), casts:
            function(*args, **kwargs)
    except Exception:  # Nothing was computed. The execution of a faulty call raises its error.
        pass
    return casts.types
