"""Searches for the first Einsum whose value differs, and says in sentences where that is.

Region after region is simulated, and compared with the values of PyTorch, or of the dense interpreter on the tensors that the region read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import accumulate
from math import prod
from operator import mul

from fuseflow.einsum.blocks import tensors_to_elements
from fuseflow.einsum.interpret import operands_of
from fuseflow.einsum.nodes import Einsum, Program
from fuseflow.einsum.sparse_arrays import Operand
from fuseflow.errors import FuseFlowError, first_names
from fuseflow.frontend.imported_program import NodeValues
from fuseflow.loop_progress import counted
from fuseflow.lower.regions import CompiledRegion
from fuseflow.lower.reshape_views import add_views
from fuseflow.run.check import PYTORCH, Check, check_program
from fuseflow.run.compiled import Compiled
from fuseflow.run.isolated_regions import check_region
from fuseflow.sim import Engine, simulate
from fuseflow.tensors import Tensor


@dataclass(frozen=True, slots=True)
class Deviation:
    """A region whose result differs from a reference. `check` has the reference, the tensor, and the element that differs most.
    `by_itself` is the check against the dense interpreter on the tensors that the region read; it is None for a copy."""

    region: str
    einsum: Einsum
    check: Check
    by_itself: Check | None

    @property
    def from_torch(self) -> bool:
        """Whether the reference is PyTorch."""
        return self.check is not self.by_itself


@dataclass(frozen=True, slots=True)
class Bisection:
    """The outcome of a search: the first region that differs, None if none does, and the tensors that were compared until then:
    with PyTorch, and with the dense interpreter."""

    deviation: Deviation | None
    with_torch: tuple[str, ...]
    with_interpreter: tuple[str, ...]


def bisect(compiled: Compiled, engine: Engine = "auto", values: NodeValues | None = None) -> Bisection:
    """Simulate a program region by region, in the order in which they run, until one differs.

    A tensor whose elements are in `values`, in the same order, is compared with these, and others with the dense interpreter.
    """
    memory = dict(compiled.memory())
    search = _Search(compiled.program, values or {}, dict(memory), compiled.machine.is_wide)
    torch, interpreter = list[str](), list[str]()
    for region in counted(compiled.regions, "comparing regions"):
        add_views(memory, region.views_before)
        read = {name: memory[name] for name in region.graph.inputs}
        simulation = simulate(region.graph, read, compiled.machine, engine=engine, expected=region.estimate.firings)
        written = {name: t for name, t in simulation.outputs.items() if name in compiled.program.defined}
        known = search.known(written)
        torch += known
        interpreter += [name for name in written if name not in known]
        deviation = search.deviation(region, memory, simulation.outputs, known)
        if deviation is not None:
            return Bisection(deviation, tuple(torch), tuple(interpreter))
        memory |= simulation.outputs
        add_views(memory, region.views_after)
    return Bisection(None, tuple(torch), tuple(interpreter))


@dataclass(frozen=True, slots=True)
class _Search:
    """Compares tensors of a program with references: `values` are PyTorch's. `inputs` are the tensors in memory before the first
    region. `wide` says that the interpreter computes in 64 bits."""

    program: Program
    values: NodeValues
    inputs: Mapping[str, Tensor]
    wide: bool

    def known(self, written: Mapping[str, Tensor]) -> list[str]:
        """Return the written tensors whose value PyTorch has. It may have its dimensions merged or divided."""
        shapes = {name: self.program.declared[name].shape for name in written}
        return [name for name in written if name in self.values and _same_elements(self.values[name].shape, shapes[name])]

    def deviation(
        self, region: CompiledRegion, memory: Mapping[str, Tensor], outputs: Mapping[str, Tensor], known: list[str]
    ) -> Deviation | None:
        """Compare the tensors that a region wrote. Return the deviation, None if all are equal. `known` are those whose value
        PyTorch has."""
        torch = self._from_torch(outputs, known) if known else None
        if torch is not None and torch.passed and len(known) == len(outputs):
            return None
        by_itself = check_region(self.program, region, memory, outputs, self.wide)
        if torch is not None and not torch.passed:
            return Deviation(region.name, self.program.defined[torch.worst], torch, by_itself)
        if by_itself is not None and not by_itself.passed:
            return Deviation(region.name, self.program.defined[by_itself.worst], by_itself, by_itself)
        return None

    def _from_torch(self, outputs: Mapping[str, Tensor], known: list[str]) -> Check:
        written = tensors_to_elements(self.program.declared, {name: outputs[name] for name in known})
        part = replace(self.program, outputs=tuple(known))
        expected = {name: self.values[name].reshape(written[name].shape) for name in known}
        return check_program(part, self._arrays, written, expected, PYTORCH)

    def _arrays(self) -> Mapping[str, Operand]:
        tensors = tensors_to_elements(self.program.declared, self.inputs)
        return operands_of(self.program, tensors)


def _same_elements(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    """Return whether two shapes differ at most in dimensions that are divided or merged, so that both have one order of elements.

    >>> _same_elements((5, 4), (5, 2, 2)), _same_elements((5, 4), (4, 5)), _same_elements((6,), (2, 3))
    (True, False, True)
    """
    ends, others = set(accumulate(one, mul)), set(accumulate(other, mul))
    return prod(one) == prod(other) and (ends <= others or others <= ends)


def explain_deviation(compiled: Compiled, alone: Callable[[], Compiled], engine: Engine, passed: bool) -> Iterator[str]:
    """Yield sentences about where the values of a run begin to differ. `alone` compiles the same program with each Einsum as one
    region, which tells the Einsums of a region apart. The fused program is only searched if its check did not pass (`passed`)."""
    values: NodeValues = {}
    if compiled.source.simplified is None:  # elements that no output needs may have any value
        try:
            values = compiled.source.intermediates()
        except FuseFlowError as error:
            yield f"PyTorch's values on the way are not known: {error.message}"
    search = bisect(alone(), engine, values)
    yield from _alone(search)
    if passed or search.deviation is not None:
        return
    fused = bisect(compiled, engine, values).deviation
    if fused is not None:
        yield f"the first difference is in region `{fused.region}`, and only if its Einsums are fused: {_difference(fused)}"
    else:
        yield (
            "every region computes what its Einsums say: the program differs from the model, not the run; "
            "`compile --emit einsum` shows it"
        )


def _alone(search: Bisection) -> Iterator[str]:
    """Yield sentences about the first Einsum that differs, in a search in which each Einsum was one region."""
    deviation = search.deviation
    if deviation is None:
        yield f"no Einsum differs by itself: {_compared(search)}"
        return
    yield f"the first Einsum that differs{' from PyTorch' if deviation.from_torch else ''}: {_difference(deviation)}"
    yield _blame(deviation)
    yield f"before it, {_compared(search, without=deviation.einsum.name)}"


def _difference(deviation: Deviation) -> str:
    """Return a text with the Einsum of a deviation, its location in the model, the element that differs most, and both values."""
    einsum, largest = deviation.einsum, deviation.check.largest
    places = ", ".join(str(place) for place in (einsum.location.path, einsum.location.span) if place)
    source = f" ({places})" if places else ""
    reference = deviation.check.reference or "the dense interpreter"
    return f"`{einsum.name}`{source}" + (f", {largest.text(reference)}" if largest is not None else "")


def _blame(deviation: Deviation) -> str:
    """Return a sentence that says whether the program or its run is wrong."""
    name, by_itself = deviation.einsum.name, deviation.by_itself
    if not deviation.from_torch:
        return f"PyTorch has no value of `{name}`, so the other value is what the dense interpreter computes from what it read"
    if by_itself is not None and not by_itself.passed:
        return "the dense interpreter computes another value from what it read, too: its graph, or the simulation of it, is wrong"
    return "the dense interpreter computes the same from what it read: the program says something else than the model"


def _compared(search: Bisection, without: str = "") -> str:
    """Return a text that says how many tensors, except `without`, were compared, and with which reference."""
    torch = [name for name in search.with_torch if name != without]
    interpreter = [name for name in search.with_interpreter if name != without]
    why = ", of which PyTorch has no value" if search.with_torch else ""
    with_torch = f"{len(torch)} were compared with PyTorch"
    alone = f"with the dense interpreter on what they read{why} ({first_names(interpreter, 6)})"
    if torch:
        return f"{with_torch} and {len(interpreter)} {alone}" if interpreter else with_torch
    return f"{len(interpreter)} were compared {alone}" if interpreter else "nothing was compared"
