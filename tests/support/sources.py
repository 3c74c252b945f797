"""Models that are read once in a process: reading one takes as long as compiling it, and tests want the same few in many schedules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from fuseflow.compiler import compile_source
from fuseflow.frontend.model_spec import ModelSpec
from fuseflow.frontend.sources import Source, load
from fuseflow.run.compiled import Compiled
from fuseflow.schedule import Schedule
from fuseflow.sim import load_machine

MODELS = Path(__file__).resolve().parents[2] / "models"


def source(file: str, options: Mapping[str, Any] | None = None, data: str | None = None) -> Source:
    """A file of `models` with its data, as `compile` reads it. What PyTorch computes of it is computed once, too."""
    return _read(file, tuple((options or {}).items()), data)


@cache
def _read(file: str, options: tuple[tuple[str, Any], ...], data: str | None) -> Source:
    return load(ModelSpec(MODELS / file, data=data, options=dict(options)))


def compiled(
    file: str, schedule: Schedule, machine: str = "ideal", options: Mapping[str, Any] | None = None, data: str | None = None
) -> Compiled:
    return compile_source(source(file, options, data), schedule, load_machine(machine))


def compiled_at(model: Any, inputs: Sequence[Any], *granularities: str, machine: str = "rda") -> Iterator[Compiled]:
    """A model in Python is imported once, and compiled with each of the granularities, such as `none` and `full`."""
    imported, hardware = load(ModelSpec(model, inputs)), load_machine(machine)
    for granularity in granularities:
        yield compile_source(imported, Schedule.fuse(granularity), hardware)
