"""Lifetimes of intermediates, and the bytes of them that are alive in each region and at most."""

import fuseflow as ff
from fuseflow.costs.live_bytes import Lifetime, lifetimes, live_bytes, live_bytes_by_region
from fuseflow.einsum.parse import parse

CHAIN = """
tensor x[8]
a[i] = relu(x[i])
b[i] = 2 * a[i]
c[i] = b[i] + a[i]
output c
"""


def test_an_intermediate_lives_from_its_writer_to_its_last_reader() -> None:
    compiled = ff.compile(parse(CHAIN), schedule=ff.Schedule.fuse("none"))
    regions = [(region.graph, region.views) for region in compiled.regions]
    found = lifetimes(regions, compiled.program.outputs)
    assert found == [Lifetime("a", 0, (1, 2)), Lifetime("b", 1, (2,))]
    written = {"a": 32.0, "b": 32.0, "c": 32.0}
    assert live_bytes_by_region(found, written, 3) == [32, 64, 64]
    assert live_bytes(iter(regions), compiled.program.outputs, written) == 64
    assert live_bytes([], (), {}) == 0
