"""Changes of bytes, of texts and of values: what damage and malice make of a file."""

from __future__ import annotations

import random
import re
from typing import Any

NUMBERS = (
    "0", "-1", "1", "2", "255", "65536", "2147483647", "2147483648", "-2147483649", "9223372036854775807", "9223372036854775808",
    "-9223372036854775809", "99999999999999999999", "1e308", "1e999", "-1e999", "nan", "inf", "0x7fffffffffffffff", "1.5", "9" * 5000,
)  # fmt: skip
WORDS = (
    "", "null", "true", "~", "\x00", "\x1b[31m", "\u202e", "<script>alert(1)</script>", '"', "'", "\\", "../../etc/passwd", "a" * 10_000,
    "[" * 300, "{" * 300, "(" * 300, "é", "\ud800", "*a", "&a", "!!python/object:os.system", "- - - -", "---", "#", "%",
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 2**31, 2**63, -(2**63), 10**30, 1.5, float("nan"), float("inf"), "", "x", "\x1b[2J", "a" * 5000, [], {}, [[]],
    [None], {"a": {}}, ["a", 1], {"": ""},
)  # fmt: skip
_NUMBER = re.compile(rb"-?\d+(?:\.\d+)?")


def mutate(content: bytes, others: list[bytes], chance: random.Random, is_text: bool) -> bytes:
    """Return a content with one to four changes."""
    for _ in range(chance.choice((1, 1, 2, 4))):
        changes = (_flip, _truncate, _splice, _repeat, _remove, *((_number, _number, _word) if is_text else (_integer, _integer)))
        content = chance.choice(changes)(content, others, chance)
    return content


def _flip(content: bytes, others: list[bytes], chance: random.Random) -> bytes:
    changed = bytearray(content)
    for _ in range(chance.choice((1, 1, 3, 10))):
        if changed:
            changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
    return bytes(changed)


def _truncate(content: bytes, others: list[bytes], chance: random.Random) -> bytes:
    return content[: chance.randrange(len(content) + 1)]


def _splice(content: bytes, others: list[bytes], chance: random.Random) -> bytes:
    other = chance.choice(others)
    at, start = chance.randrange(len(content) + 1), chance.randrange(len(other) + 1)
    return (
        content[:at] + other[start : start + chance.randrange(1, 200)] + content[at + chance.choice((0, chance.randrange(50))) :]
    )


def _repeat(content: bytes, others: list[bytes], chance: random.Random) -> bytes:
    start = chance.randrange(len(content) + 1)
    part = content[start : start + chance.randrange(1, 40)]
    return content[:start] + part * chance.choice((2, 3, 100)) + content[start + len(part) :]


def _remove(content: bytes, others: list[bytes], chance: random.Random) -> bytes:
    start = chance.randrange(len(content) + 1)
    return content[:start] + content[start + chance.randrange(1, 40) :]


def _integer(content: bytes, others: list[bytes], chance: random.Random) -> bytes:
    """Put a whole number with a meaning of its own into the place of some bytes."""
    size = chance.choice((1, 2, 4, 8))
    number = chance.choice((0, 1, 0x7F, 0x80, -1, 1 << (8 * size - 1), (1 << (8 * size - 1)) - 1)) % (1 << (8 * size))
    start = chance.randrange(len(content) + 1)
    return content[:start] + number.to_bytes(size, chance.choice(("little", "big"))) + content[start + size :]


def _number(content: bytes, others: list[bytes], chance: random.Random) -> bytes:
    places = list(_NUMBER.finditer(content))
    if not places:
        return _flip(content, others, chance)
    place = chance.choice(places)
    return content[: place.start()] + chance.choice(NUMBERS).encode() + content[place.end() :]


def _word(content: bytes, others: list[bytes], chance: random.Random) -> bytes:
    at = chance.randrange(len(content) + 1)
    word = chance.choice(WORDS).encode("utf-8", "surrogatepass")
    return content[:at] + word + content[at + chance.choice((0, 0, 5)) :]


def mutate_value(value: Any, chance: random.Random) -> Any:
    """Return a value of JSON with one part of it changed, at a random place."""
    if isinstance(value, dict) and value and chance.random() < 0.85:
        key = chance.choice(list(value))
        match chance.randrange(8):
            case 0:
                return {k: v for k, v in value.items() if k != key}
            case 1:
                return {**value, chance.choice(("", "x", "a.b", "\x1b")): chance.choice(VALUES)}
            case _:
                return {**value, key: mutate_value(value[key], chance)}
    if isinstance(value, list) and value and chance.random() < 0.85:
        at = chance.randrange(len(value))
        match chance.randrange(8):
            case 0:
                return value[:at] + value[at + 1 :]
            case 1:
                return value[:at] + [value[at]] * chance.choice((2, 50)) + value[at:]
            case _:
                return [*value[:at], mutate_value(value[at], chance), *value[at + 1 :]]
    return chance.choice(VALUES)
