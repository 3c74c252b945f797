"""The options of a model file: the keyword parameters of its `build`, read from text with the types of their defaults."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from inspect import Parameter
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union

from fuseflow.errors import UsageError, did_you_mean

_KINDS = (bool, int, float, str)
_TRUTHS = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}


DATA_ARGUMENT = (
    "`build(data)` takes the data as one argument, with `adjacency`, `raw`, `features`, `labels`, `nodes` and `classes`"
)
"""A text for messages: the argument of a function that builds a model."""


@dataclass(frozen=True, slots=True)
class BuildOption:
    """An option of a model file. `kind` is bool, int, float or str, or None where the file does not tell; then the value is passed on
    unchanged."""

    name: str
    kind: type | None
    choices: tuple[str, ...]
    required: bool
    default: Any = None

    def __str__(self) -> str:
        if self.choices:
            return f"{self.name} (one of {', '.join(self.choices)})"
        return self.name if self.default is None else f"{self.name}={_text(self.default)}"


@dataclass(frozen=True, slots=True)
class BuildSignature:
    """The parameters of the `build` of a model file.

    `data` says whether its first parameter is the data set, and `needs_data` whether that parameter has no default. `open` says
    whether it has `**options`.
    """

    path: Path
    data: bool
    needs_data: bool
    options: tuple[BuildOption, ...]
    open: bool

    @classmethod
    def of(cls, path: Path, build: Callable[..., Any]) -> BuildSignature:
        """Return the signature of `build`. Its first parameter is the data set, unless it has a default and a name other than `data`.
        The others are options."""
        parameters = list(inspect.signature(build).parameters.values())
        data = bool(parameters) and _is_data(parameters[0])
        hints = _hints(build)
        rest = parameters[1:] if data else parameters
        named = [p for p in rest if p.kind in (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)]
        options = tuple(_option(p, hints.get(p.name)) for p in named)
        is_open = any(p.kind == Parameter.VAR_KEYWORD for p in rest)
        return cls(path, data, data and parameters[0].default is Parameter.empty, options, is_open)

    def values(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the options with their types. Raise `UsageError` for an option that `build` does not accept, and for a required one
        that is missing."""
        options = {option.name: option for option in self.options}
        values = {name: self._value(options[name], value) if name in options else value for name, value in arguments.items()}
        for name in arguments:
            if name not in options and not self.open:
                hint = did_you_mean(name, options) if options else "its `build` has no keyword parameters"
                raise UsageError(f"{self.path} has no option `{name}`", hint=hint, notes=self._notes())
        for option in self.options:
            if option.required and option.name not in arguments:
                value = option.choices[0] if option.choices else "..."
                notes = (DATA_ARGUMENT,) if self.data else ()
                raise UsageError(
                    f"{self.path} needs the option `{option.name}`", hint=f"pass `-O {option.name}={value}`", notes=notes
                )
        return values

    def _notes(self) -> tuple[str, ...]:
        return (f"its options: {', '.join(map(str, self.options))}",) if self.options else ()

    def _value(self, option: BuildOption, argument: Any) -> Any:
        subject = f"option `{option.name}` of {self.path}"
        if option.choices:
            if argument not in option.choices:
                raise UsageError(f"{subject} cannot be `{argument}`", hint=did_you_mean(str(argument), option.choices))
            return argument
        value = _read(argument, option.kind) if isinstance(argument, str) and option.kind is not None else argument
        if option.kind is float and type(value) is int:
            value = float(value)
        if option.kind is not None and type(value) is not option.kind:
            kind = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}[option.kind]
            raise UsageError(f"{subject} is {kind}, not `{argument}`")
        return value


def _is_data(parameter: Parameter) -> bool:
    positional = parameter.kind in (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    return positional and (parameter.name == "data" or parameter.default is Parameter.empty)


def _hints(build: Callable[..., Any]) -> dict[str, Any]:
    """Return the type annotations of a function, or {} if they cannot be resolved."""
    try:
        return typing.get_type_hints(build)
    except (NameError, AttributeError, TypeError):
        return {}


def _option(parameter: Parameter, hint: Any) -> BuildOption:
    required = parameter.default is Parameter.empty
    default = None if required else parameter.default
    choices: tuple[str, ...] = ()
    if typing.get_origin(hint) is Literal:
        choices = tuple(value for value in typing.get_args(hint) if isinstance(value, str))
    types = [hint, *(typing.get_args(hint) if typing.get_origin(hint) in (UnionType, Union) else ())]  # `int | None` means int
    kind = type(default) if type(default) in _KINDS else next((h for h in types if h in _KINDS), None)
    if kind is int and hint is float:
        kind = float
    return BuildOption(parameter.name, kind, choices, required, default)


def _read(text: str, kind: type) -> Any:
    """Return the value of this kind that a text means, or the text itself if it means none."""
    if kind is bool:
        return _TRUTHS.get(text.lower(), text)
    try:
        return kind(text)
    except ValueError:
        return text


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
