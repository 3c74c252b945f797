"""YAML that a user wrote: its content, and where in the text each entry stands, so that an error can name the place."""

from __future__ import annotations

import io
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, SequenceNode

from fuseflow.errors import FuseFlowError, Span, did_you_mean

KeyPath = tuple[int | str, ...]
"""The keys and positions that lead to an entry."""


@dataclass(frozen=True, slots=True)
class YamlText:
    """The content of a text, with the parse tree that says where it is."""

    content: Any
    file: str
    root: Node | None

    def place(self, *path: int | str) -> Span:
        """Where an entry stands, as deep as the path to it can be followed: that of its key in a mapping."""
        node = self.root
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
        return Span(self.file, mark.line + 1, mark.column + 1) if mark else Span(self.file, 1)

    def explain(
        self, error: ValidationError, keys: Collection[str], what: str, raised: type[FuseFlowError], above: KeyPath = ()
    ) -> FuseFlowError:
        """The first complaint about the entry `above`, which is `what` and may have `keys`, in the words of the file."""
        first = error.errors(include_url=False)[0]
        path = tuple(step for step in first["loc"] if step != "[key]")  # of a key that is no string
        key = ".".join(map(str, path))
        span = self.place(*above, *path)
        if first["type"] == "extra_forbidden":
            return raised(f"unknown key `{key}`", hint=did_you_mean(str(path[-1]), keys), span=span)
        if first["type"] == "missing":
            return raised(f"{what} needs the key `{key}`", span=span)
        if not path:
            return raised(f"{what} is a mapping", hint=f"keys: {', '.join(keys)}", span=span)
        return raised(f"`{key}`: {first['msg'][0].lower()}{first['msg'][1:]}, not `{first['input']}`", span=span)


def read_yaml(text: str, file: str, raised: type[FuseFlowError]) -> YamlText:
    """Parse a text; raises `raised` with the line and column of what is no YAML."""
    try:
        root = _yaml().compose(io.StringIO(text))
        return YamlText(_yaml().load(io.StringIO(text)), file, root)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        span = Span(file, mark.line + 1, mark.column + 1) if mark else Span(file, 1)
        raise raised(f"not YAML: {error.problem or error.context}", span=span) from error
    except YAMLError as error:  # characters that no YAML text may hold
        raise raised(f"not YAML: {error}", span=Span(file, 1)) from error


def write_yaml(sections: Mapping[str, Any]) -> str:
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
