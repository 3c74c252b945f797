"""The YAML of a plan: its rows, and a reader that names the place of a fault in them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from fuseflow.errors import PlanError, did_you_mean
from fuseflow.plan.form import Form
from fuseflow.plan.partition import PlannedPart, check_planned
from fuseflow.yaml_text import KeyPath, YamlText

T = TypeVar("T")
PlannedOperands: TypeAlias = tuple[tuple[str, tuple[PlannedPart, ...]], ...]
"""Names of operands, each with its parts."""

SECTION = "operands"
KEYS = ("form", "dtype", "weight")


def plan_rows(operands: Iterable[tuple[str, tuple[PlannedPart, ...]]]) -> dict[str, Any]:
    """Return the rows of a plan by the names of operands, as YAML holds them."""
    return {name: [_row(part) for part in parts] for name, parts in operands}


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
