"""The process in which MLIR's parser reads a text of a user: a script that imports nothing of fuseflow, so that it starts fast.

It reads a request from standard input and writes an answer to standard output, both in JSON. `sandboxed_parser.py` starts it and defines
both. The process may end at any moment: the parser does not survive all texts that are no valid modules.
"""

from __future__ import annotations

import json
import sys
from importlib import import_module
from typing import Any

REAL_SECONDS_A_SECOND = 15
"""How many seconds may pass for each that the process may compute."""


def main() -> None:
    """Answer one request."""
    request = json.load(sys.stdin.buffer)
    _limit(request["seconds"], request["bytes"])
    sys.path.append(request["packages"])
    json.dump(answer(request), sys.stdout)


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """Parse and verify a text, run passes over the module, and return what MLIR prints of it then, or why it refuses it."""
    # `torch_mlir.ir` would load NumPy, and `torch_mlir.dialects.torch` thousands of classes.
    mlir, irdl, torch = (import_module(f"torch_mlir._mlir_libs.{name}") for name in ("_mlir", "_mlirDialectsIRDL", "_torchMlir"))
    ir: Any = mlir.ir
    diagnostics: list[dict[str, Any]] = []

    def keep(diagnostic: Any) -> bool:
        diagnostics.append(_as_values(diagnostic))
        return True

    with ir.Context() as context, ir.Location.unknown():
        context.enable_multithreading(False)
        torch.register_dialect(context)
        for declaration in request["declarations"]:
            irdl.load_dialects(ir.Module.parse(declaration))
        context.attach_diagnostic_handler(keep)
        try:
            module = ir.Module.parse(request["text"])
            _mark(module, request["marks"], ir)
            if request["passes"]:
                mlir.passmanager.PassManager.parse(request["passes"]).run(module.operation)
            return {"text": str(module.operation.get_asm(enable_debug_info=True))}
        except ir.MLIRError as error:
            return {"diagnostics": [*diagnostics, *map(_as_values, error.error_diagnostics)]}


def _mark(module: Any, marks: dict[str, str], ir: Any) -> None:
    """Give the operations of some names an attribute, by which they are known when passes have run."""

    def mark(op: Any) -> Any:
        if op.name in marks:
            op.attributes[marks[op.name]] = ir.UnitAttr.get()
        return ir.WalkResult.ADVANCE

    if marks:
        module.operation.walk(mark)


def _as_values(diagnostic: Any) -> dict[str, Any]:
    notes = [str(note) for note in diagnostic.notes]
    return {"message": str(diagnostic.message), "location": str(diagnostic.location), "notes": notes}


def _limit(seconds: int, size: int) -> None:
    """Let the kernel end this process when it takes too much."""
    if sys.platform == "win32":
        return
    import resource
    import signal

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    if sys.platform == "linux":
        resource.setrlimit(resource.RLIMIT_AS, (size, size))
    signal.alarm(REAL_SECONDS_A_SECOND * seconds)


if __name__ == "__main__":
    main()
