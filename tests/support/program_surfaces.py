"""A compiled program by everything that a user asks of it beside a run: its estimate, the schedule that is chosen for it, what is explained
of it, the page about its run, and its artifacts, which are written and read again.

Each check raises `Difference` where an answer is not that of the run. Every other exception is an internal error: a program that compiles
and runs can be asked all of it.
"""

from __future__ import annotations

import io
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import numpy.typing as npt
import random_graphs.compare
from estimate_exact import check_estimate
from program_levels import Arrays, Difference, agree, limited, meaning, merged, selected
from random_programs import Case
from rich.console import Console
from rich.table import Table

import fuseflow as ff
from fuseflow.autoscheduler.autoscheduler import choose_schedule
from fuseflow.compiler import compile_source
from fuseflow.einsum.nodes import TensorType
from fuseflow.errors import FuseFlowError, MachineError
from fuseflow.estimate.program import Estimator
from fuseflow.explain.cycles import explain_cycles
from fuseflow.explain.fusion import explain_fusion
from fuseflow.explain.order import explain_order
from fuseflow.filesystem import json_text
from fuseflow.frontend.sources import Source
from fuseflow.lower.regions import CompiledRegion
from fuseflow.report.cycle_tables import cycles_json, cycles_lines
from fuseflow.report.fusion_tables import fusion_json, pair_table, producer_table
from fuseflow.report.order_tables import order_json, order_lines
from fuseflow.report.page.page import page
from fuseflow.report.page.run_directory import read_run
from fuseflow.report.schedule_tables import auto_lines
from fuseflow.run.artifact_reader import load_saved
from fuseflow.run.artifacts import region_folder
from fuseflow.samml import protobuf
from fuseflow.samml import text as samml_text
from fuseflow.samml.auxiliary_tensors import auxiliary_tensors
from fuseflow.samml.files import load_graph
from fuseflow.samml.nodes import Graph
from fuseflow.schedule import Schedule
from fuseflow.sim import Machine, Simulation, simulate
from fuseflow.tensors import Tensor
from fuseflow.tensors.array_files import write_fibertree
from fuseflow.yaml_text import write_yaml

CANCELLED = 1e-9
"""The programs have numbers near 1: a result that is smaller everywhere is the rest of a sum of them."""
SECONDS = 120
"""Of processor time for all of it."""
TOP = 2
"""Candidates of the autoscheduler that are simulated."""


@dataclass(frozen=True)
class RegionRun:
    """A region, what it read and what it did."""

    region: CompiledRegion
    read: Mapping[str, Tensor]
    simulation: Simulation


@dataclass(frozen=True)
class ProgramRun:
    """A compiled case and its run, and what its results must be."""

    case: Case
    source: Source
    compiled: ff.Compiled
    result: ff.Result
    regions: tuple[RegionRun, ...]
    want: Arrays


def check_surfaces(case: Case, schedule: Schedule, names: Iterable[str] | None = None) -> None:
    """Run a case by a schedule that says all that the case picks, and check what can be asked of it: everything, or the surfaces with
    these names."""
    with limited(SECONDS), merged(case):
        run = run_program(selected(case), schedule)
        for name in SURFACES if names is None else names:
            try:
                SURFACES[name](run)
            except FuseFlowError as error:
                raise Difference(f"{name} is refused: {error}") from error


def run_program(case: Case, schedule: Schedule) -> ProgramRun:
    """The case compiled and run as a user does it: on its machine, or on the ideal one if its own has no times for all nodes."""
    source = Source("drawn", case.program, case.tensors)
    try:
        compiled = compile_source(source, schedule, machine_of(case.machine))
        regions: list[RegionRun] = []
        result = compiled.run(dedup=False, watch=lambda *run: regions.append(RegionRun(*run)))
    except MachineError as error:
        if case.machine == "ideal" or "has no times for that" not in error.message:
            raise Difference(f"the run is refused: {error}") from error
        return run_program(replace(case, machine="ideal"), schedule)
    except FuseFlowError as error:
        raise Difference(f"the run is refused: {error}") from error
    run = ProgramRun(case, source, compiled, result, tuple(regions), meaning(case))
    agree_outputs("run", run, result)
    return run


def machine_of(words: str) -> Machine:
    name, *memory = words.split()
    return ff.load_machine(name, {"memory": memory[0]} if memory else None)


def agree_outputs(level: str, run: ProgramRun, result: ff.Result) -> None:
    """Compare the outputs of a run, and what its own check says of them."""
    for name, tensor in result.tensors.items():
        agree(level, name, tensor.to_dense(), run.want[name])
    if result.check is None or not (result.check.passed or is_rounding(run.want[result.check.worst])):
        raise Difference(f"{level}: the check says {result.check}")


def is_rounding(want: npt.NDArray[np.float64]) -> bool:
    """Whether a result is what rounding left of a sum that cancels out, which a check relative to its magnitude does not forgive."""
    return float(np.abs(want[np.isfinite(want)]).max(initial=0.0)) < CANCELLED


# Surfaces --------------------------------------------------------------------------------------------------------------------


def estimate(run: ProgramRun) -> None:
    """Every number that is called exact is that of the run."""
    check_estimate(run.compiled, run.result)


def auto(run: ProgramRun) -> None:
    """What the autoscheduler chooses computes the same, and takes the cycles that it says."""
    own = run.compiled.schedule
    lanes = tuple((index, count) for index, count in own.parallel if "." not in index)
    policy = "auto" if run.case.pick else own.order_policy
    wanted = replace(own, fuse_regions=("auto",), regions=(), orders=(), splits=(), parallel=lanes, order_policy=policy)
    choice = choose_schedule(run.source, wanted, run.compiled.machine, top=TOP)
    result = choice.run()
    agree_outputs("auto", run, result)
    plain(choice.to_json(), "auto")
    printed(auto_lines(choice))
    chosen = [trial for trial in choice.partitions if trial.chosen]
    if len(chosen) != 1:
        raise Difference(f"auto chose {len(chosen)} of {len(choice.partitions)} partitions")
    again = compile_source(run.source, choice.schedule, run.compiled.machine).run()
    if (again.cycles, again.stats) != (result.cycles, result.stats):
        raise Difference(f"auto: its schedule takes {again.cycles} cycles, it said {result.cycles}")


def fusion(run: ProgramRun) -> None:
    """Every Einsum that reads another is fused with it or not, and costs are numbers that can be."""
    report = explain_fusion(run.source, run.compiled.schedule, run.compiled.machine)
    plain(fusion_json(report, run.source.name, run.compiled.schedule.to_yaml()), "explain fusion")
    printed((pair_table(report), producer_table(report)))
    pairs = {(name, e.name) for e in run.case.program.einsums for name in e.operands if name in run.case.program.defined}
    if {(d.producer, d.consumer) for d in report.decisions} != pairs:
        raise Difference("explain fusion: not every Einsum that reads another has a decision")
    for producer in report.producers:
        numbers = [p for f in fields(producer) if isinstance(p := getattr(producer, f.name), float | int)]
        if not all(math.isfinite(number) and number >= 0 for number in numbers):
            raise Difference(f"explain fusion: `{producer.name}` has numbers that cannot be: {producer}")


def order(run: ProgramRun) -> None:
    """The order of every region is one of those that were compared."""
    reports = explain_order(run.compiled, "merged")
    plain(order_json(run.compiled, reports), "explain order")
    for report in reports:
        printed(order_lines(report))
    if [report.region.name for report in reports] != [region.name for region in run.compiled.regions]:
        raise Difference("explain order: the regions are others")


def cycles_and_page(run: ProgramRun) -> None:
    """The steps of the critical paths add up to the cycles of the run, and the page shows them."""
    report = explain_cycles(run.compiled)
    if report.result.cycles != run.result.cycles:
        raise Difference(f"explain cycles: {report.result.cycles} cycles, the run took {run.result.cycles}")
    for region in report.regions:
        steps = sum(step.cycles for step in region.path.steps)
        if not steps == region.path.cycles == region.result.cycles:
            raise Difference(
                f"explain cycles: steps of {steps}, a path of {region.path.cycles} and {region.result.cycles} cycles of a run"
            )
    values = cycles_json(report)
    plain(values, "explain cycles")
    printed(cycles_lines(report, 5))
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "cycles.json").write_text(json_text(values), encoding="utf-8")
        run.compiled.save(folder / "run", report.result)
        html = page(read_run(folder / "run", folder / "cycles.json"))
        reread(run, folder / "run")
    if f"{run.result.cycles:,}" not in html or "</html>" not in html:
        raise Difference("report: the page does not say the cycles of the run")


def reread(run: ProgramRun, directory: Path) -> None:
    """The artifacts of every region, read again, do what the region did; the saved program has the same estimate."""
    saved = load_saved(directory, run.case.arrays)
    compiled = run.compiled
    tensors, about = run.source.tensors, (compiled.name, saved.data, saved.notices)
    again = Estimator().estimate(saved.regions, saved.source.program, tensors, compiled.machine, *about)
    if again.to_json() != compiled.estimate().to_json():
        raise Difference("saved: the saved program has another estimate")
    for region, stored in zip(run.compiled.regions, saved.regions, strict=True):
        same = samml_text.show(stored.graph) == samml_text.show(region.graph)  # as text, in which NaN is NaN
        if not same or (stored.name, stored.einsums) != (region.name, region.einsums):
            raise Difference(f"saved: region `{region.name}` is read as another graph")
    types = {t.name: t for t in run.compiled.program.tensors}
    for number, (each, stored) in enumerate(zip(run.regions, saved.regions, strict=True), 1):
        folder = directory / region_folder(number, each.region.name)
        types |= {**each.region.fused.stored, **{view.name: view.type for view in each.region.views_before}}
        lines = list(differences(each.simulation, simulate(stored.graph, each.read, run.compiled.machine)))
        if lines:
            raise Difference(f"saved: region `{each.region.name}`, read again: {'; '.join(lines[:3])}")
        binary, text = (folder / "graph.bin").read_bytes(), (folder / "graph.txtpb").read_text(encoding="utf-8")
        if protobuf.to_proto(protobuf.from_proto(binary)) != binary:
            raise Difference(f"saved: the bytes of region `{each.region.name}` are others when they are written again")
        if protobuf.to_text(protobuf.from_text(text)) != text or protobuf.to_text(protobuf.from_proto(binary)) != text:
            raise Difference(f"saved: the text of region `{each.region.name}` is another when it is written again")
        if is_written_as_fibertrees(each):
            graph, tensors = from_files(folder / "graph.bin", each, types, directory / "tensors")
            lines = list(differences(each.simulation, simulate(graph, tensors, run.compiled.machine)))
            if lines:
                raise Difference(f"saved: graph.bin of region `{each.region.name}`, read again: {'; '.join(lines[:3])}")
        types |= each.region.result_types


def is_written_as_fibertrees(run: RegionRun) -> bool:
    """Whether all inputs can be read from fibertrees, which lists of coordinates cannot."""
    return all(level.appended for tensor in run.read.values() for level in tensor.format.levels)


def from_files(path: Path, run: RegionRun, types: Mapping[str, TensorType], folder: Path) -> tuple[Graph, dict[str, Tensor]]:
    """A graph that was written, with its inputs written as fibertrees and read again."""
    listing: dict[str, Any] = {}
    auxiliary = auxiliary_tensors(run.region.graph)
    for name, tensor in ((name, tensor) for name, tensor in run.read.items() if name not in auxiliary):
        write_fibertree(folder / name, name, tensor)
        listing[name] = {"path": str(folder / name)}
        if tensor.tile:
            listing[name]["block"] = list(types[name].block)
    (folder / "tensors.yaml").write_text(write_yaml(listing), encoding="utf-8")
    return load_graph(path, folder / "tensors.yaml")


def differences(a: Simulation, b: Simulation) -> Iterator[str]:
    return random_graphs.compare.differences(a, b)


SURFACES: dict[str, Callable[[ProgramRun], None]] = {
    "estimate": estimate,
    "auto": auto,
    "explain fusion": fusion,
    "explain order": order,
    "explain cycles, report and the saved program": cycles_and_page,
}


# Values ----------------------------------------------------------------------------------------------------------------------


def plain(values: dict[str, Any], what: str) -> None:
    """JSON that every reader accepts."""
    try:
        json.loads(json_text(values))
    except (TypeError, ValueError) as error:
        raise Difference(f"{what}: the values are no JSON: {error}") from error


def printed(pieces: Iterable[str | Table]) -> None:
    console = Console(file=io.StringIO(), width=200)
    for piece in pieces:
        console.print(piece)
