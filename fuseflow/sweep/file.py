"""A sweep as YAML: what is compared, on what, and how."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from fuseflow.errors import FuseFlowError, SweepError, did_you_mean
from fuseflow.filesystem import read_text
from fuseflow.schedule import Schedule
from fuseflow.schedule.entries import SETTINGS
from fuseflow.schedule.file import Sections, read_document
from fuseflow.sweep.point import Scalar
from fuseflow.yaml_text import YamlText, read_yaml

OBJECTIVES = ("cycles", "bytes", "flops")
MODES = ("estimate", "simulate", "prune")


def _as_list(value: Any) -> Any:
    """One value is a list of one."""
    return value if isinstance(value, list) else [value]


OneOrMany = BeforeValidator(_as_list)
NonEmptyNames = Annotated[list[Annotated[str, Field(min_length=1)]], OneOrMany, Field(min_length=1)]
Seed = Annotated[int, Field(ge=0, lt=2**32)]


class SweepContent(BaseModel):
    """What a sweep file may hold."""

    model_config = ConfigDict(extra="forbid", strict=True)

    model: NonEmptyNames
    data: NonEmptyNames | None = None
    data_dir: str | None = None
    tensors: NonEmptyNames | None = None
    options: Annotated[list[dict[str, Scalar]], OneOrMany, Field(min_length=1)] = [{}]
    seed: Annotated[list[Seed], OneOrMany, Field(min_length=1)] = [0]
    machine: NonEmptyNames = ["rda"]
    set: Annotated[list[dict[str, Scalar]], OneOrMany, Field(min_length=1)] = [{}]
    schedules: Annotated[list[str | dict[str, Any]], Field(min_length=1)] = [{}]
    vary: dict[str, Annotated[list[Any], Field(min_length=1)]] = {}
    mode: str = "estimate"
    top: Annotated[int, Field(ge=1)] = 10
    objective: str = "cycles"
    limit: Annotated[float, Field(gt=0)] | None = None
    check: bool = True


@dataclass(frozen=True, slots=True)
class SweepFile:
    """A sweep file that was read: `schedules` and `vary` hold sections of schedules (`schedule.file.Sections`) by the label that tables
    show for them."""

    path: Path
    content: SweepContent
    text: YamlText
    schedules: Mapping[str, Mapping[str, Any]]
    vary: Mapping[str, Mapping[str, Mapping[str, Any]]]

    @property
    def folder(self) -> Path:
        return self.path.absolute().parent

    @contextmanager
    def blame(self, *path: int | str) -> Iterator[None]:
        """Give errors raised inside the place of an entry."""
        try:
            yield
        except FuseFlowError as error:
            error.span = error.span or self.text.place(*path)
            raise


def read_sweep(path: Path) -> SweepFile:
    """Read a sweep file. Raises a `FuseFlowError` with the line and column of what is wrong."""
    text = read_yaml(read_text(path, "the sweep"), str(path), SweepError)
    try:
        content = SweepContent.model_validate({} if text.content is None else text.content)
    except ValidationError as error:
        raise text.explain(error, SweepContent.model_fields, "a sweep file", SweepError) from error
    _check_choice(text, "mode", content.mode, MODES)
    _check_choice(text, "objective", content.objective, OBJECTIVES)
    if "top" in content.model_fields_set and content.mode != "prune":
        raise SweepError("`top` is for `mode: prune`", hint="leave it out", span=text.place("top"))
    schedules = _schedules(text, content, path.absolute().parent)
    return SweepFile(path, content, text, schedules, _axes(text, content, schedules))


def _check_choice(text: YamlText, key: str, value: str, among: tuple[str, ...]) -> None:
    if value not in among:
        raise SweepError(f"`{key}: {value}` is none of {', '.join(among)}", hint=did_you_mean(value, among), span=text.place(key))


def _schedules(text: YamlText, content: SweepContent, folder: Path) -> dict[str, Mapping[str, Any]]:
    found: dict[str, Mapping[str, Any]] = {}
    for n, given in enumerate(content.schedules):
        at = ("schedules", n)
        if isinstance(given, str):
            path = folder / given
            inside = read_yaml(read_text(path, "the schedule"), str(path), SweepError)
            name, sections = path.stem, _sections({} if inside.content is None else inside.content, inside)
        else:
            name = given.get("name", _sections_label(given))
            sections = _sections({key: value for key, value in given.items() if key != "name"}, text, at)
        if not isinstance(name, str) or name in found:
            problem = f"two schedules are called `{name}`" if isinstance(name, str) else f"`name: {name}` is no name"
            raise SweepError(problem, hint="give each a `name` of its own", span=text.place(*at))
        found[name] = sections
    return found


def _sections(content: Any, text: YamlText, at: tuple[int | str, ...] = ()) -> Mapping[str, Any]:
    """The sections that are given, in a form that can be merged; raises an error with its place for what no schedule can have."""
    given = read_document(content, text, at)
    Schedule.from_document(given)
    return given.sections.model_dump(exclude_unset=True)


def _axes(
    text: YamlText, content: SweepContent, schedules: Mapping[str, Mapping[str, Any]]
) -> dict[str, dict[str, Mapping[str, Any]]]:
    found: dict[str, dict[str, Mapping[str, Any]]] = {}
    for key, values in content.vary.items():
        if key not in Sections.model_fields:
            hint = did_you_mean(key, Sections.model_fields)
            if key in SweepContent.model_fields:
                hint = f"`{key}` stands beside `vary`, and may be a list there"
            raise SweepError(f"a schedule has no `{key}` to vary", hint=hint, span=text.place("vary", key))
        found[key] = {}
        for n, value in enumerate(values):
            sections = _axis_value(text, key, n, value)
            _check_conflict(text, key, sections, schedules)
            found[key].setdefault(label(value), sections)
    return found


def _axis_value(text: YamlText, key: str, n: int, value: Any) -> Mapping[str, Any]:
    """The section of one value; `first` and `best` are orders, too."""
    section = "order_policy" if key == "order" and value in SETTINGS["order_policy"] else key
    place = text.place("vary", key, n)
    try:
        return _sections({section: value}, YamlText(value, text.file, None))
    except FuseFlowError as error:
        error.span = place
        raise


def _check_conflict(text: YamlText, key: str, sections: Mapping[str, Any], schedules: Mapping[str, Mapping[str, Any]]) -> None:
    """What varies replaces nothing that a schedule says."""
    for name, base in schedules.items():
        for section, value in sections.items():
            said = base.get(section)
            both = set(said) & set(value) if isinstance(said, dict) and isinstance(value, dict) else said is not None
            if both:
                what = f"`{section}` of {', '.join(f'`{k}`' for k in sorted(both))}" if isinstance(both, set) else f"`{section}`"
                raise SweepError(
                    f"the schedule `{name}` says {what}, which varies", hint="say it in one of them", span=text.place("vary", key)
                )


def label(value: Any) -> str:
    """A value as tables and `--where` have it.

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
