"""Points of a sweep: all that decides the numbers of a point, as plain values, and a key that is made of them.

Among the values is a digest of the files that a point reads, which does not depend on their folders.
"""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from fuseflow.errors import DataError, FileError
from fuseflow.filesystem import read_bytes, read_text
from fuseflow.frontend.data import FILE_READERS, locate_files
from fuseflow.frontend.datasets.spec_options import names_file, split_spec, without_folder
from fuseflow.frontend.factory import Factory
from fuseflow.package_digest import package_digest, package_version
from fuseflow.yaml_text import read_yaml

Mode = Literal["estimate", "sample", "simulate"]
"""How a point is measured."""
ALL_MODES: tuple[Mode, ...] = get_args(Mode)
Scalar = str | int | float | bool | None
"""The value of an option of a model file."""


@dataclass(frozen=True, slots=True)
class Point:
    """A model with its data, a schedule and a machine.

    `content` is the digest of the files that the point reads. Their paths say where they are, and are no part of its key.
    """

    model: str
    content: str
    schedule: str
    """The schedule in canonical YAML."""
    machine: Mapping[str, Any]
    """All settings of the machine."""
    data: str | None = None
    data_dir: str | None = None
    tensors: str | None = None
    options: Mapping[str, Scalar] = field(default_factory=dict)
    seed: int = 0
    sparsity: str = ""
    """The spec that makes a PyTorch model sparse, in canonical YAML."""
    propagate: bool = False
    """Whether elements that no output needs are left out."""
    training: Mapping[str, str | bool | None] | None = None
    """The loss and the optimizer by name, and whether there are `gradients`, of a training step; None if there is the forward alone."""
    check: bool = True
    sample: str = ""
    """The sample that is taken in mode `sample`, as a user writes it."""
    array: Mapping[str, Any] | None = None
    """All settings of the array on which the regions are placed; None without one."""

    @property
    def source(self) -> str:
        """A key that points share if they share a traced model."""
        return _hashed(self._imported())

    @property
    def workload(self) -> str:
        """A key that points share if they can be compared: they have the same model, data and machine, and may differ in schedule
        and `propagate`."""
        return _hashed([self._read(), self._hardware()])

    def key(self, mode: Mode) -> str:
        """Return the key of the row of the point. It is equal for points with equal numbers, whatever files and machines are called."""
        checked = mode == "estimate" or self.check
        asked = [self.sample] if mode == "sample" else []
        return _hashed([package_version(), mode, self._imported(), self._hardware(), self.schedule, checked, *asked])

    def _read(self) -> list[Any]:
        sparse = [self.sparsity] if self.sparsity else []
        trained = [] if self.training is None else [{"training": dict(self.training)}]
        data = self.data and without_folder(self.data)
        return [self.content, data, dict(self.options), self.seed, *sparse, *trained]

    def _imported(self) -> list[Any]:
        return [*self._read(), *([{"propagate": True}] if self.propagate else [])]

    def _hardware(self) -> dict[str, Any]:
        machine, array = (
            {name: value for name, value in (of or {}).items() if name != "name"} for of in (self.machine, self.array)
        )
        return {**machine, "array": array} if array else machine


def value_name(mode: Mode, objective: str) -> str:
    """Return the name of a value in a row of this mode. Sampled cycles have a name of their own: they are no exact ones.

    >>> value_name("sample", "cycles"), value_name("simulate", "cycles")
    ('sampled_cycles', 'cycles')
    """
    return f"sampled_{objective}" if mode == "sample" and objective == "cycles" else objective


@dataclass(frozen=True, slots=True)
class Task:
    """A point to estimate or to simulate in at most `limit` seconds. None is no limit. The run of a simulation is kept for its page if
    `keep_run` says so."""

    point: Point
    mode: Mode
    limit: float | None = None
    keep_run: bool = False

    @property
    def key(self) -> str:
        """The key of the row of the task."""
        return self.point.key(self.mode)


@dataclass(frozen=True, slots=True)
class TaskOutcome:
    """The outcome of a task: its values, or why it has none.

    `reason` is the code of an error, `limit`, `memory` or `crash`; it is empty after success. `seconds` and `peak`, in bytes of memory,
    depend on the machine, and differ from run to run. `run` is a packed run in base 64, so that it can stand in JSON; it is empty if none
    was kept.
    """

    key: str
    values: Mapping[str, Any] = field(default_factory=dict)
    reason: str = ""
    error: str = ""
    seconds: float = 0.0
    peak: int = 0
    run: str = ""

    @property
    def ok(self) -> bool:
        """Whether the task has values."""
        return not self.reason

    def number(self, name: str) -> float | None:
        """Return a value that is a number, or None if there is none of this name."""
        value = self.values.get(name)
        return value if isinstance(value, int | float) else None


def _hashed(values: Any) -> str:
    text = json.dumps(values, sort_keys=True, separators=(",", ":"), allow_nan=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def code_version() -> str:
    """Return the version of fuseflow with a digest of its sources. Rows that other sources made may hold other numbers."""
    return f"{package_version()}+{package_digest()[:12]}"


def content_digest(model: Path, tensors: Path | None, data: str | None, data_dir: Path | None) -> str:
    """Return the digest of all that a model reads: its file, the modules beside it that it imports, its tensors and the files of its data.
    It is made of the names and contents of the files, without their folders.

    Raises `FileError` for a model or a list of tensors that cannot be read.
    """
    files = list(_model_files(model))
    if tensors is not None:
        files += _tensor_files(tensors)
    name = split_spec(data or "")[0]
    if names_file(name):
        files += [Path(name)] * Path(name).is_file()  # the error of a missing one is raised where it is loaded
    if data_dir is not None and name in FILE_READERS:
        files += _data_files(name, data_dir)
    total = hashlib.sha256()
    for path in files:
        total.update(f"{path.name}\0{hashlib.sha256(read_bytes(path)).hexdigest()}\n".encode())
    return total.hexdigest()


def _model_files(model: Path) -> Iterator[Path]:
    """Yield the file of a model, and the modules in its folder that it imports, directly or through other modules."""
    factory = Factory.parse(str(model))
    files = [model if factory is None else factory.file]
    for path in files:
        yield path
        if path.suffix == ".py":
            files += [file for file in _imported_files(path) if file not in files]


def _imported_files(path: Path) -> Iterator[Path]:
    try:
        tree = ast.parse(read_bytes(path, "the model"))
    except (SyntaxError, ValueError):  # the error is raised where the model is run
        return
    for node in ast.walk(tree):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        for name in names:
            first = path.parent / name.partition(".")[0]
            if first.with_suffix(".py").is_file():
                yield first.with_suffix(".py")
            elif name and (first / "__init__.py").is_file():
                yield from sorted(first.rglob("*.py"))


def _tensor_files(tensors: Path) -> Iterator[Path]:
    yield tensors
    text = read_text(tensors, "the list of tensors")
    try:
        entries = read_yaml(text, str(tensors), FileError).content
    except FileError:  # it is raised where the list is loaded
        return
    for entry in entries.values() if isinstance(entries, dict) else ():
        if isinstance(entry, dict) and isinstance(entry.get("path"), str):
            path = tensors.parent / entry["path"]
            yield from sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path] * path.is_file()


def _data_files(name: str, data_dir: Path) -> Iterable[Path]:
    try:
        folder = locate_files(name, data_dir)
    except DataError:  # the error is raised where it is loaded
        return ()
    return sorted(p for p in folder.rglob("*") if p.is_file())
