"""The search for the first Einsum whose value differs: region after region is simulated, and compared on what it read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from fuseflow.einsum.nodes import Einsum
from fuseflow.run.check import Check
from fuseflow.run.compiled import Compiled
from fuseflow.run.stand_ins import check_region
from fuseflow.sim import Engine, simulate


@dataclass(frozen=True, slots=True)
class Deviation:
    """A region whose result is not what the dense interpreter computes from what the region read. `check` says which tensor, and where it
    differs most."""

    region: str
    einsum: Einsum
    check: Check


def first_deviation(compiled: Compiled, engine: Engine = "auto") -> Deviation | None:
    """Return the first region of a program that differs, in the order in which regions run, or None if all are right by themselves."""
    program, memory = compiled.program, compiled.memory()
    for region in compiled.regions:
        for step in region.views_before:
            memory[step.name] = step.of(memory[step.source])
        read = {name: memory[name] for name in region.graph.inputs}
        simulation = simulate(region.graph, read, compiled.machine, engine=engine, expected=region.estimate.firings)
        check = check_region(program, region, memory, simulation.outputs)
        if check is not None and not check.passed:
            return Deviation(region.name, program.defined[check.worst], check)
        memory |= simulation.outputs
        for step in region.views_after:
            memory[step.name] = step.of(memory[step.source])
    return None


def explain_deviation(compiled: Compiled, unfused: Callable[[], Compiled], engine: Engine = "auto") -> Iterator[str]:
    """Yield sentences about where the outputs of a run begin to differ from their reference. `unfused` compiles the same program with
    every Einsum in a region of its own, which tells the Einsums of a region apart."""
    fused = first_deviation(compiled, engine)
    if fused is None:
        yield (
            "every region computes what its Einsums say: the program differs from the model, not the run; "
            "`compile --emit einsum` shows it"
        )
        return
    alone = first_deviation(unfused(), engine)
    if alone is None:
        yield f"the first difference is in region `{fused.region}`, and only if its Einsums are fused: {_difference(fused)}"
        return
    yield f"the first Einsum that differs: {_difference(alone)}"


def _difference(deviation: Deviation) -> str:
    einsum, largest = deviation.einsum, deviation.check.largest
    places = [str(place) for place in (einsum.location.path, einsum.location.span) if place]
    source = f" ({', '.join(places)})" if places else ""
    return f"`{einsum.name}`{source}" + (f", {largest}" if largest is not None else "")
