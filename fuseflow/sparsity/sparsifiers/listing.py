"""The sparsifiers by name. A new one is a file beside this one and a row here, or a call of `register_sparsifier`."""

from __future__ import annotations

from fuseflow.sparsity.sparsifiers.built_in import (
    NM,
    NMG,
    BlockMagnitude,
    Filter,
    KeepAll,
    Magnitude,
    Movement,
    RandomFraction,
    Stored,
    Threshold,
    TopK,
)
from fuseflow.sparsity.sparsifiers.sparsifier import Sparsifier
from fuseflow.sparsity.text_form import parse_text, register

SPARSIFIERS: dict[str, type[Sparsifier]] = {
    c.name: c for c in (KeepAll, Stored, RandomFraction, Threshold, NM, TopK, Magnitude, BlockMagnitude, Filter, NMG, Movement)
}
"""The known sparsifiers by name."""


def register_sparsifier(cls: type[Sparsifier]) -> type[Sparsifier]:
    """Make a sparsifier of the user known by its name, so that specs and `--sparsify` can say it. It is a decorator of a frozen dataclass.

    Raise `SparsityError` for a name that is taken, and for a class that has no fields to be written.
    """
    return register(cls, SPARSIFIERS, "sparsifier")


def parse_sparsifier(text: str) -> Sparsifier:
    """Return the sparsifier that a text names, such as `magnitude:0.9`. Raise `SparsityError` for an unknown one."""
    return parse_text(text, SPARSIFIERS, "sparsifier")
