"""A schedule as YAML: the sections of the file, and where in the file each of them stands."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, SequenceNode

from fuseflow.errors import FuseFlowError, ScheduleError, Span, did_you_mean


def _listed(value: Any) -> Any:
    """`i, k, j` and `i` are lists too."""
    return [word.strip() for word in value.split(",")] if isinstance(value, str) else value


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


@dataclass(frozen=True, slots=True)
class Document:
    """The sections of a schedule text, with the parse tree that says where they are."""

    sections: Sections
    file: str
    root: Node | None

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
        return _place(self.root, path, self.file)


def read(text: str, file: str) -> Document:
    """The sections of a schedule text; raises `ScheduleError` with the line and column of what is wrong."""
    try:
        root = _yaml().compose(io.StringIO(text))
        content = _yaml().load(io.StringIO(text))
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        span = Span(file, mark.line + 1, mark.column + 1) if mark else Span(file, 1)
        raise ScheduleError(f"not YAML: {error.problem or error.context}", span=span) from error
    except YAMLError as error:  # characters that no YAML text may hold
        raise ScheduleError(f"not YAML: {error}", span=Span(file, 1)) from error
    try:
        return Document(Sections.model_validate({} if content is None else content), file, root)
    except ValidationError as error:
        raise _explain(error, root, file) from error


def write(sections: Mapping[str, Any]) -> str:
    """YAML of the sections, in their order, leaf lists on one line."""
    out = io.StringIO()
    _yaml().dump(dict(sections), out)
    return out.getvalue()


def _yaml() -> YAML:
    yaml = YAML(typ="safe", pure=True)
    yaml.default_flow_style = None
    yaml.sort_base_mapping_type_on_output = False  # type: ignore[assignment]
    yaml.width = 10_000
    yaml.allow_unicode = True
    return yaml


def _explain(error: ValidationError, root: Node | None, file: str) -> ScheduleError:
    """The first complaint, in the words of the file."""
    first = error.errors(include_url=False)[0]
    path = tuple(step for step in first["loc"] if step != "[key]")  # of a key that is no string
    key = ".".join(map(str, path))
    span = _place(root, path, file)
    if first["type"] == "extra_forbidden":
        return ScheduleError(f"unknown key `{key}`", hint=did_you_mean(str(path[-1]), Sections.model_fields), span=span)
    if not path:
        return ScheduleError("a schedule file is a mapping", hint=f"keys: {', '.join(Sections.model_fields)}", span=span)
    given = first["input"]
    return ScheduleError(f"`{key}`: {first['msg'][0].lower()}{first['msg'][1:]}, not `{given}`", span=span)


def _place(node: Node | None, path: tuple[int | str, ...], file: str) -> Span:
    """The place of the entry that `path` leads to, as deep as the path can be followed: of its key in a mapping."""
    mark = node.start_mark if node is not None else None
    for step in path:
        if isinstance(node, MappingNode):
            pairs = [(key, value) for key, value in node.value if key.value == str(step)]
        elif isinstance(node, SequenceNode) and isinstance(step, int):
            pairs = [(element, element) for element in node.value[step : step + 1]]
        else:
            break
        if not pairs:
            break
        key, node = pairs[0]
        mark = key.start_mark
    return Span(file, mark.line + 1, mark.column + 1) if mark else Span(file, 1)
