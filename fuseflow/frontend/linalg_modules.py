"""Modules of MLIR: reading, running passes, printing, with MLIR's own diagnostics in our errors. Free of torch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch_mlir import ir
from torch_mlir.dialects import torch as torch_dialect
from torch_mlir.passmanager import PassManager

from fuseflow.errors import FrontendError, Span
from fuseflow.frontend.mlir_locations import from_location

NAME_ATTRIBUTE = "samml.name"
FORMAT_ATTRIBUTE = "samml.format"
"""The argument attribute that holds a tensor's name in the user's model."""

CLEANUP_PIPELINE = "builtin.module(func.func(linalg-generalize-named-ops,linalg-fold-unit-extent-dims),canonicalize,cse)"
"""For modules without encodings: the unit-dimension pass does not know them."""

GENERALIZE_PIPELINE = "builtin.module(func.func(linalg-generalize-named-ops),canonicalize,cse)"
"""For modules with encodings."""


def new_context() -> Any:
    context = ir.Context()
    torch_dialect.register_dialect(context)
    return context


def parse_module(text: str, file: str) -> Any:
    """Read a module; a syntax or verification error becomes a `FrontendError` at its place in `file`."""
    with new_context() as context, _diagnostics(context, f"{file} is not a valid MLIR module", file):
        return ir.Module.parse(text)


def run_pipeline(module: Any, pipeline: str, what: str, file: str = "") -> None:
    """Run a pass pipeline on a module in place; `what` says in an error what was being done."""
    with module.context, _diagnostics(module.context, f"{what} failed in torch-mlir", file):
        PassManager.parse(pipeline).run(module.operation)


def verify_module(module: Any) -> None:
    with _diagnostics(module.context, "the Linalg does not verify", ""):
        module.operation.verify()


def print_module(module: Any) -> str:
    """With names and locations; numbers beyond a handful are elided."""
    return str(module.operation.get_asm(enable_debug_info=True, large_elements_limit=16, large_resource_limit=16))


def only_function(module: Any) -> Any:
    """The one function of a module."""
    functions = [op for op in module.body.operations if op.operation.name == "func.func"]
    if len(functions) != 1:
        raise FrontendError(f"the module has {len(functions)} functions", hint="keep one: the model, from inputs to outputs")
    if not functions[0].body.blocks:
        raise FrontendError(f"the function {functions[0].name} has no body", hint="give its definition")
    return functions[0]


@contextmanager
def _diagnostics(context: Any, message: str, file: str) -> Iterator[None]:
    """Turn MLIR's error into ours: its first diagnostic gives the place, all of them become notes."""
    found: list[tuple[Any, str]] = []

    def collect(diagnostic: Any) -> bool:
        found.append((from_location(diagnostic.location, file), diagnostic.message))
        return True

    handler = context.attach_diagnostic_handler(collect)
    try:
        yield
    except ir.MLIRError as error:
        found += [(from_location(d.location, file), d.message) for d in error.error_diagnostics]
        spans: list[Span] = [origin.span for origin, _ in found if origin.span is not None]
        notes = [" ".join(text.split())[:300] for _, text in found] or [str(error)[:300]]
        paths = [origin.path for origin, _ in found if origin.path]
        where = f" at module `{paths[0]}`" if paths else ""
        raise FrontendError(message + where, notes=notes, span=spans[0] if spans else None) from error
    finally:
        handler.detach()
