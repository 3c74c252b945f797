"""The blockers of a model, as lines of text: a message may be longer than a column of a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fuseflow.explain.blockers import Blocker


def blocker_lines(blockers: Sequence[Blocker]) -> Iterator[str]:
    """Yield the lines of a numbered list of the blockers, the reasons why a model cannot be compiled."""
    for number, blocker in enumerate(blockers, 1):
        yield f"{number}. {blocker.problem}"
        places = {
            "module": f"`{blocker.module}`" if blocker.module else "",
            "line": "" if blocker.span is None else str(blocker.span),
            "library": blocker.library,
            "shape": "" if blocker.shape is None else _shape(blocker.shape),
            "instead": blocker.hint if blocker.alternative else "",
            "no alternative": "" if blocker.alternative else blocker.hint or "none is known",
        }
        yield from (f"   {name}: {text}" for name, text in places.items() if text)
        yield from (f"   note: {note}" for note in blocker.notes)


def _shape(shape: tuple[int, ...]) -> str:
    return " x ".join(map(str, shape)) if shape else "a number"
