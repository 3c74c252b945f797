"""Copies of Einsums in the later regions that read them, so that what they compute is not stored.

    region 1: relu = max(T, 0);  Y = relu V        region 1: relu = max(T, 0);  Y = relu V
    region 2: Z = relu D                      ->   region 2: relu.again = max(T.again, 0);  Z = relu.again D

A copy reads what is stored anyway, and copies of everything else that its Einsum reads. The Einsums themselves stay where they are: what
nothing reads any more is not computed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase

from fuseflow.einsum.index_names import substitute_tensors, unused_name
from fuseflow.einsum.nodes import Apply, Einsum, Program, Reduce, accesses, walk
from fuseflow.errors import ScheduleError, did_you_mean
from fuseflow.float32.operator_precision import COMPARISONS
from fuseflow.schedule.partition import Region
from fuseflow.schedule.schedule import Schedule
from fuseflow.tensors import DTYPES
from fuseflow.tensors.format import is_pattern


@dataclass(frozen=True, slots=True)
class Recomputation:
    """A program with copies of some Einsums, and its regions with them. `copies` gives for each copy the Einsum that it repeats."""

    program: Program
    regions: tuple[Region, ...]
    copies: Mapping[str, str] = field(default_factory=dict)


def recompute(program: Program, regions: tuple[Region, ...], schedule: Schedule, statements: Mapping[str, str]) -> Recomputation:
    """Return the program with copies of what the schedule computes again. `statements` gives for each Einsum of the user the one of
    `program` that computes it.

    Raises `ScheduleError` for a name that the program does not have, and for an Einsum that cannot be computed again.
    """
    if not schedule.recomputed:
        return Recomputation(program, regions)
    readers = FarReaders.of(program, regions)
    again: set[str] = set()
    for entry in schedule.recomputed:
        again |= _named(entry, readers, schedule, statements)
    result = readers.with_copies(again)
    _refuse_comparisons(result, schedule)
    return result


@dataclass(frozen=True, slots=True)
class FarReaders:
    """The Einsums of a program that read a result of another region. `home` has the region of each Einsum; a view is in none.
    `readers` has for each Einsum those that read it and are not in its region."""

    program: Program
    regions: tuple[Region, ...]
    home: Mapping[str, str]
    readers: Mapping[str, tuple[Einsum, ...]]

    @classmethod
    def of(cls, program: Program, regions: tuple[Region, ...]) -> FarReaders:
        home = {name: region.name for region in regions for name in region.einsums}
        readers: dict[str, tuple[Einsum, ...]] = {}
        for einsum in program.einsums:
            for name in einsum.operands:
                if name in home and home[name] != home.get(einsum.name):
                    readers[name] = (*readers.get(name, ()), einsum)
        return cls(program, regions, home, readers)

    def candidates(self) -> tuple[str, ...]:
        """Return the Einsums that can be computed again, in program order."""
        return tuple(name for name in self.readers if not self.refusal(name)[0])

    def refusal(self, name: str) -> tuple[str, str]:
        """Return why an Einsum of a region cannot be computed again, and a hint; two empty texts if it can."""
        if name in self.program.outputs:
            return "it is an output, which is stored in any case", "leave it out"
        if not self.readers.get(name):
            return "no later region reads it", "leave it out; `fuseflow explain fusion` lists what later regions read"
        if self.program.defined[name].materializes:
            return "it keeps entries of a whole result, so that it is alone in its region", "leave it out"
        for reader in self.readers[name]:
            if reader.name not in self.home:
                return f"`{reader.name}` shows it in other dimensions, so that it is stored", "leave it out"
            if reader.materializes:
                return f"`{reader.name}` keeps entries of all of it, so that it is stored", "leave it out"
        return "", ""

    def with_copies(self, again: Collection[str]) -> Recomputation:
        """Return the program with a copy of each of these Einsums in each region that reads it, after the Einsum that it repeats."""
        stored = self.readers.keys() - again
        taken, copies = {*self.program.declared, *self.program.defined}, dict[str, str]()
        renamed: dict[str, dict[str, str]] = {}  # for each region, the copies in it by the Einsum that they repeat
        for region in self.regions:
            read = (name for e in region.einsums for name in self.program.defined[e].operands)
            for name in self._repeated({n for n in read if n in again and self.home[n] != region.name}, stored):
                copy = unused_name(f"{name}.again", taken)
                taken.add(copy)
                copies[copy] = name
                renamed.setdefault(region.name, {})[name] = copy
        einsums: list[Einsum] = []
        for einsum in self.program.einsums:
            names = renamed.get(self.home.get(einsum.name, ""), {})
            einsums.append(replace(einsum, body=substitute_tensors(einsum.body, names)) if names else einsum)
            for names in renamed.values():
                if einsum.name in names:
                    body = substitute_tensors(einsum.body, names)
                    einsums.append(replace(einsum, name=names[einsum.name], body=body, order=()))
        declared = self.program.declared
        types = (replace(declared[name], name=copy) for copy, name in copies.items() if name in declared)
        program = replace(self.program, tensors=(*self.program.tensors, *types), einsums=tuple(einsums))
        return Recomputation(program, tuple(_with_members(program, r, renamed.get(r.name, {})) for r in self.regions), copies)

    def _repeated(self, names: Collection[str], stored: Collection[str]) -> list[str]:
        """Return these Einsums and those behind them up to what is stored, in program order."""
        repeated, todo = set(names), list(names)
        while todo:
            operands = self.program.defined[todo.pop()].operands
            behind = [n for n in operands if n in self.home and n not in repeated and n not in stored]
            behind = [n for n in behind if n not in self.program.outputs]
            repeated.update(behind)
            todo += behind
        return sorted(repeated, key=self.program.positions.__getitem__)


def _with_members(program: Program, region: Region, names: Mapping[str, str]) -> Region:
    """Return a region with its copies, in program order."""
    members = sorted((*region.einsums, *names.values()), key=program.positions.__getitem__)
    return Region(region.name, tuple(members)) if names else region


def _named(entry: str, readers: FarReaders, schedule: Schedule, statements: Mapping[str, str]) -> set[str]:
    """Return the Einsums that an entry of the schedule names. A pattern names those among its matches that can be computed again."""
    span = schedule.place("recompute", entry)
    if entry not in statements and not is_pattern(entry):
        if entry in readers.program.declared:
            raise ScheduleError(f"`{entry}` cannot be computed again: it is an input, which nothing computes", span=span)
        hint = did_you_mean(entry, statements)
        raise ScheduleError(f"`{entry}` cannot be computed again: there is no such Einsum", hint=hint, span=span)
    matches = [statements[name] for name in statements if fnmatchcase(name, entry)]
    if not matches:
        message = f"no Einsum matches `{entry}`, so that none is computed again"
        raise ScheduleError(message, hint=did_you_mean(entry, statements), span=span)
    refusals = {name: readers.refusal(name) for name in matches}
    named = {name for name, (reason, _) in refusals.items() if not reason}
    if not named:
        reason, hint = refusals[matches[0]]
        which = f"`{entry}`" if not is_pattern(entry) else f"`{matches[0]}`, which `{entry}` matches,"
        raise ScheduleError(f"{which} cannot be computed again: {reason}", hint=hint, span=span)
    return named


def _refuse_comparisons(result: Recomputation, schedule: Schedule) -> None:
    """Raise `ScheduleError` if an Einsum compares what is made of a copied sum of floats with what is made of the sum itself.

    Two regions may add the terms of a sum in another order. Then the results differ by rounding, and a comparison of the largest
    element with all elements finds none that is equal. The same sum at other indices of one region is the matter of
    `fuseflow.fusion.fuse.refuse_compared_sums`.
    """
    program, copies = result.program, result.copies
    sums = {copy for copy in copies if _is_rounded_sum(program, copy)}
    made_of: dict[str, frozenset[str]] = {}  # the sums, copied or not, that a tensor depends on
    for einsum in program.einsums:
        own = {einsum.name} & {*sums, *(copies[copy] for copy in sums)}
        made_of[einsum.name] = frozenset(own).union(*(made_of.get(name, frozenset()) for name in einsum.operands))
    for einsum in program.einsums if sums else ():
        for copy, origin in _compared(einsum, copies, made_of):
            if copy in sums:
                raise ScheduleError(
                    f"`{einsum.name}` compares `{copy}` with what is made of `{origin}`: two sums of the same numbers may differ in "
                    "rounding",
                    hint=f"leave `{origin}` stored",
                    span=schedule.place("recompute", origin) or einsum.location.span,
                )


def _compared(einsum: Einsum, copies: Mapping[str, str], made_of: Mapping[str, frozenset[str]]) -> Iterator[tuple[str, str]]:
    """Yield each copy that a comparison in an Einsum depends on in one operand, together with the Einsum that it repeats, if the
    comparison depends on that, too."""
    for node in walk(einsum.body):
        if isinstance(node, Apply) and node.op in COMPARISONS:
            sums = _union(made_of.get(access.tensor, frozenset()) for access in accesses(node))
            yield from ((name, copies[name]) for name in sorted(sums) if copies.get(name) in sums)


def _union(sets: Iterable[frozenset[str]]) -> frozenset[str]:
    return frozenset().union(*sets)


def _is_rounded_sum(program: Program, name: str) -> bool:
    """Return whether an Einsum has a reduction of floats whose result may depend on the order of its terms."""
    if DTYPES[program.declared[name].dtype].is_integer:
        return False
    return any(isinstance(node, Reduce) and node.op not in ("max", "min") for node in walk(program.defined[name].body))
