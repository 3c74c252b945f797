"""The entries of a schedule: what each may be, and its canonical form."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from fuseflow.byte_sizes import BYTES_HINT, parse_bytes
from fuseflow.einsum.chain import Chain
from fuseflow.errors import FuseFlowError, ScheduleError, UsageError, did_you_mean
from fuseflow.schedule.settings import KEYWORDS, SETTINGS
from fuseflow.tensors import Format
from fuseflow.tensors.blocks import MAX_BLOCK_SIDE, Block, check_block
from fuseflow.tensors.format import SHORT_NAMES, parse_short_name, without_all
from fuseflow.tensors.format_patterns import is_pattern

T = TypeVar("T")
MOST_PRELOAD_PORTS = 1024
"""The most ports that preload a tensor."""
Entries = tuple[tuple[str, T], ...]
"""Named entries of a schedule: names with values, sorted by name."""


def fuse_names(names: Iterable[str]) -> tuple[str, ...]:
    """Return what is fused in canonical form. Raises `ScheduleError` for a keyword beside other names."""
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


def sorted_entries(section: str, pairs: Entries[T], check: Callable[[str, T], T]) -> Entries[T]:
    """Return the entries sorted by name, each value as `check` returns it. Raises `ScheduleError` for a name that is given twice, and for
    what `check` refuses.
    """
    names = [name for name, _ in pairs]
    for name in names:
        _check_name(section, name)
        if names.count(name) > 1:
            raise ScheduleError(f"{section} `{name}` is given twice")
    return tuple(sorted((name, check(name, value)) for name, value in pairs))


def _check_name(section: str, name: str) -> None:
    if not name or re.search(r"[\s,=]", name):
        hint = "give several names by repeating the flag" if "," in name else ""
        raise ScheduleError(f"{section} `{name}`: not a name", hint=hint)


def member_names(name: str, members: tuple[str, ...]) -> tuple[str, ...]:
    """Return the members of a region in canonical form. Raises `ScheduleError` for a name that no region can have, and for a region without
    members.
    """
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
    """Return a loop order without spaces around its indices. Raises `ScheduleError` for an index that is no name, or that stands twice."""
    words = tuple(word.strip() for word in indices)
    for word in words:
        if not word.isidentifier():
            raise ScheduleError(f"order of `{target}`: `{word}` is not an index", hint="write `i,k,j`, outermost index first")
        if words.count(word) > 1:
            raise ScheduleError(f"order of `{target}`: index `{word}` stands twice in {', '.join(words)}")
    return words


def format_entries(pairs: Entries[str]) -> Entries[str]:
    """Return the formats of tensors in canonical form: patterns of names in their order, since the last one counts, and then names, sorted.
    Raises `ScheduleError` for a name that is given twice, and for a text that is no format.
    """
    checked = dict(sorted_entries("format of", pairs, format_text))
    patterns = [name for name, _ in pairs if is_pattern(name)]
    return tuple((name, checked[name]) for name in dict.fromkeys((*patterns, *checked)))


def format_text(tensor: str, text: str) -> str:
    """Return the format in canonical spacing. Raises `ScheduleError` for a text that is no format. Whether it fits the rank of the tensor
    is checked when a program is compiled.
    """
    text, complete = without_all(text)
    if text in SHORT_NAMES and not (complete and text == "dense"):
        return f"{text} all" if complete else text
    try:
        text = f"{text} all" if complete else text
        if complete and not text.startswith("("):
            return str(Format.parse(text, 2))
        return str(Format.parse_levels(text) if text.startswith("(") else parse_short_name(text, 2))
    except FuseFlowError as error:
        raise ScheduleError(f"format of `{tensor}`: {error.message}", hint=error.hint) from error


def block_sizes(tensor: str, sizes: Block) -> Block:
    """Return the sizes of a block. Raises `ScheduleError` for sizes that no block can have. Whether they fit the rank of the tensor is
    checked when a program is compiled.
    """
    if not sizes or any(isinstance(size, bool) or not isinstance(size, int) for size in sizes):
        raise ScheduleError(f"block of `{tensor}`: {list(sizes)} are no sizes", hint="one for each dimension, as in `[16, 16]`")
    try:
        check_block(tuple(sizes), len(sizes))
    except FuseFlowError as error:
        raise ScheduleError(f"block of `{tensor}`: {error.message}", hint=error.hint) from error
    return tuple(sizes)


def split_size(target: str, size: int) -> int:
    """Return the size of the parts of an index. Raises `ScheduleError` for a name that is no index of an Einsum, and for a size below 2.
    Whether it divides the index is checked when a program is compiled.
    """
    einsum, _, index = target.rpartition(".")
    if not einsum or not index.isidentifier():
        raise ScheduleError(
            f"split of `{target}`: not an index of an Einsum", hint="write `T1.i` for the index i of the Einsum T1"
        )
    if isinstance(size, bool) or size < 2:
        raise ScheduleError(f"split of `{target}`: parts of {size}", hint="2 or more coordinates")
    return size


def vector_width(width: int) -> int:
    """Return the number of elements of a vector. Raises `ScheduleError` for a width that no vector can have."""
    if isinstance(width, bool) or not 1 <= width <= MAX_BLOCK_SIDE:
        raise ScheduleError(f"vectors of {width} elements", hint=f"1 to {MAX_BLOCK_SIDE}")
    return width


def lane_count(index: str, lanes: int) -> int:
    """Return the number of lanes of an index. Raises `ScheduleError` for a name that is no index, and for a number below 1."""
    region, stage, name = split_lanes(index)
    words = [region] if region or index != name else []
    words += [stage] if "/" in index else []
    if not name.isidentifier() or not all(re.fullmatch(r"\w[\w.-]*", word) for word in words):
        hint = "write `i`, `layer1.i` for that of one region, or `layer1/T1.i` for that of the stage which computes T1 there"
        raise ScheduleError(f"lanes of `{index}`: not an index", hint=hint)
    if isinstance(lanes, bool) or lanes < 1:
        raise ScheduleError(f"lanes of `{index}`: {lanes} is not a number of lanes", hint="1 or more")
    return lanes


def split_lanes(name: str) -> tuple[str, str, str]:
    """Return the region, the stage and the index that a name in the section `par` means. What the name does not say is empty.

    >>> split_lanes("layer1/T1.i"), split_lanes("layer1.i"), split_lanes("i")
    (('layer1', 'T1', 'i'), ('layer1', '', 'i'), ('', '', 'i'))
    """
    place, _, index = name.rpartition(".")
    region, _, stage = place.partition("/")
    return region, stage, index


def fifo_depth(name: str, depth: int) -> int:
    """Return the depth of a FIFO, or of all FIFOs of a region. Raises `ScheduleError` for a name that is neither, and for a depth below
    1.
    """
    region, fifo = split_fifo(name)
    if not re.fullmatch(r"\w[\w.-]*", region) or ("/" in name and not re.fullmatch(r".+\.[0-9]+", fifo)):
        hint = "write `layer1` for all FIFOs of a region, or `layer1/mul.1` for that of input 1 of the node `mul`"
        raise ScheduleError(f"depth of `{name}`: not a region or a FIFO", hint=hint)
    if isinstance(depth, bool) or depth < 1:
        raise ScheduleError(f"depth of `{name}`: {depth} is not a number of slots", hint="1 or more")
    return depth


def buffer_size(tensor: str, size: int | str) -> int:
    """Return the bytes of a reuse buffer. Raises `ScheduleError` for what is no number of bytes, and for one below 1."""
    if isinstance(size, bool) or not isinstance(size, int | str):
        raise ScheduleError(f"buffer of `{tensor}`: {size} is no number of bytes", hint=BYTES_HINT)
    try:
        return parse_bytes(str(size))
    except ValueError as error:
        raise ScheduleError(f"buffer of `{tensor}`: {error}", hint=BYTES_HINT) from error


def preload_ports(tensor: str, ports: int) -> int:
    """Return the ports that preload a tensor. Raises `ScheduleError` for what is no number of ports, and for one below 1."""
    if isinstance(ports, bool) or not 1 <= ports <= MOST_PRELOAD_PORTS:
        raise ScheduleError(f"preload of `{tensor}`: {ports} is not a number of ports", hint=f"1 to {MOST_PRELOAD_PORTS:,}")
    return ports


def chain_text(result: str, text: str) -> str:
    """Return the chain of products of a result in its canonical form. Raises `ScheduleError` for a text that is none."""
    try:
        return str(Chain.parse(text))
    except FuseFlowError as error:
        raise ScheduleError(f"association of `{result}`: {error.message}", hint=error.hint) from error


def split_fifo(name: str) -> tuple[str, str]:
    """Return the region and the FIFO that a name in the section `depth` means. For a whole region the second is empty.

    >>> split_fifo("layer1/sub/k0.1"), split_fifo("layer1")
    (('layer1', 'sub/k0.1'), ('layer1', ''))
    """
    region, _, fifo = name.partition("/")
    return region, fifo


def setting_value(setting: str, value: str) -> str:
    """Return the value of a setting. Raises `ScheduleError` if it is none of the possible ones."""
    if value not in SETTINGS[setting]:
        hint = did_you_mean(value, SETTINGS[setting])
        raise ScheduleError(f"`{setting}: {value}` is none of {', '.join(SETTINGS[setting])}", hint=hint)
    return value


def tensor_names(section: str, names: Iterable[str]) -> tuple[str, ...]:
    """Return names of tensors sorted, each once. Raises `ScheduleError` for a text that is no name."""
    unique = set(names)
    for name in unique:
        _check_name(section, name)
    return tuple(sorted(unique))


def parse_assignments(flag: str, texts: Iterable[str], example: str) -> dict[str, str]:
    """Return `NAME=VALUE` texts as a dictionary. Raises `UsageError` for another form, and for two values of one name."""
    values: dict[str, str] = {}
    for text in texts:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not (name and equals and value):
            raise UsageError(f"cannot read `{flag} {text}`", hint=f"write `{flag} {example}`")
        if values.setdefault(name, value) != value:
            raise UsageError(f"`{flag}` gives `{name}` twice: {values[name]} and {value}")
    return values


def split_order_policy(texts: Sequence[str]) -> tuple[str | None, list[str]]:
    """Return the policy among the `--order` texts, if there is one, and the other texts. Raises `UsageError` for a text that is neither,
    and for two policies.
    """
    policies = SETTINGS["order_policy"]
    for text in texts:
        if "=" not in text and text.strip() not in policies:
            hint = f"write `--order T=i,k,j`, or one of {', '.join(policies)} for all regions without an order"
            raise UsageError(f"cannot read `--order {text}`", hint=hint)
    chosen = {text.strip() for text in texts} & set(policies)
    if len(chosen) > 1:
        raise UsageError(f"`--order` asks for {' and '.join(f'`{policy}`' for policy in sorted(chosen))}", hint="say one of them")
    return next(iter(chosen), None), [text for text in texts if text.strip() not in chosen]


def split_depth_policy(texts: Sequence[str]) -> tuple[str | None, list[str]]:
    """Return the policy among the `--depth` texts, if there is one, and the other texts. Raises `UsageError` for two policies."""
    chosen = {text.strip() for text in texts} & set(SETTINGS["depth_policy"])
    if len(chosen) > 1:
        raise UsageError("`--depth` asks for `auto` and `machine`", hint="say one of them")
    return next(iter(chosen), None), [text for text in texts if text.strip() not in chosen]


def lanes_text(index: str, text: str) -> int:
    """Return the number of lanes of `--par INDEX=TEXT`. Raises `UsageError` if the text is none."""
    if not re.fullmatch(r"[0-9]{1,9}", text) or int(text) < 1:
        raise UsageError(f"`--par {index}={text}`: `{text}` is not a number of lanes", hint="1 or more")
    return int(text)


def depth_text(name: str, text: str) -> int:
    """Return the depth of `--depth NAME=TEXT`. Raises `UsageError` if the text is none."""
    if not re.fullmatch(r"[0-9]{1,9}", text) or int(text) < 1:
        raise UsageError(f"`--depth {name}={text}`: `{text}` is not a number of slots", hint="1 or more")
    return int(text)


def preload_text(tensor: str, text: str) -> int:
    """Return the ports of `--preload TENSOR=TEXT`. Raises `UsageError` if the text is no number of ports."""
    if not re.fullmatch(r"[0-9]{1,9}", text) or not 1 <= int(text) <= MOST_PRELOAD_PORTS:
        hint = f"1 to {MOST_PRELOAD_PORTS:,}"
        raise UsageError(f"`--preload {tensor}={text}`: `{text}` is not a number of ports", hint=hint)
    return int(text)


def split_text(target: str, text: str) -> int:
    """Return the size of `--split EINSUM.INDEX=TEXT`. Raises `UsageError` if the text is none."""
    if not re.fullmatch(r"[0-9]{1,9}", text) or int(text) < 2:
        raise UsageError(f"`--split {target}={text}`: `{text}` is not a size of parts", hint="2 or more")
    return int(text)


def block_text(tensor: str, text: str) -> Block:
    """Return the sizes of `--block TENSOR=TEXT`. Raises `UsageError` if the text has another form."""
    if not re.fullmatch(r"[0-9]{1,9}(x[0-9]{1,9})*", text):
        hint = "write its size along each dimension: `16x16`"
        raise UsageError(f"`--block {tensor}={text}`: `{text}` is not a block", hint=hint)
    return tuple(map(int, text.split("x")))
