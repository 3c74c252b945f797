"""Every model in blocks and on lanes, pairs of both: the outputs are PyTorch's, whatever was asked for. Every lane count meets every
block size in some model, and slow tests run them all."""

from __future__ import annotations

from itertools import product

import pytest
import sources

from fuseflow.run.compiled import Compiled
from fuseflow.schedule import Schedule

BLOCKED = {
    "gcn.py": ("adj",),
    "graphsage.py": ("mean",),
    "gcn_pyg.py": ("adj",),
    "sae.py": ("encoder.weight",),
    "gpt_bigbird.py": ("mask",),
    "paper/gcn.py": ("A", "W1"),
    "paper/graphsage.py": ("A",),
    "paper/sae.py": ("We",),
    "paper/gpt.py": ("M",),
}
"""By model, the inputs that are stored in blocks."""
OPTIONS = {"gpt_bigbird.py": {"part": "decoder"}, "paper/gpt.py": {"decoders": "1"}}
"""One decoder is enough."""
LANES = ((), (2,), (3,), (4, 2), (8,), (8, 8), (64,))
"""Of the outermost loop of every region, and of the next."""
BLOCKS = (1, 4, 12, 16, 32, 64)
FUSE = ("none", "layerwise", "full")


def compiled(model: str, fuse: str, lanes: tuple[int, ...], block: int, machine: str = "ideal") -> Compiled:
    schedule = Schedule.fuse(fuse)
    for name in BLOCKED[model] if block > 1 else ():
        schedule = schedule.block(name, block, block)
    options = {"small": "true", **OPTIONS.get(model, {})}
    made = sources.compiled(model, schedule, machine, options)
    if not lanes:
        return made
    loops = {f"{r.name}.{v}": n for r in made.regions if r.einsums for v, n in zip(r.fused.order, lanes, strict=False)}
    return sources.compiled(model, schedule.par(**loops), machine, options)


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
