"""YAML texts of a user: their content, and the place of each entry in the text, so that an error can name it."""

from __future__ import annotations

import io
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import resources
from typing import Any

from pydantic import ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from ruamel.yaml.representer import SafeRepresenter
from ruamel.yaml.scanner import Scanner, ScannerError

from fuseflow.errors import FileError, FuseFlowError, Span, did_you_mean

KeyPath = tuple[int | str, ...]
"""The keys and list positions that lead from the top of a YAML text to an entry."""


@dataclass(frozen=True, slots=True)
class YamlText:
    """The content of a YAML text, with the parse tree that tells where each entry stands."""

    content: Any
    file: str
    root: Node | None

    def place(self, *path: int | str) -> Span:
        """Return the place of an entry, which is the place of its key if it stands in a mapping. Where the path leads to nothing,
        this is the place of the last entry on it."""
        node = last = self.root
        for step in path:
            if isinstance(node, MappingNode):
                pairs = [(key, value) for key, value in node.value if key.value == str(step)]
            elif isinstance(node, SequenceNode) and isinstance(step, int):
                pairs = [(element, element) for element in node.value[step : step + 1]]
            else:
                break
            if not pairs:
                break
            last, node = pairs[0]
        return _span(last, self.file)

    @contextmanager
    def blame(self, *path: int | str) -> Iterator[None]:
        """Give an error that is raised inside the block the place of an entry, if it has none."""
        try:
            yield
        except FuseFlowError as error:
            error.span = error.span or self.place(*path)
            raise

    def explain(
        self, error: ValidationError, keys: Collection[str], entry: str, error_class: type[FuseFlowError], above: KeyPath = ()
    ) -> FuseFlowError:
        """Return the first problem that pydantic found in the entry at `above`, as an error that names keys and places of the
        file.

        `entry` is the kind of the entry, and `keys` are the keys that it may have.
        """
        errors = error.errors(include_url=False)
        unknown = [each for each in errors if each["type"] == "extra_forbidden"]
        first = unknown[0] if unknown and errors[0]["type"] == "missing" else errors[0]  # a wrong name is what is missing
        path = tuple(step for step in first["loc"] if step != "[key]")  # pydantic adds this step for a key that is not a string
        key = ".".join(map(str, path))
        span = self.place(*above, *path)
        if first["type"] == "extra_forbidden":
            return error_class(f"unknown key `{key}`", hint=did_you_mean(str(path[-1]), keys), span=span)
        if first["type"] == "missing":
            return error_class(f"{entry} needs the key `{key}`", span=span)
        if not path:
            return error_class(f"{entry} is a mapping", hint=f"keys: {', '.join(keys)}", span=span)
        wrong = "must be a mapping, as `{name: value}`" if first["type"] == "dict_type" else first["msg"]
        return error_class(f"`{key}`: {wrong[0].lower()}{wrong[1:]}, not `{shortened(str(first['input']))}`", span=span)


_MOST_CHARACTERS = 16 << 20
_MOST_VALUES = 1_000_000
"""The most values of a text. A few lines with references to each other can mean billions, which would take hours to read."""
READABLE = 90
"""The letters of a line of YAML that is read and not only parsed."""
_DEEPEST = 100
"""The greatest depth to which values may be nested."""
_NO_VALUE = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""The errors of the parser for a scalar that has no value, such as a date in a 13th month."""
_LARGEST = 1 << 63
"""Whole numbers from here on are refused: they count nothing, and code that computes with 64 bits does not take them."""


def read_yaml(text: str, file: str, error_class: type[FuseFlowError]) -> YamlText:
    """Parse a YAML text. Raise an `error_class` with the line and the column where it is not YAML, and for a text that is too long, nested
    too deep, or means too many values."""
    root = compose_yaml(text, file, error_class)
    try:
        with _parser_errors(file, error_class):
            content = _yaml().load(io.StringIO(text))
    except _NO_VALUE as error:  # from the parser, which gives no place
        place = _unreadable(root)
        name = f"`{shortened(place.value)}` cannot be read: " if place else ""
        reason = "it has too many digits" if "digits" in str(error) else error
        raise error_class(f"not YAML: {name}{reason}", span=_span(place, file)) from error
    _refuse_large(content, root, file, error_class)
    return YamlText(content, file, root)


def compose_yaml(text: str, file: str, error_class: type[FuseFlowError]) -> Node | None:
    """Return the parse tree of a YAML text, None without a value. The bounds and errors are those of `read_yaml`."""
    if len(text) > _MOST_CHARACTERS:
        raise error_class(f"the text has more than {_MOST_CHARACTERS:,} characters", span=Span(file, 1))
    try:
        with _parser_errors(file, error_class):
            root: Node | None = _yaml().compose(io.StringIO(text))
            size = _extent(root, file, error_class)
    except _NO_VALUE as error:
        raise error_class(f"not YAML: {error}", span=Span(file, 1)) from error
    if size > _MOST_VALUES:
        message = f"its references to other places make more than {_MOST_VALUES:,} values of the text"
        raise error_class(message, hint="write them out", span=Span(file, 1))
    return root


@contextmanager
def _parser_errors(file: str, error_class: type[FuseFlowError]) -> Iterator[None]:
    """Turn what the parser raises inside the block into an `error_class` with the place that the parser gives."""
    try:
        yield
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        span = Span(file, mark.line + 1, mark.column + 1) if mark else Span(file, 1)
        raise error_class(f"not YAML: {error.problem or error.context}", span=span) from error
    except YAMLError as error:  # characters that no YAML text may hold
        raise error_class(f"not YAML: {error}", span=Span(file, 1)) from error
    except RecursionError as error:
        raise error_class("not YAML that can be read: it is nested too deep", span=Span(file, 1)) from error


def _extent(root: Node | None, file: str, error_class: type[FuseFlowError]) -> int:
    """Return the size of a text in values, if each reference is replaced by the values that it refers to. Raise the error for a
    value that is part of itself, or nested too deep."""
    sizes, above = dict[int, int](), set[int]()

    def size(node: Node | None, depth: int) -> int:
        if not isinstance(node, MappingNode | SequenceNode):
            return 1
        if id(node) in above:
            raise error_class("a value refers to itself", span=_span(node, file))
        if depth > _DEEPEST:
            raise error_class("not YAML that can be read: it is nested too deep", span=_span(node, file))
        if id(node) not in sizes:
            above.add(id(node))
            sizes[id(node)] = 1 + sum(size(part, depth + 1) for part in _parts(node))
            above.remove(id(node))
        return sizes[id(node)]

    return size(root, 0)


def _refuse_large(content: Any, root: Node | None, file: str, error_class: type[FuseFlowError]) -> None:
    """Raise the error for a whole number of more than 64 bits."""
    left, known = [content], set[int]()
    while left:
        value = left.pop()
        if isinstance(value, int) and abs(value) >= _LARGEST:
            place = next((n for n in _scalars(root) if abs(_whole_number(n)) >= _LARGEST), None)
            digits = shortened(place.value) if place else "a number"
            raise error_class(f"`{digits}` is a whole number of more than 64 bits", span=_span(place, file))
        if isinstance(value, dict | list | tuple | set) and id(value) not in known:
            known.add(id(value))
            left += [*value.keys(), *value.values()] if isinstance(value, dict) else value


def _whole_number(node: ScalarNode) -> int:
    try:
        value = _yaml().constructor.construct_object(node)
    except (*_NO_VALUE, YAMLError):  # such as `<<`, whose value is the mapping around it
        return 0
    return value if isinstance(value, int) else 0


def _unreadable(root: Node | None) -> ScalarNode | None:
    """Return the first scalar below a node that has no value, such as a date in a 13th month, or None if all have one."""
    for node in _scalars(root):
        try:
            _yaml().constructor.construct_object(node)
        except (*_NO_VALUE, YAMLError):
            return node
    return None


def _scalars(root: Node | None) -> Iterator[ScalarNode]:
    """Yield the scalars below a node, in the order of the text."""
    nodes, known = [root], set[int]()
    while nodes:
        node = nodes.pop()
        if isinstance(node, ScalarNode):
            yield node
        elif isinstance(node, MappingNode | SequenceNode) and id(node) not in known:
            known.add(id(node))
            nodes += reversed(_parts(node))


def _parts(node: MappingNode | SequenceNode) -> list[Node]:
    return [n for pair in node.value for n in pair] if isinstance(node, MappingNode) else node.value


def _span(node: Node | None, file: str) -> Span:
    return Span(file, node.start_mark.line + 1, node.start_mark.column + 1) if node is not None else Span(file, 1)


def shipped_names(package: str, folder: str) -> tuple[str, ...]:
    """Return the names of the YAML files in a folder of a package, sorted and without the suffix."""
    files = resources.files(package).joinpath(folder).iterdir()
    return tuple(sorted(file.name.removesuffix(".yaml") for file in files if file.name.endswith(".yaml")))


def shipped_text(package: str, folder: str, name: str) -> str:
    """Return the text of a YAML file in a folder of a package, by its name without the suffix."""
    return resources.files(package).joinpath(folder, f"{name}.yaml").read_text(encoding="utf-8")


def shortened(text: str) -> str:
    """Return a text as a message may quote it.

    >>> shortened("9" * 100)
    '9999999999999999999999999999999999999999...'
    """
    return text if len(text) <= 43 else f"{text[:40]}..."


def write_yaml(sections: Mapping[str, Any]) -> str:
    """Return the sections as YAML, in their order. A list or mapping of scalars is written on one line."""
    out = io.StringIO()
    _yaml().dump(dict(sections), out)
    return out.getvalue()


def block_yaml(text: str) -> str:
    """Return YAML with lists and mappings item by item where a line would be longer than `READABLE` letters. What is no YAML stays as it
    is.

    >>> block_yaml("fuse: [full]"), block_yaml("fuse: [" + ", ".join(["layer"] * 20) + "]").count("\\n- layer")
    ('fuse: [full]', 20)
    """
    if all(len(line) <= READABLE for line in text.splitlines()):
        return text
    try:
        content = read_yaml(text, "YAML", FileError).content
    except FileError:
        return text
    yaml, out = _yaml(), io.StringIO()
    yaml.default_flow_style = False
    yaml.dump(content, out)
    return out.getvalue()


class _Representer(SafeRepresenter):
    """Writes texts with U+0085 in double quotes: in others it is a line break, which is read as a space."""

    def represent_str(self, data: str) -> ScalarNode:
        style = '"' if "\x85" in data else None
        node: ScalarNode = self.represent_scalar("tag:yaml.org,2002:str", data, style=style)
        return node


_Representer.add_representer(str, _Representer.represent_str)


class _Scanner(Scanner):
    """A scanner that stops where values are nested too deep: it looks at all open brackets at every token."""

    def fetch_flow_collection_start(self, *arguments: Any, **options: Any) -> None:
        self._require_shallow(len(self.flow_context))
        super().fetch_flow_collection_start(*arguments, **options)

    def add_indent(self, column: int) -> bool:
        self._require_shallow(len(self.indents))
        added: bool = super().add_indent(column)
        return added

    def _require_shallow(self, depth: int) -> None:
        if depth > _DEEPEST:
            raise ScannerError(None, None, "it is nested too deep", self.reader.get_mark())


def _yaml() -> YAML:
    yaml = YAML(typ="safe", pure=True)
    yaml.Scanner = _Scanner
    yaml.Representer = _Representer
    yaml.default_flow_style = None
    yaml.sort_base_mapping_type_on_output = False  # type: ignore[assignment]
    yaml.width = 10_000
    yaml.allow_unicode = True
    return yaml
