"""A case as text: a YAML file with the program, its numbers and its schedule, for programs that are kept as tests.

program: |
  tensor A[2, 3] csr f64
  T[i] = sum(j) A[i, j]
  output T
tensors:
  A: [[~, 1.0, ~], [~, ~, 0.0]]     # what is not stored is empty; a stored zero is 0
schedule: |
  fuse: [full]
merge: true
limits: 0
seed: 7
surfaces: [estimate]                # what to ask of it beside its levels (`program_surfaces`); everything, if it does not say
differs: what was wrong when it was found
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from random_programs import Case
from ruamel.yaml import YAML
from ruamel.yaml.scalarstring import LiteralScalarString

from fuseflow.einsum.nodes import TensorType
from fuseflow.einsum.parse import parse
from fuseflow.einsum.text import show
from fuseflow.schedule import Schedule
from fuseflow.tensors import DTYPES, Format, Tensor, from_coordinates


@dataclass(frozen=True)
class Kept:
    """A case, the seed of the run that found it, what differed, and the surfaces at which it may differ again: None for all."""

    case: Case
    seed: int
    differs: str
    surfaces: tuple[str, ...] | None = None


def save(kept: Kept, path: Path) -> None:
    case = kept.case
    document = {
        "program": LiteralScalarString(show(case.program)),
        "tensors": {name: _nested(tensor) for name, tensor in case.tensors.items()},
        "schedule": LiteralScalarString(str(case.schedule)),
        "merge": case.merge,
        "pick": case.pick,
        "limits": case.limits,
        "deal": case.deal,
        "machine": case.machine,
        "seed": kept.seed,
        **({} if kept.surfaces is None else {"surfaces": list(kept.surfaces)}),
        "differs": LiteralScalarString("".join(f"{line.rstrip()}\n" for line in kept.differs.splitlines())),
    }
    out = io.StringIO()
    _yaml().dump(document, out)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(out.getvalue(), encoding="utf-8")


def load(path: Path) -> Kept:
    document = _yaml().load(path.read_text(encoding="utf-8"))
    program = parse(document["program"])
    tensors = {t.name: _packed(t, document["tensors"][t.name]) for t in program.inputs}
    schedule = Schedule.from_yaml(document["schedule"], str(path))
    numbers = document["pick"], document["limits"], document.get("deal", 0)
    case = Case(program, tensors, schedule, document["merge"], *numbers, document.get("machine", "ideal"))
    surfaces = document.get("surfaces")
    return Kept(case, document["seed"], document["differs"], None if surfaces is None else tuple(surfaces))


def _yaml() -> YAML:
    yaml = YAML()
    yaml.default_flow_style = None
    yaml.width = 10_000
    return yaml


def _nested(tensor: Tensor) -> Any:
    """The stored values as nested lists, None where nothing is stored."""
    array = np.full(tensor.shape, None, dtype=object)
    coordinates, values = tensor.entries()
    for place, value in zip(coordinates.T.tolist(), values.tolist(), strict=True):
        array[tuple(place)] = value
    return array.tolist()


def _packed(declared: TensorType, nested: Any) -> Tensor:
    array = np.array(nested, dtype=object).reshape(declared.shape)
    stored = np.not_equal(array, None)  # type: ignore[call-overload]
    values = array[stored].astype(DTYPES[declared.dtype].holder).reshape(-1)
    format = declared.format or Format.dense(len(declared.shape))
    return from_coordinates(declared.shape, np.argwhere(stored).T, values, format, declared.fill, DTYPES[declared.dtype])
