"""The measurement of a point: its estimate or its simulation, as the values of a row."""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from fuseflow.array.settings import ArraySettings
from fuseflow.autoscheduler.array_candidates import CANDIDATES
from fuseflow.autoscheduler.autoscheduler import choose_schedule
from fuseflow.autoscheduler.search_defaults import DEFAULT_TOP
from fuseflow.compiler import compile_source
from fuseflow.errors import CheckError, EnergyError
from fuseflow.estimate.program import Estimator
from fuseflow.estimate.program_estimate import ProgramEstimate
from fuseflow.frontend.imported_program import as_propagation
from fuseflow.frontend.model_spec import ModelSpec, TrainingRequest
from fuseflow.frontend.sources import Source, load
from fuseflow.machine.machine import Machine
from fuseflow.resources import COMPONENTS, Resources
from fuseflow.run.callback_types import GraphExecutor
from fuseflow.run.compiled import Compiled
from fuseflow.run.placed import RegionPlacing
from fuseflow.run.result import Result
from fuseflow.run.run_archive import pack_run
from fuseflow.sampling.sample_request import Sample, parse_sample
from fuseflow.schedule import Schedule
from fuseflow.sim import simulate
from fuseflow.sweep.point import Mode, Point

KEPT_SOURCES = 2
"""How many traced models a process keeps. Neighbouring points of a sweep share one, and large data must not pile up."""

KEPT_COUNTS = 50_000
"""The most results of counting that are kept for the next point, so that the results of many points do not pile up."""

RowValues = dict[str, Any]
"""The values of a row by name, as JSON has them."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """The measurement of a point: the values of its row, and its packed run, which is empty if none was kept."""

    values: RowValues
    run: bytes = b""


@dataclass(frozen=True, slots=True)
class SourceEstimator:
    """A model with its data, an estimator that keeps its counts on the data, and placements of its regions."""

    source: Source
    estimator: Estimator = field(default_factory=lambda: Estimator(assume_unknown=True))
    _placings: dict[str, RegionPlacing] = field(default_factory=dict)

    def placing(self, point: Point) -> RegionPlacing:
        """Return what places regions on the array of a point, and has those of the points before it."""
        key = repr((point.machine, point.array))
        if key not in self._placings:
            array = ArraySettings.model_validate(point.array)
            self._placings[key] = RegionPlacing(array, Machine.model_validate(point.machine), CANDIDATES)
        return self._placings[key]


@dataclass(slots=True)
class SourceCache:
    """A cache of models with their data, which are loaded once for all points that share them. It keeps the latest `KEPT_SOURCES`."""

    _kept: OrderedDict[str, SourceEstimator] = field(default_factory=OrderedDict)

    def get(self, point: Point) -> SourceEstimator:
        """Return the model and the data of a point, and load them if they are not in the cache."""
        key = point.source
        if key not in self._kept:
            while len(self._kept) >= KEPT_SOURCES:
                self._kept.popitem(last=False)
            self._kept[key] = SourceEstimator(_load(point))
        self._kept.move_to_end(key)
        return self._kept[key]


def _load(point: Point) -> Source:
    sparsity = None
    try:
        if point.sparsity:
            from fuseflow.sparsity.spec import SparseSpec  # points of dense models do without

            sparsity = SparseSpec.from_yaml(point.sparsity)
        spec = ModelSpec(
            point.model,
            data=point.data,
            data_dir=point.data_dir,
            tensors=point.tensors,
            options=dict(point.options),
            seed=point.seed,
            sparsity=sparsity,
            propagate=as_propagation(point.propagate),
            training=None if point.training is None else TrainingRequest(**point.training),  # type: ignore[arg-type]
        )
        return load(spec)
    finally:
        _forget_modules(Path(point.model).resolve().parent)


def _forget_modules(folder: Path) -> None:
    """Forget the modules that a model file imported from its folder, because modules of the next model may have the same names."""
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if file and Path(file).parent == folder:
            del sys.modules[name]


def compile_point(
    loaded: SourceEstimator, point: Point, top: int, sample: Sample | None = None
) -> tuple[Compiled, GraphExecutor]:
    """Compile a point; returns the program and the executor of its graphs. `top` is the number of candidates that `auto`
    simulates, or samples, if the schedule leaves it a choice."""
    schedule = replace(Schedule.from_yaml(point.schedule), places={})  # no file of the user has these lines
    machine = Machine.model_validate(point.machine)
    if schedule.open:
        choice = choose_schedule(loaded.source, schedule, machine, top=top, estimator=loaded.estimator, sample=sample)
        return choice.compiled, choice.cache.exactly()
    return compile_source(loaded.source, schedule, machine), simulate


def estimate_point(loaded: SourceEstimator, point: Point) -> RowValues:
    """Estimate a point, whose model and estimator are `loaded`, and return the values of its row."""
    loaded.estimator.memo.forget(KEPT_COUNTS)
    program, _ = compile_point(loaded, point, top=0)
    estimate = program.estimate(loaded.estimator)
    traffic, orders = estimate.stats["bytes"], {r.name: list(r.fused.order) for r in program.regions}
    return {
        "cycles": round(estimate.cycles),
        "bytes": round(traffic["read"] + traffic["write"]),
        "live_bytes": round(estimate.live_bytes),
        "flops": round(estimate.flops),
        "firings": round(estimate.firings),
        "nodes": sum(r.graph.node_count for r in program.regions),
        **_occupied(r.resources for r in estimate.regions),
        **_energy(estimate),
        **_chosen_schedule(point, program),
        "regions": [
            {"name": r.name, "order": orders[r.name], "times": r.times, "cycles": round(r.bound.cycles)} for r in estimate.regions
        ],
    }


def simulate_point(loaded: SourceEstimator, point: Point, keep_run: bool = False) -> Measurement:
    """Simulate a point, and pack its run if `keep_run` says so. Raises `CheckError` for outputs that are wrong."""
    program, execute = compile_point(loaded, point, DEFAULT_TOP)
    run = program.run if point.array is None else partial(loaded.placing(point).run, program)
    result = run(check=point.check, execute=execute)
    if result.check is not None and not result.check.passed:
        raise CheckError(result.check.problem)
    orders, traffic = {r.name: list(r.fused.order) for r in program.regions}, result.stats["bytes"]
    values = {
        "cycles": result.cycles,
        "bytes": traffic["read"] + traffic["write"],
        "bytes_read": traffic["read"],
        "bytes_written": traffic["write"],
        "live_bytes": result.live_bytes,
        "flops": result.flops,
        "firings": sum(r.times * r.simulation.firings for r in result.regions),
        "tokens": sum(r.times * r.simulation.tokens for r in result.regions),
        "nodes": sum(r.times * r.simulation.node_count for r in result.regions),
        **_occupied(r.resources for r in result.regions),
        **_energy(result),
        "roofline": sum(r.times * r.simulation.bound for r in result.regions),
        "checked": result.check is not None,
        "regions": [
            {
                "name": r.name,
                "order": orders[r.name],
                "times": r.times,
                "repeats": [repeat.name for repeat in r.repeats],
                "cycles": r.cycles,
                "fifo": r.resources.fifo,
            }
            for r in result.regions
        ],
        "notices": list(loaded.source.notices),
        **_chosen_schedule(point, program),
        **({"loading": dict(result.loading)} if result.loading else {}),
    }
    return Measurement(values, pack_run(program, result) if keep_run else b"")


def sample_point(loaded: SourceEstimator, point: Point) -> RowValues:
    """Sample a point, and return the values of its row. No value is called `cycles`. Raises `CheckError` for wrong values."""
    sample = parse_sample(point.sample)
    program, _ = compile_point(loaded, point, DEFAULT_TOP, sample)
    result = program.run(check=point.check, sample=sample)
    for check in (result.check, result.rows_check):
        if check is not None and not check.passed:
            raise CheckError(check.problem)
    cycles, regions = result.cycles, [region.to_json() for region in result.regions]
    return {
        "sampled_cycles": round(cycles.estimate),
        "sampled_low": cycles.low,
        "sampled_high": cycles.high,
        "confidence": cycles.confidence,
        "bytes": result.bytes("read") + result.bytes("write"),
        "flops": result.flops,
        "firings": result.firings,
        **_occupied(r.counts.resources for r in result.regions),
        "counted": result.counted,
        "checked": result.check is not None,
        "notices": list(loaded.source.notices),
        **_chosen_schedule(point, program),
        "regions": [{key: r[key] for key in ("name", "times", "exact_cycles", "sampled_cycles") if key in r} for r in regions],
    }


def _occupied(regions: Iterable[Resources]) -> RowValues:
    """Return the most of each component that a region occupies, as values of the row. An unbounded FIFO has no bytes."""
    most = Resources.most_of(regions)
    return {name: value for name in COMPONENTS if (value := getattr(most, name)) is not None}


def _energy(measured: ProgramEstimate | Result) -> RowValues:
    """Return the energy in picojoules as a value of the row. {} on a machine that is no model of hardware."""
    try:
        return {"energy_pj": round(measured.energy().total)}
    except EnergyError:
        return {}


def _chosen_schedule(point: Point, program: Compiled) -> RowValues:
    """Return the schedule that `auto` chose, as a value of the row; {} if it is the schedule of the point."""
    chosen = program.schedule.to_yaml()
    return {} if chosen == point.schedule else {"schedule": chosen}


def measure(loaded: SourceEstimator, point: Point, mode: Mode, keep_run: bool = False) -> Measurement:
    """Measure a point in a mode. `keep_run` packs the run of a simulation; the other modes run nothing as a whole."""
    if mode == "simulate":
        return simulate_point(loaded, point, keep_run)
    return Measurement(estimate_point(loaded, point) if mode == "estimate" else sample_point(loaded, point))
