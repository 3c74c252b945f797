"""Every method that PyTorch lists of a tensor: on a packed matrix it is right, forward and backward, and says where it makes it dense."""

from __future__ import annotations

import itertools

import pytest
import torch
from operator_calls import METHODS, OPERANDS, OperatorCall, calls, fault
from packed_layouts import IDS, LAYOUTS

import fuseflow.sparsity as sp
from fuseflow.sparsity.dispatch.calls import Call
from fuseflow.sparsity.layouts.layout import Layout

ALL: tuple[Layout, ...] = (*LAYOUTS, sp.Masked(), sp.Dense())

SEPARATE_NUMBERS = {
    "reshape": [(2, 12), (-1,), (2, 3, 4)],
    "view": [(3, 8), (24,), (2, 2, 6)],
    "permute": [(1, 0), (-1, -2)],
    "tile": [(2,), (2, 3), (2, 1, 1)],
    "repeat": [(2, 3), (2, 1, 1)],
    "flip": [(0,), (1,), (0, 1)],
    "expand": [(4, 6), (3, 4, 6), (2, -1, 6)],
    "broadcast_to": [(2, 4, 6)],
    "squeeze": [(0,), (0, 1)],
    "movedim": [(0, 1)],
    "transpose": [(0, 1)],
    "hsplit": [(2,), (1, 3)],
    "vsplit": [(1, 3)],
    "count_nonzero": [(0, 1)],
}
"""Methods that take numbers one by one. Their functions in `torch` take a list."""


@pytest.fixture(autouse=True)
def _one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def taken(method: str) -> list[OperatorCall]:
    """Return a few calls of a method, on the first of the matrices on which it means anything."""
    return next(filter(None, (calls(operand, method, most=2) for operand in OPERANDS)), [])


def faults(checked: list[tuple[OperatorCall, Layout]]) -> list[str]:
    """Return what is wrong with calls on matrices in layouts."""
    found = [(call, layout, fault(call, layout)) for call, layout in checked]
    return [f"{call} as {layout}: {message}" for call, layout, message in found if message]


@pytest.mark.parametrize("layout", ALL, ids=[*IDS, "masked", "dense"])
def test_methods_take_numbers_one_by_one(layout):
    checked = [(OperatorCall("wide", method, row), layout) for method, rows in SEPARATE_NUMBERS.items() for row in rows]
    assert not faults(checked)


@pytest.mark.parametrize("layout", ALL, ids=[*IDS, "masked", "dense"])
def test_whole_numbers_are_divided_and_a_factor_may_come_first(layout):
    """What is not stored is not divided. `x.add(2, y)` is an old spelling of `x.add(y, alpha=2)`."""
    table = [call for method in ("fmod_", "remainder_", "floor_divide_", "add") for call in calls("whole", method)]
    assert {"whole.add(1, tensor[4, 1])"} < set(map(str, table))
    assert not faults(list(itertools.product(table, [layout])))


def test_every_method_of_a_tensor_is_right_or_says_that_it_makes_it_dense():
    """Each method is called twice, every time in another layout. A slow test has all calls in all layouts."""
    table = [call for method in METHODS for call in taken(method)]
    assert len({call.method for call in table}) > 450
    assert not faults(list(zip(table, itertools.cycle(ALL), strict=False)))


@pytest.mark.slow
@pytest.mark.parametrize("operand", OPERANDS)
def test_every_call_of_every_method_in_every_layout(operand):
    table = [call for method in METHODS for call in calls(operand, method)]
    assert not faults(list(itertools.product(table, ALL)))


def test_a_method_that_is_called_as_its_function_is_seen(monkeypatch):
    monkeypatch.setattr(Call, "_function", property(lambda self: self.operator, lambda self, value: None), raising=False)
    assert (
        len(faults([(OperatorCall("wide", "reshape", (2, 12)), sp.CSR()), (OperatorCall("wide", "flip", (0,)), sp.CSR())])) == 2
    )


def test_a_tensor_that_becomes_dense_without_a_word_is_seen(monkeypatch):
    monkeypatch.setattr("fuseflow.sparsity.dispatch.calls.report", lambda message, stub: None)
    assert "without a warning" in faults([(OperatorCall("wide", "cos", ()), sp.CSR())])[0]
