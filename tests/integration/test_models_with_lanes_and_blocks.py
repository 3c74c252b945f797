"""Every model in blocks and on lanes, pairs of both: the outputs are PyTorch's, whatever was asked for. Every lane count meets every
block size in some model, and slow tests run them all."""

from itertools import product

import pytest
from blocked_models import BLOCKED, BLOCKS, FUSE, LANES, compiled

MANY = 16
"""Lanes from which a transformer's graphs are too large for a quick test."""


def cases():
    small = [name for name in BLOCKED if "gpt" not in name]
    for n, (lanes, block) in enumerate(pair for pair in product(LANES, BLOCKS) if pair != ((), 1)):
        models = small if max(lanes, default=1) ** len(lanes) > MANY else list(BLOCKED)
        yield models[n % len(models)], FUSE[n // 2 % 3], lanes, block


def check(model, fuse, lanes, block, machine="ideal"):
    if model == "gcn_pyg.py":
        pytest.importorskip("torch_geometric")
    assert compiled(model, fuse, lanes, block, machine).run().check.max_rel_error < 1e-5


@pytest.mark.parametrize(("model", "fuse", "lanes", "block"), list(cases()))
def test_lanes_and_blocks_change_no_value(model, fuse, lanes, block):
    check(model, fuse, lanes, block)


@pytest.mark.slow
@pytest.mark.parametrize("machine", ["ideal", "rda"])
@pytest.mark.parametrize("fuse", FUSE)
@pytest.mark.parametrize("model", BLOCKED)
def test_every_pair_of_lanes_and_blocks_changes_no_value(model, fuse, machine):
    for lanes, block in product(LANES, BLOCKS):
        check(model, fuse, lanes, block, machine)
