"""An exact run of a compiled program: every region is simulated in full, on the intermediates of the regions before it.

Regions that do not read each other's results may run at the same time, each in a thread: the compiled loop of the engine holds no
lock of Python. The results of a region depend only on the tensors that it reads, and regions are recorded in their order. So
results are the same for any number of jobs, and so are errors: if several regions fail, the error of the first is raised.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from threading import Event, Lock
from typing import TYPE_CHECKING, TypeAlias

from fuseflow.einsum.nodes import Program
from fuseflow.errors import DeadlockError, FuseFlowError, ScratchpadError
from fuseflow.lower.regions import CompiledRegion
from fuseflow.lower.reshape_views import add_views
from fuseflow.machine.machine import Machine
from fuseflow.run.callback_types import GraphExecutor, ProgressCallback, SimulationCallback
from fuseflow.run.check import Check
from fuseflow.run.isolated_regions import check_region, stand_in
from fuseflow.run.repeated_regions import RunHistory
from fuseflow.samml.nodes import Graph
from fuseflow.sim import Engine, Simulation
from fuseflow.tensors import Tensor

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

WORTH_A_THREAD = 5_000_000
"""A region with fewer expected firings takes a fifth of a second at most, and is not run beside others."""
Report: TypeAlias = Callable[[int], None]
Begin: TypeAlias = "Callable[[Callable[[Report], Simulation], Report | None], Future[Simulation]]"


@dataclass(frozen=True, slots=True)
class BegunRegion:
    """A region that runs in a thread, or waits for one. Regions with an equal `key` run in the same way."""

    number: int
    region: CompiledRegion
    read: Mapping[str, Tensor]
    key: Hashable | None
    simulation: Future[Simulation]


@dataclass(slots=True)
class ExactRegions:
    """The regions of a program as they run: the tensors in memory, the history so far, and the `checks` of regions. Only a run
    with dense stand-ins has these; `seed` is that of the stand-ins, None without them."""

    program: Program
    machine: Machine
    memory: dict[str, Tensor]
    history: RunHistory
    engine: Engine
    execute: GraphExecutor
    progress: ProgressCallback | None
    watch: SimulationCallback | None
    seed: int | None
    check: bool
    checks: list[Check] = field(default_factory=list)
    longest: float = 0.0
    """The expected firings of the longest region. If it runs on the engine, the others do, too: loading it takes longer than they do."""
    _begun: list[BegunRegion] = field(default_factory=list)

    def run(self, regions: Sequence[CompiledRegion], jobs: int) -> None:
        """Run all regions, up to `jobs` at a time."""
        needed = last_needed(regions)
        self.longest = max((region.estimate.firings for region in regions), default=0.0)
        with _threads(jobs) as begin:
            for number, region in enumerate(regions):
                self._record_begun(needed[number])
                next_waits = needed[number + 1] == number if number + 1 < len(regions) else True
                beside_others = jobs > 1 and (bool(self._begun) or not next_waits)
                worth_a_thread = self.engine != "reference" and region.estimate.firings >= WORTH_A_THREAD
                self._run(number, region, begin if beside_others and worth_a_thread else None)
            self._record_begun(len(regions))

    def _run(self, number: int, region: CompiledRegion, begin: Begin | None) -> None:
        """Run a region here, or `begin` it in a thread."""
        add_views(self.memory, region.views_before)
        read = {name: self.memory[name] for name in region.graph.inputs}
        key = self.history.key(region, read) if begin is not None or self._begun else None
        if key is not None and any(begun.key == key for begun in self._begun):
            self._record_begun(number)  # this one may count like it
        results = self.history.replay(region, read)
        report = None if self.progress is None else partial(self.progress, region.name)
        if results is not None:
            self._keep(region, results)
        elif begin is not None:
            simulation = begin(partial(self._simulate, region, read), report)
            self._begun.append(BegunRegion(number, region, read, key, simulation))
        else:
            try:
                done = self._simulate(region, read, report)
            except FuseFlowError:
                self._record_begun(number)  # the error of an earlier region comes first
                raise
            self._record_begun(number)
            self._record(region, read, done)

    def _simulate(self, region: CompiledRegion, read: Mapping[str, Tensor], report: Report | None) -> Simulation:
        def execute(graph: Graph, tensors: Mapping[str, Tensor]) -> Simulation:
            return self.execute(graph, tensors, self.machine, report, engine=self.engine, expected=self.longest)

        try:
            if not region.tiles:
                return execute(region.graph, read)
            from fuseflow.run.tiles import run_tiles  # which most programs do without

            return run_tiles(region, read, execute)
        except DeadlockError as error:
            error.region = region.name
            raise
        except ScratchpadError as error:
            from fuseflow.lower.tiles import fitting_tiles

            assert self.machine.scratchpad is not None
            word = self.machine.scratchpad.bytes_a_cycle
            error.hint = fitting_tiles(region, error.tensor, error.size, error.room, word) or error.hint
            raise

    def _record_begun(self, last: int) -> None:
        """Wait for the regions that run in threads, up to the region with the number `last`, and record them in their order."""
        while self._begun and self._begun[0].number <= last:
            begun = self._begun.pop(0)
            self._record(begun.region, begun.read, begun.simulation.result())

    def _record(self, region: CompiledRegion, read: Mapping[str, Tensor], simulation: Simulation) -> None:
        if self.watch is not None:
            self.watch(region, read, simulation)
        results = self.history.record(region, read, simulation)
        if self.seed is not None and self.check:
            region_check = check_region(self.program, region, self.memory, results, self.machine.is_wide)
            if region_check:
                self.checks.append(region_check)
        self._keep(region, results)

    def _keep(self, region: CompiledRegion, results: Mapping[str, Tensor]) -> None:
        """Put the results of a region into memory, with their views, and replace intermediates by stand-ins if the run has them."""
        self.memory |= results
        add_views(self.memory, region.views_after)
        if self.seed is not None:
            computed = {n: t for n, t in results.items() if n not in self.program.outputs and region.einsums}
            self.memory |= {n: stand_in(self.program.declared[n], tensor, self.seed) for n, tensor in computed.items()}


def last_needed(regions: Sequence[CompiledRegion]) -> list[int]:
    """Return, for each region, the number of the last region before it whose result or view it reads, or -1 if it reads none."""
    maker: dict[str, int] = {}
    needed = []
    for number, region in enumerate(regions):
        views = (*region.views_before, *region.views_after)
        read = {*region.graph.inputs, *region.fused.declared, *(view.source for view in views)}
        needed.append(max((maker[name] for name in read if name in maker), default=-1))
        maker |= dict.fromkeys((*region.graph.outputs, *(view.name for view in views)), number)
    return needed


class Stopped(Exception):
    """Ends a thread whose result is not wanted any more."""


@contextmanager
def _threads(count: int) -> Iterator[Begin]:
    """Yield a function that begins simulations in up to `count` threads. At the end of the block, threads that still run are stopped.

    The function gets a simulation and a `report`. It calls the simulation with a function to call now and then, which passes the firings on
    to `report`, one thread at a time.
    """
    lock, stopped = Lock(), Event()
    pool: ThreadPoolExecutor | None = None

    def begin(simulate: Callable[[Report], Simulation], report: Report | None) -> Future[Simulation]:
        nonlocal pool
        from concurrent.futures import ThreadPoolExecutor  # small programs have no threads

        pool = pool or ThreadPoolExecutor(count)

        def go_on(firings: int) -> None:
            if stopped.is_set():
                raise Stopped
            if report is not None:
                with lock:
                    report(firings)

        return pool.submit(simulate, go_on)

    try:
        yield begin
    finally:
        stopped.set()
        if pool is not None:
            pool.shutdown(cancel_futures=True)
