"""One point: its estimate, or its simulation, as the values of a row."""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from fuseflow.autoscheduler.autoscheduler import DEFAULT_TOP, choose_schedule
from fuseflow.compiler import compile_source
from fuseflow.errors import CheckError
from fuseflow.estimate.program import Estimator
from fuseflow.frontend.model_spec import ModelSpec
from fuseflow.frontend.sources import Source, load
from fuseflow.run.compiled import Compiled, GraphExecutor
from fuseflow.schedule import Schedule
from fuseflow.sim import Machine, simulate
from fuseflow.sweep.point import Point

KEPT_SOURCES = 2
"""Traced models that a process keeps: neighbours in a sweep share one, and large data must not pile up."""

KEPT_COUNTS = 50_000
"""Results of counting that are kept for the next point: many points must not pile up."""

RowValues = dict[str, Any]


@dataclass(frozen=True, slots=True)
class SourceEstimator:
    """A model with its data, and an estimator that keeps what it counted of them."""

    source: Source
    estimator: Estimator = field(default_factory=lambda: Estimator(assume_unknown=True))


@dataclass(slots=True)
class SourceCache:
    """Models with their data, loaded once for all points that share them; the latest `KEPT`."""

    _kept: OrderedDict[str, SourceEstimator] = field(default_factory=OrderedDict)

    def of(self, point: Point) -> SourceEstimator:
        key = point.source
        if key not in self._kept:
            while len(self._kept) >= KEPT_SOURCES:
                self._kept.popitem(last=False)
            self._kept[key] = SourceEstimator(_load(point))
        self._kept.move_to_end(key)
        return self._kept[key]


def _load(point: Point) -> Source:
    try:
        return load(
            ModelSpec(
                point.model,
                data=point.data,
                data_dir=point.data_dir,
                tensors=point.tensors,
                options=dict(point.options),
                seed=point.seed,
            )
        )
    finally:
        _forget_modules(Path(point.model).resolve().parent)


def _forget_modules(folder: Path) -> None:
    """Modules that a model file imported from its folder: those of the next model may have the same names."""
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if file and Path(file).parent == folder:
            del sys.modules[name]


def compile_point(loaded: SourceEstimator, point: Point, top: int) -> tuple[Compiled, GraphExecutor]:
    """The program, and what runs its graphs. `top`: how many schedules `auto` simulates, where the point leaves something to it."""
    schedule = replace(Schedule.from_yaml(point.schedule), places={})  # no file of the user has these lines
    machine = Machine.model_validate(point.machine)
    if schedule.open:
        choice = choose_schedule(loaded.source, schedule, machine, top=top, estimator=loaded.estimator)
        return choice.compiled, choice.cache.exactly()
    return compile_source(loaded.source, schedule, machine), simulate


def estimate_point(loaded: SourceEstimator, point: Point) -> RowValues:
    """What the regions are expected to do on the machine, one after the other."""
    loaded.estimator.memo.forget(KEPT_COUNTS)
    program, _ = compile_point(loaded, point, top=0)
    found = program.estimate(loaded.estimator)
    moved, orders = found.stats["bytes"], {r.name: list(r.fused.order) for r in program.regions}
    return {
        "cycles": round(found.cycles),
        "bytes": round(moved["read"] + moved["write"]),
        "flops": round(found.flops),
        "firings": round(found.firings),
        "nodes": sum(len(r.graph.nodes) for r in program.regions),
        **_chosen_schedule(point, program),
        "regions": [
            {"name": r.name, "order": orders[r.name], "times": r.times, "cycles": round(r.bound.cycles)} for r in found.regions
        ],
    }


def simulate_point(loaded: SourceEstimator, point: Point) -> RowValues:
    """What the simulator counts; raises `CheckError` for outputs that are wrong."""
    program, execute = compile_point(loaded, point, DEFAULT_TOP)
    result = program.run(check=point.check, execute=execute)
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
        "notices": list(loaded.source.notices),
        **_chosen_schedule(point, program),
        "regions": [{"name": r.name, "order": orders[r.name], "times": r.times, "cycles": r.cycles} for r in result.regions],
    }


def _chosen_schedule(point: Point, program: Compiled) -> RowValues:
    """What `auto` chose."""
    chosen = program.schedule.to_yaml()
    return {} if chosen == point.schedule else {"schedule": chosen}


MEASURES: dict[str, Callable[[SourceEstimator, Point], RowValues]] = {"estimate": estimate_point, "simulate": simulate_point}
