"""What docs/measured/memory-model.md says of channels that gain nothing: the reason stands there, and its numbers are those of a run."""

from __future__ import annotations

import re

import pytest
from doc_blocks import ROOT

import fuseflow as ff
from fuseflow.sim import load_machine

SENTENCE = re.compile(
    r"moves more than (\d+) bytes a cycle of the 32 that one channel can.* it takes ([\d,]+) cycles with one channel "
    r"and ([\d,]+) with eight, "
    r"where lines are spread over eight times as many banks, .* \(([\d.]+) % of row hits instead of ([\d.]+) %\)",
    re.DOTALL,
)


def _run(channels: int) -> tuple[int, float, float]:
    """Return the cycles of the GCN, its row hits in percent, and the most bytes that one of its layers moves in a cycle."""
    machine = load_machine("rda")
    machine = machine.model_copy(update={"memory": machine.memory.model_copy(update={"channels": channels})})
    compiled = ff.compile(ROOT / "models/gcn.py", schedule=ff.Schedule.fuse("layerwise"), machine=machine)
    values = compiled.run(check=False).to_dict()
    memories = [region["statistics"]["memory"] for region in values["regions"]]
    hits, served = (
        sum(channel[name] for memory in memories for channel in memory["channels"] for name in names)
        for names in (("hits",), ("hits", "misses", "conflicts"))
    )
    return values["cycles"], 100 * hits / served, max(memory["bytes_per_cycle"] for memory in memories)


def test_why_one_channel_is_as_fast_as_eight() -> None:
    sentence = SENTENCE.search((ROOT / "docs/measured/memory-model.md").read_text(encoding="utf-8"))
    assert sentence is not None, "the sentence that explains it"
    rate, cycles, cycles_of_eight, hits_of_eight, hits = (float(text.replace(",", "")) for text in sentence.groups())
    assert _run(1) == (cycles, pytest.approx(hits, abs=0.05), pytest.approx(rate, abs=0.5))
    assert _run(8)[:2] == (cycles_of_eight, pytest.approx(hits_of_eight, abs=0.05))
