"""What was compiled and run, and with which versions: enough to do it again."""

from __future__ import annotations

import importlib.metadata
import math
import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fuseflow.sim import Machine

PACKAGES = ("fuseflow", "torch", "torch-mlir", "numpy", "scipy", "networkx", "protobuf")


@dataclass(frozen=True, slots=True)
class Settings:
    """A model with its options, its data, an engine and a seed, by name; a schedule as YAML; the machine; what must stand beside every
    result."""

    model: str
    data: str | None
    schedule: str
    machine: Machine
    engine: str
    seed: int
    options: Mapping[str, Any] = field(default_factory=dict)
    notices: tuple[str, ...] = ()

    @property
    def plain_options(self) -> dict[str, Any]:
        """The options as JSON has them; anything else as its text."""
        plain = (
            v is None or isinstance(v, bool | int | str) or (isinstance(v, float) and math.isfinite(v))
            for v in self.options.values()
        )
        return {name: value if p else str(value) for (name, value), p in zip(self.options.items(), plain, strict=True)}


def versions() -> dict[str, str]:
    """The versions of Python and of the packages that results depend on, as far as they are installed."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found
