"""After section 4.4 of STen: which operators have an implementation for a stored matrix S, convert it first, or make it dense.

The table is read from the registrations. Every cell is also called, with a dispatch that raises an error where there is no implementation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from claims import Check, markdown
from frame import Data, Figure

EXACT, DENSE = "kernel", "dense"
LAYOUTS = ("csr", "csc", "coo", "bcsr:2x2", "ell", "nm:2:4", "nmg:2:4:2")


def operators() -> dict[str, tuple[Any, str, Callable[[Any, Any], Any]]]:
    """Return the operators by what the table calls them: the operator, its tensors (`s` is stored, `d` dense), and a call."""
    import torch
    from torch.nn import functional as f

    return {
        "`linear(x, S)`": (f.linear, "ds", lambda s, d: f.linear(d, s)),
        "`linear(x, S, b)`": (f.linear, "dsd", lambda s, d: f.linear(d, s, d[0])),
        "`mm(S, x)`": (torch.mm, "sd", lambda s, d: torch.mm(s, d)),
        "`matmul(x, S)`": (torch.matmul, "ds", lambda s, d: torch.matmul(d, s)),
        "`addmm(b, S, x)`": (torch.addmm, "dsd", lambda s, d: torch.addmm(d, s, d)),
        "`add(S, x)`": (torch.add, "sd", lambda s, d: torch.add(s, d)),
        "`add(S, S)`": (torch.add, "ss", lambda s, d: torch.add(s, s)),
        "`sub(S, S)`": (torch.sub, "ss", lambda s, d: torch.sub(s, s)),
        "`mul(S, 2)`": (torch.mul, "s", lambda s, d: torch.mul(s, 2.0)),
        "`relu(S)`": (torch.relu, "s", lambda s, d: torch.relu(s)),
        "`gelu(S)`": (f.gelu, "s", lambda s, d: f.gelu(s)),
        "`abs(S)`": (torch.abs, "s", lambda s, d: torch.abs(s)),
        "`mm(S, S)`": (torch.mm, "ss", lambda s, d: torch.mm(s, s)),
        "`bmm(S[None], x[None])`": (torch.bmm, "sd", lambda s, d: torch.bmm(s[None], d[None])),
        "`cat([S, x])`": (torch.cat, "sd", lambda s, d: torch.cat([s, d])),
        "`softmax(S)`": (torch.softmax, "s", lambda s, d: torch.softmax(s, -1)),
        "`cos(S)`": (torch.cos, "s", lambda s, d: torch.cos(s)),
        "`sum(S)`": (torch.sum, "s", lambda s, d: torch.sum(s)),
    }


def collect() -> Data:
    import torch

    import fuseflow.sparsity as sp
    from fuseflow.sparsity.dispatch.argument_binding import canonical
    from fuseflow.sparsity.dispatch.registry import forward_candidates
    from fuseflow.sparsity.registration_decorators import MODULES

    assert MODULES
    generator = torch.Generator().manual_seed(0)
    dense = torch.randn(8, 8, generator=generator)
    table: Data = {}
    for text in LAYOUTS:
        layout = sp.parse_layout(text)
        mask = _mask(text, dense)
        stored = sp.PackedTensor.wrapped_from_dense(layout.pack(dense, mask), dense)
        for name, (operator, kinds, call) in operators().items():
            classes = tuple(layout.storage if kind == "s" else torch.Tensor for kind in kinds)
            candidate = next(forward_candidates(canonical(operator), classes, None), None)
            path = [] if candidate is None else sorted({function.__name__ for steps in candidate.paths for function in steps})
            cell = DENSE if candidate is None else f"after `{', '.join(path)}`" if path else EXACT
            table.setdefault(name, {})[text] = {"way": cell, "runs": _runs(lambda call=call, s=stored: call(s, dense))}
    return table


def _mask(text: str, dense: Any) -> Any:
    import fuseflow.sparsity as sp

    rule = {"bcsr:2x2": "block:0.5:2x2", "nm:2:4": "nm:2:4", "nmg:2:4:2": "nmg:2:4:2"}.get(text, "magnitude:0.5")
    return sp.parse_sparsifier(rule).select(dense)


def _runs(call: Callable[[], Any]) -> bool:
    """Return whether a call finds an implementation."""
    import fuseflow.sparsity as sp

    with sp.set_dispatch_failure("raise"):
        try:
            call()
        except sp.DispatchError:
            return False
    return True


def table(data: Data) -> str:
    lines = [[name, *(cell["way"] for cell in row.values())] for name, row in data.items()]
    return markdown(("operator", *(f"`{text}`" for text in LAYOUTS)), lines, len(LAYOUTS) + 1)


def checks(data: Data) -> list[Check]:
    cells = [(name, text, cell) for name, row in data.items() for text, cell in row.items()]
    wrong = [f"{name} {text}" for name, text, cell in cells if cell["runs"] == (cell["way"] == DENSE)]
    needed = list(data)[:12]
    lacking = [f"{name} {text}" for name, text, cell in cells if name in needed and cell["way"] == DENSE]
    return [
        Check(
            "a call runs without dense tensors just where the table says so", "; ".join(wrong) or f"{len(cells)} calls", not wrong
        ),
        Check(
            "products, sums and functions that keep 0 never run dense",
            "; ".join(lacking) or f"{len(needed)} operators",
            not lacking,
        ),
    ]


FIGURE = Figure("sten_dispatch", "After section 4.4 of STen: dispatch", (), collect, table, checks)
