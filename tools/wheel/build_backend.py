"""The build backend of the package: setuptools, which first has the kernels of the simulator compiled.

A wheel has them, and an editable installation finds them in the checkout. They are made by numba and LLVM, without a C compiler or linker.
All of them are made, however long that takes on a busy machine. Where one cannot be made the package is built without any: numba then
compiles kernels when a simulation first needs them, and `fuseflow doctor` says so. A wheel that is built twice is the same file.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

from setuptools import build_meta
from setuptools.build_meta import (  # the hooks that stay as they are
    build_sdist,
    get_requires_for_build_sdist,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]

ROOT = Path(__file__).resolve().parents[2]
COMPILER = ("llvmlite", "numba", "numpy", "pydantic", "ruamel.yaml", "scipy")
"""The dependencies that the engine and its compiler import."""
OBJECTS = ROOT / "fuseflow" / "native" / "objects"
"""Where kernels are made."""
EARLIEST = "315532800"
"""The first second of 1980 by the clock of Unix, the earliest time that a wheel can give its files."""


def compiler_requirements() -> list[str]:
    """Return the requirements of the compiler, in the versions that the package itself takes."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return []
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return [requirement for requirement in project["dependencies"] if re.split("[=<>]", requirement)[0] in COMPILER]


def make_kernels() -> None:
    """Compile all kernels into the package's folder, or none. A failure is told and is not one of the build."""
    try:
        subprocess.run([sys.executable, "-m", "fuseflow.sim.engine.ahead"], cwd=ROOT, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        shutil.rmtree(OBJECTS, ignore_errors=True)
        print(f"no kernels are made ahead of time: {error}\nnumba will compile them when they are first needed", file=sys.stderr)


def get_requires_for_build_wheel(config_settings: Any = None) -> list[str]:
    return [*build_meta.get_requires_for_build_wheel(config_settings), *compiler_requirements()]


def get_requires_for_build_editable(config_settings: Any = None) -> list[str]:
    return [*build_meta.get_requires_for_build_editable(config_settings), *compiler_requirements()]


def build_wheel(wheel_directory: str, config_settings: Any = None, metadata_directory: str | None = None) -> str:
    make_kernels()
    os.environ.setdefault("SOURCE_DATE_EPOCH", EARLIEST)
    for earlier in (ROOT / "build").glob("lib*"):  # what is left there would be packed again
        shutil.rmtree(earlier)
    return build_meta.build_wheel(wheel_directory, config_settings, metadata_directory)


def build_editable(wheel_directory: str, config_settings: Any = None, metadata_directory: str | None = None) -> str:
    make_kernels()
    return build_meta.build_editable(wheel_directory, config_settings, metadata_directory)
