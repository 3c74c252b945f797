"""Random programs, with and without a plan."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from .builder import SIZES, Builder
from .case import Case
from .chains import chain, statement
from .plans import partition, settings


def _draw(draw: st.DrawFn, einsums: int, leaves: int, sizes: Sequence[tuple[int, int]] = SIZES) -> Builder:
    b = Builder(draw, sizes)
    for _ in range(draw(st.integers(2, 3))):
        b.add_input()
    while (room := einsums - len(b.einsums)) > 0:
        if room >= 2 and b.chance(3):
            chain(b, room)
        else:
            statement(b, leaves)
    return b


@st.composite
def cases(draw: st.DrawFn, max_einsums: int = 3, max_leaves: int = 3) -> Case:
    """Programs of up to `max_einsums` statements over two or three tensors.

    Results are declared now and then, in any format, or spread along an index that their body lacks; results that are read may be
    outputs too, and some that are not read are not.
    """
    b = _draw(draw, draw(st.integers(1, max_einsums)), max_leaves)
    return Case(b.program(), b.tensors)


@st.composite
def planned(draw: st.DrawFn, sizes: Sequence[tuple[int, int]] = SIZES) -> Case:
    """Programs of one to six statements with everything that decides how they are compiled and run, of dimensions of these sizes."""
    b = _draw(draw, draw(st.sampled_from((1, 2, 2, 3, 3, 4, 4, 5, 6))), 3, sizes)
    program = b.program()
    schedule = partition(draw, program)
    schedule = settings(draw, schedule, program, b.reassociates)
    merge = draw(st.sampled_from(("any",) * 6 + ("early", "late", "never", "never")))
    pick = draw(st.integers(1, 1000)) if draw(st.integers(0, 2)) == 2 else 0
    limits = draw(st.sampled_from((0, 0, 0, 1, 2, 3)))
    return Case(program, b.tensors, schedule, merge, pick, limits, draw(st.integers(1, 1000)) if b.chance(3) else 0)
