"""The estimate of a program against its run: whatever the estimate calls exact is what the run counted, number for number.

`check_estimate` raises `Difference` where that is not so, and lets every other exception pass: no compiled program makes the estimate fail.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from program_levels import Difference

import fuseflow as ff
from fuseflow.estimate import CountMemo
from fuseflow.estimate.counted.patterns import Pattern
from fuseflow.estimate.counted.stream_trie import take
from fuseflow.estimate.program import Estimator
from fuseflow.estimate.program_estimate import ProgramEstimate, RegionEstimate
from fuseflow.run.result import RegionResult
from fuseflow.samml.nodes import Graph

FEW = 12
"""A budget of elements with which some streams of a small program are counted and others are expected."""


def check_estimate(compiled: ff.Compiled, result: ff.Result) -> None:
    """Compare the estimates of a program with its run: counted in full, counted in part, and from statistics alone."""
    for name, estimator in (
        ("counted", Estimator()),
        (f"with a budget of {FEW}", Estimator(memo=CountMemo(budget=FEW))),
        (f"in pieces of {FEW}", Estimator(memo=CountMemo(budget=8 * FEW, pieces=16))),
        ("from statistics", Estimator(statistics_only=True)),
    ):
        lines = list(differences(compiled, compiled.estimate(estimator), result))
        if lines:
            raise Difference(f"estimate {name}: {'; '.join(lines[:3])}")


@dataclass(frozen=True)
class OneRegion:
    """The estimate or the run of a region, and what it calls each tensor of the region, which is another's name if it does the same."""

    content: Any
    name_there: Mapping[str, str]


def by_region(regions: Sequence[RegionEstimate] | Sequence[RegionResult]) -> dict[str, OneRegion]:
    """The regions by name, those too that do the same as an earlier one."""
    single: dict[str, OneRegion] = {}
    for region in regions:
        single[region.name] = OneRegion(region, {})
        for repeat in region.repeats:
            single[repeat.name] = OneRegion(region, {here: there for there, here in repeat.tensors.items()})
    return single


def differences(compiled: ff.Compiled, estimate: ProgramEstimate, result: ff.Result) -> Iterator[str]:
    """One line for each number that the estimate calls exact and that is another in the run, and for each that is no number."""
    expected, measured = by_region(estimate.regions), by_region(result.regions)
    if not {region.name for region in compiled.regions} == set(expected) == set(measured):
        yield f"the regions are {list(expected)}, those of the run {list(measured)}"
        return
    for region in compiled.regions:
        for line in _region(region.graph, expected[region.name], measured[region.name]):
            yield f"region `{region.name}`: {line}"
    yield from (f"{path} is {number}" for path, number in _numbers(estimate.to_json(), "estimate") if number < 0)
    for path, number in (("cycles", estimate.cycles), ("firings", estimate.firings), ("flops", estimate.flops)):
        if not math.isfinite(number):
            yield f"{path} is {number}"
    if estimate.exact and estimate.stats != result.stats:
        yield "the statistics of all regions together are not those of the run"


def _region(graph: Graph, expected: OneRegion, measured: OneRegion) -> Iterator[str]:
    work, run = expected.content.work, measured.content.simulation
    if work.exact:
        for what, counted, number in (
            ("FLOPs by operator", dict(work.operators), dict(run.operators)),
            ("firings", expected.content.firings, run.firings),
            ("the cycles of the busiest node", expected.content.bound.compute, run.busiest),
        ):
            if counted != number:
                yield f"{what}: {counted}, not {number}"
    if expected.content.config != measured.content.config:  # the statistics of what is read are measured
        yield f"the configuration: {expected.content.config}, not {measured.content.config}"
    yield from _resources(expected.content, measured.content)
    yield from _nodes(graph, work, run)
    yield from _traffic(graph, expected, measured)
    for name in graph.outputs:
        pattern = work.patterns.get(expected.name_there.get(name, name))
        if pattern is not None:
            tensor = run.outputs[measured.name_there.get(name, name)]
            if not np.array_equal(stored_coordinates(pattern, tensor.format.order), tensor.coordinates()):
                yield f"the pattern of `{name}` is not that of what was written"


def _resources(expected: RegionEstimate, measured: RegionResult) -> Iterator[str]:
    """What is occupied follows from the graph, but for what is held back and FIFOs that a run deepened. The ports are those of a memory
    that has some."""
    estimated, occupied = expected.resources, measured.resources
    for component in ("mul", "add", "special", "port", "stream", "buffer"):
        if getattr(estimated, component) != getattr(occupied, component):
            yield f"{component}: {getattr(estimated, component)}, not {getattr(occupied, component)}"
    if occupied.workspace_bound or occupied.fifo is None:
        yield f"the run does not know what it occupied: {occupied}"
    elif estimated.workspace_bound and estimated.workspace < occupied.workspace:
        yield f"at most {estimated.workspace} bytes of workspaces, and {occupied.workspace} were used"
    elif not estimated.workspace_bound and estimated.workspace != occupied.workspace:
        yield f"{estimated.workspace} bytes of workspaces, not {occupied.workspace}"
    elif estimated.fifo_grows and (estimated.fifo is None or estimated.fifo > occupied.fifo):
        yield f"at least {estimated.fifo} bytes of FIFOs, and {occupied.fifo} were used"
    elif not estimated.fifo_grows and estimated.fifo not in (None, occupied.fifo):
        yield f"{estimated.fifo} bytes of FIFOs, not {occupied.fifo}"
    memory = measured.simulation.memory
    if memory is not None and len(memory.ports) != occupied.port:
        yield f"{occupied.port} ports, and the memory has {len(memory.ports)}"


def _nodes(graph: Graph, work: Any, run: Any) -> Iterator[str]:
    for node, counted, number in zip(graph.nodes, work.nodes, run.nodes, strict=True):
        if counted.exact and (counted.firings, counted.occupied) != (number.firings, number.occupied):
            yield (
                f"`{node.name}` fires {counted.firings} times in {counted.occupied} cycles, not {number.firings} in {number.occupied}"
            )
    place = {node.name: at for at, node in enumerate(graph.nodes)}
    names = {other.name: node.name for node, other in zip(graph.nodes, work.nodes, strict=True)}  # in a region that does the same
    flows = {(names[port.node], port.output): flow for port, flow in work.flows.items()}
    edges = iter(run.edges)
    for node in graph.nodes:
        for port in node.inputs:
            edge, flow = next(edges), flows[port.node, port.output]
            if work.nodes[place[port.node]].exact and flow.tokens != edge.tokens:
                yield f"stream {port.output} of `{port.node}` has {flow.tokens} tokens, not {edge.tokens}"


def _traffic(graph: Graph, expected: OneRegion, measured: OneRegion) -> Iterator[str]:
    counted = {(row.tensor, row.kind, row.direction): row for row in expected.content.work.traffic}
    numbers = {(row.tensor, row.kind, row.direction): row.bytes for row in measured.content.simulation.traffic}
    for decl in graph.tensors:
        there, here = expected.name_there.get(decl.name, decl.name), measured.name_there.get(decl.name, decl.name)
        for kind in ("pos", "crd", "val"):
            for direction in ("read", "write"):
                row, number = counted.get((there, kind, direction)), numbers.get((here, kind, direction), 0)
                bytes_, exact = (0, expected.content.work.exact) if row is None else (row.bytes, row.exact)
                if exact and bytes_ != number:
                    yield f"{kind} of `{decl.name}`, {direction}: {bytes_} bytes, not {number}"


def stored_coordinates(pattern: Pattern, order: Sequence[int]) -> npt.NDArray[np.int64]:
    """The coordinates of all stored values in storage order, as `Tensor.coordinates` has them."""
    fibers, columns = np.zeros(1, dtype=np.int64), list[npt.NDArray[np.int64]]()
    for level, below in zip(pattern.levels, pattern.below, strict=True):
        owner, at = level.expanded(fibers)
        columns = [*(column[owner] for column in columns), level.crd[at]]
        fibers = np.zeros(len(at), dtype=np.int64) if below is None else take(below, at)
    rows = np.empty((len(order), len(fibers)), dtype=np.int64)
    for dimension, column in zip(order, columns, strict=True):
        rows[dimension] = column
    return rows


def _numbers(values: Any, path: str) -> Iterator[tuple[str, float]]:
    """All numbers in plain values, each with its path."""
    if isinstance(values, Mapping):
        for key, value in values.items():
            yield from _numbers(value, f"{path}.{key}")
    elif isinstance(values, list):
        for at, value in enumerate(values):
            yield from _numbers(value, f"{path}[{at}]")
    elif isinstance(values, int | float) and not isinstance(values, bool):
        yield path, values
