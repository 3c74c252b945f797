"""The lines that the estimate expects each port to request, against runs."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import fuseflow as ff
from fuseflow.einsum.parse import parse
from fuseflow.estimate.port_lines import read_lines
from fuseflow.estimate.program import Estimator
from fuseflow.estimate.region_conversion import estimator_regions

INNER = """
tensor A[{n}, {n}] csr
tensor F[{n}, 16] csc
tensor Y[{n}, 16] csr
Y[i, j] = sum(k) A[i, k] * F[k, j]
output Y
"""


@pytest.mark.parametrize(("n", "share"), [(120, 0.02), (120, 0.1), (200, 0.05), (400, 0.02)])
@pytest.mark.parametrize("lanes", [1, 4])
def test_a_row_that_lies_in_two_lines_is_read_again_for_each_column(n: int, share: float, lanes: int) -> None:
    """`A[i, k]` in `for i, for j, for k`: a row in one line is read once, since that line is the last one read."""
    rng = np.random.default_rng(n)
    tensors = {
        "A": sparse.random(n, n, share, random_state=rng).toarray().astype(np.float32),
        "F": sparse.random(n, 16, share, random_state=rng).toarray().astype(np.float32),
    }
    schedule = ff.Schedule.fuse("full").order("full", "i,j,k")
    schedule = schedule.par(i=lanes) if lanes > 1 else schedule
    compiled = ff.compile(parse(INNER.format(n=n)), tensors=tensors, schedule=schedule, machine="rda")
    (region,), (known,) = compiled.run(check=False).regions, estimator_regions(compiled.regions)
    memory = region.simulation.memory
    assert memory is not None
    estimator = Estimator()
    counts = estimator.bounds(known.graph, estimator.knowledge(compiled.program, compiled.source.tensors)).counts
    ports = list(read_lines(counts.graph, counts.flows, 64, counts.array_bytes, {}))
    for array in (("A", "crd"), ("F", "pos")):  # the 17 positions of F lie in two lines
        took = sum(of.fetches for port, of in memory.ports if (port.tensor, port.kind) == array)
        expected = sum(port.lines for port in ports if (port.tensor, port.kind) == array)
        assert expected == pytest.approx(took, rel=0.2), array
