"""Sweep files in YAML, which say which schedules are compared, on which data and machines, and how."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from fuseflow.errors import FuseFlowError, SweepError, UsageError, did_you_mean
from fuseflow.filesystem import read_text
from fuseflow.sampling.sample import parse_sample
from fuseflow.schedule import Schedule
from fuseflow.schedule.file import Sections, read_document
from fuseflow.sweep.point import Scalar
from fuseflow.yaml_text import YamlText, read_yaml

OBJECTIVES = ("cycles", "bytes", "flops")
"""The values by which points are compared."""
MODES = ("estimate", "sample", "simulate", "prune")
"""The ways to measure points. `sample` samples them, and `prune` estimates all of them and simulates the points with the best estimates."""


def _as_list(value: Any) -> Any:
    """Return a list as it is, and any other value as a list of one."""
    return value if isinstance(value, list) else [value]


OneOrMany = BeforeValidator(_as_list)
NonEmptyNames = Annotated[list[Annotated[str, Field(min_length=1)]], OneOrMany, Field(min_length=1)]
Seed = Annotated[int, Field(ge=0, lt=2**32)]


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
    machine: NonEmptyNames = ["rda"]
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

    `schedules` and `vary` hold sections of schedules (`schedule.file.Sections`) by the label that tables show for them.
    """

    path: Path
    content: SweepContent
    text: YamlText
    schedules: Mapping[str, Mapping[str, Any]]
    vary: Mapping[str, Mapping[str, Mapping[str, Any]]]

    @property
    def folder(self) -> Path:
        """The folder of the file, to which its paths are relative."""
        return self.path.absolute().parent

    @contextmanager
    def blame(self, *path: int | str) -> Iterator[None]:
        """Give an error that is raised inside the block the place of the entry at `path` in the file, if it has none."""
        try:
            yield
        except FuseFlowError as error:
            error.span = error.span or self.text.place(*path)
            raise


def read_sweep(path: Path) -> SweepFile:
    """Read a sweep file. Raises a `FuseFlowError` with the line and column of an error in it."""
    text = read_yaml(read_text(path, "the sweep"), str(path), SweepError)
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
    try:
        parse_sample(content.sample)
    except UsageError as error:
        error.span = text.place("sample")
        raise
    schedules = _schedules(text, content, path.absolute().parent)
    return SweepFile(path, content, text, schedules, _axes(text, content, schedules))


def _check_choice(text: YamlText, key: str, value: str, among: tuple[str, ...]) -> None:
    if value not in among:
        raise SweepError(f"`{key}: {value}` is none of {', '.join(among)}", hint=did_you_mean(value, among), span=text.place(key))


def _schedules(text: YamlText, content: SweepContent, folder: Path) -> dict[str, Mapping[str, Any]]:
    sections_by_name: dict[str, Mapping[str, Any]] = {}
    for n, entry in enumerate(content.schedules):
        at = ("schedules", n)
        if isinstance(entry, str):
            path = folder / entry
            inside = read_yaml(read_text(path, "the schedule"), str(path), SweepError)
            name, sections = path.stem, _sections({} if inside.content is None else inside.content, inside)
        else:
            name = entry.get("name", _sections_label(entry))
            sections = _sections({key: value for key, value in entry.items() if key != "name"}, text, at)
        if not isinstance(name, str) or name in sections_by_name:
            problem = f"two schedules are called `{name}`" if isinstance(name, str) else f"`name: {name}` is no name"
            raise SweepError(problem, hint="give each a `name` of its own", span=text.place(*at))
        sections_by_name[name] = sections
    return sections_by_name


def _sections(content: Any, text: YamlText, at: tuple[int | str, ...] = ()) -> Mapping[str, Any]:
    """Return the sections of the schedule `content`, which stands at the path `at` of the text, in a form that can be merged.
    Raises an error with the place of a section that no schedule has."""
    parsed = read_document(content, text, at)
    Schedule.from_document(parsed)
    return parsed.sections.model_dump(exclude_unset=True)


def _axes(
    text: YamlText, content: SweepContent, schedules: Mapping[str, Mapping[str, Any]]
) -> dict[str, dict[str, Mapping[str, Any]]]:
    axes: dict[str, dict[str, Mapping[str, Any]]] = {}
    for key, values in content.vary.items():
        if key not in Sections.model_fields:
            hint = did_you_mean(key, Sections.model_fields)
            if key in SweepContent.model_fields:
                hint = f"`{key}` stands beside `vary`, and may be a list there"
            raise SweepError(f"a schedule has no `{key}` to vary", hint=hint, span=text.place("vary", key))
        axes[key] = {}
        for n, value in enumerate(values):
            sections = _axis_value(text, key, n, value)
            _check_conflict(text, key, sections, schedules)
            axes[key].setdefault(label(value), sections)
    return axes


def _axis_value(text: YamlText, key: str, n: int, value: Any) -> Mapping[str, Any]:
    """Return the sections of a schedule that one value on an axis sets: value number `n` of the axis `key`."""
    place = text.place("vary", key, n)
    try:
        return _sections({key: value}, YamlText(value, text.file, None))
    except FuseFlowError as error:
        error.span = place
        raise


def _check_conflict(text: YamlText, key: str, sections: Mapping[str, Any], schedules: Mapping[str, Mapping[str, Any]]) -> None:
    """Raise `SweepError` if a value on the axis `key`, with these `sections`, would replace a section of one of the schedules."""
    for name, base in schedules.items():
        for section, value in sections.items():
            stated = base.get(section)
            both = set(stated) & set(value) if isinstance(stated, dict) and isinstance(value, dict) else stated is not None
            if both:
                conflict = (
                    f"`{section}` of {', '.join(f'`{k}`' for k in sorted(both))}" if isinstance(both, set) else f"`{section}`"
                )
                raise SweepError(
                    f"the schedule `{name}` says {conflict}, which varies",
                    hint="say it in one of them",
                    span=text.place("vary", key),
                )


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


def _sections_label(sections: Mapping[str, Any]) -> str:
    return " ".join(f"{key}:{label(value)}" for key, value in sections.items()) or "default"
