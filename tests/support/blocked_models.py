"""The models at their small size in blocks and on lanes."""

from __future__ import annotations

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
