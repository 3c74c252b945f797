"""Machine code of products with matrices n:m and n:m:g.

The dense matrices are cut into panels of so few columns that a row of a panel is one to eight vectors. An entry of the stored
matrix joins a row of one panel to a row of the other. Entries are walked so that one of the two stays in registers, `held`, while
the others change, and there are three walks:

- `gather` adds the other rows, times their entries, to the held rows;
- `spread` adds the held rows, times their entries, to the other rows;
- `sample` multiplies the held rows with the other rows, which gives gradients of the entries.

The functions return code that is compiled once in a process. Its arguments are addresses, and counts of at least 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, Literal, TypeAlias

from fuseflow.native.vector_code import INTEGER, VectorCode, vectors

Walk: TypeAlias = Literal["gather", "spread", "sample"]
Code: TypeAlias = Callable[..., None]


def panel_widths(rows: int) -> tuple[int, ...]:
    """Return how many vectors a row of a panel may have, ascending. The widest is one of which `rows` fit into the registers, beside
    what they are joined with, if there is one."""
    widest = max(1, min(8, (vectors()[1] - 2) // rows))
    return (*(width for width in (1, 2, 4) if width < widest), widest)


def lanes(size: int) -> int:
    """Return how many numbers of `size` bytes a vector has."""
    return vectors()[0] // size


@cache
def grouped_code(walk: Walk, n: int, width: int, size: int, bits: int) -> Code:
    """Return a walk over chunks of n:m:g that holds `n` rows of the sparse dimension. Rows have `width` vectors of numbers of `size` bytes,
    and values have `bits` bits.

    The code takes the panels of the sparse and the grouped dimension, `values`, `columns` and `places`; the number of chunks along
    the grouped dimension, the number along the sparse dimension, and how many of these it walks; the number of patterns, g and m.
    """
    c = VectorCode(f"grouped_{walk}_{n}_{width}_{size}_{bits}", size, lanes(size), 11)
    b, row = c.builder, width * c.lanes * size
    sparse, grouped, values, columns, places, across, along, walked, patterns, g, m = c.function.args
    per_chunk = b.mul(patterns, g)
    with c.loop(across) as outer, c.loop(walked) as inner:
        sparse_rows = c.at(sparse, b.mul(inner.index, m), row)
        grouped_rows = c.at(grouped, b.mul(outer.index, per_chunk), row)
        first = b.mul(b.add(b.mul(outer.index, along), inner.index), per_chunk)
        with c.loop(patterns) as pattern:
            own = [
                c.at(sparse_rows, c.integer(c.at(c.at(places, pattern.index, 2 * n), INTEGER(k), 2), 16), row) for k in range(n)
            ]
            held = [c.load(address, width) for address in own]
            with _walk(c, walk, g, held) as (index, rows):
                entry = b.add(b.add(first, b.mul(pattern.index, g)), index)
                other = c.at(grouped_rows, c.integer(c.at(columns, entry, 2), 16), row)
                _join(c, walk, rows, other, c.at(values, entry, n * bits // 8), bits)
            if walk == "gather":
                for address, vectors_of_row in zip(own, rows, strict=True):
                    c.store(vectors_of_row, address)
    return c.compiled()


@cache
def nm_code(walk: Walk, n: int, width: int, size: int, bits: int) -> Code:
    """Return a walk over lines of groups of n:m that holds the row of a line. Sizes are those of `grouped_code`.

    The code takes the panel of the sparse dimension from the first group on that it walks, the panel of the lines, `values` and
    `offsets` from that group on, the number of lines, of groups in a line, and of those that it walks, and m.
    """
    c = VectorCode(f"nm_{walk}_{n}_{width}_{size}_{bits}", size, lanes(size), 8)
    b, row = c.builder, width * c.lanes * size
    sparse, lines, values, offsets, count, groups, walked, m = c.function.args
    with c.loop(count) as line:
        own = c.at(lines, line.index, row)
        first = b.mul(b.mul(line.index, groups), INTEGER(n))
        with _walk(c, walk, walked, [c.load(own, width)]) as (group, rows):
            group_rows = c.at(sparse, b.mul(group, m), row)
            for k in range(n):
                entry = b.add(first, b.add(b.mul(group, INTEGER(n)), INTEGER(k)))
                other = c.at(group_rows, c.integer(c.at(offsets, entry, 1), 8, signed=False), row)
                _join(c, walk, rows, other, c.at(values, entry, bits // 8), bits)
        if walk == "gather":
            c.store(rows[0], own)
    return c.compiled()


@contextmanager
def _walk(c: VectorCode, walk: Walk, count: Any, held: list[list[Any]]) -> Iterator[tuple[Any, list[list[Any]]]]:
    """Write a loop over entries. It gives the number of the pass and the held rows, which `_join` changes, and which have their
    last values after the loop."""
    if walk != "gather":
        with c.loop(count) as loop:
            yield loop.index, held
        return
    width = len(held[0])
    with c.loop(count, [vector for row in held for vector in row]) as loop:
        rows = [loop.values[start : start + width] for start in range(0, len(loop.values), width)]
        yield loop.index, rows
        loop.values = [vector for row in rows for vector in row]


def _join(c: VectorCode, walk: Walk, held: list[list[Any]], other: Any, values: Any, bits: int) -> None:
    """Write what entries do that join each of the held rows to the row at the address `other`. Their values begin at the address
    `values`."""
    vectors_there = c.load(other, len(held[0]))
    for k, row in enumerate(held):
        at = c.at(values, INTEGER(k), bits // 8)
        if walk == "sample":
            products = c.everywhere(c.real(0))
            for a, v in zip(row, vectors_there, strict=True):
                products = c.multiply_add(a, v, products)
            c.store_number(c.builder.fadd(c.number(at, bits), c.total(products)), at)
            continue
        value = c.everywhere(c.number(at, bits))
        if walk == "gather":
            held[k] = [c.multiply_add(value, v, a) for a, v in zip(row, vectors_there, strict=True)]
        else:
            vectors_there = [c.multiply_add(value, a, v) for a, v in zip(row, vectors_there, strict=True)]
    if walk == "spread":
        c.store(vectors_there, other)


@cache
def transpose_code(size: int) -> Code:
    """Return code that transposes whole squares of a matrix, as many rows and columns as a vector has lanes.

    It takes the target and the bytes from row to row there, the source and the bytes from row to row there, and how many squares
    the source has in rows and in columns.
    """
    c = VectorCode(f"transpose_{size}", size, lanes(size), 6)
    target, target_row, source, source_row, down, right = c.function.args
    b, count = c.builder, c.lanes
    with c.loop(down) as i, c.loop(right) as j:
        read = c.at(c.at(source, b.mul(i.index, source_row), count), j.index, count * size)
        written = c.at(c.at(target, b.mul(j.index, target_row), count), i.index, count * size)
        rows = [c.load(c.at(read, INTEGER(k), source_row))[0] for k in range(count)]
        for k, row in enumerate(_transposed(c, rows)):
            c.store([row], c.at(written, INTEGER(k), target_row))
    return c.compiled()


def _transposed(c: VectorCode, rows: list[Any]) -> list[Any]:
    """Return the columns of a square whose rows are vectors: blocks of 1, 2, 4 ... are exchanged across the diagonal."""
    block = 1
    while block < c.lanes:
        even = [lane // block % 2 == 0 for lane in range(c.lanes)]
        low = [lane if even[lane] else lane + c.lanes - block for lane in range(c.lanes)]
        high = [lane + block if even[lane] else lane + c.lanes for lane in range(c.lanes)]
        pairs = [(k, k + block) for k in range(c.lanes) if even[k]]
        exchanged = list(rows)
        for k, l in pairs:
            exchanged[k], exchanged[l] = c.shuffle(rows[k], rows[l], low), c.shuffle(rows[k], rows[l], high)
        rows, block = exchanged, 2 * block
    return rows
