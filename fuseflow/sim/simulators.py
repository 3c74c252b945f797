"""The choice of a simulator: the reference starts at once, and the engine is more than a hundred times faster once it has started."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from math import prod

from fuseflow.errors import UsageError, did_you_mean
from fuseflow.machine.machine import Machine
from fuseflow.memory.memory_interface import ControllerFactory
from fuseflow.memory.settings import IdealMemory
from fuseflow.samml.nodes import Edge, Graph
from fuseflow.samml.verify import verify
from fuseflow.sim.engine_names import ENGINES, Engine, FiringLimitError
from fuseflow.sim.outcome.deadlock import Deadlock
from fuseflow.sim.outcome.statistics import Outcome
from fuseflow.tensors import Tensor

REFERENCE_FIRINGS = 100_000
"""The number of firings up to which the reference takes no longer than loading the compiled kernels of the engine, at a memory
that answers at once. The measurement is in docs/explanation/simulator.md."""
MODELLED_SHARE = 5
"""With a modelled memory a firing takes the reference this many times as long, so its limit of firings is divided by this."""
FIRINGS_PER_ENTRY = 2
"""The fewest firings for a stored entry that no join drops: one on its coordinate and one on its value. It serves to send runs
that are probably too long for the reference to the engine at once."""


def run_graph(
    graph: Graph,
    tensors: Mapping[str, Tensor],
    machine: Machine,
    engine: Engine = "auto",
    progress: Callable[[int], None] | None = None,
    record: bool = False,
    attach: ControllerFactory | None = None,
    expected: float = 0,
    verified: bool = False,
) -> tuple[Outcome | Deadlock, Engine]:
    """Run a verified graph, and return its outcome and the simulator that ran it. Both simulators return the same outcome. `auto`
    begins on the reference, unless more than `reference_firings` are `expected`, and starts again on the engine if the run takes
    more. It stays on the reference where a primitive has no kernel. The memory is the machine's, or the one that `attach` makes.
    With `verified`, the graph is not verified again before the engine runs it. Raises `UsageError` for an unknown engine."""
    if engine not in ENGINES:
        raise UsageError(f"unknown engine `{engine}`", hint=did_you_mean(engine, ENGINES))

    progress = None if progress is None else _rising(progress)

    def run_reference(depths: Mapping[Edge, int], limit: int | None) -> Outcome | Deadlock:
        from fuseflow.sim.reference.execute import execute as execute_reference  # large graphs never need it

        deepened = graph.with_depths(depths) if depths else graph
        return execute_reference(deepened, tensors, machine, progress, record, limit, attach)

    def run_long(depths: Mapping[Edge, int]) -> tuple[Outcome | Deadlock, Engine]:
        from fuseflow.sim.engine.execute import execute  # loads the compiler, which small graphs never need
        from fuseflow.sim.engine.kernels import RULES

        if engine == "auto" and any(type(node) not in RULES for node in graph.nodes):
            return run_reference(depths, None), "reference"
        if not verified:
            verify(graph)  # kernels trust in facts that it proves
        return execute(graph.with_depths(depths), tensors, machine, progress, record, attach=attach), "fast"

    if engine != "fast":
        limit = None if engine == "reference" else reference_firings(graph, machine)
        entries = sum(tensors[name].stored for name in graph.inputs)
        if limit is None or max(expected, FIRINGS_PER_ENTRY * entries) <= limit:
            with suppress(FiringLimitError):
                outcome = run_reference({}, limit)
                advised = outcome if isinstance(outcome, Outcome) else _advised(outcome, lambda depths: run_long(depths)[0], {})
                return advised, "reference"
    return run_long({})


def _rising(progress: Callable[[int], None]) -> Callable[[int], None]:
    """Return a progress function that drops numbers not above earlier ones: a run that starts again on the engine repeats
    reported numbers."""
    last = -1

    def report(firings: int) -> None:
        nonlocal last
        if firings > last:
            last = firings
            progress(firings)

    return report


def reference_firings(graph: Graph, machine: Machine) -> int:
    """Return the number of firings up to which `auto` runs a graph on the reference."""
    work = max((prod(decl.tile) for decl in graph.tensors), default=1)  # of a firing on a tile, in the reference
    modelled = not isinstance(machine.memory, IdealMemory)
    return REFERENCE_FIRINGS // (work * (MODELLED_SHARE if modelled else 1))


def _advised(
    deadlock: Deadlock, run_long: Callable[[Mapping[Edge, int]], Outcome | Deadlock], depths: Mapping[Edge, int]
) -> Deadlock:
    """Return a deadlock whose advice is computed by `run_long` where the reference takes too long, since a graph that is soon
    stuck may run long with deeper FIFOs. `run_long` runs the graph to its end, with the depths of some FIFOs. `depths` has the
    depths of the stuck run that differ from the graph."""

    def smallest_depth(edges: Sequence[Edge]) -> int | None:
        try:
            return deadlock.smallest_depth(edges)
        except FiringLimitError:
            stuck = run_long(depths)
            assert isinstance(stuck, Deadlock), "simulators agree"
            return stuck.smallest_depth(edges)

    def deepened(more: Mapping[Edge, int]) -> Deadlock | None:
        try:
            stuck = deadlock.deepened(more)
        except FiringLimitError:
            outcome = run_long({**depths, **more})
            return outcome if isinstance(outcome, Deadlock) else None
        return stuck and _advised(stuck, run_long, {**depths, **more})

    return replace(deadlock, smallest_depth=smallest_depth, deepened=deepened)
