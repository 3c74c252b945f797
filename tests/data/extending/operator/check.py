"""The operator runs in a text program and in a PyTorch model, on both simulators."""

import numpy as np
import torch
import torch_oracle

import fuseflow as ff
from fuseflow.einsum.parse import parse

program = parse("""
tensor A[2, 3] csr
Y[i, j] = atan(A[i, j])
output Y
""")
a = np.array([[0, 1, np.inf], [0, -2, 0]], dtype=np.float32)
for engine in ("reference", "fast"):
    result = ff.compile(program, tensors={"A": a}, machine="ideal").run(engine=engine)
    assert result.check is not None and result.check.passed
    np.testing.assert_allclose(result.outputs["Y"].toarray(), np.arctan(a), rtol=1e-6)


class Angle(torch.nn.Module):
    def forward(self, x):
        return torch.atan(x)


result = ff.compile(Angle().eval(), (torch.tensor([[0.0, 1.0], [-3.0, 0.5]]),)).run(engine="reference")
assert result.check is not None and result.check.passed
assert torch_oracle.TABLE["atan"] is torch.atan
