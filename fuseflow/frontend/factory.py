"""The function that builds a model: references to it, and its options.

A reference is a model file, `file.py:function`, or `package.module:function`. The options are the keyword parameters of the function, read
from text with the types of their defaults.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import os
import pkgutil
import sys
import typing
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from inspect import Parameter
from pathlib import Path
from types import ModuleType, UnionType
from typing import Any, Literal, Union

from fuseflow.errors import FileError, UsageError, did_you_mean

DEFAULT_FUNCTION = "build"
"""The function of a model file that builds its model, if no other one is named."""
_KINDS = (bool, int, float, str)
_TRUTHS = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}
DATA_ARGUMENT = (
    "`build(data)` takes the data as one argument, with `adjacency`, `raw`, `features`, `labels`, `nodes` and `classes`"
)
"""A text for messages: the argument of a function that builds a model."""


@dataclass(frozen=True, slots=True)
class Factory:
    """The place of a function that builds a model. `module` is the full name of a Python module, or '' for a function in `file`."""

    function: str
    file: Path = Path()
    module: str = ""

    @classmethod
    def parse(cls, text: str) -> Factory | None:
        """Return the function that a text names, or None if it names no function of Python.

        >>> Factory.parse("package.module:small").module, Factory.parse("models/gcn.py").function, Factory.parse("gcn.ein")
        ('package.module', 'build', None)
        """
        path = Path(text)
        if path.suffix == ".py":
            return cls(DEFAULT_FUNCTION, path)
        place, colon, function = text.rpartition(":")
        if not (colon and function.isidentifier()):
            return None
        if place.endswith(".py"):
            return cls(function, Path(place))
        return cls(function, module=place) if all(name.isidentifier() for name in place.split(".")) else None

    @property
    def place(self) -> Path:
        """The file or the module, as messages call it."""
        return Path(self.module) if self.module else self.file

    @property
    def stem(self) -> str:
        """The name of the model: the name of its function, or of its file or module if the function has the usual name."""
        place = self.module.rpartition(".")[2] or self.file.stem
        return place if self.function == DEFAULT_FUNCTION else self.function


@contextmanager
def importable_from_here() -> Iterator[None]:
    """Let `import` look in the current directory first inside the block, as `python -m` does."""
    folder = os.getcwd()
    importlib.invalidate_caches()  # a module that was written a moment ago
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        sys.path.remove(folder)


def require_module(name: str) -> None:
    """Raise `FileError` with the nearest name for a module that Python cannot find. Only the packages around it are imported."""
    parts = name.split(".")
    for n in range(1, len(parts) + 1):
        path = ".".join(parts[:n])
        if path in sys.modules or importlib.util.find_spec(path) is not None:
            continue
        parent = ".".join(parts[: n - 1])
        where = f"package `{parent}`" if parent else "the current directory and the installed packages"
        folders = getattr(sys.modules.get(parent, ModuleType(parent)), "__path__", ()) if parent else sys.path
        near = did_you_mean(parts[n - 1], (module.name for module in pkgutil.iter_modules(folders)))
        hint = near if near.startswith("did") else f"give a module that `python -c 'import {name}'` can import, or a model file"
        raise FileError(f"there is no module `{path}` in {where}", hint=hint)


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
        text = str(self.default).lower() if isinstance(self.default, bool) else str(self.default)
        return self.name if self.default is None else f"{self.name}={text}"


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
        try:
            hints = typing.get_type_hints(build)
        except (NameError, AttributeError, TypeError):  # they cannot be resolved
            hints = {}
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
                notes = [f"its options: {', '.join(map(str, self.options))}"] if options else []
                raise UsageError(f"{self.path} has no option `{name}`", hint=hint, notes=notes)
        for option in self.options:
            if option.required and option.name not in arguments:
                hint = f"pass `-O {option.name}={option.choices[0] if option.choices else '...'}`"
                notes = [DATA_ARGUMENT] if self.data else []
                raise UsageError(f"{self.path} needs the option `{option.name}`", hint=hint, notes=notes)
        return values

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


def _option(parameter: Parameter, hint: Any) -> BuildOption:
    required = parameter.default is Parameter.empty
    default = None if required else parameter.default
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    choices = tuple(value for value in arguments if isinstance(value, str)) if origin is Literal else ()
    types = [hint, *(arguments if origin in (UnionType, Union) else ())]  # `int | None` means int
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
