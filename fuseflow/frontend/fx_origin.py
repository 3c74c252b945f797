"""Where an FX node comes from: the user's module path, the operator they called and the line where they called it.

The operator is carried through tracing and decomposition as the custom annotation `operator` (see `densify`).
"""

from __future__ import annotations

import os
import re
import sysconfig
import traceback
from pathlib import Path

import torch
from torch import Tensor
from torch.fx import Node

from fuseflow.errors import Span

_FRAME = re.compile(r'File "(.+?)", line (\d+), in (.*)')
_LIBRARIES = tuple(str(Path(sysconfig.get_path(key)).resolve()) for key in ("stdlib", "purelib", "platlib"))
_HERE = str(Path(__file__).resolve().parents[1])


def module_path(node: Node) -> str:
    """`layer1.lin`; '' in the model's own forward. A second call of the same module has the same path."""
    stack = node.meta.get("nn_module_stack")
    if not stack:
        return ""
    path = str(next(reversed(stack.values()))[0]).replace("L['self'].", "").replace("L['self']", "")
    return re.sub(r"@\d+", "", path)


def module_suffix(node: Node) -> str:
    """ " at module 'layer1'", for messages; '' at the top."""
    path = module_path(node)
    return f" at module `{path}`" if path else ""


def in_library_module(node: Node) -> bool:
    """Whether the node belongs to a module of PyTorch itself (nn.LayerNorm), so that its path already says what it does."""
    stack = node.meta.get("nn_module_stack")
    if not stack:
        return False
    kind = next(reversed(stack.values()))[1]
    name = kind if isinstance(kind, str) else f"{kind.__module__}.{kind.__qualname__}"
    return name.startswith("torch.nn.")


def operator_name(node: Node) -> str:
    """The user's operator (`log_softmax`), from the annotation or from the node's own target."""
    custom = node.meta.get("custom") or {}
    return str(custom.get("operator") or short_name(node.target))


def short_name(target: object) -> str:
    """`aten.log_softmax.int` -> `log_softmax`."""
    if isinstance(target, torch._ops.OpOverload):
        return target._schema.name.partition("::")[2]
    return getattr(target, "__name__", str(target))


def is_whole_slice(node: Node) -> bool:
    """A slice of a whole dimension, which `x[:]` leaves behind, does no harm."""
    if short_name(node.target) != "slice":
        return False
    source, result = node.args[0], node.meta.get("val")
    return isinstance(source, Node) and isinstance(result, Tensor) and source.meta["val"].shape == result.shape


def source_span(node: Node) -> Span | None:
    """The innermost line of the user's own files (libraries left out) that led to the node."""
    frames = [(m[1], int(m[2])) for m in _FRAME.finditer(node.meta.get("stack_trace") or "")]
    return _innermost(frames)


def exception_span(error: BaseException) -> Span | None:
    """The innermost line of the user's own files on the way to an exception."""
    while error.__cause__ is not None and not _innermost(_frames(error)):
        error = error.__cause__
    return _innermost(_frames(error))


def _frames(error: BaseException) -> list[tuple[str, int]]:
    return [(frame.filename, frame.lineno or 1) for frame in traceback.extract_tb(error.__traceback__)]


def _innermost(frames: list[tuple[str, int]]) -> Span | None:
    for file, line in reversed(frames):
        if not file.startswith("<") and not file.startswith((*_LIBRARIES, _HERE)):
            return Span(_shown(file), line)
    return None


def _shown(file: str) -> str:
    """Relative to the working directory where the file is below it."""
    relative = os.path.relpath(file)
    return file if relative.startswith("..") else relative
