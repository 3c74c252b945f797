"""The text form of a frozen dataclass, such as a sparsifier: its name, and its fields behind colons, as in `nm:2:4` or `random:0.5:seed=3`.

Fields without a default stand by their place. Other fields are only written if they differ from their default, by name. Another mark than
the colon may stand between fields: `sgd:lr=0.2,momentum=0.9`. A colon follows the name in any case.
"""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from fuseflow.errors import FuseFlowError, SparsityError, did_you_mean

T = TypeVar("T")


def text_of(name: str, value: Any, separator: str = ":") -> str:
    """Return the text form of a frozen dataclass that is called `name`. The `separator` stands between fields.

    >>> from fuseflow.sparsity.sparsifiers.built_in import NM
    >>> text_of("nm", NM(2, 4, dim=0))
    'nm:2:4:dim=0'
    """
    parts = []
    for field in dataclasses.fields(value):
        content = getattr(value, field.name)
        if field.default is dataclasses.MISSING:
            parts.append(_text(content))
        elif content != field.default:
            parts.append(f"{field.name}={_text(content)}")
    return f"{name}:{separator.join(parts)}" if parts else name


def parse_text(
    text: str, classes: Mapping[str, type[T]], kind: str, separator: str = ":", error: type[FuseFlowError] = SparsityError
) -> T:
    """Return the value that `text_of` writes so. `classes` are the known classes by name, and `kind` is their kind in messages.

    Raise `error` for an unknown name, and for fields that the class does not have or accept.
    """
    name, colon, rest = text.partition(":")
    if name not in classes:
        raise error(f"there is no {kind} `{name}`", hint=did_you_mean(name, classes))
    cls, arguments = classes[name], rest.split(separator) if colon else []
    fields = _arguments(text, cls, usage(name, cls, separator), arguments, error)
    missing = [f.name for f in dataclasses.fields(cls) if f.default is dataclasses.MISSING and f.name not in fields]  # type: ignore[arg-type]
    if missing:
        raise error(f"`{text}` lacks {' and '.join(missing)}", hint=f"write it as `{usage(name, cls, separator)}`")
    return cls(**fields)


def register(cls: type[T], classes: dict[str, type[T]], kind: str) -> type[T]:
    """Add a class to `classes`, by its name, and return it. `kind` is their kind in messages.

    Raise `SparsityError` for a name that is taken, and for a class that has no fields to be written.
    """
    if not dataclasses.is_dataclass(cls):
        raise SparsityError(f"the {kind} `{cls.__name__}` is no dataclass", hint="decorate it with `@dataclass(frozen=True)`")
    name: str = cls.name  # type: ignore[attr-defined]
    if classes.get(name, cls) is not cls:
        raise SparsityError(f"there is a {kind} `{name}` already", hint="give yours another `name`")
    classes[name] = cls
    return cls


def usage(name: str, cls: type, separator: str = ":") -> str:
    """Return how values of a class are written, for messages, as in `nm:N:M[:dim=-1]`."""
    text, mark = name, ":"
    for field in dataclasses.fields(cls):
        required = field.default is dataclasses.MISSING
        default = field.name.upper() if field.default is None else _text(field.default)
        text += f"{mark}{field.name.upper()}" if required else f"[{mark}{field.name}={default}]"
        mark = separator
    return text


def _arguments(text: str, cls: type, form: str, arguments: list[str], error: type[FuseFlowError]) -> dict[str, Any]:
    """Return the fields that the `arguments` of a text mean, by name. `form` is how such texts are written."""
    fields = [field.name for field in dataclasses.fields(cls)]
    types, values = typing.get_type_hints(cls), dict[str, Any]()
    for place, argument in enumerate(arguments):
        key, equals, value = argument.partition("=")
        if not equals:
            if place >= len(fields):
                raise error(f"`{text}` says too much: `{argument}`", hint=f"write it as `{form}`")
            key, value = fields[place], argument
        if key not in fields:
            raise error(f"`{text}`: there is no `{key}`", hint=did_you_mean(key, fields))
        if key in values:
            raise error(f"`{text}` says `{key}` twice")
        values[key] = _read(text, key, value, types[key], error)
    return values


def _read(text: str, key: str, value: str, kind: Any, error: type[FuseFlowError]) -> Any:
    """Return the value of the field `key` that the text `value` means. `kind` is the type of the field, `text` the whole text."""
    parts = value.split("x") if typing.get_origin(kind) is tuple else None
    try:
        return TypeAdapter(kind).validate_python(value if parts is None else tuple(parts))
    except ValidationError as refusal:
        message = refusal.errors(include_url=False)[0]["msg"]
        hint = message[0].lower() + message[1:]
        if parts is not None:
            hint = f"write {len(typing.get_args(kind))} whole numbers, as in `{'x'.join('4' for _ in typing.get_args(kind))}`"
        raise error(f"`{text}`: `{key}` cannot be `{value}`", hint=hint) from None


def _text(value: Any) -> str:
    return "x".join(map(str, value)) if isinstance(value, tuple) else str(value)
