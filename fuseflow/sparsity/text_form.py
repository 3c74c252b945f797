"""The text form of a sparsifier or a layout: its name, and its fields behind colons, as in `nm:2:4` or `random:0.5:seed=3`.

Fields without a default stand by their place. Other fields are only written if they differ from their default, by name.
"""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from fuseflow.errors import SparsityError, did_you_mean

T = TypeVar("T")


def text_of(name: str, value: Any) -> str:
    """Return the text form of a frozen dataclass that is called `name`.

    >>> from fuseflow.sparsity.sparsifiers.groups import NM
    >>> text_of("nm", NM(2, 4, dim=0))
    'nm:2:4:dim=0'
    """
    parts = [name]
    for field in dataclasses.fields(value):
        content = getattr(value, field.name)
        if field.default is dataclasses.MISSING:
            parts.append(_text(content))
        elif content != field.default:
            parts.append(f"{field.name}={_text(content)}")
    return ":".join(parts)


def parse_text(text: str, classes: Mapping[str, type[T]], kind: str) -> T:
    """Return the value that `text_of` writes so. `classes` are the known classes by name, and `kind` is their kind in messages.

    Raise `SparsityError` for an unknown name, and for fields that the class does not have or accept.
    """
    name, *arguments = text.split(":")
    if name not in classes:
        raise SparsityError(f"there is no {kind} `{name}`", hint=did_you_mean(name, classes))
    fields = _arguments(text, classes[name], arguments)
    missing = [f.name for f in dataclasses.fields(classes[name]) if f.default is dataclasses.MISSING and f.name not in fields]  # type: ignore[arg-type]
    if missing:
        raise SparsityError(f"`{text}` lacks {' and '.join(missing)}", hint=f"write it as `{usage(name, classes[name])}`")
    return classes[name](**fields)


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


def usage(name: str, cls: type) -> str:
    """Return how values of a class are written, for messages, as in `nm:N:M[:dim=-1]`."""
    text = name
    for field in dataclasses.fields(cls):
        required = field.default is dataclasses.MISSING
        default = field.name.upper() if field.default is None else _text(field.default)
        text += f":{field.name.upper()}" if required else f"[:{field.name}={default}]"
    return text


def _arguments(text: str, cls: type, arguments: list[str]) -> dict[str, Any]:
    fields = [field.name for field in dataclasses.fields(cls)]
    types, values = typing.get_type_hints(cls), dict[str, Any]()
    for place, argument in enumerate(arguments):
        key, equals, value = argument.partition("=")
        if not equals:
            if place >= len(fields):
                raise SparsityError(
                    f"`{text}` says too much: `{argument}`", hint=f"write it as `{usage(text.split(':')[0], cls)}`"
                )
            key, value = fields[place], argument
        if key not in fields:
            raise SparsityError(f"`{text}`: there is no `{key}`", hint=did_you_mean(key, fields))
        if key in values:
            raise SparsityError(f"`{text}` says `{key}` twice")
        values[key] = _read(text, key, value, types[key])
    return values


def _read(text: str, key: str, value: str, kind: Any) -> Any:
    """Return the value of the field `key` that the text `value` means. `kind` is the type of the field, `text` the whole text."""
    parts = value.split("x") if typing.get_origin(kind) is tuple else None
    try:
        return TypeAdapter(kind).validate_python(value if parts is None else tuple(parts))
    except ValidationError as error:
        message = error.errors(include_url=False)[0]["msg"]
        hint = message[0].lower() + message[1:]
        if parts is not None:
            hint = f"write {len(typing.get_args(kind))} whole numbers, as in `{'x'.join('4' for _ in typing.get_args(kind))}`"
        raise SparsityError(f"`{text}`: `{key}` cannot be `{value}`", hint=hint) from None


def _text(value: Any) -> str:
    return "x".join(map(str, value)) if isinstance(value, tuple) else str(value)
