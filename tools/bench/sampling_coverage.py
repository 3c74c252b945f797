"""How often the intervals of sampled cycles have the exact number: random programs, memories and rows, each sampled and run exactly.

    PYTHONPATH=tests/support python tools/bench/sampling_coverage.py --programs 500 --output coverage.jsonl

Programs are those of tests/support/sampled_programs.py. Replicates are shorter than those of a user, so that the exact run takes seconds.
A program of which all would be run is counted, and not compared. `--kind` fixes how the degrees of rows are spread.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sampled_programs import DEGREES, random_program

from fuseflow.errors import FuseFlowError
from fuseflow.estimate import CountMemo
from fuseflow.estimate.counted.patterns import tensor_pattern
from fuseflow.sampling.region import RegionSampler
from fuseflow.sampling.sample import Sample
from fuseflow.sim import simulate


def row(seed: int, kind: str | None, sample: Sample) -> dict[str, Any]:
    """Sample a program and run it exactly."""
    program = random_program(seed, kind)
    compiled = program.compiled
    values: dict[str, Any] = {"seed": seed, "program": program.name, "error": sample.error}
    (region,) = compiled.regions[-1:]
    if len(compiled.regions) > 1:
        return {**values, "state": "copies"}
    memory = compiled.memory()
    read = {name: memory[name] for name in region.graph.inputs}
    patterns = {name: tensor_pattern(tensor) for name, tensor in read.items()}
    sampled = RegionSampler(compiled.schedule, compiled.machine, sample, "fast", CountMemo()).run(region, read, patterns, 0)
    if sampled is None:
        return {**values, "state": "run as it is"}
    exact = simulate(region.graph, read, compiled.machine, engine="fast").cycles
    cycles = sampled.sample.cycles
    return {
        **values,
        "state": "sampled",
        "memory": compiled.machine.memory.model,
        "fifo_depth": compiled.machine.fifo_depth_start,
        "lanes": dict(compiled.schedule.parallel).get("k", 1),
        "exact": exact,
        "estimate": round(cycles.estimate),
        "off": cycles.estimate / exact - 1,
        "half_width": cycles.error,
        "share": sampled.sample.share,
        "replicates": sampled.sample.replicates,
        "always": sampled.sample.certain,
        "covered": cycles.low <= exact <= cycles.high,
    }


def rows(args: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yield a row for each seed until so many programs were sampled."""
    seed, compared = args.first, 0
    while compared < args.programs:
        sample = Sample(error=args.error, seed=seed, shortest=args.shortest)
        try:
            values = row(seed, args.kind, sample)
        except FuseFlowError as error:
            values = {"seed": seed, "state": "refused", "reason": error.message}
        compared += values["state"] == "sampled"
        seed += 1
        yield values


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=int, default=500)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--kind", choices=DEGREES)
    parser.add_argument("--error", type=float, default=0.03)
    parser.add_argument("--shortest", type=int, default=4000)
    parser.add_argument("--output", type=Path, required=True)
    args = parser.parse_args()
    covered = compared = wide = 0
    with args.output.open("w", encoding="utf-8") as out:
        for values in rows(args):
            out.write(json.dumps(values) + "\n")
            out.flush()
            if values["state"] == "sampled":
                compared, covered = compared + 1, covered + values["covered"]
                wide += values["half_width"] > args.error
    print(f"{covered} of {compared} intervals have the exact number ({100 * covered / compared:.1f} %), {wide} wider than asked")


if __name__ == "__main__":
    main()
