"""A sparsity spec: which tensors of a model are sparse, by which rule, and how they are stored.

    weights:
      layer*.weight: {sparsifier: magnitude:0.9, layout: csr}
    intermediates:
      layer1.relu: {external: threshold:0.05}

Names are patterns: `*` stands for any text. Of several patterns that match a tensor, the last one counts. A pattern with a wildcard
speaks of matrices only, if its rule or its layout is for matrices: `*.weight=nmg:2:4:4` leaves the weights of norms as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from fuseflow.errors import SparsityError, did_you_mean
from fuseflow.filesystem import read_text
from fuseflow.sparsity.layouts.layout import Dense, Layout, Masked
from fuseflow.sparsity.layouts.listing import LAYOUTS, parse_layout
from fuseflow.sparsity.sparsifiers.built_in import KeepAll
from fuseflow.sparsity.sparsifiers.listing import parse_sparsifier
from fuseflow.sparsity.sparsifiers.sparsifier import Sparsifier, with_fraction
from fuseflow.yaml_text import YamlText, read_yaml, write_yaml

SPEC_FILE = "spec.yaml"
"""The name of the spec in a directory of sparse weights."""
MANIFEST = "sparsity.json"
"""The name of the list of the files in such a directory."""

KEEP_ALL: Sparsifier = KeepAll()
DENSE = Dense()

T = TypeVar("T")
Entries: TypeAlias = tuple[tuple[str, T], ...]
"""Patterns of names with the entries for the tensors that they match."""


@dataclass(frozen=True, slots=True)
class OutputFormat:
    """How a tensor becomes sparse when it is computed: the `inline` sparsifier sees its entries first, the entries that it keeps
    have the layout `tmp`, and the `external` sparsifier selects among these. The selected entries are stored as `layout`."""

    inline: Sparsifier = KEEP_ALL
    tmp: Layout = DENSE
    external: Sparsifier = KEEP_ALL
    layout: Layout = DENSE

    @property
    def keeps_all(self) -> bool:
        """Whether nothing is left out."""
        return self.inline == KEEP_ALL and self.external == KEEP_ALL


@dataclass(frozen=True, slots=True)
class WeightEntry:
    """The rules for a weight. `sparsifier` selects its entries once, before training. `update` is its format after each step of
    an optimizer; if that keeps all, the first mask holds. `grad` is the format of its gradient, or None to leave it dense."""

    sparsifier: Sparsifier = KEEP_ALL
    update: OutputFormat = OutputFormat(layout=Masked())
    grad: OutputFormat | None = None

    @property
    def layout(self) -> Layout:
        """How the weight is stored."""
        return self.update.layout

    @property
    def least_rank(self) -> int:
        """How many dimensions a weight has at least that the entry is for."""
        rules = (self.sparsifier, self.update.inline, self.update.external)
        return max(*(rule.least_rank for rule in rules), self.update.tmp.least_rank, self.layout.least_rank)

    def with_fraction(self, fraction: float) -> WeightEntry:
        """Return the entry with another fraction of pruned entries. Raise `SparsityError` if its sparsifier has no fraction. One that keeps
        all stays."""
        return self if self.sparsifier == KEEP_ALL else replace(self, sparsifier=with_fraction(self.sparsifier, fraction))


@dataclass(frozen=True, slots=True)
class IntermediateEntry:
    """The formats of an intermediate of the model and of its gradient. A gradient without a rule has the mask of the tensor."""

    output: OutputFormat = OutputFormat()
    grad: OutputFormat | None = None


@dataclass(frozen=True, slots=True)
class SparseSpec:
    """The entries of a spec in order: patterns of names of weights and of intermediates, each with rules for its tensors."""

    weights: tuple[tuple[str, WeightEntry], ...] = ()
    intermediates: tuple[tuple[str, IntermediateEntry], ...] = ()

    def __post_init__(self) -> None:
        for entries in (self.weights, self.intermediates):
            names = [name for name, _ in entries]
            twice = next((name for name in names if names.count(name) > 1), None)
            if twice is not None:
                raise SparsityError(f"`{twice}` has two entries", hint="keep one of them")

    def __add__(self, other: SparseSpec) -> SparseSpec:
        """Return a spec in which the entries of another one stand behind these, and so count more. Of equal patterns the other's stays."""
        return SparseSpec(_joined(self.weights, other.weights), _joined(self.intermediates, other.intermediates))

    def __bool__(self) -> bool:
        return bool(self.weights or self.intermediates)

    def with_fraction(self, fraction: float) -> SparseSpec:
        """Return the spec with another fraction of pruned entries in all weights. Raise `SparsityError` if a rule has no fraction."""
        return replace(self, weights=tuple((name, entry.with_fraction(fraction)) for name, entry in self.weights))

    def to_yaml(self) -> str:
        """Return the spec as YAML, which `from_yaml` reads as the same spec."""
        sections: dict[str, Any] = {}
        if self.weights:
            sections["weights"] = {name: _weight_row(entry) for name, entry in self.weights}
        if self.intermediates:
            sections["intermediates"] = {
                name: _output_row(entry.output, OutputFormat()) | _grad_row(entry.grad) for name, entry in self.intermediates
            }
        return write_yaml(sections) if sections else ""

    @classmethod
    def from_yaml(cls, text: str, file: str = "<text>") -> SparseSpec:
        """Read a spec. Raise `SparsityError` with the line and the column of a fault."""
        return _Reader(read_yaml(text, file, SparsityError)).spec()


def read_spec(path: Path) -> SparseSpec:
    """Read a spec from a file. Raise `FileError` if it cannot be read, and `SparsityError` for a fault in it."""
    return SparseSpec.from_yaml(read_text(path, "the sparsity spec"), str(path))


def parse_sparsify(text: str) -> SparseSpec:
    """Return the spec of a text `PATTERN=SPARSIFIER[:ARG...][:LAYOUT]`, such as `*.weight=magnitude:0.9:csr`.

    Without a layout, or with its name alone, a weight is stored as its sparsifier proposes. Raise `SparsityError` for another text.
    """
    pattern, equals, rule = text.partition("=")
    if not (pattern and equals and rule):
        raise SparsityError(f"`{text}` is not PATTERN=SPARSIFIER", hint="as in `*.weight=magnitude:0.9:csr`")
    first, *rest = rule.split(":")
    place = next((k for k, part in enumerate(rest) if part in LAYOUTS), len(rest))
    try:
        sparsifier = parse_sparsifier(":".join((first, *rest[:place])))
    except SparsityError as error:
        if not any(part.isalpha() and f"`{part}`" in error.message for part in rest[:place]):
            raise
        message, layouts = f"{error.message}, and no layout is called so", f"layouts are {', '.join(LAYOUTS)}"
        raise SparsityError(message, hint=f"{error.hint} ({layouts})") from None
    layout_text = ":".join(rest[place:]) or sparsifier.layout.name
    layout = sparsifier.layout if layout_text == sparsifier.layout.name else parse_layout(layout_text)
    return SparseSpec(((pattern, WeightEntry(sparsifier, OutputFormat(layout=layout))),))


def last_match(entries: Iterable[tuple[str, Any]], name: str) -> Any:
    """Return the entry of the last pattern that matches a name, or None."""
    return next((entry for pattern, entry in reversed(tuple(entries)) if fnmatchcase(name, pattern)), None)


def require_matches(entries: Iterable[tuple[str, Any]], names: Iterable[str], kind: str) -> None:
    """Raise `SparsityError` for a pattern that matches none of the names. `kind` is the kind of their tensors."""
    known = tuple(names)
    for pattern, _ in entries:
        if not any(fnmatchcase(name, pattern) for name in known):
            hint = did_you_mean(pattern, known) if known else f"the model has no {kind}"
            raise SparsityError(f"no {kind} is called `{pattern}`", hint=f"{hint} (`sp.names(model, *inputs)` lists all)")


def _joined(entries: Entries[T], later: Entries[T]) -> Entries[T]:
    replaced = {name for name, _ in later}
    return (*(entry for entry in entries if entry[0] not in replaced), *later)


OUTPUT_KEYS = tuple(field.name for field in fields(OutputFormat))
KEYS = {"weights": ("sparsifier", *OUTPUT_KEYS, "grad"), "intermediates": (*OUTPUT_KEYS, "grad")}


def _output_row(output: OutputFormat, default: OutputFormat) -> dict[str, str]:
    values = {key: (getattr(output, key), getattr(default, key)) for key in OUTPUT_KEYS}
    return {key: str(value) for key, (value, usual) in values.items() if value != usual}


def _weight_row(entry: WeightEntry) -> dict[str, Any]:
    selects = entry.sparsifier != KEEP_ALL
    row: dict[str, Any] = {"sparsifier": str(entry.sparsifier)} if selects else {}
    usual = OutputFormat(layout=usual_layout(entry.sparsifier, selects))
    return row | _output_row(entry.update, usual) | _grad_row(entry.grad)


def usual_layout(sparsifier: Sparsifier, written: bool) -> Layout:
    """Return the layout of a weight whose entry names none. `written` is whether it names a sparsifier."""
    return sparsifier.layout if written else Masked()


def _grad_row(grad: OutputFormat | None) -> dict[str, Any]:
    return {} if grad is None else {"grad": _output_row(grad, OutputFormat())}


@dataclass(frozen=True, slots=True)
class _Reader:
    """A reader of the entries of a YAML text, which names the place of a fault."""

    yaml: YamlText

    def spec(self) -> SparseSpec:
        sections = self._mapping((), tuple(KEYS)) if self.yaml.content is not None else {}
        weights = self._names(sections, "weights")
        intermediates = self._names(sections, "intermediates")
        return SparseSpec(
            tuple((name, self._weight(name, row)) for name, row in weights.items()),
            tuple((name, self._intermediate(name, row)) for name, row in intermediates.items()),
        )

    def _names(self, sections: Mapping[str, Any], section: str) -> Mapping[str, Any]:
        names = sections.get(section, {})
        if not isinstance(names, dict):
            hint = "as in `layer1.weight: {sparsifier: magnitude:0.9}`" if section == "weights" else "as in `relu: {layout: csr}`"
            raise SparsityError(f"`{section}` is a mapping from names to entries", hint=hint, span=self.yaml.place(section))
        for name in names:
            if not isinstance(name, str):
                place = self.yaml.place(section, str(name))
                raise SparsityError(f"the name `{name}` in `{section}` is no text", hint=f'write it as `"{name}"`', span=place)
        return names

    def _weight(self, name: str, row: Any) -> WeightEntry:
        path = ("weights", name)
        values = self._mapping(path, KEYS["weights"], row)
        sparsifier = self._parsed(values, path, "sparsifier", parse_sparsifier, KEEP_ALL)
        default = OutputFormat(layout=usual_layout(sparsifier, "sparsifier" in values))
        return WeightEntry(sparsifier, self._output(values, path, default), self._grad(values, path))

    def _intermediate(self, name: str, row: Any) -> IntermediateEntry:
        path = ("intermediates", name)
        values = self._mapping(path, KEYS["intermediates"], row)
        return IntermediateEntry(self._output(values, path, OutputFormat()), self._grad(values, path))

    def _grad(self, values: Mapping[str, Any], path: tuple[str, ...]) -> OutputFormat | None:
        if "grad" not in values:
            return None
        path = (*path, "grad")
        return self._output(self._mapping(path, OUTPUT_KEYS, values["grad"]), path, OutputFormat())

    def _output(self, values: Mapping[str, Any], path: tuple[str, ...], default: OutputFormat) -> OutputFormat:
        return OutputFormat(
            self._parsed(values, path, "inline", parse_sparsifier, KEEP_ALL),
            self._parsed(values, path, "tmp", parse_layout, default.tmp),
            self._parsed(values, path, "external", parse_sparsifier, KEEP_ALL),
            self._parsed(values, path, "layout", parse_layout, default.layout),
        )

    def _parsed(self, values: Mapping[str, Any], path: tuple[str, ...], key: str, parse: Callable[[str], T], default: T) -> T:
        """Return the sparsifier or layout that `parse` reads in the text of a key."""
        if key not in values:
            return default
        try:
            if not isinstance(values[key], str):
                raise SparsityError(f"`{key}` of `{path[1]}` is a text", hint="as in `magnitude:0.9` or `csr`")
            return parse(values[key])
        except SparsityError as error:
            raise SparsityError(error.message, hint=error.hint, span=error.span or self.yaml.place(*path, key)) from None

    def _mapping(self, path: tuple[str, ...], keys: tuple[str, ...], row: Any = None) -> Mapping[str, Any]:
        row = row if path else self.yaml.content
        if not isinstance(row, dict):
            name = f"the entry `{'.'.join(path)}`" if path else "a sparsity spec"
            raise SparsityError(f"{name} is a mapping", hint=f"its keys are {', '.join(keys)}", span=self.yaml.place(*path))
        for key in row:
            if key not in keys:
                place = self.yaml.place(*path, str(key))
                raise SparsityError(f"unknown key `{key}`", hint=did_you_mean(str(key), keys), span=place)
        return row
