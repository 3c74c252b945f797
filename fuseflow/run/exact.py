"""An exact run of a compiled program: every region is simulated in full, on the intermediates of the regions before it.

Regions that do not read each other's results may run at the same time, each in a thread: the compiled loop of the engine holds no
lock of Python. The results of a region depend only on the tensors that it reads, and regions are recorded in their order. So
results are the same for any number of jobs, and so are errors: if several regions fail, the error of the first is raised.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from threading import Event, Lock
from types import TracebackType

from fuseflow.einsum.nodes import Program
from fuseflow.errors import DeadlockError, FuseFlowError
from fuseflow.lower.regions import CompiledRegion
from fuseflow.lower.views import add_views
from fuseflow.machine.machine import Machine
from fuseflow.run.check import Check
from fuseflow.run.execution import GraphExecutor, ProgressCallback, SimulationCallback
from fuseflow.run.history import RunHistory
from fuseflow.run.stand_ins import check_region, stand_in
from fuseflow.sim import Engine, Simulation
from fuseflow.tensors import Tensor

WORTH_A_THREAD = 5_000_000
"""A region with fewer expected firings takes a fifth of a second at most, and is not run beside others."""


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
    _begun: list[BegunRegion] = field(default_factory=list)

    def run(self, regions: Sequence[CompiledRegion], jobs: int) -> None:
        """Run all regions, up to `jobs` at a time."""
        needed = last_needed(regions)
        with Threads(jobs) as threads:
            for number, region in enumerate(regions):
                self._record_begun(needed[number])
                next_waits = needed[number + 1] == number if number + 1 < len(regions) else True
                beside_others = jobs > 1 and (bool(self._begun) or not next_waits)
                self._run(number, region, threads if beside_others and self._is_worth_a_thread(region) else None)
            self._record_begun(len(regions))

    def _is_worth_a_thread(self, region: CompiledRegion) -> bool:
        return self.engine != "reference" and region.estimate.firings >= WORTH_A_THREAD

    def _run(self, number: int, region: CompiledRegion, threads: Threads | None) -> None:
        """Run a region here, or begin it in one of the threads."""
        add_views(self.memory, region.views_before)
        read = {name: self.memory[name] for name in region.graph.inputs}
        key = self.history.key(region, read) if threads is not None or self._begun else None
        if key is not None and any(begun.key == key for begun in self._begun):
            self._record_begun(number)  # this one may count like it
        results = self.history.replay(region, read)
        if results is not None:
            self._keep(region, results)
        elif threads is not None:
            simulation = threads.begin(lambda report: self._simulate(region, read, report), self._report(region))
            self._begun.append(BegunRegion(number, region, read, key, simulation))
        else:
            try:
                done = self._simulate(region, read, self._report(region))
            except FuseFlowError:
                self._record_begun(number)  # the error of an earlier region comes first
                raise
            self._record_begun(number)
            self._record(region, read, done)

    def _report(self, region: CompiledRegion) -> Callable[[int], None] | None:
        progress = self.progress
        return None if progress is None else lambda firings: progress(region.name, firings)

    def _simulate(self, region: CompiledRegion, read: Mapping[str, Tensor], report: Callable[[int], None] | None) -> Simulation:
        try:
            return self.execute(region.graph, read, self.machine, report, engine=self.engine, expected=region.estimate.firings)
        except DeadlockError as error:
            error.region = region.name
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
        """Put the results of a region into memory, with their views, and replace intermediates by stand-ins if the run has
        them."""
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


class Threads(AbstractContextManager["Threads"]):
    """Up to `count` threads, which are started when they are needed. At the end of a `with` block, threads that still run are
    stopped."""

    def __init__(self, count: int) -> None:
        self.count, self.lock, self.stopped = count, Lock(), Event()
        self.pool: ThreadPoolExecutor | None = None

    def begin(
        self, simulate: Callable[[Callable[[int], None]], Simulation], report: Callable[[int], None] | None
    ) -> Future[Simulation]:
        """Call `simulate` in a thread. It gets a function to call now and then, which passes the firings on to `report`, one
        thread at a time."""
        self.pool = self.pool or ThreadPoolExecutor(self.count)

        def go_on(firings: int) -> None:
            if self.stopped.is_set():
                raise Stopped
            if report is not None:
                with self.lock:
                    report(firings)

        return self.pool.submit(simulate, go_on)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stopped.set()
        if self.pool is not None:
            self.pool.shutdown(cancel_futures=True)
