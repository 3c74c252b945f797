"""A model whose weight is stored n:m: imported, run, kept, given back to PyTorch, and written in every form of a program."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import fuseflow as ff
from fuseflow.einsum.mlir import from_mlir as program_from_mlir
from fuseflow.einsum.mlir import to_mlir as program_to_mlir
from fuseflow.einsum.parse import parse
from fuseflow.einsum.text import show
from fuseflow.errors import TensorError
from fuseflow.frontend import to_torch
from fuseflow.frontend.import_cache.entry import Entry, read_entry, write_entry
from fuseflow.frontend.linalg.sparse_encodings import from_encoding, has_encoding, to_encoding
from fuseflow.samml.mlir import from_mlir as graph_from_mlir
from fuseflow.samml.mlir import to_mlir as graph_to_mlir
from fuseflow.tensors import Format, pack

NM = Format.parse("nm(2:4)", 2)


class Product(torch.nn.Module):
    def forward(self, w: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(w @ x)


def pruned() -> torch.Tensor:
    """A matrix of ten columns: of every four, and of the last two, one or two are not zero."""
    generator = torch.Generator().manual_seed(1)
    weight = torch.randn(5, 10, generator=generator)
    weight[:, [1, 2, 4, 7]] = 0
    weight[2] = 0
    return weight


def test_a_model() -> None:
    w, x = pruned(), torch.randn(10, 6, generator=torch.Generator().manual_seed(2))
    compiled = ff.compile(Product().eval(), [w, x], formats={"w": "nm(2:4)"}, machine="rda")
    assert compiled.program.declared["w"].format == NM
    result = compiled.run()
    (output,) = result.outputs.values()
    np.testing.assert_allclose(output, torch.relu(w @ x).numpy(), rtol=1e-5, atol=1e-5)
    entry = Entry(compiled.source, {}, None, None)
    content = write_entry(entry)
    assert content is not None
    again = read_entry(content).source.tensors["w"]
    kept = compiled.source.tensors["w"]
    assert again.format == kept.format == NM
    assert again.levels[1].arrays["crd"].tolist() == kept.levels[1].arrays["crd"].tolist()
    assert again.values.tolist() == kept.values.tolist()


def test_a_weight_that_is_not_pruned() -> None:
    w, x = torch.ones(5, 10), torch.ones(10, 6)
    with pytest.raises(TensorError, match=r"tensor `w`: level 1 \(nm\(2:4\)\), from coordinate \(0, 0\) on: 4 of 4") as caught:
        ff.compile(Product().eval(), [w, x], formats={"w": "nm(2:4)"})
    assert "set the smallest entries of every group" in caught.value.hint


def test_to_torch() -> None:
    """PyTorch has no such layout, so it gets a list of coordinates, pads included, and nothing outside the shape."""
    weight = pruned()
    given = to_torch(pack(weight.numpy(), Format.parse("nm(3:4)", 2)))
    assert given.layout == torch.sparse_coo
    assert torch.equal(given.to_dense(), weight)
    assert given.values().numel() == 5 * (3 + 3 + 2)


def test_an_encoding_shows_a_compressed_level() -> None:
    """MLIR's n:m level is one of the offsets alone, below another of the groups, so the format stands beside the encoding."""
    assert not has_encoding(NM)
    assert from_encoding(to_encoding(NM)) == (Format.parse("csr", 2), ())


def test_forms_of_a_program_and_its_graph() -> None:
    text = "tensor W[5, 10] nm(2:4)\ntensor x[10] dense\ny[i] = sum(k) W[i, k] * x[k]\noutput y\n"
    program = parse(text)
    assert parse(show(program)).tensors == program_from_mlir(program_to_mlir(program)).tensors
    assert program.declared["W"].format == NM
    compiled = ff.compile(program, tensors={"W": pruned().numpy(), "x": np.ones(10, np.float32)})
    for region in compiled.regions:
        assert graph_from_mlir(graph_to_mlir(region.graph)) == region.graph
