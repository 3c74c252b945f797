"""SystemVerilog from the MLIR text of a circuit, by CIRCT. This is the only file that needs `pycde`, the extra `hardware`.

The MLIR of `pycde` lives in one process with the MLIR of `torch_mlir`.
"""

from __future__ import annotations

import io
from importlib.util import find_spec
from typing import Any

from fuseflow.errors import HardwareError
from fuseflow.requirements import install_command

STYLE = "disallowLocalVariables,disallowPackedArrays,locationInfoStyle=none,emittedLineLength=132"
HEADER = """// Printed by fuseflow. A node looks at some bits of the tokens that come to it, and the modules of a region stand in one file.
// An output that no node of the graph reads is not connected.
/* verilator lint_off UNUSEDSIGNAL */
/* verilator lint_off PINCONNECTEMPTY */
/* verilator lint_off DECLFILENAME */
"""
PASSES = "builtin.module(canonicalize,cse,lower-seq-to-sv,hw.module(prettify-verilog))"


def to_verilog(text: str) -> str:
    """Return the SystemVerilog of a circuit, given as MLIR text. Raises `HardwareError` if `pycde` is not installed."""
    circt = _circt()
    ir, passmanager = circt.ir, circt.passmanager
    with ir.Context() as context, ir.Location.unknown():
        circt.register_dialects(context)
        module = ir.Module.parse(text)
        module.operation.attributes["circt.loweringOptions"] = ir.StringAttr.get(STYLE)
        passmanager.PassManager.parse(PASSES).run(module.operation)
        output = io.StringIO()
        circt.export_verilog(module, output)
        return HEADER + output.getvalue()


def require_circt() -> None:
    """Raise `HardwareError` if `pycde` is not installed, so that a command fails before its work and not after it."""
    if find_spec("pycde") is None:
        _circt()


def _circt() -> Any:
    try:
        import pycde.circt as circt
        from pycde.circt import ir, passmanager  # noqa: F401  (they become attributes of it)
    except ImportError as error:
        raise HardwareError(
            f"SystemVerilog is printed by CIRCT, and `pycde` is not there ({error})",
            hint=f"{install_command('pycde')}; `--emit hw` and `cosimulate --tool python` do without it",
        ) from error
    return circt
