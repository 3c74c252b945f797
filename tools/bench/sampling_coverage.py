"""How often the intervals of sampled cycles have the exact number: random programs, memories and rows, each sampled and run exactly.

    PYTHONPATH=tests/support python tools/bench/sampling_coverage.py --output coverage.jsonl

Programs are those of tests/support/structured_programs.py, whose rows have a structure. Each is drawn by its seed, sampled once, and
counted once. Replicates are shorter than those of a user, so that the exact run takes seconds.
A program of which all would be run is counted, and not compared. A run that was stopped goes on where the output ends.

Constants of `fuseflow.sampling` were chosen with the programs of `--set tuning` only, whose seeds are below a million. Those of
`--set test` were first drawn when the constants were committed. Who changes a constant afterwards moves `TEST` behind the seeds that
were looked at.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from structured_programs import structured_program

from fuseflow.errors import FuseFlowError
from fuseflow.estimate import CountMemo
from fuseflow.estimate.counted.patterns import tensor_pattern
from fuseflow.sampling.region import RegionSampler
from fuseflow.sampling.sample_request import Sample, parse_sample
from fuseflow.sim import simulate

TUNING, TEST = 0, 1_000_000
"""The first seeds of both sets."""


def row(seed: int, sample: Sample) -> dict[str, Any]:
    """Sample a program and run it exactly."""
    program = structured_program(seed)
    compiled = program.compiled
    values: dict[str, Any] = {
        "seed": seed, "structure": program.structure, "program": program.name, "memory": compiled.machine.memory.model,
        "fifo_depth": compiled.machine.fifo_depth_start,
    }  # fmt: skip
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
        "stages": len(region.einsums),
        "exact": exact,
        "estimate": round(cycles.estimate),
        "off": round(cycles.estimate / exact - 1, 5),
        "half_width": round(cycles.error, 5),
        "share": round(sampled.sample.share, 3),
        "replicates": sampled.sample.replicates,
        "covered": cycles.low <= exact <= cycles.high,
    }


def rows(args: argparse.Namespace, known: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield a row for each further seed until so many programs were sampled, those that are `known` among them."""
    first = args.first if args.first is not None else {"tuning": TUNING, "test": TEST}[args.set]
    seed = max((values["seed"] for values in known), default=first - args.step) + args.step
    sampled = sum(values["state"] == "sampled" for values in known)
    while sampled < args.programs:
        sample = Sample(error=parse_sample(f"error={args.error}").error, seed=seed, shortest=args.shortest)
        try:
            values = row(seed, sample)
        except FuseFlowError as error:
            values = {"seed": seed, "state": "refused", "reason": error.message}
        sampled += values["state"] == "sampled"
        seed += args.step
        yield values


def summary(results: list[dict[str, Any]], error: float) -> str:
    """Say by structure how many intervals have the exact number, and how many programs were not sampled."""
    sampled = [values for values in results if values["state"] == "sampled"]
    others = Counter(values["state"] for values in results if values["state"] != "sampled")
    told = ", ".join(f"{count} {state}" for state, count in sorted(others.items())) or "none"
    lines = [_summary_line("all", sampled, error)]
    lines += [
        _summary_line(name, [v for v in sampled if v["structure"] == name], error)
        for name in sorted({v["structure"] for v in sampled})
    ]
    return "\n".join([*lines, f"not sampled: {told}"])


def _summary_line(name: str, sampled: list[dict[str, Any]], error: float) -> str:
    covered, wide = sum(values["covered"] for values in sampled), sum(values["half_width"] > error for values in sampled)
    count = max(1, len(sampled))
    off, half_width = (sum(values[key] for values in sampled) / count for key in ("off", "half_width"))
    return (
        f"{name:12} {covered:4} of {len(sampled):4} intervals have the exact number ({100 * covered / count:5.1f} %)"
        f", {wide} are wider than "
        f"asked; {100 * off:+.2f} % off and {100 * half_width:.2f} % half-width in the mean"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=int, default=500)
    parser.add_argument("--set", choices=("tuning", "test"), default="test")
    parser.add_argument("--first", type=int, help="the first seed, in place of that of a set")
    parser.add_argument("--step", type=int, default=1, help="the distance of seeds, so that several processes share a set")
    parser.add_argument("--error", default="3%")
    parser.add_argument("--shortest", type=int, default=20_000)
    parser.add_argument("--output", type=Path, required=True)
    args = parser.parse_args()
    known = [json.loads(line) for line in args.output.read_text(encoding="utf-8").splitlines()] if args.output.exists() else []
    with args.output.open("a", encoding="utf-8") as out:
        for values in rows(args, known):
            out.write(json.dumps(values) + "\n")
            out.flush()
            known.append(values)
    print(summary(known, parse_sample(f"error={args.error}").error or 0))


if __name__ == "__main__":
    main()
