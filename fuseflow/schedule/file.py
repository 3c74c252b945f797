"""A schedule as YAML: the sections of the file, and where in the file each of them stands."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError, model_validator

from fuseflow.errors import FuseFlowError, ScheduleError, Span
from fuseflow.schedule.entries import CHOICES
from fuseflow.yaml_text import KeyPath, YamlText, read_yaml


def _listed(value: Any) -> Any:
    """`i, k, j` and `i` are lists too."""
    return [word.strip() for word in value.split(",")] if isinstance(value, str) else value


POLICIES = list(CHOICES["order_policy"])
Words = Annotated[list[str], BeforeValidator(_listed)]


class Sections(BaseModel):
    """What a schedule file may hold; each section is what `Schedule` calls it."""

    model_config = ConfigDict(extra="forbid", strict=True)

    fuse: Words | None = None
    regions: dict[str, Words] = {}
    order: dict[str, Words] = {}
    format: dict[str, str] = {}
    block: dict[str, list[int]] = {}
    vector: int | None = None
    par: dict[str, int] = {}
    iteration: str | None = None
    copies: bool | None = None
    locate: str | None = None
    repeat: str | None = None
    order_policy: str | None = None
    intermediates: str | None = None
    drop_zeros: Words | None = None

    @model_validator(mode="before")
    @classmethod
    def _policy(cls, content: Any) -> Any:
        """`order: auto` is `order_policy: auto`; so are the others."""
        if isinstance(content, dict) and content.get("order") in POLICIES and "order_policy" not in content:
            return {key: value for key, value in content.items() if key != "order"} | {"order_policy": content["order"]}
        return content


@dataclass(frozen=True, slots=True)
class Document:
    """The sections of a schedule, with the text that says where they are: the entry `above` of it."""

    sections: Sections
    text: YamlText
    above: KeyPath = ()

    @contextmanager
    def blame(self, *path: str) -> Iterator[None]:
        """Give errors raised inside the place of the entry `path`."""
        try:
            yield
        except FuseFlowError as error:
            error.span = error.span or self.place(*path)
            raise

    def place(self, *path: int | str) -> Span:
        """Where the entry `path` stands, as deep as the path can be followed."""
        return self.text.place(*self.above, *path)


def read(text: str, file: str) -> Document:
    """The sections of a schedule text; raises `ScheduleError` with the line and column of what is wrong."""
    parsed = read_yaml(text, file, ScheduleError)
    return document({} if parsed.content is None else parsed.content, parsed)


def document(content: Any, text: YamlText, above: KeyPath = ()) -> Document:
    """The sections that the entry `above` of a text has as its content."""
    try:
        return Document(Sections.model_validate(content), text, above)
    except ValidationError as error:
        raise text.explain(error, Sections.model_fields, "a schedule file", ScheduleError, above) from error
