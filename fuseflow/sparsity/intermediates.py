"""Intermediates by name: the tensors that a model computes, without tracing it.

The result of a module is called by the path of the module, such as `layer1.act`. The result of a function that a module calls in its own
forward is called by the path and the function, such as `layer1.relu`; a second call there is `layer1.relu_2`. Hooks keep track of the
module that runs, and one mode, which is entered with the outermost module, sees the functions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.fx.experimental.proxy_tensor import get_proxy_mode
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import _disable_current_modes

from fuseflow.errors import SparsityError, did_you_mean
from fuseflow.sparsity.keep_operator import format_text, keep, masked
from fuseflow.sparsity.layouts.layout import Layout
from fuseflow.sparsity.sparsifiers.built_in import KeepAll, RandomFraction
from fuseflow.sparsity.sparsifiers.sparsifier import Sparsifier
from fuseflow.sparsity.spec import IntermediateEntry, OutputFormat, last_match
from fuseflow.sparsity.user_classes import ClassLayout, ClassSparsifier
from fuseflow.sparsity.weights import replica, weight_names

Visit = Callable[[str, Tensor], Tensor]
"""A function that is called with the name of each intermediate and its tensor, and returns the tensor that replaces it."""


class _Calls(TorchFunctionMode):
    """The mode that sees the functions which the running modules call."""

    def __init__(self, watch: Watch) -> None:
        super().__init__()
        self._watch = watch

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        name = getattr(func, "__name__", "")
        if (
            not self._watch.sees(self)
            or not isinstance(result, Tensor)
            or not result.is_floating_point()
            or name.startswith("__")
        ):
            return result
        path, calls = self._watch.frames[-1]
        calls[name] = count = calls.get(name, 0) + 1
        call = name if count == 1 else f"{name}_{count}"
        return self._watch.replacement(f"{path}.{call}" if path else call, result)


class Watch:
    """The watch over all runs of a model until it is removed: it calls `visit` for every intermediate, and `begin` before a run.

    A submodule that runs alone is a run, too, but `end` is called only when the model itself has run.
    """

    replacing: ClassVar[bool] = False
    """Whether a watch (of any model) is now replacing an intermediate. Functions called meanwhile are not visited."""

    def __init__(self, model: nn.Module, visit: Visit, begin: Callable[[], None], end: Callable[[], None]) -> None:
        self.frames: list[tuple[str, dict[str, int]]] = []
        """The modules whose forward runs: the path of each, and how often it has called each function."""
        self._visit, self._begin, self._end = visit, begin, end
        self._mode: _Calls | None = None
        self._handles: list[Any] = []
        for path, module in model.named_modules():
            hook = _Hook(self, path)
            self._handles.append(module.register_forward_pre_hook(hook))
            self._handles.append(module.register_forward_hook(hook, always_call=True))

    def remove(self) -> None:
        """Remove the hooks from all modules of the model."""
        for handle in self._handles:
            handle.remove()

    def sees(self, mode: _Calls) -> bool:
        """Return whether the model calls the functions that a mode sees. The mode of a run that was interrupted from the keyboard
        stays behind: PyTorch calls no hooks then."""
        return mode is self._mode and bool(self.frames) and not Watch.replacing

    def enter(self, path: str) -> None:
        if not path:
            self.frames.clear()
        if not self.frames:
            self._begin()
            self._mode = _Calls(self)
            self._mode.__enter__()  # type: ignore[no-untyped-call]
        self.frames.append((path, {}))

    def leave(self, path: str, output: Any) -> Any:
        """Return the tensor that replaces the output of a module, or the output itself. After an error, `output` is None."""
        if self.frames:
            self.frames.pop()
        if not self.frames and self._mode is not None:
            self._mode.__exit__(None, None, None)  # type: ignore[no-untyped-call]
            self._mode = None
        if isinstance(output, Tensor) and output.is_floating_point() and path:
            output = self.replacement(path, output)
        if not path and output is not None:
            self._end()
        return output

    def replacement(self, name: str, tensor: Tensor) -> Tensor:
        """Return the tensor that replaces an intermediate. Functions that are called to make it are no part of any model."""
        outer, Watch.replacing = Watch.replacing, True
        try:
            return self._visit(name, tensor)
        finally:
            Watch.replacing = outer


@dataclass(slots=True, eq=False)
class _Hook:
    """A hook that is called before a module runs, and with its output when it has run or has raised. It is an object, so that each
    copy of a model has another watch."""

    watch: Watch
    path: str

    def __call__(self, module: nn.Module, args: Any, *output: Any) -> Any:
        if output:
            return self.watch.leave(self.path, *output)
        self.watch.enter(self.path)
        return None


class Sparsification:
    """The rules of intermediates of a model, applied in every run."""

    def __init__(self, rules: dict[str, IntermediateEntry]) -> None:
        self._rules = rules
        self._names: set[str] = set()
        self._matches: set[str] = set()

    def begin(self) -> None:
        self._names.clear()
        self._matches.clear()

    def visit(self, name: str, tensor: Tensor) -> Tensor:
        entry: IntermediateEntry | None = last_match(self._rules.items(), name)
        if entry is not None:
            if name in self._matches:
                raise SparsityError(
                    f"the intermediate `{name}` is made twice in one run", hint="its module runs twice; name what is made once"
                )
            self._matches.add(name)
        self._names.add(name)
        if entry is None:
            return tensor
        try:
            return sparse_intermediate(tensor, entry)
        except SparsityError as error:
            raise SparsityError(f"the intermediate `{name}`: {error.message}", hint=error.hint) from None

    def end(self) -> None:
        """Raise `SparsityError` for a rule if the run has made no tensor that it names."""
        for pattern, entry in self._rules.items():
            if not any(last_match(((pattern, entry),), name) for name in self._names):
                hint = f"{did_you_mean(pattern, self._names)} (`sp.names(model, *inputs)` lists all)"
                raise SparsityError(f"the model makes no intermediate called `{pattern}`", hint=hint)


def sparse_intermediate(tensor: Tensor, entry: IntermediateEntry) -> Tensor:
    """Return a computed tensor with 0 for the entries that its rule does not keep."""
    output, grad_rule = entry.output, "" if entry.grad is None else format_text(entry.grad)
    parts = (output.inline, output.tmp, output.external, output.layout)
    if not any(isinstance(part, RandomFraction | ClassSparsifier | ClassLayout) for part in parts):
        return _kept(tensor, output, grad_rule)
    for part in parts:
        if isinstance(part, ClassSparsifier | ClassLayout):
            _require_eager(part)
        if isinstance(part, RandomFraction):
            tensor = _drawn(tensor, part)
        elif isinstance(part, ClassSparsifier):
            tensor = masked(tensor, part.select(tensor.detach()).to(tensor.dtype))
        elif isinstance(part, Sparsifier) and not isinstance(part, KeepAll):
            tensor = _kept(tensor, OutputFormat(inline=part), "")
    return _kept(tensor, OutputFormat(), grad_rule) if grad_rule else tensor


def _require_eager(part: Sparsifier | Layout) -> None:
    """Raise `SparsityError` if a model is exported or compiled: a trace would record what a user's class does to one tensor only."""
    if torch.compiler.is_compiling() or get_proxy_mode() is not None:
        raise SparsityError(
            f"`{part}` is a class of your own, which runs in eager PyTorch only",
            hint="a rule that is compiled is a sparsifier or a layout with a text, such as `threshold:0.1`",
        )


def _kept(tensor: Tensor, output: OutputFormat, grad_rule: str) -> Tensor:
    sparse: Tensor = keep(tensor, format_text(output), grad_rule)
    return sparse


def _drawn(tensor: Tensor, sparsifier: RandomFraction) -> Tensor:
    """Return a tensor with 0 for entries that a draw drops. The draw ignores their values, so that a trace sees only the mask."""
    with _disable_current_modes():
        drawn = torch.empty(tuple(map(int, tensor.shape)), dtype=tensor.dtype, device=tensor.device)
        mask = sparsifier.select(drawn).to(tensor.dtype)
    product: Tensor = masked(tensor, mask)
    return product


def install(model: nn.Module, rules: dict[str, IntermediateEntry]) -> None:
    """Let every run of a model apply rules to its intermediates."""
    sparsification = Sparsification(rules)
    Watch(model, sparsification.visit, sparsification.begin, sparsification.end)


def uninstall(model: nn.Module) -> None:
    """Let a model, and the modules inside of it, apply no rules of their own any more. The rules of a model around it stay."""
    for module in model.modules():
        for hook in [*module._forward_pre_hooks.values()]:
            if isinstance(hook, _Hook) and not hook.path:
                hook.watch.remove()


@dataclass(frozen=True, slots=True)
class Names:
    """The qualified names of the weights of a model, and the names of the intermediates of one run of it, in order."""

    weights: tuple[str, ...]
    intermediates: tuple[str, ...]

    def __str__(self) -> str:
        sections = (("weights", self.weights), ("intermediates", self.intermediates))
        return "\n".join(f"{title}:" + "".join(f"\n  {name}" for name in names) for title, names in sections)


def names(model: nn.Module, *inputs: Any, **kwargs: Any) -> Names:
    """Run a copy of a model on its inputs and return the names of its weights and intermediates. Nothing is traced, so that the
    model may do whatever Python can.

    >>> print(names(nn.Sequential(nn.Linear(2, 3), nn.ReLU()), torch.ones(1, 2)))
    weights:
      0.weight
      0.bias
    intermediates:
      0.linear
      0
      1.relu
      1
    """
    order: dict[str, None] = {}

    def visit(name: str, tensor: Tensor) -> Tensor:
        order.setdefault(name)
        return tensor

    copied = replica(model)
    Watch(copied, visit, begin=lambda: None, end=lambda: None)
    with torch.no_grad(), torch.random.fork_rng(devices=()):
        copied(*inputs, **kwargs)
    return Names(tuple(name for group in weight_names(model).values() for name in group), tuple(order))


def own_name(model: nn.Module, name: str) -> str:
    """Return the name of an intermediate in fuseflow, given that name or the name in `torch.fx`.

    In the layer of a transformer, whose `intermediate` calls the module `act`, whose forward calls `gelu`, the name `intermediate.gelu` of
    `torch.fx` is our `intermediate.act.gelu`. A name that is neither, or is of a module that cannot be traced, stays.
    """
    modules = dict(model.named_modules())
    prefix, _, last = name.rpartition(".")
    if any(mark in name for mark in "*?[") or name in modules or prefix not in modules:
        return name
    try:
        graph = torch.fx.symbolic_trace(modules[prefix]).graph
    except Exception:  # whatever the forward of a user raises when it is called with proxies
        return name
    calls: Counter[str] = Counter()
    names = {}
    for node in graph.nodes:
        if node.op in ("call_function", "call_method"):
            called = node.target if isinstance(node.target, str) else getattr(node.target, "__name__", "")
            inner = [path for path, _ in node.meta.get("nn_module_stack", {}).values()][-1:]
            path = ".".join(part for part in (prefix, *inner, called) if part)
            calls[path] += 1
            names[node.name] = path if calls[path] == 1 else f"{path}_{calls[path]}"
    return name if name in names.values() else names.get(last, name)
