"""A plan: which constant operands of a program are decomposed, and into which parts.

    operands:
      layer1.weight:
      - {form: 32x32, weight: 1027.8}
      - {form: elements, weight: 8.04}
      layer2.weight:
      - {form: nm(2:4), dtype: i8}
      - {form: elements}

Instead of the operands, `operands: auto` leaves the plan to a search, as `plan: auto` does in a schedule.

A weight is the cost of one block of a part. It is needed where an operand has several parts in blocks (single elements are the
smallest blocks): it decides which entry is in which part. So a plan with its weights gives the same parts each time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from fuseflow.einsum.nodes import Program, Reduce
from fuseflow.errors import PlanError, did_you_mean
from fuseflow.filesystem import read_text
from fuseflow.plan.cover import Mask
from fuseflow.plan.partition import Form, Part, PlannedPart, check_planned, needs_weights, partition, require_weights
from fuseflow.tensors import Format, Tensor
from fuseflow.yaml_text import KeyPath, YamlText, read_yaml, write_yaml

# What divides operands is imported where it is used: it takes long to load, and most schedules have no plan.
if TYPE_CHECKING:
    from fuseflow.plan.decompose import Decomposed

T = TypeVar("T")
PlannedOperands: TypeAlias = tuple[tuple[str, tuple[PlannedPart, ...]], ...]
"""Names of operands, each with its parts."""

SECTION = "operands"
KEYS = ("form", "dtype", "weight")


def _row(part: PlannedPart) -> dict[str, Any]:
    values = {"form": part.form.storage, "dtype": part.form.dtype or None, "weight": part.weight}
    return {key: value for key, value in values.items() if value is not None}


@dataclass(frozen=True, slots=True)
class PlanReader:
    """A reader of the operands of a plan, which raises `PlanError` with the place of a fault. The operands stand at `path` in the text."""

    yaml: YamlText
    path: KeyPath = (SECTION,)

    def rows(self) -> Any:
        """Return the rows of a file that has nothing but a plan."""
        if self.yaml.content is None:
            return {}
        return self._mapping(self.yaml.content, (), "a plan", (SECTION,)).get(SECTION, {})

    def read(self, rows: Any) -> PlannedOperands:
        """Return the operands in rows, which are the content of the text at the path."""
        if not isinstance(rows, dict) or not all(isinstance(name, str) for name in rows):
            raise self._error(
                self.path, f"`{self.path[-1]}` is a mapping from names of tensors to parts", "`W: [{form: 4x4}]`, or `auto`"
            )
        return tuple((name, self._parts(name, parts)) for name, parts in rows.items())

    def _parts(self, name: str, rows: Any) -> tuple[PlannedPart, ...]:
        path = (*self.path, name)
        if not isinstance(rows, list):
            raise self._error(path, f"the parts of `{name}` are a list", "`[{form: 4x4}, {form: elements}]`")
        parts = tuple(self._part(row, (*path, place)) for place, row in enumerate(rows))
        self._placed(path, lambda: check_planned(name, parts))
        return parts

    def _part(self, row: Any, path: KeyPath) -> PlannedPart:
        values = self._mapping(row, path, "a part", KEYS)
        if "form" not in values:
            raise self._error(path, "a part needs the key `form`", "`{form: 4x4}`")
        form, dtype = (self._text(values, path, key) for key in ("form", "dtype"))
        weight = self._number(values, path, "weight")
        parsed = self._placed((*path, "form"), lambda: Form.parse(form))
        typed = self._placed((*path, "dtype"), lambda: Form(parsed.block, parsed.nm, dtype))
        return self._placed((*path, "weight"), lambda: PlannedPart(typed, weight))

    def _text(self, values: Mapping[str, Any], path: KeyPath, key: str) -> str:
        value = values.get(key, "")
        if not isinstance(value, str) or (key in values and not value):
            raise self._error((*path, key), f"`{key}` is a text", "`form: 4x4` or `dtype: i8`")
        return value

    def _number(self, values: Mapping[str, Any], path: KeyPath, key: str) -> float | None:
        if key not in values:
            return None
        value = values[key]
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self._error((*path, key), f"`{key}` is a number", f"`{key}: 8.04`")
        try:
            return float(value)
        except OverflowError:
            raise self._error((*path, key), f"`{key}` is too large a number", f"`{key}: 8.04`") from None

    def _mapping(self, row: Any, path: KeyPath, entry: str, keys: tuple[str, ...]) -> Mapping[str, Any]:
        if not isinstance(row, dict):
            raise PlanError(f"{entry} is a mapping", hint=f"its keys are {', '.join(keys)}", span=self.yaml.place(*path))
        for key in row:
            if key not in keys:
                name = key if isinstance(key, str) else "..."
                raise PlanError(f"unknown key `{name}`", hint=did_you_mean(name, keys), span=self.yaml.place(*path, name))
        return row

    def _placed(self, path: KeyPath, read: Callable[[], T]) -> T:
        try:
            return read()
        except PlanError as error:
            raise PlanError(error.message, hint=error.hint, span=self.yaml.place(*path)) from None

    def _error(self, path: KeyPath, message: str, example: str) -> PlanError:
        return PlanError(message, hint=f"as in {example}", span=self.yaml.place(*path))


AUTO = "auto"
"""The word for the operands of a plan that is still to be chosen."""
Weigh: TypeAlias = Callable[[Form], float]
"""Returns the cost of a block of a form."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The operands that are decomposed, each with its parts. The plan without operands changes nothing. With `auto`, the operands are
    still to be chosen, so that there are none."""

    operands: PlannedOperands = ()
    auto: bool = False

    def __post_init__(self) -> None:
        if self.auto and self.operands:
            raise PlanError(f"the plan divides `{self.operands[0][0]}`, and is left to `auto`", hint="leave one of them out")
        names = [name for name, _ in self.operands]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise PlanError(f"`{twice}` has two entries", hint="keep one of them")
        for name, parts in self.operands:
            check_planned(name, parts)

    def __bool__(self) -> bool:
        return self.auto or bool(self.operands)

    def __str__(self) -> str:
        return self.to_yaml()

    def to_yaml(self) -> str:
        """Return the plan as YAML, which `from_yaml` reads as the same plan."""
        return write_yaml({SECTION: self.to_rows()}) if self else ""

    def to_rows(self) -> dict[str, Any] | str:
        """Return the operands with their parts as plain values, which `from_rows` reads; `auto` for a plan that is to be chosen."""
        return AUTO if self.auto else {name: [_row(part) for part in parts] for name, parts in self.operands}

    @classmethod
    def from_yaml(cls, text: str, file: str = "<text>") -> Plan:
        """Read a plan. Raise `PlanError` with the line and the column of a fault."""
        reader = PlanReader(read_yaml(text, file, PlanError))
        return cls.from_rows(reader, reader.rows())

    @classmethod
    def from_rows(cls, reader: PlanReader, rows: Any) -> Plan:
        """Return the plan that `rows` describe, the values at the path of the reader. Raise `PlanError` as `from_yaml` does."""
        return cls(auto=True) if rows == AUTO else cls(reader.read(rows))

    def weighed(self, weigh: Weigh) -> Plan:
        """Return the plan with the weights that it needs and lacks, which `weigh` measures."""
        return replace(self, operands=tuple((name, _weighed(parts, weigh)) for name, parts in self.operands))

    def verify(self, program: Program, tensors: Mapping[str, Tensor]) -> None:
        """Raise `PlanError` unless the plan fits a program with its tensors: each operand is a constant matrix there and a factor of
        products, and has the weights that it needs. A plan that is left to `auto` fits none."""
        from fuseflow.plan.decompose import require_constant
        from fuseflow.plan.products import products_of

        if self.auto:
            raise PlanError("the plan is still to be chosen", hint="`fuseflow.autoschedule` chooses it")
        operands = dict[tuple[str, Reduce], str]()
        for name, parts in self.operands:
            require_constant(program, tensors, name)
            require_weights(name, parts)
            for product in products_of(program, name):
                other = operands.setdefault((product.einsum.name, product.reduction), name)
                if other != name:
                    raise PlanError(f"`{other}` and `{name}` are factors of one product", hint="decompose one of them")

    def parts(self, program: Program, tensors: Mapping[str, Tensor]) -> tuple[tuple[str, tuple[Part, ...]], ...]:
        """Return which entries of each operand are in which part. Raise `PlanError` as `apply` does."""
        from fuseflow.plan.decompose import Decomposed

        self.verify(program, tensors)
        given = Decomposed(program, tensors)
        return tuple((name, _parts(given, name, parts, None)) for name, parts in self.operands)

    def apply(
        self, program: Program, tensors: Mapping[str, Tensor], needed: Mapping[str, Mask] | None = None
    ) -> tuple[Program, Mapping[str, Tensor]]:
        """Return a program and its tensors with their operands decomposed. It means the same, but for entries that are not `needed`.

        Raise `PlanError` if the plan does not fit, and if an operand has an entry that none of its parts can hold.
        """
        decomposed = self.decomposed(program, tensors, needed)
        return decomposed.program, decomposed.tensors

    def decomposed(self, program: Program, tensors: Mapping[str, Tensor], needed: Mapping[str, Mask] | None = None) -> Decomposed:
        """Return the result of `apply`, together with the operand of each part and the source and blocks of each copied input."""
        from fuseflow.plan.decompose import Decomposed, constant_values, decompose, needed_entries

        self.verify(program, tensors)
        decomposed = Decomposed(program, tensors)
        for name, parts in self.operands:
            mask = (needed or {}).get(name)
            entries = needed_entries(name, constant_values(decomposed, name), mask)
            decomposed = decompose(decomposed, name, _parts(decomposed, name, parts, mask), entries)
        return decomposed


def read_plan(path: Path) -> Plan:
    """Read a plan from a file. Raise `FileError` if it cannot be read, and `PlanError` for a fault in it."""
    return Plan.from_yaml(read_text(path, "the plan"), str(path))


def _weighed(parts: tuple[PlannedPart, ...], weigh: Weigh) -> tuple[PlannedPart, ...]:
    if not needs_weights(parts):
        return parts
    return tuple(
        replace(part, weight=weigh(part.form)) if part.form.nm is None and part.weight is None else part for part in parts
    )


def _parts(given: Decomposed, name: str, parts: tuple[PlannedPart, ...], mask: Mask | None) -> tuple[Part, ...]:
    """Return the parts of an operand, each with its entries. `mask` says which entries are needed, or is None for all."""
    from fuseflow.plan.decompose import constant_values, needed_entries

    values = constant_values(given, name)
    format = given.program.declared[name].format or Format.dense(values.ndim)
    return partition(name, values, needed_entries(name, values, mask), parts, format.order[-1])
