"""YAML texts of a user: their content, and the place of each entry in the text, so that an error can name it."""

from __future__ import annotations

import io
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from ruamel.yaml.representer import SafeRepresenter

from fuseflow.errors import FuseFlowError, Span, did_you_mean

KeyPath = tuple[int | str, ...]
"""The keys and list positions that lead from the top of a YAML text to an entry."""


@dataclass(frozen=True, slots=True)
class YamlText:
    """The content of a YAML text, with the parse tree that tells where each entry stands."""

    content: Any
    file: str
    root: Node | None

    def place(self, *path: int | str) -> Span:
        """Return the place of an entry, which is the place of its key if it stands in a mapping. Where the path leads to nothing, the
        place is that of the last entry on it."""
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
        self, error: ValidationError, keys: Collection[str], entry: str, error_class: type[FuseFlowError], above: KeyPath = ()
    ) -> FuseFlowError:
        """Return the first problem that pydantic found in the entry at `above`, as an error in the words of the file.

        `entry` says what the entry is, and `keys` are the keys that it may have.
        """
        first = error.errors(include_url=False)[0]
        path = tuple(step for step in first["loc"] if step != "[key]")  # pydantic adds this step for a key that is not a string
        key = ".".join(map(str, path))
        span = self.place(*above, *path)
        if first["type"] == "extra_forbidden":
            return error_class(f"unknown key `{key}`", hint=did_you_mean(str(path[-1]), keys), span=span)
        if first["type"] == "missing":
            return error_class(f"{entry} needs the key `{key}`", span=span)
        if not path:
            return error_class(f"{entry} is a mapping", hint=f"keys: {', '.join(keys)}", span=span)
        return error_class(f"`{key}`: {first['msg'][0].lower()}{first['msg'][1:]}, not `{first['input']}`", span=span)


_MOST = 1_000_000
"""The most values of a text. A few lines with references to each other can mean billions, which would take hours to read."""


def read_yaml(text: str, file: str, error_class: type[FuseFlowError]) -> YamlText:
    """Parse a YAML text. Raise an `error_class` with the line and the column where it is not YAML."""
    root = None
    try:
        root = _yaml().compose(io.StringIO(text))
        if _size(root, {}) > _MOST:
            raise error_class(
                f"its references to other places make more than {_MOST:,} values of the text",
                hint="write them out",
                span=Span(file, 1),
            )
        return YamlText(_yaml().load(io.StringIO(text)), file, root)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        span = Span(file, mark.line + 1, mark.column + 1) if mark else Span(file, 1)
        raise error_class(f"not YAML: {error.problem or error.context}", span=span) from error
    except YAMLError as error:  # characters that no YAML text may hold
        raise error_class(f"not YAML: {error}", span=Span(file, 1)) from error
    except RecursionError as error:
        raise error_class("not YAML that can be read: it is nested too deep", span=Span(file, 1)) from error
    except (
        ArithmeticError,
        AttributeError,
        LookupError,
        TypeError,
        ValueError,
    ) as error:  # from the parser, which gives no place
        place = _unreadable(root)
        span = Span(file, place.start_mark.line + 1, place.start_mark.column + 1) if place else Span(file, 1)
        name = f"`{place.value[:40]}` cannot be read: " if place else ""
        raise error_class(f"not YAML: {name}{error}", span=span) from error


def _size(node: Node | None, sizes: dict[int, int]) -> int:
    """Return how many values a text has if what it refers to is written out at each place."""
    if not isinstance(node, MappingNode | SequenceNode):
        return 1
    if id(node) not in sizes:
        sizes[id(node)] = 1  # for a value that refers to itself
        parts = [n for pair in node.value for n in pair] if isinstance(node, MappingNode) else node.value
        sizes[id(node)] = 1 + sum(_size(part, sizes) for part in parts)
    return sizes[id(node)]


def _unreadable(root: Node | None) -> ScalarNode | None:
    """Return the first scalar below a node that has no value, such as a date in a 13th month."""
    nodes, seen = [root], set[int]()
    while nodes:
        node = nodes.pop()
        if isinstance(node, ScalarNode):
            try:
                _yaml().constructor.construct_object(node)
            except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
                return node
        elif isinstance(node, MappingNode | SequenceNode) and id(node) not in seen:
            seen.add(id(node))
            nodes += reversed([n for pair in node.value for n in pair] if isinstance(node, MappingNode) else node.value)
    return None


def write_yaml(sections: Mapping[str, Any]) -> str:
    """Return the sections as YAML, in their order. A list or mapping of scalars is written on one line."""
    out = io.StringIO()
    _yaml().dump(dict(sections), out)
    return out.getvalue()


class _Representer(SafeRepresenter):
    """Writes texts with U+0085 in double quotes: in others it is a line break, which is read as a space."""

    def represent_str(self, data: str) -> ScalarNode:
        style = '"' if "\x85" in data else None
        node: ScalarNode = self.represent_scalar("tag:yaml.org,2002:str", data, style=style)
        return node


_Representer.add_representer(str, _Representer.represent_str)


def _yaml() -> YAML:
    yaml = YAML(typ="safe", pure=True)
    yaml.Representer = _Representer
    yaml.default_flow_style = None
    yaml.sort_base_mapping_type_on_output = False  # type: ignore[assignment]
    yaml.width = 10_000
    yaml.allow_unicode = True
    return yaml
