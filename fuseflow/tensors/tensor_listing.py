"""The YAML file that says where tensors are: an entry for each, which names a file and how it is stored.

B: {path: b.npz, order: [i, k], levels: [compressed, compressed]}
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from fuseflow.errors import FileError, FuseFlowError, Span, did_you_mean
from fuseflow.filesystem import read_text
from fuseflow.tensors.array_files import Declaration, load_array, pack_declared
from fuseflow.tensors.tensor import Tensor


@dataclass(frozen=True, slots=True)
class TensorEntry:
    """One tensor: the file or folder that holds it, and where the YAML file says so.

    `lists` are the keys that were given of `order` (the indices in the order in which their levels are stored), `levels` (the level
    formats, outermost first), `indices` (the indices in the order of the file's dimensions) and `block` (rows and columns of a tile).
    """

    name: str
    path: Path
    span: Span
    lists: dict[str, tuple[str, ...]] = field(default_factory=dict)

    @contextmanager
    def blamed(self) -> Iterator[None]:
        """Errors of the block are about this entry: they name the tensor and the place in the YAML file."""
        try:
            yield
        except FuseFlowError as error:
            raise FileError(f"tensor `{self.name}`: {error.message}", hint=error.hint, span=self.span) from error


def load_tensors(path: str | Path, inputs: Iterable[Declaration]) -> dict[str, Tensor]:
    """The inputs of a program, packed as declared (`dense` without a format), from a YAML file:

        A: {path: adjacency.mtx}
        x: {path: features.npy}

    Paths are relative to the YAML file. Raises `FileError` for entries that are unknown, missing or do not fit.
    """
    declared = {d.name: d for d in inputs}
    tensors = {}
    for entry in read_entries(path, declared, "the program"):
        with entry.blamed():
            tensors[entry.name] = pack_declared(load_array(entry.path), declared[entry.name])
    return tensors


def read_entries(path: str | Path, known: Collection[str], owner: str, lists: Sequence[str] = ()) -> list[TensorEntry]:
    """The entries of a YAML file, one for each of the tensors `known`, in their order. `owner` has these inputs; `lists` are the keys
    that its entries may have beside `path`. Raises `FileError` with the place of what is wrong."""
    path = Path(path)
    entries: dict[str, TensorEntry] = {}
    for name, value, span in _pairs(_composed(path), path, "a list of tensors, as in `A: {path: a.npz}`"):
        if name not in known:
            raise FileError(f"{owner} has no input `{name}`", hint=did_you_mean(name, known), span=span)
        if name in entries:
            raise FileError(f"tensor `{name}` has two entries", span=span)
        entries[name] = _entry(name, value, span, path, lists)
    missing = [name for name in known if name not in entries]
    if missing:
        names = ", ".join(f"`{name}`" for name in missing)
        raise FileError(f"`{path}` has no entry for {names}", hint=f"add `{missing[0]}: {{path: FILE}}`")
    return [entries[name] for name in known]


def _composed(path: Path) -> Node | None:
    text = read_text(path)
    try:
        return YAML(typ="safe", pure=True).compose(text)  # type: ignore[no-any-return]
    except YAMLError as error:
        mark = error.problem_mark if isinstance(error, MarkedYAMLError) else None
        span = Span(str(path), mark.line + 1, mark.column + 1) if mark else None
        problem = error.problem if isinstance(error, MarkedYAMLError) else error
        raise FileError(f"not YAML: {problem}", span=span) from error


def _entry(name: str, node: Node, place: Span, path: Path, lists: Sequence[str]) -> TensorEntry:
    file = ""
    found: dict[str, tuple[str, ...]] = {}
    for key, value, span in _pairs(node, path, f"`{name}: {{path: FILE}}`"):
        if key not in ("path", *lists):
            raise FileError(f"unknown key `{name}.{key}`", hint=did_you_mean(key, ["path", *lists]), span=span)
        if key in found or (key == "path" and file):
            raise FileError(f"`{name}.{key}` is given twice", span=span)
        if key != "path":
            found[key] = _words(f"{name}.{key}", value, span)
        elif not isinstance(value, ScalarNode) or not value.value:
            raise FileError(f"`{name}.path` is not a file name", span=span)
        else:
            file = value.value
    if not file:
        raise FileError(f"tensor `{name}` has no `path`", hint=f"write `{name}: {{path: FILE}}`", span=_span(node, path))
    return TensorEntry(name, path.parent / file, place, found)


def _words(key: str, node: Node, span: Span) -> tuple[str, ...]:
    items = node.value if isinstance(node, SequenceNode) else [node]
    if not isinstance(node, SequenceNode) or not all(isinstance(item, ScalarNode) and item.value for item in items):
        raise FileError(f"`{key}` is not a list of names", hint="as in `order: [i, k], levels: [dense, compressed]`", span=span)
    return tuple(item.value for item in items)


def _pairs(node: Node | None, path: Path, expected: str) -> Iterator[tuple[str, Node, Span]]:
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
