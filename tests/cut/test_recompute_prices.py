"""The prices of storing intermediates and of computing them again, and what is chosen by them."""

from __future__ import annotations

from pathlib import Path

from fuseflow.cut.recompute_prices import RecomputePrices
from fuseflow.einsum.parse import parse
from fuseflow.machine.files import load_machine
from fuseflow.schedule import Schedule


def prices(name: str, schedule: Schedule, channels: int = 8) -> RecomputePrices:
    program = parse(Path(f"docs/example/{name}.ein").read_text(encoding="utf-8"))
    return RecomputePrices(program, schedule, load_machine("rda", {"memory.channels": channels}), {})


def test_what_waits_for_the_memory_is_computed_again() -> None:
    assert prices("gelu", Schedule.fuse("layerwise"), channels=1).of_fewest_cycles() == ("erf", "exp")


def test_what_the_schedule_computes_again_stays_so() -> None:
    asked = prices("relu", Schedule.fuse("layerwise").recompute("re*"))
    assert asked.chosen == {"relu"}
    assert "relu" in asked.of_fewest_cycles()
    assert "relu" not in prices("relu", Schedule.fuse("layerwise")).of_fewest_cycles()


def test_both_prices() -> None:
    (erf, exp), left = prices("gelu", Schedule.fuse("layerwise").recompute("erf")).listed()
    assert (erf.name, erf.regions, erf.chosen, exp.chosen, left) == ("erf", ("backward",), True, False, 0)
    assert erf.stored is not None and erf.again is not None and exp.again is not None
    assert (erf.stored.live_bytes, erf.again.live_bytes, exp.again.live_bytes) == (262_144, 131_072, 0)
    assert erf.again == exp.stored
