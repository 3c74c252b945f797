"""The type is read, counted in bits, saturates, and has an MLIR form; an input that it cannot hold is refused."""

import numpy as np

import fuseflow as ff
from fuseflow.einsum.mlir import from_mlir, to_mlir
from fuseflow.einsum.parse import parse
from fuseflow.errors import FileError

program = parse("""
tensor A[5] dense i12
tensor B[5] dense i12
tensor Y[5] i12
Y[i] = A[i] * B[i]
output Y
""")
assert from_mlir(to_mlir(program)) == program
tensors = {"A": [3, -2048, 2047, 0, 60], "B": [4, 2, 2, 5, 30]}
for engine in ("reference", "fast"):
    result = ff.compile(program, tensors=tensors, machine="rda").run(engine=engine)
    assert result.check is not None and result.check.passed
    assert np.asarray(result.outputs["Y"]).tolist() == [12, -2048, 2047, 0, 1800]
    assert {(t.tensor, t.bytes) for t in result.regions[0].simulation.traffic} == {("A", 8), ("B", 8), ("Y", 8)}
try:
    ff.compile(program, tensors={**tensors, "A": [0, 0, 2048, 0, 0]})
except FileError as error:
    assert "from -2048 to 2047: the first is 2048 at (2)" in str(error)
else:
    raise AssertionError("2048 is accepted")
