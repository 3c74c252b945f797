"""The origin of an FX node: the module path in the user's model, the operator that the user called, and the line of the call.

Tracing and decomposition keep the operator as the custom annotation `operator`, which `densify` sets.
"""

from __future__ import annotations

import os
import re
import sysconfig
import traceback
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.fx import Node

from fuseflow.errors import FrontendError, Span
from fuseflow.frontend.foreign_errors import foreign_message
from fuseflow.frontend.trace.named_region import REGION_KIND

_FRAME = re.compile(r'File "(.+?)", line (\d+), in (.*)')
_ROOT_OR_CALL = re.compile(r"^L\['\w+'\]\.?|@\d+")
"""The parts of a name that are no module path: the variable of the model that Dynamo names, and the number of a later call of a module."""
_FOLDERS = [*(Path(sysconfig.get_path(key)) for key in ("stdlib", "purelib", "platlib")), Path(torch.__file__).parents[1]]
_LIBRARIES = tuple(dict.fromkeys(str(path) for folder in _FOLDERS for path in (folder, folder.resolve())))
"""The folders of libraries: of this Python, and beside PyTorch, which may be of another environment that this one is built on. An
environment may be reached through a link, and files are then named with it."""
REPLACED = "replaced"
"""The key of the metadata of a node that has the name of the operator that the node replaces."""
PHASE = "phase"
"""The key of the metadata of a node behind the forward of a training step that has the phase, with which its path begins."""
NO_GRADIENT = "no_gradient"
"""The key of the metadata of a node that is computed where gradients are switched off."""
_PACKAGE = str(Path(__file__).resolve().parents[2])


def module_path(node: Node) -> str:
    """Return the module path of a node, such as `layer1.lin`, or '' in the model's own `forward`. A second call of a module has the
    same path. A named region in a module is a part of the path of all that it calls: `layer1.attention.lin`. The path of a node behind
    the forward of a training step begins with the phase, as in `grad.layer1.lin`."""
    outer, path = "", ""  # the last module, by its own path and with the regions around it
    for name, kind in (node.meta.get("nn_module_stack") or {}).values():
        if kind == REGION_KIND:
            path = joined(path, name)
            continue
        module = _ROOT_OR_CALL.sub("", str(name))
        if path == outer:
            path = module
        elif module != outer:
            path = joined(path, module.removeprefix(f"{outer}."))
        outer = module
    return joined(node.meta.get(PHASE, ""), path)


def joined(path: str, name: str) -> str:
    """Return a name with a path in front of it, unless one of them is ''."""
    return ".".join(part for part in (path, name) if part)


def named(node: Node, name: str) -> str:
    """Return a name with the module path of a node in front of it."""
    return joined(module_path(node), name)


def in_library_module(node: Node) -> bool:
    """Return whether a node belongs to a module of PyTorch itself, such as nn.LayerNorm. The path of such a node already tells what it
    computes."""
    stack = node.meta.get("nn_module_stack")
    if not stack:
        return False
    kind = next(reversed(stack.values()))[1]
    name = kind if isinstance(kind, str) else f"{kind.__module__}.{kind.__qualname__}"
    return name.startswith("torch.nn.")


def added_call(origin: Node, target: Any, *args: Any, **meta: Any) -> Node:
    """Add a call where its graph inserts nodes, with the module path and the line of the node `origin`."""
    node = origin.graph.call_function(target, args)
    node.meta = {**origin.meta, "val": target(*torch.fx.map_arg(args, lambda n: n.meta["val"])), **meta}
    return node


def operator_name(node: Node) -> str:
    """Return the operator that the user called, such as `log_softmax`, from the annotation or from the target of the node."""
    custom = node.meta.get("custom") or {}
    return str(custom.get("operator") or short_name(node.target))


def short_name(target: object) -> str:
    """Return the name of an operator without its namespace and overload: `log_softmax` for `aten.log_softmax.int`."""
    if isinstance(target, torch._ops.OpOverload):
        return target._schema.name.partition("::")[2]
    return getattr(target, "__name__", str(target))


def shown_operator(node: Node) -> str:
    """Return the operator of a node as a message names it: in full, or the operator that the node replaces."""
    replaced = node.meta.get(REPLACED)
    return str(replaced or (node.target if isinstance(node.target, torch._ops.OperatorBase) else short_name(node.target)))


def is_whole_slice(node: Node) -> bool:
    """Return whether a node is a slice of a whole dimension, as `x[:]` leaves it. Such a slice changes nothing."""
    if short_name(node.target) != "slice":
        return False
    source, result = node.args[0], node.meta.get("val")
    return isinstance(source, Node) and isinstance(result, Tensor) and source.meta["val"].shape == result.shape


def source_span(node: Node) -> Span | None:
    """Return the innermost line of the user's own files that led to the node. Lines of libraries do not count."""
    return _innermost_user_line(_frames_of_trace(node))


def library_line(node: Node) -> str:
    """Return the line of a library that called the operator, such as `torch_geometric/nn/conv/edge_conv.py:58`, or '' if it was the user's
    own code."""
    return next((f"{shown_path(file)}:{line}" for file, line in _frames_of_trace(node)[-1:] if file.startswith(_LIBRARIES)), "")


def _frames_of_trace(node: Node) -> list[tuple[str, int]]:
    return [(m[1], int(m[2])) for m in _FRAME.finditer(node.meta.get("stack_trace") or "")]


def exception_span(error: BaseException) -> Span | None:
    """Return the innermost line of the user's own files on the way to an exception."""
    span = _innermost_user_line(_frames(traceback.extract_tb(error.__traceback__)))
    return exception_span(error.__cause__) if span is None and error.__cause__ is not None else span


def current_span() -> Span | None:
    """Return the innermost line of the user's own files that is running."""
    return _innermost_user_line(_frames(traceback.extract_stack()))


def export_error(error: Exception) -> FrontendError:
    """Return why PyTorch cannot export a model."""
    span = exception_span(error)
    if "DataDependent" in type(error).__name__ or "data-dependent" in str(error).partition("\n")[0]:
        hint = "use `torch.where`, or give the model the number as an argument"
        return FrontendError("control flow, or a number in Python, depends on data", hint=hint, span=span)
    return FrontendError(f"the model cannot be exported: {foreign_message(error)}", span=span)


def shown_path(file: str) -> str:
    """Return the path of a file from the folder of the library that it belongs to, or else as `_display_path` does."""
    library = next((folder for folder in _LIBRARIES if file.startswith(folder)), None)
    return _display_path(file) if library is None else os.path.relpath(file, library)


def _frames(stack: traceback.StackSummary) -> list[tuple[str, int]]:
    return [(frame.filename, frame.lineno or 1) for frame in stack]


def _innermost_user_line(frames: list[tuple[str, int]]) -> Span | None:
    for file, line in reversed(frames):
        if not file.startswith("<") and not file.startswith((*_LIBRARIES, _PACKAGE)):
            return Span(_display_path(file), line)
    return None


def _display_path(file: str) -> str:
    """Return the path of a file, relative to the working directory if the file is below it."""
    relative = os.path.relpath(file)
    return file if relative.startswith("..") else relative
