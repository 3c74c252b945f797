"""How often the intervals of sampled cycles have the exact number: random programs, memories and rows, each sampled and run exactly.

    PYTHONPATH=tests/support python tools/bench/sampling_coverage.py --programs 500 --output coverage.jsonl

Programs are those of tests/support/sampled_programs.py. Replicates are shorter than those of a user, so that the exact run takes seconds.
A program of which all would be run is counted, and not compared. `--kind` fixes how the degrees of rows are spread. A run that was
stopped goes on where the output ends.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
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


def rows(args: argparse.Namespace, known: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield a row for each further seed until so many programs were sampled, those that are `known` among them."""
    seed = max((values["seed"] for values in known), default=args.first - 1) + 1
    sampled = sum(values["state"] == "sampled" for values in known)
    while sampled < args.programs:
        sample = Sample(error=args.error, seed=seed, shortest=args.shortest)
        try:
            values = row(seed, args.kind, sample)
        except FuseFlowError as error:
            values = {"seed": seed, "state": "refused", "reason": error.message}
        sampled += values["state"] == "sampled"
        seed += 1
        yield values


def summary(results: list[dict[str, Any]], error: float) -> str:
    """Say how many intervals have the exact number, and how many programs were not sampled."""
    sampled = [values for values in results if values["state"] == "sampled"]
    covered, wide = sum(values["covered"] for values in sampled), sum(values["half_width"] > error for values in sampled)
    others = Counter(values["state"] for values in results if values["state"] != "sampled")
    told = ", ".join(f"{count} {state}" for state, count in sorted(others.items())) or "none"
    share = 100 * covered / max(1, len(sampled))
    return f"{covered} of {len(sampled)} intervals have the exact number ({share:.1f} %), {wide} wider than asked; not sampled: {told}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=int, default=500)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--kind", choices=DEGREES)
    parser.add_argument("--error", type=float, default=0.03)
    parser.add_argument("--shortest", type=int, default=4000)
    parser.add_argument("--output", type=Path, required=True)
    args = parser.parse_args()
    known = [json.loads(line) for line in args.output.read_text(encoding="utf-8").splitlines()] if args.output.exists() else []
    with args.output.open("a", encoding="utf-8") as out:
        for values in rows(args, known):
            out.write(json.dumps(values) + "\n")
            out.flush()
            known.append(values)
    print(summary(known, args.error))


if __name__ == "__main__":
    main()
