"""Every method that PyTorch lists of a tensor: on a packed matrix it is right, forward and backward, and says where it makes it dense."""

from __future__ import annotations

import functools
import itertools
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from packed_layouts import IDS, LAYOUTS, mask_for, packed, places
from torch.utils import _pytree as pytree

import fuseflow.sparsity as sp
from fuseflow.errors import FuseFlowError
from fuseflow.sparsity.dispatch.calls import Call
from fuseflow.sparsity.layouts.layout import Layout
from fuseflow.sparsity.storage_tensor import StorageTensor

_OF_MEMORY = """
    apply_ map_ map2_ as_subclass data_ptr const_data_ptr storage untyped_storage storage_type storage_offset share_memory_ is_shared
    record_stream cuda xpu mtia ipu pin_memory is_pinned set_ resize resize_ resize_as resize_as_ resize_as_sparse_ module_load is_set_to
    stride is_contiguous dim_order
"""
OF_MEMORY = frozenset(_OF_MEMORY.split())
"""Methods about the memory of a tensor, its devices, and its classes, which have no dense meaning."""
_OF_GRADIENTS = "backward register_hook register_post_accumulate_grad_hook reinforce retain_grad requires_grad_ detach_"
OF_GRADIENTS = frozenset(_OF_GRADIENTS.split())
"""Methods about gradients, which other tests are for."""
_DRAWING = """
    bernoulli bernoulli_ cauchy_ exponential_ geometric_ log_normal_ multinomial normal_ random_ uniform_ new new_empty new_empty_strided
"""
DRAWING = frozenset(_DRAWING.split())
"""Methods whose entries are random, or not defined."""

METHODS = tuple(
    name
    for name in dir(torch.Tensor)
    if callable(getattr(torch.Tensor, name)) and not name.startswith("_") and name not in OF_MEMORY | OF_GRADIENTS
)


OPERANDS = {"wide": (4, 6), "square": (6, 6), "whole": (4, 6)}
"""The shapes of the matrices that are packed. The last one has integers."""


def matrix(operand: str) -> torch.Tensor:
    """Return a dense matrix that is packed. All entries are positive, so that logarithms are numbers where one is stored."""
    values = torch.rand(OPERANDS[operand], generator=torch.Generator().manual_seed(1)) + 0.1
    return (values * 10 + 1).long() if operand == "whole" else values


def arguments(operand: str) -> list[tuple[Any, ...]]:
    """Return arguments of which most methods take some: numbers one by one and in lists, vectors, matrices, masks, and indices."""
    rows, columns = OPERANDS[operand]
    other = matrix(operand).flip(0, 1).contiguous()
    turned, mask, index = other.T.contiguous(), other > other.median(), torch.tensor([0, 1, 3])
    places, square = mask.long(), torch.eye(rows).to(other) + turned[:rows, :rows]
    size, half = rows * columns, rows * columns // 2
    whole = [row for length in range(3) for row in itertools.product((0, 1, -1, 2), repeat=length)]
    shapes: list[tuple[Any, ...]] = [(size,), (rows, columns), (2, half), (3, -1), (2, 3, size // 6)]
    shapes += [(1, rows, columns), (2, 1, 1), (2, rows, columns), (0, 0, 2), (0, 1, 1), (2, 1, 3.0), (-2, -1), (1, 3)]
    lists: list[Any] = [[0], [1], [0, 1], [1, 0], *map(list, shapes)]
    others: list[tuple[Any, ...]] = [(0.5,), (2.0,), (0.1, 0.9), (0.5, 0), (True,), (None,), (None, 0), ("fro",), ([1, 3], 0)]
    others += [([1], [0]), (0, [2, rows - 2]), (1, [2, columns - 2]), ([0, 1], [1, 0]), (torch.float64,), (torch.int64,)]
    tensors: list[tuple[Any, ...]] = [(other,), (turned,), (other[0],), (other[:1],), (turned[0],), (mask,), (places,), (square,)]
    tensors += [(other.int(),), (mask, 1.0), (mask, other), (mask, other[0]), (0, index), (0, index, other[:3]), (0, index, 1.0)]
    tensors += [(1, places[:, :1]), (0, places * 2), (0, places, other), (0, places, other, "sum"), (0, places, 3.0)]
    tensors += [(other, other), (other, 0), (other, 1), (other, turned[:, 0]), (turned, other), (other, square), (square, other)]
    tensors += [
        ((index,), other[:3]),
        ((index, index), other[0, :3]),
        (other[0], 0, 1),
        (other, 0, 0, 2),
        (other[0], other[:, 0]),
    ]
    tensors += [(other[:, 0], other[0]), (0, index, other[:3], "prod")]
    return [*whole, *shapes, *((row,) for row in lists), *others, *tensors]


@dataclass(frozen=True)
class OperatorCall:
    """A call of a method of `torch.Tensor` on one of the matrices."""

    operand: str
    method: str
    arguments: tuple[Any, ...]

    def on(self, tensor: torch.Tensor) -> Any:
        """Return what the method gives for a tensor, always with the same random numbers."""
        torch.default_generator.manual_seed(0)
        return getattr(tensor, self.method)(*self.arguments)

    @property
    def updates(self) -> bool:
        """Whether it changes the tensor."""
        return self.method.endswith("_")

    def __str__(self) -> str:
        texts = (f"tensor{list(a.shape)}" if isinstance(a, torch.Tensor) else str(a) for a in self.arguments)
        return f"{self.operand}.{self.method}({', '.join(texts)})"


def calls(operand: str, method: str, most: int = 1_000) -> list[OperatorCall]:
    """Return the calls of a method that a dense matrix takes, each number of arguments as often as the others, up to so many."""
    found: dict[int, list[OperatorCall]] = {}
    for tried in arguments(operand):
        call = OperatorCall(operand, method, tried)
        try:
            result = call.on(matrix(operand))
        except Exception:
            continue
        if result is not NotImplemented:
            found.setdefault(len(tried), []).append(call)
    turns = max(map(len, found.values()), default=0)
    return [row[turn] for turn in range(turns) for row in found.values() if turn < len(row)][:most]


def fault(call: OperatorCall, layout: Layout) -> str | None:
    """Return what is wrong with a call on a matrix in a layout, or None."""
    dense = matrix(call.operand)
    mask = torch.ones_like(dense, dtype=torch.bool) if isinstance(layout, sp.Dense) else mask_for(layout, OPERANDS[call.operand])
    made = functools.partial(packed, layout, dense, mask)
    kept = mask if isinstance(layout, sp.Dense | sp.Masked) else places(made())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return (_fault_of_update if call.updates else _fault_of_result)(call, made, kept) or _fault_of_silence(call, made)


def _fault_of_update(call: OperatorCall, made: Callable[[], Any], kept: torch.Tensor) -> str | None:
    dense, tensor = made().stored_dense().clone(), made()
    call.on(dense)
    try:
        with sp.set_dispatch_failure("silent"):
            result = call.on(tensor)
    except FuseFlowError as error:
        return None if dense.shape != kept.shape or "cannot change the shape" in error.message else f"refused: {error.message}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    if result is not tensor:
        return "it does not return the tensor"
    return None if call.method in DRAWING else difference(tensor, torch.where(kept, dense, torch.zeros_like(dense)))


def _fault_of_result(call: OperatorCall, made: Callable[[], Any], kept: torch.Tensor) -> str | None:
    dense, tensor = made().stored_dense().clone(), made()
    needs = dense.is_floating_point() and _has_gradient(call, dense)
    for leaf in (dense, tensor):
        leaf.requires_grad_(needs)
    try:
        expected = call.on(dense)
    except RuntimeError:  # It takes no zeros.
        return None
    try:
        with sp.set_dispatch_failure("silent"):
            result = call.on(tensor)
            if call.method in DRAWING:
                return None
            return difference(result, expected) or (_fault_of_gradient(result, expected, tensor, dense, kept) if needs else None)
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def _has_gradient(call: OperatorCall, dense: torch.Tensor) -> bool:
    """Return whether the dense call has a gradient."""
    leaf = dense.clone().requires_grad_()
    try:
        outputs = list(_outputs(call.on(leaf)))
        torch.autograd.backward(outputs, [torch.ones_like(output) for output in outputs])
    except Exception:
        return False
    return leaf.grad is not None and bool(leaf.grad.isfinite().all())


def _outputs(result: Any) -> Iterator[torch.Tensor]:
    """Yield the tensors of a result that have a gradient."""
    yield from (leaf for leaf in pytree.tree_leaves(result) if isinstance(leaf, torch.Tensor) and leaf.requires_grad)


def _fault_of_gradient(result: Any, expected: Any, tensor: Any, dense: torch.Tensor, kept: torch.Tensor) -> str | None:
    for outputs in (list(_outputs(expected)), list(_outputs(result))):
        torch.autograd.backward(outputs, [torch.ones(output.shape, dtype=output.dtype) for output in outputs])
    if tensor.grad is None:
        return "it has no gradient"
    difference_there = difference(torch.where(kept, entries(tensor.grad), 0), torch.where(kept, dense.grad, 0))
    return difference_there and f"gradient: {difference_there}"


def _fault_of_silence(call: OperatorCall, made: Callable[[], Any]) -> str | None:
    """Return a message if a call makes a tensor dense and does not say so."""
    tensor, made_dense, original = made(), [], StorageTensor.stored_dense
    if type(tensor.wrapped_tensor) in (sp.DenseTensor, sp.MaskedSparseTensor):
        return None
    StorageTensor.stored_dense = lambda self: made_dense.append(self) or original(self)  # type: ignore[method-assign, func-returns-value]
    try:
        with sp.set_dispatch_failure("raise"):
            call.on(tensor)
    except FuseFlowError:
        return None
    finally:
        StorageTensor.stored_dense = original  # type: ignore[method-assign]
    return "it makes the tensor dense without a warning" if made_dense else None


def entries(value: torch.Tensor) -> torch.Tensor:
    """Return the entries of a tensor as a dense one, without gradient."""
    return value.stored_dense() if isinstance(value, sp.PackedTensor) else value.detach()


def difference(result: Any, expected: Any) -> str | None:
    """Return how a result differs from the expected one, or None."""
    got, wanted = pytree.tree_leaves(result), pytree.tree_leaves(expected)
    if len(got) != len(wanted):
        return f"{len(got)} results, and not {len(wanted)}"
    for value, right in zip(got, wanted, strict=True):
        if isinstance(right, torch.Tensor):
            if not isinstance(value, torch.Tensor):
                return f"a {type(value).__name__}, and no tensor"
            mine, theirs = entries(value), right.detach()
            if mine.layout != theirs.layout:
                return f"layout {mine.layout}, and not {theirs.layout}"
            try:
                torch.testing.assert_close(mine.to_dense(), theirs.to_dense(), equal_nan=True)
            except AssertionError as error:
                return str(error).partition("\n")[0]
        elif not _equal(value, right):
            return f"{value!r}, and not {right!r}"
    return None


def _equal(value: Any, right: Any) -> bool:
    return type(value) is type(right) and bool(
        (value == right).all() if hasattr(right, "all") else value == right or right != right
    )


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
