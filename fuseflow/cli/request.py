"""The program that a command compiles: a model and its schedule, and how they were asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fuseflow.cli.auto_options import AutoOptions
from fuseflow.cli.common import console, print_notices, print_pieces, write_out
from fuseflow.cli.progress import counting_bar, firings_bar, following, working
from fuseflow.cli.run_options import Target
from fuseflow.compiler import compile_source
from fuseflow.einsum.nodes import Program
from fuseflow.errors import UsageError, did_you_mean
from fuseflow.explain.slow_cut import slow_cut_notice
from fuseflow.frontend.factory import Factory
from fuseflow.frontend.model_spec import ModelSpec
from fuseflow.frontend.sources import Source, load
from fuseflow.lower.regions import CompiledRegion
from fuseflow.machine.files import load_machine
from fuseflow.run.compiled import Compiled
from fuseflow.schedule import Schedule

if TYPE_CHECKING:
    from fuseflow.autoscheduler.autoscheduler import ScheduleChoice
    from fuseflow.estimate.program import Estimator
    from fuseflow.sampling.sample_request import Sample

Observe = Callable[[Source | Program | CompiledRegion], None]


@dataclass(frozen=True, slots=True)
class ScheduledProgram:
    """A compiled program, and the choice of its schedule, if `auto` made one."""

    compiled: Compiled
    choice: ScheduleChoice | None = None

    @property
    def runnable(self) -> Compiled | ScheduleChoice:
        """The object that runs the program: the choice of `auto`, which repeats no simulation, or the compiled program."""
        return self.choice or self.compiled

    def linked(self, compiled: Compiled) -> ScheduledProgram:
        """Return the program with the links of an array, as `compiled` has them."""
        return ScheduledProgram(compiled, self.choice and replace(self.choice, compiled=compiled))

    def json(self, values: dict[str, Any]) -> dict[str, Any]:
        """Return the values with the trials of `auto`, if it chose the schedule."""
        return values if self.choice is None else {**values, "auto": self.choice.to_json()}


@dataclass(frozen=True, slots=True)
class ProgramRequest:
    """The model and the schedule that a command was given, and what `auto` may do where the schedule leaves something open."""

    model: ModelSpec
    schedule: Schedule
    auto: AutoOptions

    @property
    def path(self) -> Path:
        """The file or directory that MODEL names."""
        assert isinstance(self.model.model, Path)
        return self.model.model

    @property
    def name(self) -> str:
        """The name of the model where no other name is given."""
        factory = Factory.parse(str(self.path))
        return self.path.stem if factory is None else factory.stem

    def compile(
        self,
        target: Target | None = None,
        *,
        quiet: bool = False,
        estimator: Estimator | None = None,
        observe: Observe = lambda stage: None,
        sample: Sample | None = None,
    ) -> ScheduledProgram:
        """Compile the model, after choosing the open decisions of its schedule, by a sample if one is given. Print the trials on
        standard error."""
        if not self.schedule.open and self.auto.flags:
            hint = "leave something to it: `--fuse auto`, `--plan auto` or `--order auto`"
            raise UsageError(f"`{self.auto.flags[0]}` without `auto`", hint=hint)
        target = target or Target(load_machine("rda"))
        with following("reading the model", quiet):
            source = load(self.model)
            observe(source)
        if not self.schedule.open:
            with counting_bar("lowering Einsums", quiet) as progress:
                counted = _counted(observe, progress)
                compiled = compile_source(source, self.schedule, target.machine, counted, target.array)
            if not quiet and (notice := slow_cut_notice(compiled, self.schedule, estimator)):
                print_notices(console(stderr=True), [notice])
            return ScheduledProgram(compiled)
        choice = self._choose(source, target, quiet, estimator, sample)
        observe(choice.compiled.program)
        for region in choice.compiled.regions:
            observe(region)
        if self.auto.file is not None:
            from fuseflow.filesystem.schemas import with_schema  # other commands write no schedule

            write_out(with_schema("schedule", choice.schedule.to_yaml()), self.auto.file)
        if not quiet:
            from fuseflow.report.schedule_tables import auto_lines  # only the trials of `auto` need it

            print_pieces(console(stderr=True), [*auto_lines(choice), ""])
        return ScheduledProgram(choice.compiled, choice)

    def _choose(
        self, source: Source, target: Target, quiet: bool, estimator: Estimator | None, sample: Sample | None
    ) -> ScheduleChoice:
        from fuseflow.autoscheduler.autoscheduler import choose_schedule  # only open decisions of a schedule need it
        from fuseflow.estimate.program import Estimator

        top, engine = self.auto.top, target.engine
        with working("choosing", quiet or top > 0), firings_bar(quiet) as progress:
            return choose_schedule(
                source,
                self.schedule,
                target.machine,
                top=top,
                engine=engine,
                estimator=estimator or Estimator(assume_unknown=True, array=target.array),
                progress=progress,
                sample=sample,
            )


def _counted(observe: Observe, progress: Callable[[int, int], None]) -> Observe:
    """Return an observer that calls `observe`, and also reports how many Einsums of the program are lowered."""
    total, lowered = 0, 0

    def observe_and_count(stage: Source | Program | CompiledRegion) -> None:
        nonlocal total, lowered
        match stage:
            case Program():
                total = len(stage.einsums)
            case CompiledRegion():
                lowered += len(stage.einsums)
        progress(lowered, total)
        observe(stage)

    return observe_and_count


def region_number(compiled: Compiled, name: str) -> int:
    """Return the number of the region of this name, counted from 0. Raises `UsageError` with the nearest name if there is none."""
    names = [region.name for region in compiled.regions]
    if name not in names:
        hint = did_you_mean(name, names) or f"the regions are {', '.join(f'`{other}`' for other in names)}"
        raise UsageError(f"there is no region `{name}`", hint=hint)
    return names.index(name)
