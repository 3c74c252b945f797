"""What the entries of a schedule may be, and their canonical form."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from fuseflow.errors import FuseFlowError, ScheduleError, UsageError, did_you_mean
from fuseflow.tensors import Format
from fuseflow.tensors.blocks import MAX_BLOCK_SIDE, Block, check_block
from fuseflow.tensors.format import SHORT_NAMES

KEYWORDS = ("none", "layerwise", "full", "auto")

CHOICES = {
    "iteration": ("factored", "global"),
    "locate": ("auto", "always", "never"),
    "repeat": ("value", "reference"),
    "order_policy": ("best", "first", "auto"),
    "intermediates": ("real", "dense"),
}
"""Settings that hold for all regions, with what they may be; the first is the default."""

T = TypeVar("T")
Pairs = tuple[tuple[str, T], ...]


def fuse_names(names: Iterable[str]) -> tuple[str, ...]:
    unique = set(names)
    for name in unique:
        _check_name("--fuse", name)
    keywords = [k for k in KEYWORDS if k in unique]
    if keywords == ["none"] and len(unique) > 1:  # everything that is not named is left alone anyway
        unique.remove("none")
    elif keywords and len(unique) > 1:
        others = ", ".join(f"`{n}`" for n in sorted(unique - {keywords[0]}))
        raise ScheduleError(f"`{keywords[0]}` says what is fused in the whole model and cannot stand beside {others}")
    return tuple(sorted(unique)) or ("none",)


def sorted_pairs(what: str, pairs: Pairs[T], check: Callable[[str, T], T]) -> Pairs[T]:
    names = [name for name, _ in pairs]
    for name in names:
        _check_name(what, name)
        if names.count(name) > 1:
            raise ScheduleError(f"{what} `{name}` is given twice")
    return tuple(sorted((name, check(name, value)) for name, value in pairs))


def _check_name(what: str, name: str) -> None:
    if not name or re.search(r"[\s,=]", name):
        hint = "give several names by repeating the flag" if "," in name else ""
        raise ScheduleError(f"{what} `{name}`: not a name", hint=hint)


def member_names(name: str, members: tuple[str, ...]) -> tuple[str, ...]:
    if name in KEYWORDS:
        raise ScheduleError(f"a region cannot be called `{name}`, which says what is fused in the whole model")
    if not re.fullmatch(r"\w[\w.-]*", name):
        raise ScheduleError(f"region `{name}`: not a name", hint="use letters, digits and `_ . -`")
    if not members:
        raise ScheduleError(f"region `{name}` is empty", hint="list its Einsums or modules")
    for member in members:
        _check_name(f"region `{name}`: member", member)
    return tuple(sorted(set(members)))


def loop_order(target: str, indices: tuple[str, ...]) -> tuple[str, ...]:
    words = tuple(word.strip() for word in indices)
    for word in words:
        if not word.isidentifier():
            raise ScheduleError(f"order of `{target}`: `{word}` is not an index", hint="write `i,k,j`, outermost index first")
        if words.count(word) > 1:
            raise ScheduleError(f"order of `{target}`: index `{word}` stands twice in {', '.join(words)}")
    return words


def format_text(tensor: str, text: str) -> str:
    """The format in canonical spacing; whether it fits the rank of the tensor is seen when a program is compiled."""
    if text.strip() in SHORT_NAMES:
        return text.strip()
    rank = len(re.findall(r"[a-z]\w*", re.sub(r"order\s*\(.*|\(\w+\)", "", text)))
    try:
        return str(Format.parse(text, rank))
    except FuseFlowError as error:
        raise ScheduleError(f"format of `{tensor}`: {error.message}", hint=error.hint) from error


def block_sizes(tensor: str, sizes: Block) -> Block:
    """Whether they fit the rank of the tensor is seen when a program is compiled."""
    if not sizes or any(isinstance(size, bool) or not isinstance(size, int) for size in sizes):
        raise ScheduleError(f"block of `{tensor}`: {list(sizes)} are no sizes", hint="one for each dimension, as in `[16, 16]`")
    try:
        check_block(tuple(sizes), len(sizes))
    except FuseFlowError as error:
        raise ScheduleError(f"block of `{tensor}`: {error.message}", hint=error.hint) from error
    return tuple(sizes)


def vector_width(width: int) -> int:
    if isinstance(width, bool) or not 1 <= width <= MAX_BLOCK_SIDE:
        raise ScheduleError(f"vectors of {width} elements", hint=f"1 to {MAX_BLOCK_SIDE}")
    return width


def lane_count(index: str, lanes: int) -> int:
    region, dot, name = index.rpartition(".")
    if not name.isidentifier() or (dot and not re.fullmatch(r"\w[\w.-]*", region)):
        raise ScheduleError(f"lanes of `{index}`: not an index", hint="write `i`, or `layer1.i` for that of one region")
    if isinstance(lanes, bool) or lanes < 1:
        raise ScheduleError(f"lanes of `{index}`: {lanes} is not a number of lanes", hint="1 or more")
    return lanes


def choice(setting: str, value: str) -> str:
    if value not in CHOICES[setting]:
        hint = did_you_mean(value, CHOICES[setting])
        raise ScheduleError(f"`{setting}: {value}` is none of {', '.join(CHOICES[setting])}", hint=hint)
    return value


def tensor_names(what: str, names: Iterable[str]) -> tuple[str, ...]:
    unique = set(names)
    for name in unique:
        _check_name(what, name)
    return tuple(sorted(unique))


def assignments(flag: str, texts: Iterable[str], example: str) -> dict[str, str]:
    """`NAME=VALUE` texts as a dictionary."""
    found: dict[str, str] = {}
    for text in texts:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not (name and equals and value):
            raise UsageError(f"cannot read `{flag} {text}`", hint=f"write `{flag} {example}`")
        if found.setdefault(name, value) != value:
            raise UsageError(f"`{flag}` gives `{name}` twice: {found[name]} and {value}")
    return found


def order_policy(texts: Sequence[str]) -> tuple[str | None, list[str]]:
    """The policy among the `--order` texts, if there is one, and the others."""
    policies = CHOICES["order_policy"]
    for text in texts:
        if "=" not in text and text.strip() not in policies:
            hint = f"write `--order T=i,k,j`, or one of {', '.join(policies)} for all regions without an order"
            raise UsageError(f"cannot read `--order {text}`", hint=hint)
    found = {text.strip() for text in texts} & set(policies)
    if len(found) > 1:
        raise UsageError(f"`--order` asks for {' and '.join(f'`{policy}`' for policy in sorted(found))}", hint="say one of them")
    return next(iter(found), None), [text for text in texts if text.strip() not in found]


def lanes_text(index: str, text: str) -> int:
    """The lanes of `--par INDEX=TEXT`."""
    if not re.fullmatch(r"[0-9]{1,9}", text) or int(text) < 1:
        raise UsageError(f"`--par {index}={text}`: `{text}` is not a number of lanes", hint="1 or more")
    return int(text)


def block_text(tensor: str, text: str) -> Block:
    """The sizes of `--block TENSOR=TEXT`."""
    if not re.fullmatch(r"[0-9]{1,9}(x[0-9]{1,9})*", text):
        hint = "write its size along each dimension: `16x16`"
        raise UsageError(f"`--block {tensor}={text}`: `{text}` is not a block", hint=hint)
    return tuple(map(int, text.split("x")))
