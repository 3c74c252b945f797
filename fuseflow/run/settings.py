"""The settings of a run and the versions of packages: enough to repeat the run."""

from __future__ import annotations

import math
import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fuseflow.machine.machine import Machine

if TYPE_CHECKING:
    from fuseflow.propagation.attribute_table import AttributeRow

PACKAGES = ("fuseflow", "torch", "torch-mlir", "numpy", "scipy", "networkx", "protobuf")
"""The packages that results depend on."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a compilation and a run.

    The model, its data and the engine are stored by name, the schedule as YAML. `notices` are texts that must be shown with every
    result. `left_out` are the tensors of which elements were left out, since no output needs them.
    """

    model: str
    data: str | None
    schedule: str
    machine: Machine
    engine: str
    seed: int
    options: Mapping[str, Any] = field(default_factory=dict)
    notices: tuple[str, ...] = ()
    left_out: tuple[AttributeRow, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return what was compiled and run as plain values, without notices."""
        return {
            "model": self.model,
            "data": self.data,
            "options": self.plain_options,
            "schedule": self.schedule,
            "machine": self.machine.name,
            "machine_settings": self.machine.settings,
            "engine": self.engine,
            "seed": self.seed,
        }

    @property
    def left_out_json(self) -> dict[str, Any]:
        """The left-out elements for JSON: a key with rows, or nothing if there are none."""
        return {"left_out": [row.to_json() for row in self.left_out]} if self.left_out else {}

    @property
    def plain_options(self) -> dict[str, Any]:
        """The options as JSON values. An option that JSON cannot hold is converted to text."""
        plain = (
            v is None or isinstance(v, bool | int | str) or (isinstance(v, float) and math.isfinite(v))
            for v in self.options.values()
        )
        return {name: value if p else str(value) for (name, value), p in zip(self.options.items(), plain, strict=True)}


def versions() -> dict[str, str]:
    """Return the versions of Python and of those packages that results depend on that are installed."""
    import importlib.metadata  # takes a while, and a result that is only printed does without

    versions_by_package = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            versions_by_package[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return versions_by_package
