"""What tests register for operators, sparsifiers and conversions is forgotten behind them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from fuseflow.sparsity.dispatch.registry import REGISTRY
from fuseflow.sparsity.registration_decorators import MODULES

assert MODULES  # so that it finds what is built in


@contextmanager
def forgotten() -> Iterator[None]:
    """Let registrations hold to the end of the block only."""
    tables = [REGISTRY.forward, REGISTRY.backward, REGISTRY.conversions]
    copies = [{key: {**rows} for key, rows in table.items()} for table in tables]
    sparsifiers = {**REGISTRY.sparsifiers}
    yield
    for table, kept in zip(tables, copies, strict=True):
        table.clear()
        table.update(kept)
    REGISTRY.sparsifiers.clear()
    REGISTRY.sparsifiers.update(sparsifiers)
