"""Machines: latencies, initiation intervals, FIFO depth and memory, from YAML files. Unknown keys are refused."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from fuseflow.errors import MachineError, Span, did_you_mean
from fuseflow.filesystem import read_text

Cycles = Annotated[int, Field(ge=1, strict=True)]


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Units(_Strict):
    """Cycles of each kind of unit; those not given have the default's."""

    default: Cycles = 1
    add: Cycles | None = None
    mul: Cycles | None = None
    div: Cycles | None = None
    transcendental: Cycles | None = None
    logic: Cycles | None = None
    memory: Cycles | None = None

    def of(self, unit: str) -> int:
        cycles: int | None = getattr(self, unit)
        return self.default if cycles is None else cycles


class Machine(_Strict):
    """What a graph runs on. `latency`: cycles from a firing until its tokens are visible. `interval`: cycles between two firings on
    values. `fifo_depth`: slots of every FIFO that the graph gives no depth; None is unbounded."""

    name: str
    clock_ghz: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1.0
    latency: Units = Units()
    interval: Units = Units()
    fifo_depth: Cycles | None = None
    memory: Literal["ideal"] = "ideal"


def machine_names() -> tuple[str, ...]:
    """The machines that ship with the package."""
    files = resources.files("fuseflow.sim").joinpath("machines").iterdir()
    return tuple(sorted(f.name.removesuffix(".yaml") for f in files if f.name.endswith(".yaml")))


def load_machine(name_or_path: str | Path) -> Machine:
    """A machine that ships with the package, by name, or one in a YAML file; raises `MachineError` or `FileError`."""
    name = str(name_or_path)
    if name in machine_names():
        text = resources.files("fuseflow.sim").joinpath("machines", f"{name}.yaml").read_text(encoding="utf-8")
        return read_machine(text, f"{name}.yaml")
    path = Path(name_or_path)
    if path.suffix not in (".yaml", ".yml") and not path.is_file():
        raise MachineError(f"unknown machine `{name}`", hint=did_you_mean(name, machine_names()))
    return read_machine(read_text(path, "the machine"), name)


def read_machine(text: str, file: str = "<text>") -> Machine:
    """A machine from YAML text; errors name the line and the nearest right key."""
    try:
        data: Any = YAML(typ="rt").load(text)
    except YAMLError as error:
        mark = error.problem_mark if isinstance(error, MarkedYAMLError) else None
        problem = error.problem if isinstance(error, MarkedYAMLError) else error
        span = Span(file, mark.line + 1, mark.column + 1) if mark is not None else Span(file, 1)
        raise MachineError(f"not YAML: {problem}", span=span) from error
    if not isinstance(data, CommentedMap):
        raise MachineError("a machine is a YAML mapping", hint=did_you_mean("", Machine.model_fields), span=Span(file, 1))
    try:
        return Machine.model_validate(data)
    except ValidationError as error:
        raise _refused(error, data, file) from error


def _refused(error: ValidationError, data: CommentedMap, file: str) -> MachineError:
    first = error.errors()[0]
    *above, key = [str(part) for part in first["loc"]]
    path = ".".join([*above, key])
    inside: Any = data
    for part in above:
        inside = inside[part]
    span = Span(file, 1)
    if isinstance(inside, CommentedMap) and key in inside:
        line, column = inside.lc.key(key)
        span = Span(file, line + 1, column + 1)
    if first["type"] == "extra_forbidden":
        known = (Units if above else Machine).model_fields
        return MachineError(f"unknown key `{path}`", hint=did_you_mean(key, known), span=span)
    if first["type"] == "missing":
        return MachineError(f"the key `{path}` is missing", span=span)
    return MachineError(f"`{path}: {first['input']}`: {first['msg'].lower()}", span=span)
