"""The sections of a schedule, one row each: its key, its flag with the help, its check, and how it is read and written.

A new section is a row here, and a field of `Schedule` with a method that adds to it. The rows are in the order of the help. Only
modules that `--help` needs are imported.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fuseflow.byte_sizes import BYTES_HINT, byte_text, parse_bytes
from fuseflow.errors import FuseFlowError, ScheduleError, UsageError
from fuseflow.schedule.section import KEYWORDS, Fused, Named, Names, Number, Section, Word, check_name, split_fifo, split_lanes

if TYPE_CHECKING:
    from fuseflow.plan.plan import Plan
    from fuseflow.tensors.blocks import Block


def fuse_names(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names in `fuse` in canonical form. Raises `ScheduleError` for a keyword together with other names."""
    keywords = [k for k in KEYWORDS if k in names]
    if keywords == ["none"]:  # everything that is not named is left alone anyway
        return tuple(name for name in names if name != "none") or names
    if keywords and len(names) > 1:
        others = ", ".join(f"`{n}`" for n in names if n != keywords[0])
        raise ScheduleError(f"`{keywords[0]}` says what is fused in the whole model and cannot stand beside {others}")
    return names or ("none",)


def member_names(name: str, members: Sequence[str]) -> tuple[str, ...]:
    """Return the members of a region in canonical form. Raises `ScheduleError` for names that cannot be, and for no members."""
    if name in KEYWORDS:
        raise ScheduleError(f"a region cannot be called `{name}`, which says what is fused in the whole model")
    if not re.fullmatch(r"\w[\w.-]*", name):
        raise ScheduleError(f"region `{name}`: not a name", hint="use letters, digits and `_ . -`")
    if not members:
        raise ScheduleError(f"region `{name}` is empty", hint="list its Einsums or modules")
    for member in members:
        check_name(f"region `{name}`: member", member)
    return tuple(sorted(set(members)))


def loop_order(target: str, indices: Sequence[str]) -> tuple[str, ...]:
    """Return a loop order without spaces. Raises `ScheduleError` for an index that is not a name, or is in it twice."""
    words = tuple(word.strip() for word in indices)
    for word in words:
        if not word.isidentifier():
            raise ScheduleError(f"order of `{target}`: `{word}` is not an index", hint="write `i,k,j`, outermost index first")
        if words.count(word) > 1:
            raise ScheduleError(f"order of `{target}`: index `{word}` stands twice in {', '.join(words)}")
    return words


def format_text(tensor: str, text: str) -> str:
    """Return the format in canonical spacing. Raises `ScheduleError` for a text that is not a format. Whether it fits the rank of
    the tensor is checked when a program is compiled."""
    from fuseflow.tensors.format import SHORT_NAMES, Format, parse_short_name, without_all

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


def block_sizes(tensor: str, sizes: Sequence[int]) -> Block:
    """Return the sizes of a block. Raises `ScheduleError` for sizes that no block can have. Whether they fit the rank of the tensor is
    checked when a program is compiled.
    """
    from fuseflow.tensors.blocks import check_block

    if not sizes or any(isinstance(size, bool) or not isinstance(size, int) for size in sizes):
        raise ScheduleError(f"block of `{tensor}`: {list(sizes)} are no sizes", hint="one for each dimension, as in `[16, 16]`")
    try:
        check_block(tuple(sizes), len(sizes))
    except FuseFlowError as error:
        raise ScheduleError(f"block of `{tensor}`: {error.message}", hint=error.hint) from error
    return tuple(sizes)


def block_text(flag: str, text: str) -> Block:
    """Return the sizes of a block in the text of a flag. Raises `UsageError` if the text has another form."""
    if not re.fullmatch(r"[0-9]{1,9}(x[0-9]{1,9})*", text):
        raise UsageError(f"`{flag}`: `{text}` is not a block", hint="write its size along each dimension: `16x16`")
    return tuple(map(int, text.split("x")))


def split_size(target: str, size: int) -> int:
    """Return the size of the inner loop of a split index. Raises `ScheduleError` for a name that is not an index of an Einsum,
    and for a size below 2. Whether it divides the index is checked when a program is compiled."""
    einsum, _, index = target.rpartition(".")
    if not einsum or not index.isidentifier():
        raise ScheduleError(
            f"split of `{target}`: not an index of an Einsum", hint="write `T1.i` for the index i of the Einsum T1"
        )
    if isinstance(size, bool) or size < 2:
        raise ScheduleError(f"split of `{target}`: parts of {size}", hint="2 or more coordinates")
    return size


def tile_size(index: str, size: int) -> int:
    """Return the number of coordinates of a tile. Raises `ScheduleError` for a name that is not an index, or that of a region."""
    region, _, name = index.rpartition(".")
    if not name.isidentifier() or not re.fullmatch(r"(\w[\w.-]*)?", region):
        raise ScheduleError(f"tiles of `{index}`: not an index", hint="write `i`, or `layer1.i` for that of one region")
    return size


def vector_width(width: int) -> int:
    """Return the number of elements of a vector. Raises `ScheduleError` for a width that no vector can have."""
    from fuseflow.tensors.blocks import MAX_BLOCK_SIDE

    if isinstance(width, bool) or not 1 <= width <= MAX_BLOCK_SIDE:
        raise ScheduleError(f"vectors of {width} elements", hint=f"1 to {MAX_BLOCK_SIDE}")
    return width


def lane_count(index: str, lanes: int) -> int:
    """Return the number of lanes of an index. Raises `ScheduleError` for a name that is not an index."""
    region, stage, name = split_lanes(index)
    words = [region] if region or index != name else []
    words += [stage] if "/" in index else []
    if not name.isidentifier() or not all(re.fullmatch(r"\w[\w.-]*", word) for word in words):
        hint = "write `i`, `layer1.i` for that of one region, or `layer1/T1.i` for that of the stage which computes T1 there"
        raise ScheduleError(f"lanes of `{index}`: not an index", hint=hint)
    return lanes


def fifo_depth(name: str, depth: int) -> int:
    """Return the depth of a FIFO, or of all FIFOs of a region. Raises `ScheduleError` for a name that is neither."""
    region, fifo = split_fifo(name)
    if not re.fullmatch(r"\w[\w.-]*", region) or ("/" in name and not re.fullmatch(r".+\.[0-9]+", fifo)):
        hint = "write `layer1` for all FIFOs of a region, or `layer1/mul.1` for that of input 1 of the node `mul`"
        raise ScheduleError(f"depth of `{name}`: not a region or a FIFO", hint=hint)
    return depth


def chain_text(result: str, text: str) -> str:
    """Return the chain of products of a result in its canonical form. Raises `ScheduleError` for a text that is not a chain."""
    from fuseflow.einsum.chain import Chain

    try:
        return str(Chain.parse(text))
    except FuseFlowError as error:
        raise ScheduleError(f"association of `{result}`: {error.message}", hint=error.hint) from error


def buffer_size(tensor: str, size: int | str) -> int:
    """Return the bytes of a reuse buffer. Raises `ScheduleError` for a value that is not a number of bytes, or below 1."""
    if isinstance(size, bool) or not isinstance(size, int | str):
        raise ScheduleError(f"buffer of `{tensor}`: {size} is no number of bytes", hint=BYTES_HINT)
    try:
        return parse_bytes(str(size))
    except ValueError as error:
        raise ScheduleError(f"buffer of `{tensor}`: {error}", hint=BYTES_HINT) from error


def memory_name(tensor: str, memory: str) -> str:
    """Return the name of the memory in which a tensor lies. Raises `ScheduleError` for another one than the scratchpad."""
    if memory != "scratchpad":
        raise ScheduleError(
            f"place of `{tensor}`: there is no memory `{memory}`", hint="write `scratchpad`, or leave it in the memory"
        )
    return memory


def plan_of(plan: Plan | Path) -> Plan:
    """Return a plan unchanged, the plan in a file, or for the path `auto` the plan that is still to be chosen."""
    from fuseflow.plan.plan import AUTO, Plan, read_plan

    if isinstance(plan, Plan):
        return plan
    return Plan(auto=True) if str(plan) == AUTO else read_plan(plan)


MOST_PRELOAD_PORTS = 1024
"""The most ports that preload a tensor."""
_ORDER_POLICY = Word(key="order_policy", words=("best", "first", "auto"))
_DEPTH_POLICY = Word(key="depth_policy", words=("machine", "auto"))

SECTIONS: tuple[Section, ...] = (
    Fused(
        key="fuse",
        field="fuse_regions",
        phrase="--fuse",
        check=fuse_names,
        metavar="REGION",
        completion="parts",
        help="none, layerwise, full, best (the default), auto, or a module or Einsum; repeatable.",
    ),
    Named(key="regions", field="regions", of=list[str], phrase="region", check_entry=member_names, write=list),
    Named(
        key="order",
        of=list[str],
        check_entry=loop_order,
        parse_entry=lambda _flag, text: text.split(","),
        write=list,
        policy=_ORDER_POLICY,
        example="T=i,k,j",
        otherwise=f", or one of {', '.join(_ORDER_POLICY.words)} for all regions without an order",
        metavar="REGION=i,k,j",
        completion="parts",
        help="Loop order of a region; first, best or auto: of all others.",
    ),
    _ORDER_POLICY,
    Named(
        key="format",
        check_entry=format_text,
        patterns=True,
        example="adj=csr",
        metavar="TENSOR=csr",
        completion="tensors",
        help="Storage format of a tensor, or of all that a pattern matches; repeatable.",
    ),
    Named(
        key="block",
        of=list[int],
        check_entry=block_sizes,
        parse_entry=block_text,
        write=list,
        example="adj=16x16",
        metavar="TENSOR=16x16",
        completion="tensors",
        help="Blocks in which a tensor is stored; repeatable.",
    ),
    Named(
        key="split",
        of=int,
        check_entry=split_size,
        number=Number("a size of parts", least=2),
        example="T.i=16",
        metavar="EINSUM.i=16",
        help="An index that is two loops in its region, and the size of the inner one; repeatable.",
    ),
    Named(
        key="tile",
        of=int,
        check_entry=tile_size,
        number=Number("a size of tiles", least=2),
        example="i=1024",
        metavar="i=1024",
        completion="indices",
        help="Coordinates of an index that run at a time, in a region; repeatable.",
    ),
    Section(
        key="vector",
        of=int,
        check=vector_width,
        write=lambda width: width if width > 1 else None,
        metavar="16",
        help="Elements of a dense dimension that go through a stream together.",
    ),
    Named(
        key="par",
        field="parallel",
        of=int,
        phrase="lanes of",
        check_entry=lane_count,
        number=Number("a number of lanes"),
        example="i=4",
        metavar="i=4",
        completion="indices",
        help="Lanes of an index, in a region or a stage; repeatable.",
    ),
    Named(
        key="depth",
        of=int,
        check_entry=fifo_depth,
        number=Number("a number of slots"),
        policy=_DEPTH_POLICY,
        example="layer1=128",
        metavar="REGION=128",
        completion="parts",
        help="Slots of the FIFOs of a region, or of one; `auto`: as many as they need; repeatable.",
    ),
    _DEPTH_POLICY,
    Named(
        key="associate",
        field="associations",
        phrase="association of",
        check_entry=chain_text,
        example='"T1=A (X W)"',
        metavar='"T=A (X W)"',
        help="Order of the products that end in T; repeatable.",
    ),
    Named(
        key="buffer",
        of=int | str,
        check_entry=buffer_size,
        write=byte_text,
        example="W1=64KB",
        metavar="TENSOR=64KB",
        completion="tensors",
        help="Reuse buffer of each port that reads a tensor; repeatable.",
    ),
    Named(
        key="preload",
        of=int,
        number=Number("a number of ports", most=MOST_PRELOAD_PORTS),
        example="W1=8",
        metavar="TENSOR=8",
        completion="tensors",
        help="Ports that read a tensor once, in order, for all its readers; repeatable.",
    ),
    Named(
        key="place",
        field="memories",
        check_entry=memory_name,
        example="W1=scratchpad",
        metavar="TENSOR=scratchpad",
        completion="tensors",
        help="A tensor that lies in the scratchpad; repeatable.",
    ),
    Word(key="iteration", words=("factored", "global"), help="Reductions in loops of their own, or one space."),
    Word(key="intermediates", words=("real", "dense"), help="What regions read: the real ones, or stand-ins."),
    Word(key="locate", words=("auto", "always", "never"), help="Dense levels: located, or scanned and joined."),
    Word(key="writers", words=("auto", "once", "lanes"), help="Dense results of lanes: written once, or in each lane."),
    Word(key="rescan", words=("auto", "every", "never"), help="Outermost levels: scanned in every loop, or kept."),
    Word(key="primitives", words=("auto", "own", "public"), help="What graphs are made of: our own, or public ones."),
    Word(key="repeat", words=("value", "reference"), help="What is repeated in loops that an operand lacks."),
    Section(
        key="copies",
        of=bool,
        write=lambda copies: None if copies else False,
        help="Never copy a tensor into another storage order.",
    ),
    Names(
        key="drop_zeros",
        phrase="drop zeros of",
        metavar="TENSOR",
        completion="tensors",
        help="Store a result without its zeros; repeatable.",
    ),
    Names(
        key="recompute",
        field="recomputed",
        phrase="recompute",
        metavar="EINSUM",
        completion="parts",
        help="An Einsum that later regions compute again; repeatable.",
    ),
    Section(
        key="plan",
        of=Any,
        parse=plan_of,
        write=lambda plan: plan.to_rows(),
        metavar="FILE",
        help="Operands that are divided into parts; or `auto`.",
    ),
    Names(
        key="resident",
        phrase="resident",
        metavar="TENSOR",
        completion="tensors",
        help="An input read from the configuration; repeatable.",
    ),
)
"""All sections, in the order of the help."""
BY_KEY = {section.key: section for section in SECTIONS}
BY_FIELD = {section.attribute: section for section in SECTIONS}
