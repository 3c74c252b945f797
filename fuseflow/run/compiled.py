"""A compiled program: it holds every stage of every region, which can be printed, saved and run."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from fuseflow.costs.live_bytes import live_bytes, written_bytes
from fuseflow.costs.narrow_type_notice import narrow_notice
from fuseflow.einsum.blocks import guard_data, tensors_to_blocks, tensors_to_elements
from fuseflow.einsum.nodes import Program
from fuseflow.einsum.phases import carried_inputs
from fuseflow.einsum.sparse_arrays import Operand
from fuseflow.einsum.structures import at_shared_places
from fuseflow.errors import HardwareError, UsageError
from fuseflow.frontend.sources import Source
from fuseflow.lower.buffers import buffer_notices, place_notices, preload_notices
from fuseflow.lower.lanes import writer_notices
from fuseflow.lower.machine_type_check import refuse_wide_tensors
from fuseflow.lower.partition import PartitionedProgram, partition_program
from fuseflow.lower.regions import CompiledRegion
from fuseflow.lower.reshape_views import add_views
from fuseflow.lower.schedule_annotations import overruled_notices
from fuseflow.machine.machine import Machine
from fuseflow.notebook_table import ROOFLINE, SummaryTable
from fuseflow.run.callback_types import GraphExecutor, ProgressCallback, SimulationCallback
from fuseflow.run.check import Check, combine_checks
from fuseflow.run.exact import ExactRegions
from fuseflow.run.input_notices import mostly_zero_notice, not_finite_notice
from fuseflow.run.input_tensors import inputs_of, user_inputs
from fuseflow.run.isolated_regions import EACH_REGION
from fuseflow.run.reference import ProgramReference
from fuseflow.run.repeated_regions import RunHistory
from fuseflow.run.result import RegionLoading, Result, Seconds, loading_after
from fuseflow.run.settings import Settings
from fuseflow.samml.auxiliary_tensors import auxiliary_tensors
from fuseflow.schedule import Schedule
from fuseflow.sim import Engine
from fuseflow.sim import simulate as simulate_graph
from fuseflow.sim.processors import cores
from fuseflow.tensors import Tensor

# What an exact run does without is imported where it is used: it takes long to load.
if TYPE_CHECKING:
    from fuseflow.array.placed_region import PlacedRegion
    from fuseflow.estimate.program import Estimator
    from fuseflow.estimate.program_estimate import ProgramEstimate
    from fuseflow.run.sampled_result import SampledResult
    from fuseflow.run.training.model_steps import LearningRates
    from fuseflow.run.training.steps import CheckStep, Scalars, StepPlan
    from fuseflow.run.training.training_run import TrainingRun
    from fuseflow.sampling.sample_request import Sample


@dataclass(frozen=True, slots=True)
class Compiled:
    """A compiled program.

    All formats of `program` are inferred. `regions` are in the order in which they run. `seconds` is the time that compiling
    took, and `divisions` say which regions had to be divided. `partitioned` is the program as it was cut into regions. `loading` has the
    cycles that loading each region takes, by name and in order, if they are placed on an array (`fuseflow.run.placed`).

    >>> import fuseflow as ff
    >>> text = "tensor A[2, 2] csr\\ntensor x[2]\\ny[i] = sum(k) A[i, k] * x[k]\\noutput y"
    >>> program = ff.compile(text, ([[1, 0], [2, 3]], [4, 5]))
    >>> [region.name for region in program.regions], program.regions[0].fused.order
    (['y'], ('i', 'k'))
    >>> program.run(tensors={"x": [6, 7]}).outputs["y"].tolist()
    [6.0, 33.0]
    """

    source: Source
    program: Program
    schedule: Schedule
    regions: tuple[CompiledRegion, ...]
    machine: Machine
    seconds: float
    divisions: tuple[str, ...] = ()
    partitioned: PartitionedProgram | None = None
    loading: Mapping[str, RegionLoading] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"<Compiled {self.name}: {len(self.regions)} regions, {len(self.program.einsums)} Einsums, on {self.machine.name}>"

    def _repr_html_(self) -> str:
        title = f"{self.name} on {self.machine.name}: what is expected of its regions"
        columns = ("region", "loop order", "Einsums", "nodes", ROOFLINE, "estimated FLOPs", "estimated bytes")
        return SummaryTable(title, columns, tuple(region.summary for region in self.regions)).to_html()

    @property
    def name(self) -> str:
        """The name of the model."""
        return self.source.name

    @property
    def seed(self) -> int:
        """The seed of the model and its data."""
        return self.source.seed

    def emit(self, stage: str) -> str | bytes:
        """Return one stage of the program: torch, linalg, einsum, fused, order, table, samml, mlir, proto, proto-text, dot or hw.

        Stages after `einsum` show one region after the other. `proto` is the binary form of a single region. Raises `UsageError`
        for an unknown stage and for a stage that this program did not go through.
        """
        if stage == "linalg":
            from fuseflow.run.scheduled_linalg import scheduled_linalg

            partitioned = self.partitioned or partition_program(self.source.program, self.schedule)
            program, tensors = self.source.stated_program, self.source.tensors
            return scheduled_linalg(program, self.schedule, partitioned, self.regions, self.machine, tensors)
        from fuseflow.run.artifacts import emit_stage

        return emit_stage(self.source, self.program, self.regions, stage, self.machine)

    def save(
        self,
        directory: str | Path,
        result: Result | SampledResult | TrainingRun | None = None,
        files: Mapping[str, str] | None = None,
    ) -> None:
        """Write every stage, the result of a run, and more text `files` by name, into a directory that describes itself. The directory
        appears when it is complete. Of several steps it has the first one as any run, the values after the last one, and all losses.

        A directory that was written this way and holds nothing else is replaced. Raises `FileError` for any other directory.
        """
        from fuseflow.run.artifacts import save_program

        save_program(Path(directory), self.source, self.program, self.regions, self.settings, result, files)

    def save_fibertrees(self, directory: str | Path) -> None:
        """Write the tensors that are in memory before the first region runs as text files, in the layout that other SAMML tools read.

        Views that a region reads in other dimensions are written, too.
        """
        from fuseflow.tensors.array_files import write_fibertree

        tensors = self.memory()
        views = (view for region in self.regions for view in region.views_before)
        add_views(tensors, (view for view in views if view.source in tensors))
        for name, tensor in tensors.items():
            write_fibertree(directory, name, tensor)

    def save_verilog(self, directory: str | Path, placed: Iterable[PlacedRegion] = ()) -> None:
        """Write the circuits of all regions on the program's machine as SystemVerilog, into a directory that lists its files, with the
        delays of regions that were `placed` on an array.

        A directory that was written this way and holds nothing else is replaced. Raises `FileError` for any other directory, and
        `HardwareError` if a region has no circuit on this machine or runs in tiles, or `pycde` is not installed.
        """
        from fuseflow.hardware.circuit_files import save_verilog

        tiled = next((region.name for region in self.regions if region.tiles), None)
        if tiled is not None:
            raise HardwareError(f"region `{tiled}` runs in tiles, and a circuit has no loop over them", hint="leave `tile` out")
        places = {one.graph.name: {"array": one.array.name, **one.delays} for one in placed}
        save_verilog(directory, [region.graph for region in self.regions], self.machine, places)

    @property
    def notices(self) -> tuple[str, ...]:
        """The texts that must be shown with every result: the notices of the source, and which regions had to be divided, which
        have no form in public primitives, which regions and orders of the program's text the schedule overrules, which products
        are associated otherwise than in the program, which reuse buffers, preloads, places and writers in lanes have no effect, and
        whether narrow types save no cycles."""
        private = (f"region `{r.name}` has no form in public primitives: {r.private[0]}" for r in self.regions if r.private)
        chosen = {name for name, _ in self.schedule.formats}
        chosen |= set(carried_inputs(self.program).values())  # which are other values in the next step
        mostly_zero = mostly_zero_notice(self.program, self.source.tensors, chosen)
        not_finite = not_finite_notice(self.source.tensors, self.source.constants)
        associated = (
            f"`{name}` is computed as `{chain}`, as the schedule asks: its sums are rounded in another order"
            for name, chain in self.schedule.associations
        )
        of_inputs = (notice for notice in (mostly_zero, not_finite, self.narrow_notice) if notice)
        graphs = [region.graph for region in self.regions]
        on_chip = (
            *buffer_notices(self.schedule, graphs, self.machine),
            *preload_notices(self.schedule, graphs, self.machine),
            *place_notices(self.schedule, self.machine),
            *writer_notices(self.schedule, self.regions),
        )
        overruled = overruled_notices(self.source.program, self.schedule, self.regions)
        return (*self.source.notices, *overruled, *self.divisions, *private, *associated, *on_chip, *of_inputs)

    @property
    def narrow_notice(self) -> str:
        """A text that says that the narrow types of this program save only bytes, or '' if it has none or they also save cycles."""
        return narrow_notice([region.graph for region in self.regions], self.machine)

    @property
    def selection_notices(self) -> tuple[str, ...]:
        """A sentence for each region that selects by public arithmetic. It is right for finite values alone, so this may be why a
        check fails."""
        return tuple(region.selection_notice for region in self.regions if region.selection_notice)

    @property
    def settings(self) -> Settings:
        """The settings of the compilation: enough to repeat it."""
        source = self.source
        rows = () if source.simplified is None else source.simplified.rows
        left_out = tuple(row for row in rows if row.now < row.stored)
        schedule = self.schedule.to_yaml()
        return Settings(self.name, source.data, schedule, self.machine, "auto", self.seed, source.options, self.notices, left_out)

    def inputs(self) -> dict[str, Tensor]:
        """Return the inputs of the program in their declared formats. Raises `UsageError` if an input has no data."""
        return inputs_of(self.source, user_inputs(self.source, self.program))

    def memory(self) -> dict[str, Tensor]:
        """Return the tensors in memory before the first region runs: the inputs in their blocks, and the inputs that the compiler added."""
        inputs, declared = self.inputs(), self.program.declared
        tensors = at_shared_places(declared, tensors_to_blocks(declared, inputs), inputs)
        for region in self.regions:
            tensors |= auxiliary_tensors(region.graph)
        return tensors | {t.name: guard_data(t) for t in self.program.inputs if t.name not in tensors}

    def with_values(self, tensors: Mapping[str, Any]) -> Compiled:
        """Return the same compiled program with other values for some inputs, by name: NumPy, scipy or PyTorch arrays of the declared shape
        and type, or packed tensors in the declared format, or in the one in which the program stores the input. Other places of entries
        are other values, too.

        Nothing is compiled again: loop orders, copies and depths of FIFOs are those that were chosen for the first values, and inputs that
        PyTorch evaluated of them before import, which the notices name, stay. The reference of a check is the dense interpreter, since
        PyTorch computed the outputs of the first values. Raise `UsageError` for values that do not fit, and `MachineError` for numbers
        that the machine does not hold.
        """
        if not tensors:
            return self
        from fuseflow.frontend.source_values import holding, packed_values

        source = holding(self.source, packed_values(self.source, tensors, self.program.declared))
        if self.partitioned is not None:
            refuse_wide_tensors(self.partitioned.original, source.tensors, self.machine)
        names = ", ".join(f"`{name}`" for name in tensors)
        notice = f"inputs with other values than those that the program was compiled with: {names}"
        return replace(self, source=replace(source, notices=(*source.notices, notice)))

    @overload
    def run(
        self,
        progress: ProgressCallback | None = None,
        check: bool = True,
        engine: Engine = "auto",
        dedup: bool = True,
        watch: SimulationCallback | None = None,
        execute: GraphExecutor = simulate_graph,
        sample: None = None,
        *,
        tensors: Mapping[str, Any] | None = None,
        jobs: int | None = None,
    ) -> Result: ...

    @overload
    def run(
        self,
        progress: ProgressCallback | None = None,
        check: bool = True,
        engine: Engine = "auto",
        dedup: bool = True,
        watch: None = None,
        execute: GraphExecutor = simulate_graph,
        *,
        tensors: Mapping[str, Any] | None = None,
        sample: Sample,
        estimator: Estimator | None = None,
        outputs: bool = True,
    ) -> SampledResult: ...

    @overload
    def run(
        self,
        progress: ProgressCallback | None = None,
        check: bool | CheckStep = True,
        engine: Engine = "auto",
        dedup: bool = True,
        watch: SimulationCallback | None = None,
        execute: GraphExecutor = simulate_graph,
        *,
        jobs: int | None = None,
        tensors: Mapping[str, Any] | None = None,
        steps: int,
        simulate: int | None = None,
        scalars: Scalars | None = None,
        batches: Iterable[Mapping[str, Any]] | None = None,
        gradients: bool = False,
        learning_rates: LearningRates | None = None,
    ) -> TrainingRun: ...

    def run(
        self,
        progress: ProgressCallback | None = None,
        check: bool | CheckStep = True,
        engine: Engine = "auto",
        dedup: bool = True,
        watch: SimulationCallback | None = None,
        execute: GraphExecutor = simulate_graph,
        sample: Sample | None = None,
        estimator: Estimator | None = None,
        outputs: bool = True,
        jobs: int | None = None,
        tensors: Mapping[str, Any] | None = None,
        steps: int | None = None,
        simulate: int | None = None,
        scalars: Scalars | None = None,
        batches: Iterable[Mapping[str, Any]] | None = None,
        gradients: bool = False,
        learning_rates: LearningRates | None = None,
    ) -> Result | SampledResult | TrainingRun:
        """Execute region after region on the intermediates of the regions before, and check every model output.

        If the schedule puts dense stand-ins in the place of intermediates, the outputs of every region are checked instead. `engine` is
        the simulator, `reference` or `fast`, which give the same; `auto` takes the reference for small regions. With `dedup`, a region
        that runs like one before it (`repeats`) counts like that one, and only its values are computed. `watch` is called after every
        simulation. `execute` runs each graph. Up to `jobs` long regions run at the same time if none reads what another computes (None: as
        many as there are cores); the result is the same, and the run takes the memory of all. `tensors` are other values for inputs, as in
        `with_values`.

        With a `sample`, regions are sampled, and cycles have an interval (`SampledResult`). An `estimator` that has estimated the program
        counts nothing again for a sample. Without `outputs`, a sampled run computes only the sampled rows of an output, which it compares.

        With `steps`, the program runs so many times (`TrainingRun`): its outputs `next.X` are its inputs `X` in the next step, as they are
        stored. `scalars` returns more inputs for a step, counted from 1, such as `{"lr": 0.1}`, and `batches` has inputs for one step after
        the other. A step that reads entries in the same places as a simulated one takes the same cycles, so that only its values are
        computed, unless a graph drops entries by their values; `simulate` is how many steps are simulated at most, evenly spread.
        With `gradients`, the outputs `grad.X` of each step are kept. Simulated steps are checked, or each step by the function `check`.

        A training step of a model gets its numbers by itself, `learning_rates` of a step if there are others than the optimizer's, and
        what PyTorch's generator gives as it stands where the model draws. Its `batches` are arguments of the model by name, and the
        `target`. Each step is checked against one that PyTorch takes from the same values.
        """
        of_steps = (simulate, scalars, batches, learning_rates, gradients) != (None, None, None, None, False)
        watched = watch is not None or execute is not simulate_graph
        _refuse_mixed(
            steps,
            sample,
            estimator,
            jobs,
            outputs,
            of_steps=of_steps,
            checks_steps=callable(check),
            check=bool(check),
            watched=watched,
        )
        compiled = self.with_values(tensors or {})
        if sample is not None:
            return compiled._run_sampled(sample, estimator, outputs, progress, bool(check), engine, dedup)
        if steps is None:
            return compiled._run(progress, bool(check), engine, dedup, watch, execute, jobs or cores())
        from fuseflow.run.training.steps import StepPlan

        plan = StepPlan(steps, scalars, batches, simulate, gradients, check if callable(check) else None)
        return compiled._run_steps(
            plan,
            learning_rates,
            check is True,
            lambda one, checked: one._run(progress, checked, engine, dedup, watch, execute, jobs or cores()),
        )

    def _run(
        self,
        progress: ProgressCallback | None,
        check: bool,
        engine: Engine,
        dedup: bool,
        watch: SimulationCallback | None,
        execute: GraphExecutor,
        jobs: int,
    ) -> Result:
        """Simulate every region in full, and return the result."""
        stand_ins = self.schedule.intermediates == "dense"
        comparison = (
            self._reference.comparison() if check and not stand_ins else None
        )  # before a long simulation, which a refusal saves
        start = time.perf_counter()
        run = ExactRegions(
            self.program, self.machine, self.memory(), RunHistory(self.machine, dedup), engine, execute, progress, watch,
            self.seed if stand_ins else None, check,
        )  # fmt: skip
        run.run(self.regions, jobs)
        simulated = time.perf_counter() - start
        outputs = self._outputs(run.memory)
        seconds = Seconds(self.source.seconds, self.seconds, simulated)
        outcome = combine_checks(run.checks, EACH_REGION) if check and stand_ins else None
        outcome = outcome if comparison is None else comparison(outputs)
        settings = replace(self.settings, engine=engine)
        cycles = {name: region.cycles for region in run.history.regions for name in region.names}
        loading = loading_after(self.loading, cycles)
        result = Result(settings, outputs, run.history.regions, outcome, seconds, loading=loading)
        steps = ((region.graph, region.views) for region in self.regions)
        return replace(result, live_bytes=int(live_bytes(steps, self.program.outputs, written_bytes(result.stats))))

    def _run_steps(
        self, plan: StepPlan, rates: LearningRates | None, check: bool, simulate: Callable[[Compiled, bool], Result]
    ) -> TrainingRun:
        """Run several steps. `simulate` runs a program that holds the inputs of one, and may check it. The steps of a model are checked
        against PyTorch's instead."""
        from fuseflow.run.training.steps import run_steps

        if self.schedule.intermediates == "dense":
            raise UsageError("outputs of a run on dense stand-ins mean nothing, so no step reads them", hint="leave `steps` out")
        of_model = self.source.step is not None
        if rates is not None and not of_model:
            raise UsageError("the program is no training step of a model, so it has no learning rate", hint="`scalars=`")

        def run(plan: StepPlan) -> TrainingRun:
            return run_steps(
                self.source, self.program, self.regions, self.machine, plan,
                lambda source: simulate(replace(self, source=source), check and not of_model),
            )  # fmt: skip

        return self._reference.model_steps(rates).run(plan, check, run) if of_model else run(plan)

    def _run_sampled(
        self,
        sample: Sample,
        estimator: Estimator | None,
        outputs: bool,
        progress: ProgressCallback | None,
        check: bool,
        engine: Engine,
        dedup: bool,
    ) -> SampledResult:
        """Run region after region by samples, and return the result. The values, which are checked, are those of the interpreter."""
        from fuseflow.estimate.program import Estimator
        from fuseflow.run.sampled import SampledRegions
        from fuseflow.run.sampled_result import SampledResult

        start = time.perf_counter()
        run = SampledRegions(
            self.program, self.source.tensors, self.schedule, self.machine, self.memory(), sample, engine, dedup, progress,
            estimator or Estimator(), outputs,
        )  # fmt: skip
        run.run(self.regions)
        tensors = self._outputs(run.memory)
        seconds = Seconds(self.source.seconds, self.seconds, time.perf_counter() - start)
        outcome, settings = self.compare(tensors) if check else None, replace(self.settings, engine=engine)
        return SampledResult(settings, sample, tensors, tuple(run.results), outcome, run.rows_check, seconds)

    def estimate(self, estimator: Estimator | None = None) -> ProgramEstimate:
        """Estimate the costs of a run without running it. An `Estimator` that is passed again reuses its counts for the same tensors."""
        from fuseflow.estimate.counted.memo import MOST_PIECES, CountMemo
        from fuseflow.estimate.program import Estimator
        from fuseflow.estimate.region_conversion import estimator_regions

        source = self.source
        return (estimator or Estimator(memo=CountMemo(pieces=MOST_PIECES))).estimate(
            estimator_regions(self.regions), self.program, source.tensors, self.machine, self.name, source.data, self.notices
        )

    def compare(self, outputs: Mapping[str, Tensor]) -> Check:
        """Check outputs against PyTorch, or against the dense interpreter if the program did not come from PyTorch."""
        return self._reference.comparison()(outputs)

    def interpret(self) -> dict[str, Operand]:
        """Compute the outputs of the program with the dense interpreter. A large output that stores little is a `SparseArray`. If
        the program was simplified, these are the outputs of the program before that.

        Raises `ProgramError` for integers that the interpreter, which computes as the simulators do, might have rounded.
        """
        return self._reference.interpret()

    @property
    def _reference(self) -> ProgramReference:
        return ProgramReference(self.source, self.program, self.machine.is_wide, self.memory)

    def _outputs(self, memory: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Return the outputs that are in memory, in single elements and in the shapes that the model returns."""
        stored = {name: memory[name] for name in self.program.outputs if name in memory}
        outputs = tensors_to_elements(self.program.declared, stored)
        return outputs if self.source.simplified is None else self.source.simplified.propagation.restored(outputs)


def _refuse_mixed(
    steps: int | None,
    sample: Sample | None,
    estimator: Estimator | None,
    jobs: int | None,
    outputs: bool,
    *,
    of_steps: bool,
    checks_steps: bool,
    check: bool,
    watched: bool,
) -> None:
    """Raise `UsageError` for arguments of several steps (`of_steps`), of a sample and of an exact run that do not go together. A function
    checks each step if `checks_steps`."""
    if steps is None and of_steps:
        what = "`simulate`, `scalars`, `batches`, `learning_rates` and `gradients`"
        raise UsageError(f"{what} are of a run of several steps", hint="`steps=10`")
    if checks_steps and steps is None:
        raise UsageError("only a run of several steps is checked by a function", hint="`compare` checks outputs")
    if jobs is not None and jobs < 1:
        raise UsageError(f"`jobs={jobs}` runs nothing", hint="`jobs=1` runs one region at a time")
    if steps is not None and (sample is not None or estimator is not None or not outputs):
        raise UsageError("several steps are not sampled: each reads the outputs of the step before", hint="leave one of them out")
    if sample is not None and jobs is not None:
        raise UsageError("a sampled run runs one region at a time, so it has no `jobs`", hint="leave one of them out")
    if sample is not None and watched:
        raise UsageError("a sampled run simulates no whole region, so nothing can watch it", hint="run it without a sample")
    if sample is not None and check and not outputs:
        raise UsageError("a run without outputs cannot check them", hint="`check=False`, which still compares the sampled rows")
    if sample is None and (estimator is not None or not outputs):
        raise UsageError(
            "an exact run counts with no estimator, and always has its outputs", hint="`sample=`, or neither of them"
        )
