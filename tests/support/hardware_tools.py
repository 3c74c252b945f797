"""Tools of hardware in tests: a test that needs one is skipped where it is absent, and says so, or fails if they are required."""

from __future__ import annotations

import importlib.util
import os
import shutil

import pytest

REQUIRED = os.environ.get("FUSEFLOW_REQUIRE_HARDWARE") == "1"
"""Whether a missing tool is a failure."""


def require(*names: str) -> None:
    """Skip the test unless these programs, and the modules `pycde` and `z3` if they are named, are there."""
    absent = [name for name in names if not _is_there(name)]
    if absent and REQUIRED:
        pytest.fail(f"not there, and required: {', '.join(absent)}")
    if absent:
        pytest.skip(f"not there: {', '.join(absent)}")


def _is_there(name: str) -> bool:
    if name in ("pycde", "z3"):
        return importlib.util.find_spec(name) is not None
    return shutil.which(name) is not None
