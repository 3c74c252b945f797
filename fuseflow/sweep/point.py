"""A point of a sweep: all that decides its numbers, as plain values with a name that is made of them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from fuseflow.sweep.digests import package_version

Mode = Literal["estimate", "simulate"]
Scalar = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Point:
    """A model with its data, a schedule and a machine. `content` is the digest of the files that it reads; their paths say where
    they are, and are no part of what the point is."""

    model: str
    content: str
    schedule: str
    """In canonical YAML."""
    machine: Mapping[str, Any]
    """All its settings."""
    data: str | None = None
    data_dir: str | None = None
    tensors: str | None = None
    options: Mapping[str, Scalar] = field(default_factory=dict)
    seed: int = 0
    check: bool = True

    @property
    def source(self) -> str:
        """What points that share a traced model have in common."""
        return _hashed(self._read())

    @property
    def workload(self) -> str:
        """What points that can be compared have in common: everything but the schedule."""
        return _hashed([self._read(), self._hardware()])

    def key(self, mode: Mode) -> str:
        """The name of its row: equal for points with equal numbers, whatever files and machines are called."""
        checked = mode == "estimate" or self.check
        return _hashed([package_version(), mode, self._read(), self._hardware(), self.schedule, checked])

    def _read(self) -> list[Any]:
        return [self.content, self.data, dict(self.options), self.seed]

    def _hardware(self) -> dict[str, Any]:
        return {name: value for name, value in self.machine.items() if name != "name"}

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Task:
    """A point to estimate or to simulate, in `limit` seconds (None: as long as it takes)."""

    point: Point
    mode: Mode
    limit: float | None = None

    @property
    def key(self) -> str:
        return self.point.key(self.mode)


@dataclass(frozen=True, slots=True)
class TaskOutcome:
    """What became of a task: its values, or why there are none. `reason` is the code of an error, `limit`, `memory` or `crash`.
    `seconds` and `peak` (bytes of memory) are of this machine, and differ from run to run."""

    key: str
    values: Mapping[str, Any] = field(default_factory=dict)
    reason: str = ""
    error: str = ""
    seconds: float = 0.0
    peak: int = 0

    @property
    def ok(self) -> bool:
        return not self.reason


def _hashed(values: Any) -> str:
    text = json.dumps(values, sort_keys=True, separators=(",", ":"), allow_nan=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]
