"""A sampled run of a compiled program: region after region, each sampled if it is long, and run in full if it is short."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from fuseflow.costs import measure_statistics
from fuseflow.einsum.nodes import Program
from fuseflow.errors import SamplingError
from fuseflow.estimate.counted.patterns import tensor_pattern
from fuseflow.estimate.program import Estimator, TensorKnowledge
from fuseflow.estimate.program_estimate import RegionEstimate
from fuseflow.estimate.region_conversion import estimator_regions
from fuseflow.lower.regions import CompiledRegion
from fuseflow.lower.reshape_views import add_views
from fuseflow.machine.machine import Machine
from fuseflow.memory.layout import used_tensors
from fuseflow.run.check import EXACT, PRECISIONS, Check, relative_error
from fuseflow.run.sampled_result import SampledRegionResult
from fuseflow.sampling.interval import SampledCycles
from fuseflow.sampling.region import RegionSampler, require_bounded_fifos
from fuseflow.sampling.replicates import SampledRun
from fuseflow.sampling.restriction import sampled_index
from fuseflow.sampling.sample_request import Sample
from fuseflow.sampling.values import interpret_results, interpret_rows, values_refusal
from fuseflow.schedule import Schedule
from fuseflow.sim import Engine, simulate
from fuseflow.sim.signature import RegionRepeat, signature
from fuseflow.tensors import Tensor
from fuseflow.tensors.restriction import restrict


@dataclass(slots=True)
class SampledRegions:
    """The regions of a program as they are sampled, one after the other: the tensors in memory, the facts about them, and the
    results so far.

    `tensors` are the inputs of the user, and `memory` has the tensors before the first region. Without `outputs`, only the sampled rows
    of a result that no region reads are interpreted, if its region is sampled and has no blocks.
    Raises `SamplingError` for a machine on which a sample is of no use, for dense stand-ins, for reuse buffers, for preloads, for
    places in the scratchpad, and for tiles.
    """

    program: Program
    tensors: Mapping[str, Tensor]
    schedule: Schedule
    machine: Machine
    memory: dict[str, Tensor]
    sample: Sample
    engine: Engine
    dedup: bool
    progress: Callable[[str, int], None] | None
    estimator: Estimator
    outputs: bool
    results: list[SampledRegionResult] = field(default_factory=list)
    rows_check: Check = field(default_factory=lambda: Check("interpreter, sampled rows", True, 0.0))
    knowledge: TensorKnowledge = field(init=False)
    _first: dict[Hashable, tuple[int, CompiledRegion]] = field(default_factory=dict)
    _read: set[str] = field(default_factory=set)
    """The tensors that regions read."""

    def __post_init__(self) -> None:
        require_bounded_fifos(self.machine)
        if self.schedule.intermediates == "dense":
            why = (
                "a run on dense stand-ins (`intermediates: dense`) cannot be sampled: the interpreter computes real intermediates"
            )
            raise SamplingError(why, hint="run it without a sample")
        refusals = (
            ("buffer", self.schedule.buffers, "with reuse buffers", "what is in a buffer at a row depends on all rows before it"),
            ("preload", self.schedule.preloads, "with preloaded tensors", "all of them is read, however few rows are"),
            ("tile", self.schedule.tiles, "in tiles", ""),
            (
                "place",
                self.schedule.memories,
                "with a scratchpad",
                "all of a tensor is loaded into it, however few rows are read",
            ),
        )
        for section, is_set, kind, why in refusals:
            if is_set:
                hint = f"run it without a sample, or leave the section `{section}` out"
                raise SamplingError(f"a run {kind} cannot be sampled{': ' if why else ''}{why}", hint=hint)
        self.knowledge = self.estimator.knowledge(self.program, self.tensors)

    def run(self, regions: Sequence[CompiledRegion]) -> None:
        """Run all regions. Tensors that no later one reads are freed: intermediates of a large graph are as large as its outputs."""
        last: dict[str, int] = {}
        for number, region in enumerate(regions):
            last |= dict.fromkeys((*region.graph.inputs, *region.fused.declared, *_viewed(region)), number)
        self._read = {name for region in regions for name in (*region.graph.inputs, *_viewed(region))}
        for number, region in enumerate(regions):
            self._run(number, region)
            for name, reader in last.items():
                if reader == number and name not in self.program.outputs:
                    self.memory.pop(name, None)

    def _run(self, number: int, region: CompiledRegion) -> None:
        """Run one region. `number` is its number in the program."""
        add_views(self.memory, region.views_before)
        (estimated,) = estimator_regions([region])
        counts = self.estimator.region(estimated, self.machine, self.knowledge)
        read = {name: self.memory[name] for name in region.graph.inputs}
        key = signature(region.graph, read) if self.dedup else None
        if key is not None and key in self._first and values_refusal(region) is None:
            self._repeat(key, region, counts)
        else:
            self._measure(number, region, read, counts, key)
        add_views(self.memory, region.views_after)

    def _repeat(self, key: Hashable, region: CompiledRegion, counts: RegionEstimate) -> None:
        """Count a region that runs like an earlier one, whose cycles it takes over. Its values are interpreted if they are wanted."""
        at, before = self._first[key]
        names = dict(zip(used_tensors(before.graph), used_tensors(region.graph), strict=True))
        repeat = RegionRepeat(region.name, region.einsums, names)
        self.results[at] = replace(self.results[at], repeats=(*self.results[at].repeats, repeat))
        if self._is_wanted(region):
            self._store(interpret_results(region, self.memory, counts.work.patterns, self.machine.is_wide))

    def _measure(
        self, number: int, region: CompiledRegion, read: Mapping[str, Tensor], counts: RegionEstimate, key: Hashable | None
    ) -> None:
        """Sample a region, or run it in full."""
        report = None if self.progress is None else partial(self.progress, region.name)
        sampler = RegionSampler(self.schedule, self.machine, self.sample, self.engine, self.estimator.memo)
        sampled = sampler.run(region, read, self.knowledge.patterns, number, report)
        cycles: SampledCycles | int
        results: Mapping[str, Tensor] = {}
        if sampled is None:
            sample = None
            simulation = simulate(region.graph, read, self.machine, report, engine=self.engine)
            cycles, results = simulation.cycles, simulation.outputs
        else:
            sample, cycles = sampled.sample, sampled.sample.cycles
            if self._is_wanted(region):
                results = interpret_results(region, self.memory, counts.work.patterns, self.machine.is_wide)
            self._compare_rows(region, sampled, results)
        if key is not None:
            self._first.setdefault(key, (len(self.results), region))
        index = sampled_index(region.fused) if region.fused.order else ""
        self.results.append(SampledRegionResult(region.name, region.einsums, index, cycles, sample, counts))
        self._store(results)

    def _store(self, results: Mapping[str, Tensor]) -> None:
        """Put results into memory, and add their patterns and statistics to the knowledge if they were not counted."""
        self.memory |= results
        for name, tensor in results.items():
            if name not in self.knowledge.patterns:
                self.knowledge.patterns[name] = tensor_pattern(tensor)
                self.knowledge.statistics[name] = measure_statistics(tensor)

    def _is_wanted(self, region: CompiledRegion) -> bool:
        """Return whether all values of a region are to be computed."""
        return bool(region.fused.blocks) or any(self.outputs or result.name in self._read for result in region.fused.results)

    def _compare_rows(self, region: CompiledRegion, sampled: SampledRun, results: Mapping[str, Tensor]) -> None:
        """Compare the sampled rows of every result with the interpreter. If there are no `results`, it computes these rows."""
        taken = np.unique(np.concatenate([rows for rows, _ in sampled.outputs]))
        arrays = {} if results else interpret_rows(region, self.memory, taken, self.machine.is_wide)
        for result in region.fused.results:
            name, mode = result.name, result.indices.index(sampled_index(region.fused))
            for rows, outputs in sampled.outputs:
                computed = outputs[name]
                if results:
                    error = _row_error(computed, restrict(results[name], mode, rows))
                else:
                    expected = arrays[name].take(np.searchsorted(taken, rows), axis=mode)
                    error = relative_error(computed.to_dense(), expected)
                self._note(name, computed, error)

    def _note(self, name: str, computed: Tensor, error: float) -> None:
        """Record the largest error of some rows of a result."""
        check = self.rows_check
        self.rows_check = replace(
            check,
            passed=check.passed and error <= PRECISIONS.get(computed.element_type.name, EXACT).tolerance,
            max_rel_error=max(error, check.max_rel_error),
            worst=name if error > check.max_rel_error or not check.worst else check.worst,
        )


def _viewed(region: CompiledRegion) -> Iterator[str]:
    """Yield the tensors that the views of a region show."""
    return (view.source for view in (*region.views_before, *region.views_after))


def _row_error(computed: Tensor, expected: Tensor) -> float:
    """Return the largest relative error of stored values. It is infinite if other coordinates are stored, except for zeros that
    are dropped."""
    if computed.stored == expected.stored and np.array_equal(computed.coordinates(), expected.coordinates()):
        return relative_error(computed.values, expected.values)
    return relative_error(computed.to_dense(), expected.to_dense())
