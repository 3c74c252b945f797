"""YAML files that list tensors. Each entry names the file of a tensor and may say how the tensor is stored:

B: {path: b.npz, order: [i, k], levels: [compressed, compressed]}
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from fuseflow.errors import FileError, FuseFlowError, Span, did_you_mean
from fuseflow.filesystem import read_text
from fuseflow.tensors.array_files import Declaration, load_array, pack_declared
from fuseflow.tensors.tensor import Tensor
from fuseflow.yaml_text import compose_yaml


@dataclass(frozen=True, slots=True)
class TensorEntry:
    """The entry of one tensor: the file or folder that holds it, and the place of the entry in the YAML file.

    `lists` holds the keys of the following ones that the entry has. `order` is a list of indices in the order in which their
    levels are stored. `levels` is a list of level formats, outermost first. `indices` is a list of indices in the order of the
    dimensions in the file. `block` is a list of the rows and columns of a tile.
    """

    name: str
    path: Path
    span: Span
    lists: dict[str, tuple[str, ...]] = field(default_factory=dict)

    @contextmanager
    def named_in_errors(self) -> Iterator[None]:
        """Turn errors inside the block into a `FileError` that names the tensor and the place of the entry in the YAML file."""
        try:
            yield
        except FuseFlowError as error:
            raise FileError(f"tensor `{self.name}`: {error.message}", hint=error.hint, span=self.span) from error


def load_tensors(path: str | Path, inputs: Iterable[Declaration]) -> dict[str, Tensor]:
    """Load the inputs of a program from a YAML file and pack them as declared. An input without a declared format is dense. For example:

        A: {path: adjacency.mtx}
        x: {path: features.npy}

    Paths are relative to the YAML file. Raise `FileError` for entries that are unknown, missing or do not fit their declarations.
    """
    declared = {d.name: d for d in inputs}
    tensors = {}
    for entry in read_entries(path, declared, "the program"):
        with entry.named_in_errors():
            tensors[entry.name] = pack_declared(load_array(entry.path), declared[entry.name])
    return tensors


def read_entries(path: str | Path, tensors: Collection[str], owner: str, lists: Sequence[str] = ()) -> list[TensorEntry]:
    """Read a YAML file that has one entry for each of `tensors`, and return the entries in the order of `tensors`.

    `owner` says in messages what has these inputs, such as "the program". `lists` are the keys that an entry may have beside `path`. Raise
    `FileError` with the place of an entry that is wrong.
    """
    path = Path(path)
    root = compose_yaml(read_text(path, "the list of tensors"), str(path), FileError)
    entries: dict[str, TensorEntry] = {}
    for name, value, span in _mapping_items(root, path, "a mapping from tensors to their files, as in `A: {path: a.npz}`"):
        if name not in tensors:
            raise FileError(f"{owner} has no input `{name}`", hint=did_you_mean(name, tensors), span=span)
        if name in entries:
            raise FileError(f"tensor `{name}` has two entries", span=span)
        entries[name] = _entry(name, value, span, path, lists)
    missing = [name for name in tensors if name not in entries]
    if missing:
        names = ", ".join(f"`{name}`" for name in missing)
        raise FileError(f"`{path}` has no entry for {names}", hint=f"add `{missing[0]}: {{path: FILE}}`")
    return [entries[name] for name in tensors]


def _entry(name: str, node: Node, place: Span, path: Path, lists: Sequence[str]) -> TensorEntry:
    file = ""
    lists_by_key: dict[str, tuple[str, ...]] = {}
    for key, value, span in _mapping_items(node, path, f"`{name}: {{path: FILE}}`"):
        if key not in ("path", *lists):
            raise FileError(f"unknown key `{name}.{key}`", hint=did_you_mean(key, ["path", *lists]), span=span)
        if key in lists_by_key or (key == "path" and file):
            raise FileError(f"`{name}.{key}` is given twice", span=span)
        if key != "path":
            lists_by_key[key] = _words(f"{name}.{key}", value, span)
        elif not isinstance(value, ScalarNode) or not value.value or "\0" in value.value or _is_null(value):
            hint = "a file of that name is written in quotes: `path: 'null'`" if _is_null(value) else ""
            raise FileError(f"`{name}.path` is not a file name", hint=hint, span=span)
        else:
            file = value.value
    if not file:
        raise FileError(f"tensor `{name}` has no `path`", hint=f"write `{name}: {{path: FILE}}`", span=_span(node, path))
    return TensorEntry(name, path.parent / file, place, lists_by_key)


def _is_null(node: Node) -> bool:
    return isinstance(node, ScalarNode) and node.tag == "tag:yaml.org,2002:null"


def _words(key: str, node: Node, span: Span) -> tuple[str, ...]:
    items = node.value if isinstance(node, SequenceNode) else [node]
    if not isinstance(node, SequenceNode) or not all(isinstance(item, ScalarNode) and item.value for item in items):
        raise FileError(f"`{key}` is not a list of names", hint="as in `order: [i, k], levels: [dense, compressed]`", span=span)
    return tuple(item.value for item in items)


def _mapping_items(node: Node | None, path: Path, expected: str) -> Iterator[tuple[str, Node, Span]]:
    if node is None:
        return
    if not isinstance(node, MappingNode):
        raise FileError(f"expected {expected}", span=_span(node, path))
    for key, value in node.value:
        if not isinstance(key, ScalarNode):
            raise FileError(f"expected {expected}", span=_span(key, path))
        yield key.value, value, _span(key, path)


def _span(node: Node, path: Path) -> Span:
    return Span(str(path), node.start_mark.line + 1, node.start_mark.column + 1)
