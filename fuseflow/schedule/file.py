"""A schedule as YAML: the sections of the file, and the location of each of them in the file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError, create_model, model_validator

from fuseflow.errors import ScheduleError, Span
from fuseflow.schedule.section import Named, Section
from fuseflow.schedule.sections import SECTIONS
from fuseflow.yaml_text import KeyPath, YamlText, read_yaml


def _listed(value: Any) -> Any:
    """Return a text as a list of words: a file may write a list as `i, k, j` or as `i`."""
    return [word.strip() for word in value.split(",")] if isinstance(value, str) else value


def _annotation(section: Section) -> tuple[Any, Any]:
    """Return the type of a section in a file, where a list of names may be one text with commas, and its default."""
    of = Annotated[list[str], BeforeValidator(_listed)] if section.of == list[str] else section.of
    return (dict[str, of], {}) if isinstance(section, Named) else (of | None, None)  # type: ignore[valid-type]


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    @model_validator(mode="before")
    @classmethod
    def _policy(cls, content: Any) -> Any:
        """Read `order: auto` as `order_policy: auto`, `depth: auto` as `depth_policy: auto`, and the other policies in the same way."""
        for section in SECTIONS if isinstance(content, dict) else ():
            policy = section.policy if isinstance(section, Named) else None
            said = content.get(section.key)
            if policy is not None and isinstance(said, str) and said in policy.words and policy.key not in content:
                content = {key: value for key, value in content.items() if key != section.key} | {policy.key: said}
        return content


Sections: type[BaseModel] = create_model("Sections", __base__=_File, **{s.key: _annotation(s) for s in SECTIONS})  # type: ignore[call-overload]
"""The sections that a schedule file may hold, by their keys."""


@dataclass(frozen=True, slots=True)
class ScheduleDocument:
    """The sections of a schedule, with the text that they were read from. The schedule is the entry `base` of that text, or the
    whole text if `base` is empty."""

    sections: BaseModel
    text: YamlText
    base: KeyPath = ()

    def place(self, *path: int | str) -> Span:
        """Return the location of the entry `path`, or of the innermost entry on it that exists."""
        return self.text.place(*self.base, *path)


def read_schedule(text: str, file: str) -> ScheduleDocument:
    """Return the sections of a schedule text. Raises `ScheduleError` with the line and column of a mistake."""
    parsed = read_yaml(text, file, ScheduleError)
    return read_document({} if parsed.content is None else parsed.content, parsed)


def read_document(content: Any, text: YamlText, base: KeyPath = ()) -> ScheduleDocument:
    """Return the sections in the entry `base` of a text. Raises `ScheduleError` with the location of a mistake."""
    try:
        return ScheduleDocument(Sections.model_validate(content), text, base)
    except ValidationError as error:
        raise text.explain(error, Sections.model_fields, "a schedule file", ScheduleError, base) from error
