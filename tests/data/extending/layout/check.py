"""A weight is stored in the new layout: in PyTorch, where operators without a kernel say so, and in the compiler, as bitmaps."""

import warnings

import torch
from torch.nn import functional

import fuseflow as ff
import fuseflow.sparsity as sp

model = torch.nn.Sequential(torch.nn.Linear(8, 6)).eval()
builder = sp.SparsityBuilder()
builder.set_weight("0.weight", initial_sparsifier=sp.Magnitude(0.5), out_format=sp.parse_layout("bitmap"))
sparse = builder.get_sparse_model(model)
compiled = ff.compile(sparse, (torch.randn(3, 8),))
assert "(dense, bitmap)" in compiled.emit("einsum")
result = compiled.run()
assert result.check is not None and result.check.passed

packed = sp.pack(sparse)
x = torch.randn(3, 8)
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    assert torch.equal(packed(x), functional.linear(x, sparse[0].weight, sparse[0].bias))
assert any(issubclass(warning.category, sp.DispatchWarning) and "BitmapTensor" in str(warning.message) for warning in said)
