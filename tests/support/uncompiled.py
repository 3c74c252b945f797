"""Scripts that run without a compiler, where kernels are plain Python functions."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def check_uncompiled(script: str) -> None:
    """Run a script that may import the modules beside this one; it must end without an error."""
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": str(Path(__file__).parent)}
    run = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr
