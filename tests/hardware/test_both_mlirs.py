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
with circt_ir.Context() as context:
    circt.register_dialects(context)
    print(circt_ir.Module.parse("hw.module @m(in %a : i1, out b : i1) { hw.output %a : i1 }"))
"""


@pytest.mark.parametrize("parts", [(TORCH_MLIR, CIRCT), (CIRCT, TORCH_MLIR)], ids=["torch_mlir first", "CIRCT first"])
def test_both_read_their_dialects(parts: tuple[str, str]) -> None:
    require("pycde")
    done = subprocess.run([sys.executable, "-c", "".join(parts)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert '"a.b"()' in done.stdout and "hw.module @m" in done.stdout
