"""A sweep file in YAML: models with their data, machines and schedules, and what varies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainValidator, ValidationError
from pydantic_core import PydanticCustomError

from fuseflow.errors import FuseFlowError, SweepError, did_you_mean
from fuseflow.filesystem import read_text
from fuseflow.machine.machine import Machine
from fuseflow.sampling.sample_request import parse_sample
from fuseflow.schedule import Schedule
from fuseflow.schedule.file import Sections, read_document
from fuseflow.sweep.point import Scalar
from fuseflow.yaml_text import YamlText, read_yaml

OBJECTIVES = ("cycles", "bytes", "flops")
"""The values by which points are compared."""
MODES = ("estimate", "sample", "simulate", "prune")
"""The ways to measure points. `sample` samples them, and `prune` estimates all of them and simulates the points with the best estimates."""


ScheduleSections = Mapping[str, Any]
"""The sections of a schedule (`schedule.file.Sections`), or some of them."""


def _as_list(value: Any) -> Any:
    """Return a list as it is, and any other value as a list of one."""
    return value if isinstance(value, list) else [value]


def _machine_entry(value: Any) -> Any:
    """Return an entry of `machine`: a name, or, in a program, a machine itself."""
    if isinstance(value, Machine) or (isinstance(value, str) and value):
        return value
    raise PydanticCustomError("machine", "must be the name of a machine, or a file")


MachineEntry: TypeAlias = Annotated[
    str | Machine, PlainValidator(_machine_entry, json_schema_input_type=Annotated[str, Field(min_length=1)])
]


OneOrMany = BeforeValidator(_as_list)
NonEmptyNames = Annotated[list[Annotated[str, Field(min_length=1)]], OneOrMany, Field(min_length=1)]
Seed = Annotated[int, Field(ge=0, lt=2**32)]


class TrainingContent(BaseModel):
    """An entry of `train`: a loss and an optimizer as `--loss` and `--optimizer` take them, and whether there are gradients."""

    model_config = ConfigDict(extra="forbid", strict=True)

    loss: str | None = None
    optimizer: str | None = None
    gradients: bool = False


def _train_entry(value: Any) -> Any:
    """Return true as an entry that says nothing, false as None, and any other value as it is."""
    return ({} if value else None) if isinstance(value, bool) else value


TrainEntry = Annotated[TrainingContent | None, BeforeValidator(_train_entry)]


class SweepContent(BaseModel):
    """The content of a sweep file, as it is written."""

    model_config = ConfigDict(extra="forbid", strict=True)

    model: NonEmptyNames
    data: NonEmptyNames | None = None
    data_dir: str | None = None
    tensors: NonEmptyNames | None = None
    options: Annotated[list[dict[str, Scalar]], OneOrMany, Field(min_length=1)] = [{}]
    seed: Annotated[list[Seed], OneOrMany, Field(min_length=1)] = [0]
    sparsity: Annotated[list[str | dict[str, str]], OneOrMany, Field(min_length=1)] = [{}]
    propagate: Annotated[list[bool], OneOrMany, Field(min_length=1)] = [False]
    train: Annotated[list[TrainEntry], OneOrMany, Field(min_length=1)] = [None]
    machine: Annotated[list[MachineEntry], OneOrMany, Field(min_length=1)] = ["rda"]
    set: Annotated[list[dict[str, Scalar]], OneOrMany, Field(min_length=1)] = [{}]
    schedules: Annotated[list[str | dict[str, Any]], Field(min_length=1)] = [{}]
    vary: dict[str, Annotated[list[Any], Field(min_length=1)]] = {}
    mode: str = "estimate"
    top: Annotated[int, Field(ge=1)] = 10
    objective: str = "cycles"
    limit: Annotated[float, Field(gt=0)] | None = None
    check: bool = True
    sample: Annotated[str, Field(min_length=1)] = "error=1%"


@dataclass(frozen=True, slots=True)
class SweepFile:
    """A sweep file that was read.

    `schedules` and `vary` hold sections of schedules by the label that tables show for them.
    """

    path: Path
    content: SweepContent
    text: YamlText
    schedules: Mapping[str, ScheduleSections]
    vary: Mapping[str, Mapping[str, ScheduleSections]]

    @property
    def folder(self) -> Path:
        """The folder of the file, to which its paths are relative."""
        return self.path.absolute().parent


def read_sweep(path: Path) -> SweepFile:
    """Read a sweep file. Raises a `FuseFlowError` with the line and column of an error in it."""
    return parsed_sweep(path, read_yaml(read_text(path, "the sweep"), str(path), SweepError))


def parsed_sweep(path: Path, text: YamlText) -> SweepFile:
    """Return the sweep in a text, whose paths are relative to the folder of `path`."""
    try:
        content = SweepContent.model_validate({} if text.content is None else text.content)
    except ValidationError as error:
        raise text.explain(error, SweepContent.model_fields, "a sweep file", SweepError) from error
    _check_choice(text, "mode", content.mode, MODES)
    _check_choice(text, "objective", content.objective, OBJECTIVES)
    if "top" in content.model_fields_set and content.mode != "prune":
        raise SweepError("`top` is for `mode: prune`", hint="leave it out", span=text.place("top"))
    if "sample" in content.model_fields_set and content.mode != "sample":
        raise SweepError("`sample` is for `mode: sample`", hint="leave it out", span=text.place("sample"))
    with text.blame("sample"):
        parse_sample(content.sample)
    schedules = _schedules(text, content, path.absolute().parent)
    return SweepFile(path, content, text, schedules, _axes(text, content, schedules))


def _check_choice(text: YamlText, key: str, value: str, among: tuple[str, ...]) -> None:
    if value not in among:
        raise SweepError(f"`{key}: {value}` is none of {', '.join(among)}", hint=did_you_mean(value, among), span=text.place(key))


def _schedules(text: YamlText, content: SweepContent, folder: Path) -> dict[str, ScheduleSections]:
    sections_by_name: dict[str, ScheduleSections] = {}
    for n, entry in enumerate(content.schedules):
        at = ("schedules", n)
        if isinstance(entry, str):
            path = folder / entry
            inside = read_yaml(read_text(path, "the schedule"), str(path), SweepError)
            name, sections = path.stem, _sections({} if inside.content is None else inside.content, inside)
        else:
            sections_label = " ".join(f"{key}:{label(value)}" for key, value in entry.items()) or "default"
            name = entry.get("name", sections_label)
            sections = _sections({key: value for key, value in entry.items() if key != "name"}, text, at)
        if not isinstance(name, str) or name in sections_by_name:
            problem = f"two schedules are called `{name}`" if isinstance(name, str) else f"`name: {name}` is no name"
            raise SweepError(problem, hint="give each a `name` of its own", span=text.place(*at))
        sections_by_name[name] = sections
    return sections_by_name


def _sections(content: Any, text: YamlText, at: tuple[int | str, ...] = ()) -> ScheduleSections:
    """Return the sections of the schedule at the path `at` of a text, in a form that can be merged. Raises an error with its place."""
    parsed = read_document(content, text, at)
    Schedule.from_document(parsed)
    return parsed.sections.model_dump(exclude_unset=True)


def _axes(
    text: YamlText, content: SweepContent, schedules: Mapping[str, ScheduleSections]
) -> dict[str, dict[str, ScheduleSections]]:
    axes: dict[str, dict[str, ScheduleSections]] = {}
    for key, values in content.vary.items():
        if key not in Sections.model_fields:
            hint = did_you_mean(key, Sections.model_fields)
            if key in SweepContent.model_fields:
                hint = f"`{key}` stands beside `vary`, and may be a list there"
            raise SweepError(f"a schedule has no `{key}` to vary", hint=hint, span=text.place("vary", key))
        axes[key] = {}
        for n, value in enumerate(values):
            try:
                sections = _sections({key: value}, YamlText(value, text.file, None))
            except FuseFlowError as error:
                error.span = text.place("vary", key, n)
                raise
            _check_conflict(text, key, sections, schedules)
            axes[key].setdefault(label(value), sections)
    return axes


def _check_conflict(text: YamlText, key: str, sections: ScheduleSections, schedules: Mapping[str, ScheduleSections]) -> None:
    """Raise `SweepError` if a value on the axis `key`, with these `sections`, would replace a section of one of the schedules."""
    for name, base in schedules.items():
        for section, value in sections.items():
            stated = base.get(section)
            both = set(stated) & set(value) if isinstance(stated, dict) and isinstance(value, dict) else stated is not None
            if both:
                names = f" of {', '.join(f'`{k}`' for k in sorted(both))}" if isinstance(both, set) else ""
                problem = f"the schedule `{name}` says `{section}`{names}, which varies"
                raise SweepError(problem, hint="say it in one of them", span=text.place("vary", key))


def label(value: Any) -> str:
    """Return a value as tables and `--where` show it.

    >>> label({"i": 4, "k": 2}), label(["layer1", "layer2"]), label({}), label({"layer1": ["i", "k"]})
    ('i=4,k=2', 'layer1,layer2', '-', 'layer1=i,k')
    """
    if isinstance(value, Mapping):
        return ",".join(f"{key}={label(inner)}" for key, inner in value.items()) or "-"
    if isinstance(value, list | tuple):
        return ",".join(map(label, value)) or "-"
    if isinstance(value, bool):
        return str(value).lower()
    return "-" if value is None else ",".join(part.strip() for part in str(value).split(","))
