"""One point: its estimate, or its simulation, as the values of a row."""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from fuseflow.compiler import Compiled, Source, load, lower
from fuseflow.errors import CheckError
from fuseflow.explore.point import Point
from fuseflow.schedule import Schedule
from fuseflow.sim import Machine

KEPT = 2
"""Traced models that a process keeps: neighbours in a sweep share one, and large data must not pile up."""

Values = dict[str, Any]


@dataclass(slots=True)
class Sources:
    """Models with their data, loaded once for all points that share them; the latest `KEPT`."""

    _kept: OrderedDict[str, Source] = field(default_factory=OrderedDict)

    def of(self, point: Point) -> Source:
        key = point.source
        if key not in self._kept:
            while len(self._kept) >= KEPT:
                self._kept.popitem(last=False)
            self._kept[key] = _load(point)
        self._kept.move_to_end(key)
        return self._kept[key]


def _load(point: Point) -> Source:
    try:
        return load(
            point.model,
            data=point.data,
            data_dir=point.data_dir,
            tensors=point.tensors,
            options=dict(point.options),
            seed=point.seed,
        )
    finally:
        _forget(Path(point.model).resolve().parent)


def _forget(folder: Path) -> None:
    """Modules that a model file imported from its folder: those of the next model may have the same names."""
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if file and Path(file).parent == folder:
            del sys.modules[name]


def compiled(source: Source, point: Point) -> Compiled:
    schedule = replace(Schedule.from_yaml(point.schedule), places={})  # no file of the user has these lines
    program, regions = lower(source.program, schedule, source.tensors)
    machine = Machine.model_validate(point.machine)
    return Compiled(source, program, schedule, regions, machine, point.seed, 0.0)


def estimated(source: Source, point: Point) -> Values:
    """What the regions are expected to cost, one after the other, from statistics of their tensors."""
    regions = compiled(source, point).regions
    return {
        "cycles": round(sum(r.estimate.rank for r in regions)),
        "bytes": round(sum(r.estimate.bytes for r in regions)),
        "flops": round(sum(r.estimate.flops for r in regions)),
        "firings": round(sum(r.estimate.firings for r in regions)),
        "nodes": sum(len(r.graph.nodes) for r in regions),
        "regions": [{"name": r.name, "order": list(r.fused.order), "cycles": round(r.estimate.rank)} for r in regions],
    }


def simulated(source: Source, point: Point) -> Values:
    """What the simulator counts; raises `CheckError` for outputs that are wrong."""
    program = compiled(source, point)
    result = program.run(check=point.check)
    if result.check is not None and not result.check.passed:
        raise CheckError(f"output `{result.check.worst}` differs from {result.check.reference}")
    orders = {r.name: list(r.fused.order) for r in program.regions}
    moved = result.stats["bytes"]
    return {
        "cycles": result.cycles,
        "bytes": moved["read"] + moved["write"],
        "bytes_read": moved["read"],
        "bytes_written": moved["write"],
        "flops": result.flops,
        "firings": sum(r.times * r.simulation.firings for r in result.regions),
        "tokens": sum(r.times * r.simulation.tokens for r in result.regions),
        "nodes": sum(r.times * len(r.simulation.nodes) for r in result.regions),
        "roofline": sum(r.times * r.simulation.bound for r in result.regions),
        "checked": result.check is not None,
        "notices": list(source.notices),
        "regions": [{"name": r.name, "order": orders[r.name], "times": r.times, "cycles": r.cycles} for r in result.regions],
    }


MEASURES: dict[str, Callable[[Source, Point], Values]] = {"estimate": estimated, "simulate": simulated}
