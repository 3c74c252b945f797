"""Numbers that a model takes out of its tensors while it is traced: into Python, as extents, and as bounds of slices.

Operators of control flow, such as `torch.while_loop`, are run as Python, where their conditions are read.

`as_strided` with known strides is taken as rows at known positions. Its windows may overlap, as in a sliding attention. PyTorch defines
it on memory, so it depends on how its operand is laid out. The trace knows that; a graph does not.

A loop ends on the condition of a `while`, or of an `if` in a loop that leads out of it. A model that asks its data such a condition is
traced with as many rounds as the data take. Any other `if` takes one of several ways, and nothing of the others is left in a trace.
"""

from __future__ import annotations

import ast
import linecache
import math
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from torch import Tensor
from torch.fx import Node
from torch.fx.experimental import proxy_tensor
from torch.fx.experimental.proxy_tensor import disable_proxy_modes_tracing
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree

from fuseflow.errors import FrontendError, Span
from fuseflow.frontend.trace import control_operators, fx_origin
from fuseflow.frontend.trace.control_operators import RUN_AS_PYTHON

MAX_ROUNDS = 1000
"""The number of rounds of a loop after which a trace is given up, if the loop reads in each of them whether it ends."""
_READ_NAMES = """
    item tolist numpy __bool__ __int__ __float__ __index__ __array__ __contains__ __format__ __dlpack__ apply_ map_
    equal allclose is_nonzero
"""
_READS = frozenset(getattr(Tensor, name) for name in _READ_NAMES.split()) | {torch.equal, torch.allclose, torch.is_nonzero}
"""Functions that take numbers out of tensors, which are their first operands."""
_SIZED_METHODS = "view reshape expand repeat new_zeros new_ones as_strided"
_SIZED_FUNCTIONS = {torch.reshape, torch.zeros, torch.ones, torch.full, torch.empty}
_SIZED = frozenset(getattr(Tensor, name) for name in _SIZED_METHODS.split()) | _SIZED_FUNCTIONS
"""Functions that take extents, which may be tensors of one integer."""
_MADE_OF_NUMBERS = frozenset({torch.tensor, torch.as_tensor, torch.asarray, Tensor.new_tensor})
"""Functions that make a tensor of a list, whose elements may be tensors of one number."""
_INDEXED = (Tensor.__getitem__, Tensor.__setitem__)
"""Methods that take an index, whose slices may be bounded by tensors of one integer."""
_AS_STRIDED = frozenset({torch.as_strided, Tensor.as_strided, torch.ops.aten.as_strided.default})
"""The functions that take a tensor, sizes, strides and an offset in memory."""
_ALL_CLOSE = frozenset({torch.allclose, Tensor.allclose})


@dataclass(frozen=True, slots=True, eq=False)
class NumberRead:
    """A place where the model took the numbers of a tensor into Python, by the method of that name. `node` computed the tensor. With
    `ends_loop`, the numbers say whether a loop goes on, and nothing else."""

    node: Node
    method: str
    span: Span | None
    ends_loop: bool


class NumberReads(TorchFunctionMode):
    """While it is active, a model may take numbers out of its tensors, and every such place is added to `reads`."""

    def __init__(self, reads: list[NumberRead]) -> None:
        super().__init__()
        self.reads = reads
        self._rounds = Counter[Span | None]()

    def __torch_function__(
        self, func: Callable[..., Any], types: object, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if func in _SIZED:
            args = (*args[:1], *pytree.tree_map_only(Tensor, self._extent, args[1:]))
            kwargs = pytree.tree_map_only(Tensor, self._extent, kwargs)
        if isinstance(func, torch._ops.HigherOrderOperator) and str(func) in RUN_AS_PYTHON:
            with self:
                return RUN_AS_PYTHON[str(func)](*args, **(kwargs or {}))
        if func in _ALL_CLOSE:
            with self:
                return bool(torch.isclose(*args, **(kwargs or {})).all())
        if func in _AS_STRIDED:
            return _strided(*args, **(kwargs or {}))
        if func in _INDEXED:
            if func is Tensor.__getitem__ and _is_position(args[1]):
                return args[0].index_select(0, args[1].reshape(1)).squeeze(0)
            args = (args[0], self._bounded(args[1]), *args[2:])
        if func in _MADE_OF_NUMBERS:
            for element in pytree.tree_leaves([arg for arg in args if isinstance(arg, list | tuple)]):
                if isinstance(element, Tensor):
                    self._note(element, func.__name__)
        if func not in _READS:
            return func(*args, **(kwargs or {}))
        for tensor in args[:2]:
            if isinstance(tensor, Tensor):
                self._note(tensor, func.__name__)
        with disable_proxy_modes_tracing():
            return func(*args, **(kwargs or {}))

    def _extent(self, tensor: Tensor) -> Any:
        """Return the integer that a tensor holds, for use as an extent. Any other tensor is left to PyTorch."""
        if tensor.dim() or tensor.is_floating_point() or tensor.is_complex():
            return tensor
        self._note(tensor, "__index__")
        with disable_proxy_modes_tracing():
            return tensor.item()

    def _bounded(self, index: Any) -> Any:
        """Return an index with integers for the tensors that bound its slices."""
        match index:
            case tuple():
                return tuple(map(self._bounded, index))
            case slice():
                bounds = (index.start, index.stop, index.step)
                return slice(*(self._extent(bound) if isinstance(bound, Tensor) else bound for bound in bounds))
        return index

    def _note(self, tensor: Tensor, method: str) -> None:
        node = _recorded(tensor)
        if node is None:
            return
        read = NumberRead(node, method, fx_origin.current_span(), decides_end_of_loop())
        self.reads.append(read)
        self._rounds[read.span] += read.ends_loop
        if self._rounds[read.span] > MAX_ROUNDS:
            message = f"a loop whose end depends on numbers takes more than {MAX_ROUNDS:,} rounds"
            raise FrontendError(message, hint="bound it, as `for _ in range(50)` does, and leave it by `break`", span=read.span)


def _recorded(tensor: Tensor) -> Node | None:
    """Return the node that computes a tensor, or None for a tensor that the trace does not know."""
    mode = proxy_tensor.get_proxy_mode()
    proxy = None if mode is None else proxy_tensor.get_proxy_slot(tensor, mode.tracer, None)
    return None if proxy is None else proxy.proxy.node


def _is_position(index: Any) -> bool:
    """Return whether an index is a computed integer. PyTorch takes the number out of it, where a gather leaves it in."""
    is_integer = isinstance(index, Tensor) and index.dim() == 0 and index.dtype in (torch.int64, torch.int32)
    return is_integer and _recorded(index) is not None


def _strided(x: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None) -> Tensor:
    """Return `x.as_strided(size, stride, storage_offset)` as a new tensor. Raise `FrontendError` if it reads memory beside `x`."""
    strides = x.stride()
    memory = x.permute(sorted(range(x.dim()), key=lambda dim: -strides[dim]))
    offset = 0 if storage_offset is None else storage_offset - int(x.storage_offset())
    end = offset + sum((n - 1) * step for n, step in zip(size, stride, strict=True))
    if not memory.is_contiguous() or offset < 0 or (end >= x.numel() and 0 not in size):
        message = f"`as_strided` to {tuple(size)} reads between or beyond the elements of its operand, of shape {tuple(x.shape)}"
        hint = "call `.clone()` on the operand first, and stay within it"
        raise FrontendError(message, hint=hint, span=fx_origin.current_span())
    if 0 in size:
        return memory.reshape(-1).narrow(0, 0, 0).reshape(tuple(size))
    windows, numbers = list(zip(size, stride, strict=True)), x.numel()
    inner = 1  # the elements of whole last dimensions
    while windows and windows[-1][1] == inner and _is_divided(inner * windows[-1][0], [offset, numbers], windows[:-1]):
        inner *= windows.pop()[0]
    outer = 1  # the elements of whole first dimensions
    while windows and windows[0][0] * windows[0][1] == numbers and _end(offset, windows[1:], inner) < windows[0][1]:
        n, numbers = windows.pop(0)
        outer *= n
    positions = torch.full((), offset // inner)
    for n, step in windows:
        positions = positions.unsqueeze(-1) + torch.arange(n) * (step // inner)
    taken = memory.reshape(outer, numbers // inner, inner).index_select(1, positions.reshape(-1))
    return taken.reshape(tuple(size))


def _is_divided(divisor: int, numbers: Sequence[int], windows: Sequence[tuple[int, int]]) -> bool:
    return math.gcd(*numbers, *(step for _, step in windows)) % divisor == 0


def _end(offset: int, windows: Sequence[tuple[int, int]], inner: int) -> int:
    """Return the position in memory of the last element that is read. Each of `windows` has a count and a step."""
    return offset + sum((n - 1) * step for n, step in windows) + inner - 1


_SKIPPED = tuple(str(Path(file).parent) for file in (torch.__file__, __file__))
"""The folders of PyTorch and of the modes that it calls where a model reads a number."""
_LOOPS = control_operators.__file__
"""The file with the loop that `while_loop` is while a model is traced."""


def decides_end_of_loop() -> bool:
    """Return whether the innermost code that reads a number is in a condition on which a loop ends. False where its source cannot be
    read."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_SKIPPED) and frame.f_code.co_filename != _LOOPS:
        frame = frame.f_back
    if frame is None:
        return False
    position = next(islice(frame.f_code.co_positions(), frame.f_lasti // 2, None))
    try:
        tree = ast.parse("".join(linecache.getlines(frame.f_code.co_filename)))
    except SyntaxError:
        return False
    return any(_stands_in(position, statement) for statement in _ends(tree, False))


def _stands_in(position: tuple[int | None, ...], statement: ast.If | ast.While) -> bool:
    """Return whether a position in a source (a first and a last line, a first and a last column) is in the condition of a statement. The
    jump at a condition has the position of the statement."""
    line, last_line, column, last_column = (number or 0 for number in position)
    if (line, last_line, column, last_column) == (
        statement.lineno,
        statement.end_lineno,
        statement.col_offset,
        statement.end_col_offset,
    ):
        return True
    test = statement.test
    if any(isinstance(part, ast.NamedExpr) for part in ast.walk(test)):  # the number is used elsewhere
        return False
    starts, ends = (test.lineno, test.col_offset), (test.end_lineno or 0, test.end_col_offset or 0)
    return starts <= (line, column) and (last_line, last_column) <= ends


def _ends(node: ast.AST, in_loop: bool) -> Iterator[ast.If | ast.While]:
    """Yield the statements on whose conditions loops in a node end. The node is in a loop itself or not."""
    if isinstance(node, ast.While):
        yield node
    if isinstance(node, ast.If) and in_loop and any(_leaves(block) for block in (node.body, node.orelse)):
        yield node
    if isinstance(node, ast.For | ast.While):
        in_loop = True
    elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
        in_loop = False
    for child in ast.iter_child_nodes(node):
        yield from _ends(child, in_loop)


def _leaves(block: list[ast.stmt]) -> bool:
    return bool(block) and isinstance(block[-1], ast.Break | ast.Return)
