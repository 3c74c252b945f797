"""Conditions on which loops end, in the source of a model: the condition of a `while`, and of an `if` in a loop that leads out of it.

    for _ in range(50):
        previous, z = z, torch.tanh(layer(z) + x)
        if (z - previous).norm() < 1e-4:
            break

A model that asks its data such a condition is traced with as many rounds as the data take. Any other `if` takes one of several ways, and
nothing of the others is left in a trace.
"""

from __future__ import annotations

import ast
import linecache
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from types import FrameType

import torch

from fuseflow.frontend.trace import control_operators

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
