"""Says in sentences where the values of a program begin to differ."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from fuseflow.errors import FuseFlowError
from fuseflow.frontend.source import NodeValues
from fuseflow.run.bisection import Bisection, Deviation, bisect
from fuseflow.run.compiled import Compiled
from fuseflow.sim import Engine

MOST_NAMES = 6
"""The most tensors that a sentence lists."""


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
        yield f"the first difference is in region `{fused.region}`, and only if its Einsums are fused: {difference(fused)}"
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
    yield f"the first Einsum that differs{' from PyTorch' if deviation.from_torch else ''}: {difference(deviation)}"
    yield _blame(deviation)
    yield f"before it, {_compared(search, without=deviation.einsum.name)}"


def difference(deviation: Deviation) -> str:
    """Return a text with the Einsum of a deviation, its location in the model, the element that differs most, and both values."""
    einsum, largest = deviation.einsum, deviation.check.largest
    places = [str(place) for place in (einsum.location.path, einsum.location.span) if place]
    source = f" ({', '.join(places)})" if places else ""
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
    alone = f"with the dense interpreter on what they read{why} ({_names(interpreter)})"
    match bool(torch), bool(interpreter):
        case True, True:
            return f"{with_torch} and {len(interpreter)} {alone}"
        case True, False:
            return with_torch
        case False, True:
            return f"{len(interpreter)} were compared {alone}"
        case _:
            return "nothing was compared"


def _names(names: Sequence[str]) -> str:
    listed = ", ".join(f"`{name}`" for name in names[:MOST_NAMES])
    return listed if len(names) <= MOST_NAMES else f"{listed} and {len(names) - MOST_NAMES} more"
