"""Cuts a program into the regions of its schedule. Its formats are inferred, its reshapes eliminated, and its blocks
propagated."""

from __future__ import annotations

import fnmatch
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from fuseflow.einsum.association import associated
from fuseflow.einsum.blocks import guard_padding, propagate_blocks, vectorize
from fuseflow.einsum.chain import Chain
from fuseflow.einsum.dimension_unification import RegionSplit
from fuseflow.einsum.format_inference import TypedProgram
from fuseflow.einsum.nodes import Access, Const, Einsum, Keep, Program, TensorType, stored_index
from fuseflow.einsum.phases import carried_inputs
from fuseflow.einsum.reshapes import ReshapeElimination, eliminate_reshapes
from fuseflow.einsum.rounding import round_results, rounds
from fuseflow.einsum.verify import Extents, extents
from fuseflow.errors import ProgramError, ScheduleError, TensorError, did_you_mean
from fuseflow.lower.reshape_views import source_of, with_dense_sources
from fuseflow.schedule import Region, Schedule, form_regions, region_results
from fuseflow.schedule.recompute import FarReaders, recompute
from fuseflow.schedule.regions import grows
from fuseflow.tensors import Format
from fuseflow.tensors.blocks import Block, block_text, check_block
from fuseflow.tensors.format import Ranks, exact_formats, is_pattern, without_all


@dataclass(frozen=True)  # with a place for cached values
class PartitionedProgram:
    """A program cut into the `regions` of a `schedule`.

    `source` is the program of the user with the formats of the schedule, and `original` is the same with all formats inferred.
    `reshapes` is the result of eliminating its reshapes; the results in `kept` are stored in the dimensions in which the user has
    them. `program` is the program to lower: without reshapes, with all formats inferred, and in its blocks. `user_formats` names
    the tensors whose format the user chose. `views` are the statements that only show a tensor in other dimensions, by name.
    `user_names` has the user's name of each tensor that the elimination of reshapes renamed. `formed` are the regions as Einsums
    of `original`, and `splits` the indices that are two loops in one of them. `notices` say which regions were divided since they
    could not be lowered whole. `copies` gives for each Einsum of `program` that is computed again in a later region the one that it
    repeats.
    """

    schedule: Schedule
    source: Program
    original: Program
    reshapes: ReshapeElimination
    kept: frozenset[str]
    program: Program
    regions: tuple[Region, ...]
    user_formats: frozenset[str]
    views: Mapping[str, Einsum]
    user_names: Mapping[str, str]
    formed: tuple[Region, ...]
    splits: tuple[RegionSplit, ...] = ()
    notices: tuple[str, ...] = ()
    copies: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def extents(self) -> Extents:
        """The extents of the indices of every Einsum of `program`."""
        return extents(self.program)

    @property
    def grows_regions(self) -> bool:
        """Whether the user did not say which regions there are, so that they may be divided."""
        return grows(self.original, self.schedule)

    @cached_property
    def sources(self) -> dict[str, str]:
        """The tensor that each view shows. A view of a view comes after it."""
        return {name: source_of(view).tensor for name, view in self.views.items()}

    def shown(self, name: str) -> str:
        """Return the tensor that a view shows, directly or through other views, or the name itself."""
        while name in self.sources:
            name = self.sources[name]
        return name

    @property
    def results(self) -> dict[str, tuple[str, ...]]:
        """The results that each region must write, by its name."""
        return region_results(self.program, self.regions)


def partition_program(
    program: Program,
    schedule: Schedule,
    regions: tuple[Region, ...] | None = None,
    splits: tuple[RegionSplit, ...] | None = None,
) -> PartitionedProgram:
    """Cut a program into the regions of the schedule, or into `regions` if they are passed. Its reshapes end regions, and are
    eliminated. `splits` replace the splits of the schedule, for `regions` that are not those of the schedule.

    Formats are inferred once; after a rewriting, only for tensors that it changed. Raises `ProgramError` for a program without a
    meaning, and `ScheduleError` for a schedule that does not fit it.
    """
    refuse_auto(schedule)
    schedule, _ = with_exact_formats(program, schedule)
    for einsum in program.einsums:
        for access in einsum.accesses:
            for index in access.indices:
                stored_index(index)
    program = program if schedule.order_policy == "best" else program.unordered
    typed = declare_formats(TypedProgram.of(with_associations(program, schedule)), schedule)
    typed = typed.rewritten(round_results(typed.source, typed.program.declared))
    source = typed.source
    declared = frozenset(t.name for t in source.tensors if t.format is not None)
    kept = frozenset({*schedule.drop_zeros, *(e.name for e in source.einsums if e.name in declared and e.reshapes)})
    regions = form_regions(typed.program, schedule, kept) if regions is None else regions
    if schedule.intermediates == "dense":
        typed = declare_dense_intermediates(typed, regions)
    splits = region_splits(typed.source, kept, regions, schedule) if splits is None else splits
    reshapes = eliminate_reshapes(typed.source, kept, splits)
    refined = typed.rewritten(reshapes.program)
    if carried_inputs(typed.source):  # Nobody asked for the formats of gradients.
        refined = with_dense_sources(refined, reshapes.views)
    unblocked = refined.program
    blocked = guard_padding(apply_blocks(unblocked, reshapes.aliases, schedule))
    formed, regions = regions, _refined_regions(blocked, reshapes, regions)
    again = recompute(blocked, regions, schedule, {name: reshapes.statement(name) for name in source.defined})
    return PartitionedProgram(
        schedule=schedule,
        source=source,
        original=typed.program,
        reshapes=reshapes,
        kept=kept,
        program=leave_to_writers(again.program, [region.einsums for region in again.regions], schedule.drop_zeros),
        regions=again.regions,
        user_formats=declared | {reshapes.statements.get(name, name) for name in declared},
        views={e.name: e for e in blocked.einsums if e.name in reshapes.views},
        user_names={ours: name for name, ours in reshapes.statements.items()},
        formed=formed,
        splits=splits,
        copies=again.copies,
    )


def with_associations(program: Program, schedule: Schedule) -> Program:
    """Return the program with its products in the stated order. Raises `ScheduleError` if one cannot be computed so."""
    last = len(program.einsums)
    for name, text in sorted(schedule.associations, key=lambda entry: program.positions.get(entry[0], last)):
        try:
            program = associated(program, name, Chain.parse(text))
        except ProgramError as error:
            message = f"`{name}` cannot be computed as `{text}`: {error.message}"
            raise ScheduleError(message, hint=error.hint, span=schedule.place("associate", name)) from error
    return program


def with_later_readers(program: Program, schedule: Schedule) -> Schedule:
    """Return a schedule whose regions the compiler chose, without the names of Einsums that no later region reads: they need no copy."""
    if not schedule.recomputed:
        return schedule
    partitioned = partition_program(program, replace(schedule, recomputed=()))
    readers, statement = FarReaders.of(partitioned.program, partitioned.regions).readers, partitioned.reshapes.statement
    names = partitioned.original.defined
    unread = {name for name in names if not readers.get(statement(name)) and statement(name) not in partitioned.program.outputs}
    kept = tuple(
        entry for entry in schedule.recomputed if not (matches := fnmatch.filter(names, entry)) or not unread.issuperset(matches)
    )
    return replace(schedule, recomputed=kept)


def refuse_auto(schedule: Schedule) -> None:
    """Raise `ScheduleError` for a choice left to `auto`, which is made from estimates and runs before a program is compiled."""
    if schedule.open:
        sections = {"fuse": schedule.fuse_regions == ("auto",), "plan": schedule.plan.auto, "order_policy": True}
        section = next(name for name, left in sections.items() if left)
        raise ScheduleError(
            f"`{section}: auto` is still to be chosen",
            hint="`fuseflow.autoschedule` takes the same arguments, chooses, and compiles",
            span=schedule.place("fuse", "auto"),
        )


def declare_formats(typed: TypedProgram, schedule: Schedule) -> TypedProgram:
    """Return the program with the stated formats. An output that is an input in the next step has the format of that input, unless one is
    stated. Raises `ScheduleError` for one that does not fit, or without a tensor."""
    inferred, declared = typed.program.declared, dict(typed.source.declared)
    for name, text in schedule.formats:
        span = schedule.place("format", name)
        if name in typed.source.defined and without_all(text)[1]:
            message = f"format of `{name}`: `{text}` says how given numbers are stored, and `{name}` is computed"
            raise ScheduleError(message, hint="leave `all` out: what is computed is stored, zeros too", span=span)
        if name not in inferred:
            raise ScheduleError(f"format of `{name}`: there is no such tensor", hint=did_you_mean(name, inferred), span=span)
        shape, dtype = inferred[name].shape, inferred[name].dtype  # an intermediate keeps the dtype that it would have
        declaration = declared.get(name, TensorType(name, shape, dtype=dtype))
        try:
            declared[name] = replace(declaration, format=Format.parse(text, len(shape)))
        except TensorError as error:
            raise ScheduleError(f"format of `{name}`: {error.message}", hint=error.hint, span=span) from error
    for output, name in carried_inputs(typed.source).items():
        stored = declared[name].format or Format.dense(len(declared[name].shape))
        result = declared.get(output, replace(inferred[output], format=None, fill=0.0))
        if result.format is None and not result.like and len(result.shape) == stored.rank:
            declared[output] = replace(result, format=replace(stored, complete=False))
    tensors = tuple(declared.values())
    return typed if tensors == typed.source.tensors else typed.rewritten(replace(typed.source, tensors=tensors))


def declare_dense_intermediates(typed: TypedProgram, regions: tuple[Region, ...]) -> TypedProgram:
    """Return the program with what one region writes and another reads stored dense, unless it has a declared format."""
    program = typed.source
    intermediates = {name for names in region_results(program, regions).values() for name in names}
    intermediates -= {*program.declared, *program.outputs}
    dense = (t for t in typed.program.tensors if t.name in intermediates)
    stored = tuple(replace(t, format=Format.dense(len(t.shape))) for t in dense)
    return typed.rewritten(replace(program, tensors=(*program.tensors, *stored)))


def _refined_regions(program: Program, reshapes: ReshapeElimination, regions: tuple[Region, ...]) -> tuple[Region, ...]:
    """Return the regions without reshapes. A reshape that only renames an output is in the region of its operand."""
    defined = program.defined
    members: dict[str, tuple[str, ...]] = {}
    home: dict[str, str] = {}
    for region in regions:
        statements = reshapes.members(region.einsums)
        single = defined[statements[0]] if len(statements) == 1 else None
        home_region = region.name
        if single is not None and single.name in reshapes.renames and single.operands[0] in home:
            home_region = home[single.operands[0]]
        members[home_region] = (*members.get(home_region, ()), *statements)
        home |= dict.fromkeys(statements, home_region)
    return tuple(Region(name, einsums) for name, einsums in members.items() if einsums)


def with_exact_formats(program: Program, schedule: Schedule) -> tuple[Schedule, tuple[str, ...]]:
    """Return a schedule whose formats name tensors of the program exactly, and notices of tensors that its patterns leave out.
    Raises `ScheduleError` for a pattern that matches no tensor, or no tensor that its format fits."""
    if not any(is_pattern(name) for name, _ in schedule.formats):
        return schedule, ()

    def computed() -> Ranks:
        declared = TypedProgram.of(program).program.declared
        return {name: (len(declared[name].shape),) for name in program.defined}

    def refusal(pattern: str, error: TensorError) -> ScheduleError:
        span = schedule.place("format", pattern)
        return ScheduleError(f"format of `{pattern}`: {error.message}", hint=error.hint, span=span)

    exact = exact_formats(schedule.formats, {t.name: (len(t.shape),) for t in program.inputs}, computed, refusal)
    return replace(schedule, formats=tuple(exact.formats.items())), exact.notices


def region_splits(
    program: Program, kept: Collection[str], regions: Iterable[Region], schedule: Schedule
) -> tuple[RegionSplit, ...]:
    """Return the splits that the schedule states, each in the region of its Einsum. Tensors in `kept` are stored in the user's
    dimensions. Raises `ScheduleError` for an index that cannot be split."""
    splits: tuple[RegionSplit, ...] = ()
    members = {name: frozenset(region.einsums) for region in regions for name in region.einsums}
    for target, size in schedule.splits:
        einsum, _, index = target.rpartition(".")
        span = schedule.place("split", target)
        if einsum not in members:
            message, hint = "the program computes no such tensor", did_you_mean(einsum, members)
            raise ScheduleError(f"split of `{target}`: {message}", hint=hint, span=span)
        splits = (*splits, RegionSplit(einsum, index, size, members[einsum]))
        try:
            eliminate_reshapes(program, kept, splits)
        except ProgramError as error:
            raise ScheduleError(f"split of `{target}`: {error.message}", hint=error.hint, span=span) from error
    return splits


def leave_to_writers(program: Program, regions: Collection[Collection[str]], drop_zeros: Collection[str]) -> Program:
    """Return a program (all its types are declared) without the roundings that the writers of its results do.

    A rounding stays where nothing else is computed. It stays where zeros are dropped before the writer, since it decides what is 0.
    """
    types, defined = program.declared, program.defined
    if not any(rounds(einsum.body, types[einsum.name].dtype) for einsum in program.einsums):
        return program
    needed = {name for region in regions for reader in region for name in defined[reader].operands if name in region}
    needed |= set(drop_zeros)
    return replace(program, einsums=tuple(e if e.name in needed else _unrounded(e, types[e.name].dtype) for e in program.einsums))


def _unrounded(einsum: Einsum, dtype: str) -> Einsum:
    body = einsum.body
    if not rounds(body, dtype) or isinstance(body.args[0], Access | Const):
        return einsum
    return replace(einsum, body=body.args[0])


def apply_blocks(program: Program, aliases: Mapping[str, str], schedule: Schedule) -> Program:
    """Return the program in the blocks that the schedule states. `aliases` maps names that only show a tensor in other dimensions
    to the tensor.

    Raises `ScheduleError` for a tensor that does not exist, and `ProgramError` for blocks that do not fit together.
    """
    requests = _asked(program, aliases, schedule)
    try:
        program = propagate_blocks(program, requests)
    except ProgramError as error:
        error.span = error.span or next((schedule.place("block", name) for name, _ in schedule.blocks), None)
        raise
    if schedule.vector == 1:
        return program
    vectorized = vectorize(program, schedule.vector)
    if vectorized == program:
        raise ScheduleError(
            f"vectors of {schedule.vector}: every dimension is in blocks, or stored sparse by some tensor, or a part of another dimension "
            "that such vectors would cross",
            hint="store tensors dense (`--format W=dense`), or leave `vector` out",
            span=schedule.place("vector", ""),
        )
    _refuse_kept_vectors(program, vectorized, schedule)
    return vectorized


def _refuse_kept_vectors(program: Program, vectorized: Program, schedule: Schedule) -> None:
    """Raise `ScheduleError` if a `keep` compares a tensor that has vectors in `vectorized`, and none in `program`, by element."""
    before, after = program.declared, vectorized.declared
    for einsum in vectorized.einsums:
        changed = [name for name in (einsum.name, *einsum.operands) if after[name].block != before[name].block]
        if isinstance(einsum.body, Keep) and changed:
            raise ScheduleError(
                f"vectors of {schedule.vector}: `{changed[0]}` would be stored in blocks, and `{einsum.body}` of `{einsum.name}` compares "
                "single elements",
                hint=f"leave `--vector` out, or `vector` of a schedule file; or store `{changed[0]}` sparse (`--format`)",
                span=schedule.place("vector", ""),
            )


def _asked(program: Program, aliases: Mapping[str, str], schedule: Schedule) -> dict[str, Block]:
    """Return the stated blocks, by tensor. A name takes precedence over a pattern, and a later pattern over an earlier one."""
    patterns = [(name, sizes) for name, sizes in schedule.blocks if is_pattern(name)]
    blocks: dict[str, Block] = {}
    for pattern, sizes in patterns:
        fitting = (t.name for t in program.inputs if fnmatch.fnmatchcase(t.name, pattern) and len(t.shape) == len(sizes))
        matches = dict.fromkeys(fitting, sizes)
        if not matches:
            raise ScheduleError(
                f"block of `{pattern}`: no input of {len(sizes)} dimensions has such a name",
                hint=f"inputs: {', '.join(f'`{t.name}`' for t in program.inputs[:8])}",
                span=schedule.place("block", pattern),
            )
        blocks |= matches
    for name, sizes in (pair for pair in schedule.blocks if pair not in patterns):
        _check(name, sizes, program, aliases, schedule)
        blocks[name] = sizes
    return blocks


def _check(name: str, sizes: Block, program: Program, aliases: Mapping[str, str], schedule: Schedule) -> None:
    """Raise `ScheduleError` unless the tensor exists and has as many dimensions as the block has sizes."""
    declared, span = program.declared, schedule.place("block", name)
    if name in aliases:
        message = f"block of `{name}`: it is `{aliases[name]}` seen in other dimensions"
        raise ScheduleError(message, hint=f"block `{aliases[name]}`", span=span)
    if name not in declared:
        raise ScheduleError(f"block of `{name}`: there is no such tensor", hint=did_you_mean(name, declared), span=span)
    try:
        check_block(sizes, len(declared[name].shape))
    except TensorError as error:
        shape = "x".join(map(str, declared[name].shape))
        hint = error.hint or f"`{name}` is {shape}, as in `{block_text((16,) * len(declared[name].shape))}`"
        raise ScheduleError(f"block of `{name}`: {error.message}", hint=hint, span=span) from error
