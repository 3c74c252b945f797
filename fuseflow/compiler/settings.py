"""What was compiled and run, and with which versions: enough to do it again."""

from __future__ import annotations

import importlib.metadata
import platform
from dataclasses import dataclass

from fuseflow.sim import Machine

PACKAGES = ("fuseflow", "torch", "torch-mlir", "numpy", "scipy", "networkx", "protobuf")


@dataclass(frozen=True, slots=True)
class Settings:
    """A model, its data, an engine and a seed, by name; a schedule as YAML; the machine."""

    model: str
    data: str | None
    schedule: str
    machine: Machine
    engine: str
    seed: int


def versions() -> dict[str, str]:
    """Of Python and the packages that results depend on, as far as they are installed."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found
