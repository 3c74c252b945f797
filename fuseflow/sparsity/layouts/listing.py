"""The layouts by name. A new one is a file beside this one and a row here, or a call of `register_layout`."""

from __future__ import annotations

import dataclasses

from fuseflow.errors import SparsityError
from fuseflow.sparsity.layouts.layout import Dense, Layout, Masked
from fuseflow.sparsity.layouts.n_of_m import NMGLayout, NMLayout
from fuseflow.sparsity.layouts.sparse import BCSR, COO, CSC, CSR, ELL
from fuseflow.sparsity.text_form import parse_text, register, usage

LAYOUTS: dict[str, type[Layout]] = {cls.name: cls for cls in (Dense, Masked, COO, CSR, CSC, BCSR, ELL, NMLayout, NMGLayout)}
"""The known layouts by name."""


def register_layout(cls: type[Layout]) -> type[Layout]:
    """Make a layout of the user known by its name, so that specs and `--sparsify` can say it. It is a decorator of a frozen dataclass.

    Raise `SparsityError` for a name that is taken, and for a class that has no fields to be written.
    """
    return register(cls, LAYOUTS, "layout")


def parse_layout(text: str) -> Layout:
    """Return the layout that a text names, such as `csr` or `bcsr:4x4`. Raise `SparsityError` for an unknown one."""
    return parse_text(text, LAYOUTS, "layout")


def as_layout(value: object) -> Layout:
    """Return the layout that a value names: a layout, the class of a layout without parameters, the class of tensors that are stored so, or
    `torch.Tensor` for a dense one. Raise `SparsityError` for any other value."""
    if isinstance(value, Layout):
        return value
    named = next((cls for cls in LAYOUTS.values() if value is cls or value is cls.storage), None)
    if named is not None:
        if any(field.default is dataclasses.MISSING for field in dataclasses.fields(named)):  # type: ignore[arg-type]
            raise SparsityError(
                f"the layout `{named.name}` needs parameters",
                hint=f"write `{named.__name__}(...)`, as in {usage(named.name, named)}",
            )
        return named()
    if isinstance(value, type) and value.__name__ == "Tensor":
        return Dense()
    raise SparsityError(f"`{value}` is no layout", hint=f"known: {', '.join(cls.__name__ for cls in LAYOUTS.values())}")
