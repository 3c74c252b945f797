"""CIRCT and torch-mlir are two copies of MLIR, which live in one process whichever is imported first."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hardware_tools import require

TORCH_MLIR = """
from torch_mlir import ir as torch_ir
with torch_ir.Context() as context:
    context.allow_unregistered_dialects = True
    print(torch_ir.Module.parse('"a.b"() : () -> ()'))
"""
CIRCT = """
from pycde import circt
from pycde.circt import ir as circt_ir
from fuseflow.hardware.circuit_files import to_verilog
TEXT = "hw.module @m(in %a : i1, out b : i1) { hw.output %a : i1 }"
with circt_ir.Context() as context:
    circt.register_dialects(context)
    print(circt_ir.Module.parse(TEXT))
print(to_verilog(TEXT))
"""


@pytest.mark.parametrize("imported", ["", "import torch_mlir.ir, pycde.circt", "import pycde.circt, torch_mlir.ir"])
@pytest.mark.parametrize("parts", [(TORCH_MLIR, CIRCT), (CIRCT, TORCH_MLIR)], ids=["torch_mlir first", "CIRCT first"])
def test_both_read_their_dialects(parts: tuple[str, str], imported: str) -> None:
    require("pycde")
    done = subprocess.run([sys.executable, "-c", "".join((imported, *parts))], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert '"a.b"()' in done.stdout and "hw.module @m" in done.stdout and "module m(" in done.stdout
