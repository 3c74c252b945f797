"""A schedule as YAML: the sections of the file, and the place of each of them in the file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError, model_validator

from fuseflow.errors import FuseFlowError, ScheduleError, Span
from fuseflow.schedule.settings import SETTINGS
from fuseflow.yaml_text import KeyPath, YamlText, read_yaml


def _listed(value: Any) -> Any:
    """Return a text as a list: `i, k, j` and `i` are lists too."""
    return [word.strip() for word in value.split(",")] if isinstance(value, str) else value


POLICIES = list(SETTINGS["order_policy"])
DEPTH_POLICIES = list(SETTINGS["depth_policy"])
"""The values of `order` that are policies."""
NameList = Annotated[list[str], BeforeValidator(_listed)]
"""A list of names, which may be written as one text with commas."""


class Sections(BaseModel):
    """The sections that a schedule file may hold; each is what `Schedule` calls it."""

    model_config = ConfigDict(extra="forbid", strict=True)

    fuse: NameList | None = None
    regions: dict[str, NameList] = {}
    order: dict[str, NameList] = {}
    format: dict[str, str] = {}
    block: dict[str, list[int]] = {}
    split: dict[str, int] = {}
    vector: int | None = None
    par: dict[str, int] = {}
    depth: dict[str, int] = {}
    associate: dict[str, str] = {}
    buffer: dict[str, int | str] = {}
    preload: dict[str, int] = {}
    plan: Any = {}
    iteration: str | None = None
    copies: bool | None = None
    locate: str | None = None
    rescan: str | None = None
    writers: str | None = None
    repeat: str | None = None
    primitives: str | None = None
    order_policy: str | None = None
    depth_policy: str | None = None
    intermediates: str | None = None
    drop_zeros: NameList | None = None
    resident: NameList | None = None

    @model_validator(mode="before")
    @classmethod
    def _policy(cls, content: Any) -> Any:
        """Read `order: auto` as `order_policy: auto`, `depth: auto` as `depth_policy: auto`, and the other policies in the same way."""
        if not isinstance(content, dict):
            return content
        for section, policies in (("order", POLICIES), ("depth", DEPTH_POLICIES)):
            if content.get(section) in policies and f"{section}_policy" not in content:
                content = {key: value for key, value in content.items() if key != section} | {
                    f"{section}_policy": content[section]
                }
        return content


@dataclass(frozen=True, slots=True)
class ScheduleDocument:
    """The sections of a schedule, with the text that they are from. The schedule is the entry `base` of that text, or the whole text if
    `base` is empty.
    """

    sections: Sections
    text: YamlText
    base: KeyPath = ()

    @contextmanager
    def blame(self, *path: str) -> Iterator[None]:
        """Give errors that are raised inside of the context the place of the entry `path`."""
        try:
            yield
        except FuseFlowError as error:
            error.span = error.span or self.place(*path)
            raise

    def place(self, *path: int | str) -> Span:
        """Return the place of the entry `path`, as deep as the path can be followed."""
        return self.text.place(*self.base, *path)


def read_schedule(text: str, file: str) -> ScheduleDocument:
    """Return the sections of a schedule text. Raises `ScheduleError` with the line and column of a mistake."""
    parsed = read_yaml(text, file, ScheduleError)
    return read_document({} if parsed.content is None else parsed.content, parsed)


def read_document(content: Any, text: YamlText, base: KeyPath = ()) -> ScheduleDocument:
    """Return the sections that the entry `base` of a text has as its content. Raises `ScheduleError` with the place of a mistake."""
    try:
        return ScheduleDocument(Sections.model_validate(content), text, base)
    except ValidationError as error:
        raise text.explain(error, Sections.model_fields, "a schedule file", ScheduleError, base) from error
