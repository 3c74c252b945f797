"""Random programs with a search for a schedule that fits an array. What is chosen is placed, routed and read back once more."""

from __future__ import annotations

import tempfile
import traceback
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from zlib import crc32

import numpy as np
import repeatable_draws  # noqa: F401 - a seed draws the same in every process
from budget_draws import BudgetDraw
from hypothesis import HealthCheck, Phase, given, seed, settings
from random_programs import Case, cases

from fuseflow.array.artifact import load_placement, placement_text
from fuseflow.array.capacity import tile_use
from fuseflow.array.settings import ArraySettings, load_array, read_array
from fuseflow.autoscheduler.array_candidates import CANDIDATES
from fuseflow.autoscheduler.budget.trials import BudgetChoice
from fuseflow.compiler import compile_source
from fuseflow.einsum.text import show
from fuseflow.errors import ArrayError, FuseFlowError, UsageError
from fuseflow.frontend.imported_program import Source
from fuseflow.resources.budget import Budget
from fuseflow.run.placed import RegionPlacing

CHUNK = 50
"""Programs that are drawn from one seed."""
EVERY = settings(deadline=None, database=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))


def drawn_array(text: str) -> ArraySettings:
    """Return an array that follows from a text: Onyx, or one of 8 rows with 8 to 12 ports, which bind."""
    rng = np.random.default_rng(crc32(text.encode()))
    if rng.random() < 0.3:
        return load_array("onyx")
    ports, share, tracks = int(rng.integers(8, 13)), int(rng.integers(1, 3)), int(rng.integers(1, 6))
    footprint = rng.choice(["onyx", "simple"])
    return read_array(
        f"""
array:
  grid: {{columns: {ports}, rows: 8}}
  tiles: {{rows: [PM, MP], kinds: {{P: PE, M: MEM}}}}
  ports: {{side: north, share: {share}}}
  footprint: {footprint}
  tracks: {tracks}
  load: {{words_per_cycle: {int(rng.integers(1, 17))}}}
  resident: {int(rng.integers(1, 3))}
""",
        "small.yaml",
    )


@dataclass
class Tally:
    """How many programs came to what, and what is wrong."""

    counts: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)

    def add(self, case: Case, simulated: float = 0.1) -> None:
        """Search for one program."""
        source, text = Source("random", case.program, case.tensors), show(case.program)
        array = drawn_array(text)
        draw = BudgetDraw.of(source, simulated)
        budget = draw.request.budget if crc32(text.encode()) % 3 == 0 else Budget({})
        draw = replace(draw, request=replace(draw.request, budget=budget, array=array))
        self.counts["programs"] += 1
        try:
            choice = draw.choice(source)
        except ArrayError:
            self.counts["do not fit"] += 1
        except UsageError:
            self.counts["have no room"] += 1
        except FuseFlowError as error:
            self.counts[f"refused: {error.code}"] += 1
        except Exception:
            self.faults.append(f"{text}\n{traceback.format_exc()}")
        else:
            self.counts["fit"] += 1
            self.counts["fit with another schedule than the first, which is not routed"] += any(
                trial.refused.startswith("it fits, but") for trial in choice.trials
            )
            self.faults += [f"{text}\n{fault}" for fault in faults(source, draw, choice, array)]

    def update(self, other: Tally) -> None:
        """Add another tally."""
        self.counts.update(other.counts)
        self.faults += other.faults

    @property
    def summary(self) -> str:
        return ", ".join(f"{count:,} {what}" for what, count in self.counts.items() if count)


def faults(source: Source, draw: BudgetDraw, choice: BudgetChoice, array: ArraySettings) -> Iterator[str]:
    """Yield what is wrong with a choice: with its budget and its run, and where it does not fit, or is not placed and routed."""
    yield from draw.faults(source, choice)
    regions = compile_source(source, choice.schedule, draw.machine).regions
    lacks = [use.shortage(region.name) for region in regions if not (use := tile_use(region.graph, array, draw.machine)).fits]
    yield from lacks
    placing = RegionPlacing(array, draw.machine, CANDIDATES)
    try:
        together = [] if lacks else list(zip(regions, placing.in_order(region.graph for region in regions), strict=True))
        for region, placed in together:
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "region.place.json"
                path.write_text(placement_text(placed), encoding="utf-8")
                load_placement(path, region.graph, array, draw.machine)
            loading, most = choice.chosen.loading[region.name], placed.loading_cycles
            if not 0 <= loading <= most or (array.resident == 1 and 0 < loading < most):
                yield f"region {region.name} is loaded in {most} cycles, not {loading}"
    except ArrayError as error:
        yield error.message


def run(first: int, examples: int = CHUNK, simulated: float = 0.1) -> Tally:
    """Return what became of the programs of one seed."""
    tally = Tally()
    every = settings(EVERY, max_examples=examples)
    seed(first)(every(given(cases(max_einsums=4))(lambda case: tally.add(case, simulated))))()
    return tally
