"""CIRCT and torch-mlir are two copies of MLIR, which live in one process whichever is imported first."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hardware_tools import require

FIRST = (
    "from torch_mlir import ir as torch_ir\nwith torch_ir.Context() as context:\n    context.allow_unregistered_dialects = True\n"
)
FIRST += "    print(torch_ir.Module.parse('\"a.b\"() : () -> ()'))\n"
SECOND = "from pycde.circt import ir as circt_ir\nfrom pycde import circt\nwith circt_ir.Context() as context:\n"
SECOND += "    circt.register_dialects(context)\n    print(circt_ir.Module.parse('hw.module @m(in %a : i1, out b : i1) { hw.output %a : i1 }'))\n"


@pytest.mark.parametrize("parts", [(FIRST, SECOND), (SECOND, FIRST)], ids=["torch_mlir first", "CIRCT first"])
def test_both_read_their_dialects(parts: tuple[str, str]) -> None:
    require("pycde")
    done = subprocess.run([sys.executable, "-c", "".join(parts)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert '"a.b"()' in done.stdout and "hw.module @m" in done.stdout
