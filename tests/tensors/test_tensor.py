"""What a packed tensor says of itself."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fuseflow.tensors import Format, pack


def test_digests_tell_tensors_apart_that_differ_in_anything() -> None:
    matrix = np.array([[0.0, 1.0], [2.0, 0.0]])
    csr, dense = Format.parse("csr", 2), Format.dense(2)
    others = [
        pack(matrix, Format.parse("csc", 2)),
        pack(matrix, dense),
        pack(2 * matrix, csr),
        pack(matrix[::-1], csr),
        pack(matrix.astype(np.float32), csr),
        pack(np.zeros((0, 2)), csr),
        replace(pack(matrix, csr), fill=1.0),
    ]
    digests = {tensor.digest() for tensor in (pack(matrix, csr), *others)}
    assert len(digests) == 8 and pack(matrix.copy(), csr).digest() in digests
