"""The places of Einsums in the files of the user, for messages."""

from __future__ import annotations

from collections.abc import Iterable

from fuseflow.einsum.nodes import Einsum

SHOWN_PLACES = 3
"""The places that a message lists, at most."""


def places_of(einsums: Iterable[Einsum]) -> str:
    """Return the files and lines of some Einsums, each once: `m.mlir:13, m.mlir:19`."""
    spans = [e.location.span for e in einsums if e.location.span is not None]
    places = list(dict.fromkeys(f"{span.file}:{span.line}" for span in spans))
    more = f" and {len(places) - SHOWN_PLACES} other places" if len(places) > SHOWN_PLACES else ""
    return ", ".join(places[:SHOWN_PLACES]) + more or "the program"
