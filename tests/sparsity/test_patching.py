"""Functions that are replaced in modules, so that they get dense tensors."""

from __future__ import annotations

import types

import pytest
import torch

import fuseflow.sparsity as sp
from fuseflow.errors import SparsityError


def scaled(tensors, factor):
    """A function that reads the memory of its tensors."""
    for tensor in tensors:
        tensor.numpy()[...] *= factor
    return tensors[0]


def module() -> types.ModuleType:
    made = types.ModuleType("extension")
    made.scaled, made.alias, made.Keeper = scaled, scaled, type("Keeper", (), {"function": scaled})
    return made


def packed(value: float) -> sp.PackedTensor:
    return sp.torch_tensor_to_csr(sp.KeepAll(), value * torch.eye(3))


def test_a_function_gets_dense_copies_that_are_read_back():
    extension, x, y = module(), packed(2.0), torch.ones(3, 3)
    undo = sp.patch(scaled, module_scope=[extension])
    with pytest.warns(sp.DispatchWarning, match="scaled"):
        assert extension.scaled([x, y], 3.0) is x
    assert torch.equal(x.stored_dense(), 6 * torch.eye(3)) and torch.equal(y, 3 * torch.ones(3, 3))
    assert extension.alias is not scaled and extension.Keeper.function is not scaled
    undo.close()
    assert extension.scaled is extension.alias is extension.Keeper.function is scaled


def test_a_function_is_replaced_by_another_one_for_a_while():
    old = torch.nn.functional.hardtanh
    with sp.patch(old, lambda x: "mine"):
        assert torch.nn.functional.hardtanh(packed(1.0)) == "mine"
    assert torch.nn.functional.hardtanh is old


def test_a_function_that_no_module_holds_is_refused():
    with pytest.raises(SparsityError, match="no module holds `scaled`") as error:
        sp.patch(scaled)
    assert "module_scope" in error.value.hint
    with pytest.raises(SparsityError, match=r"no module holds `torch\.Tensor\.add`"):
        sp.patch(torch.Tensor.add)
