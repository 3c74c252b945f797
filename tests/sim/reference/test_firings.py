"""When each primitive fires, and that its gates are tight: tiny streams, cycles worked out from the contract by hand."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np
import pytest
from driving import Driven, drive, inputs_of

from fuseflow.errors import SimulationError
from fuseflow.samml import nodes as n
from fuseflow.tensors import Format, Tensor, pack
from fuseflow.tensors.levels.compressed import CompressedFibers
from fuseflow.tensors.levels.dense import DenseFibers

ANY = Format.of("compressed")
A = n.TensorDecl("A", (9,), ANY)


def stored(pos: list[int], crd: list[int]) -> dict[str, Tensor]:
    fibers = CompressedFibers(9, np.array(pos), np.array(crd, dtype=np.int64))
    return {"A": Tensor((9,), ANY, (fibers,), np.arange(10.0, 10.0 + len(crd)))}


@dataclass(frozen=True)
class Example:
    """A node with its streams, what it fires on its outputs, and how often, where that says more."""

    node: n.Node
    streams: tuple[str, ...]
    fired: tuple[str, ...]
    firings: int | None
    given: dict[str, Any]

    def drive(self) -> Driven:
        return drive(self.node, *self.streams, **self.given)


def of(node: n.Node, *streams: str, fired: str | tuple[str, ...], firings: int | None = None, **given: Any) -> Example:
    return Example(node, streams, (fired,) if isinstance(fired, str) else fired, firings, given)


def scan(refs: str, pos: list[int], crd: list[int], fired: str, **timing: int) -> Example:
    """An example of a scan of which the coordinates are compared."""
    return of(n.Scan("s", inputs_of(1), "A", 0), refs, fired=fired, tensors=stored(pos, crd), **timing)


def locate(crds: str, fired: str, tensors: dict[str, Tensor], **given: Any) -> Example:
    return of(n.Locate("l", inputs_of(1), "A", 0), crds, fired=fired, declared=(A,), tensors=tensors, **given)


def alu(function: str, *operands: n.Operand, streams: tuple[str, ...], fired: str, **given: Any) -> Example:
    return of(n.Alu("a", inputs_of(len(streams)), function, operands), *streams, fired=fired, **given)


def constant(value: float) -> n.Operand:
    return n.Operand(value, constant=True)


def repeat(x: str, signal: str, fired: str) -> Example:
    return of(n.Repeat("r", inputs_of(2)), x, signal, fired=fired)


def join(kind: Any, *streams: str, fired: str | tuple[str, ...]) -> Example:
    return of(n.Join("j", inputs_of(len(streams)), kind, (1,) * (len(streams) // 2)), *streams, fired=fired)


def align(old: str, new: str, x: str, fired: str) -> Example:
    return of(n.Align("a", inputs_of(3)), old, new, x, fired=fired)


def reduce(val: str, fired: str, function: str = "sum") -> Example:
    return of(n.Reduce("r", inputs_of(1), function), val, fired=fired)


def accumulate(*streams: str, fired: str | tuple[str, ...], **given: Any) -> Example:
    order = len(streams) - 2
    return of(n.Accumulate("a", inputs_of(order + 2), "sum", order), *streams, fired=fired, **given)


def permute(order: tuple[int, ...], *streams: str, fired: str | tuple[str, ...], **given: Any) -> Example:
    return of(n.Permute("p", inputs_of(len(order) + 1), order), *streams, fired=fired, **given)


def select(keep: int, every: int, *streams: str, fired: str | tuple[str, ...] = "", **given: Any) -> Example:
    levels = len(streams) - 1
    return of(n.Select("s", inputs_of(levels + 1), keep, every, levels), *streams, fired=fired, **given)


def drop(*streams: str, fired: str | tuple[str, ...], value: float | None = None) -> Example:
    return of(n.Drop("d", inputs_of(len(streams)), value), *streams, fired=fired)


DENSE = {"A": Tensor((2,), Format.dense(1), (DenseFibers(2, 3),), np.zeros(6))}
MATRIX = n.TensorDecl("A", (4, 5), Format.dense(2))
KEPT = stored([0, 3], [1, 4, 7])
UNION = "0 2 S0 D", "10 11 S0 D", "1 2 3 S0 D", "20 21 22 S0 D"
TWO_ROWS = "0 1 S0 D", "2 5 S0 2 S1 D", "1 2 S0 4 S1 D"
FOUR = "0 2 3 7 S0 D", "1 -5 2 4 S0 D"
BARE = "S1-1 D", "S2-2 D", "S2-2 D"

EXAMPLES = {
    "root: in cycles 0 and 1": of(n.Root("r", ()), fired="0@0 D@1"),
    "scan: an element a cycle, then the closing firing": of(
        n.Scan("s", inputs_of(1), "A", 0), "0 D", tensors=KEPT, fired=("1@0 4@1 7@2 S0@3 D@4", "0@0 1@1 2@2 S0@3 D@4")
    ),
    "scan: the closing firing looks at the next reference": scan(
        "0 1@10 S0@13 D", [0, 1, 2], [1, 4], "1@0 S0@10 4@11 S1@13 D@14"
    ),
    "scan: an empty segment costs a firing that emits nothing": scan(
        "0 1 2 S0 D", [0, 2, 2, 3], [1, 4, 0], "1@0 4@1 S0@2 S0@4 0@5 S1@6 D@7"
    ),
    "scan: N is an empty segment": scan("N 0 S0 D", [0, 1], [5], "S0@1 5@2 S1@3 D@4"),
    "scan: a bare stop is raised in one firing": scan("S0@3 S1-1@4 D", [0], [], "S1-1@3 S2-2@4 D@5"),
    "scan: the interval separates values, not what follows a stop": scan(
        "0 0 S0 D", [0, 2], [1, 4], "1@0 4@3 S0@6 1@7 4@10 S1@13 D@14", interval=3
    ),
    "scan: a dense level": of(
        n.Scan("s", inputs_of(1), "A", 0), "2 D", tensors=DENSE, fired=("0@0 1@1 S0@2 D@3", "4@0 5@1 S0@2 D@3")
    ),
    "range": of(n.Range("r", inputs_of(1), 2), "N 7 S0 D", fired="0@0 1@1 S0@2 0@3 1@4 S1@5 D@6"),
    "range: of nothing": of(n.Range("r", inputs_of(1), 0), "0 D", fired="S0@1 D@2"),
    "locate: waits for each token": of(
        n.Locate("l", inputs_of(2), "A", 1), "2@0 3@1 S0@5 D", "1@4 N@5 S0 D", declared=(MATRIX,), fired="7@4 N@5 S0@6 D@7"
    ),
    "locate: in the outermost level": of(
        n.Locate("l", inputs_of(1), "A", 0), "2@3 S0 D", declared=(MATRIX,), fired="2@3 S0@4 D@5"
    ),
    "locate: keeps a compressed level before it takes a token": locate(
        "4 5 S0@9 7 N S0 D", "1@3 N@4 S0@9 2@10 N@11 S0@12 D@13", KEPT, firings=3 + 7
    ),
    "locate: keeps it in its interval": locate("1 S0 D", "0@6 S0@8 D@9", KEPT, interval=2),
    "locate: keeps an empty level": locate("1 S0 D", "N@0 S0@1 D@2", stored([0, 0], [])),
    "load: waits for each token": of(
        n.Load("l", inputs_of(1), "A"), "1@2 N@3 S0 D", tensors=stored([0, 2], [1, 4]), declared=(n.TensorDecl("A", (9,), ANY, fill=-1.0),),
        fired="11@2 -1@3 S0@4 D@5",
    ),
    "load: a scalar by the root reference": of(
        n.Load("l", inputs_of(1), "A"), "0 D", tensors={"A": pack(3.0, Format.dense(0))},
        declared=(n.TensorDecl("A", (), Format.dense(0)),),
        fired="3@0 D@1",
    ),
    "alu: fires when the later operand is there": alu(
        "add", n.Operand(0.0), n.Operand(5.0), streams=("1.5@0 2@1 S0 D", "1@7 N@8 S0 D"), fired="2.5@7 7@8 S0@9 D@10"
    ),
    "alu: a constant": alu("sub", constant(10.0), n.Operand(0.0), streams=("1 N S0 D",), fired="9@0 10@1 S0@2 D@3"),
    "alu: three operands": alu(
        "where", n.Operand(0.0), n.Operand(0.0), n.Operand(-inf), streams=("1 0 N S0 D", "2 2 2 S0 D", "3 3 N S0 D"),
        fired="2@0 3@1 -inf@2 S0@3 D@4",
    ),
    "alu: two constants of three": alu(
        "where", n.Operand(0.0), constant(4.0), constant(5.0), streams=("1 N S0 D",), fired="4@0 5@1 S0@2 D@3"
    ),
    "repeat: the first value of a fiber takes x": repeat("7@5 8@6 S0@9 D", "0 1 S0 2 S1 D", "7@5 7@6 S0@7 8@8 S1@9 D@10"),
    "repeat: a fiber that ends no list of x does not wait for the next x": repeat(
        "7 8@20 S0 D", "0 S0 1 S1 D", "7@0 S0@1 8@20 S1@21 D@22"
    ),
    "repeat: an empty fiber takes x in a firing of its own": repeat("7 8 S0 D", "S0 1 S1 D", "S0@1 8@2 S1@3 D@4"),
    "repeat: a bare higher stop takes both": repeat("S0@4 S1-1@5 D", "S1-1 S2-2 D", "S1-1@4 S2-2@5 D@6"),
    "repeat: the root by a signal with N": repeat("0 D", "3 N S0 D", "0@0 0@1 S0@2 D@3"),
    "join: one firing a comparison": join(
        "intersect", "0 2 4 S0 D", "10 11 12 S0 D", "1 2 S0 D", "20 21 S0 D", fired=("2@2 S0@4 D@5", "11@2 S0@4 D@5", "21@2 S0@4 D@5")
    ),
    "join: union": join(
        "union", *UNION, fired=("0@0 1@1 2@2 3@3 S0@4 D@5", "10@0 N@1 11@2 N@3 S0@4 D@5", "N@0 20@1 21@2 22@3 S0@4 D@5")
    ),
    "join: left": join("left", *UNION, fired=("0@0 2@2 S0@4 D@5", "10@0 11@2 S0@4 D@5", "N@0 21@2 S0@4 D@5")),
    "join: all heads must be visible, also of sides that wait": join(
        "union", "0 S0 D", "10 S0@6 D", "1@3 S0 D", "20@4 S0 D", fired="0@4 1@6 S0@7 D@8"
    ),
    "join: three sides are taken together": join(
        "intersect", "1 3 S0 D", "0 1 S0 D", "2 3 S0 D", "0 1 S0 D", "3 S0 D", "0 S0 D", fired="3@2 S0@3 D@4"
    ),
    # compare 0; 5, 6, S0 (held); compare 2 (emits S0); 7, S1 (held); both stops
    "align: a subtree is carried and its stop held": align(
        "0 2 S0 D", "0 2 S0 D", "5 6 S0 7 S1 D", "5@1 6@2 S0@4 7@5 S1@7 D@8"
    ),
    "align: the next coordinate of `new` releases the stop": align(
        "0 2 S0 D", "0 2@30 S0 D", "5 6 S0 7 S1 D", "5@1 6@2 S0@30 7@31 S1@33 D@34"
    ),
    "align: a lost subtree is read": align("0 S0 D", "1 S0 D", "5 S1 D", "S1@4 D@5"),
    "align: an added subtree is empty": align("S0 D", "0 1 S0 D", "S1-1 D", "S0@1 S1@2 D@3"),
    "align: all subtrees are lost": align("0 S0 D", "S0 D", "5 S1 D", "S1-1@3 D@4"),
    "reduce: the outgoing stop has a firing of its own": reduce("1 2 S0 S1 D", "3@2 0@3 S0@4 D@5"),
    "reduce: and so has one above it": reduce("1 2 S0 3@3 S1 S2-2 D", "3@2 3@4 S0@5 S1-1@6 D@7"),
    "reduce: a higher stop alone makes no value": reduce("S1-1 D", "S0@0 D@1"),
    "reduce: another fold": reduce("1 3 2 S0 S1 D", "3@3 -inf@4 S0@5 D@6", "max"),
    "accumulate: emit starts L after the last fill": accumulate(
        *TWO_ROWS, fired=("2@5 5@6 S0@7 D@8", "5@5 2@6 S0@7 D@8"), firings=6 + 4
    ),
    "accumulate: with L = 4": accumulate(*TWO_ROWS, fired=("2@8 5@9 S0@10 D@11", "5@8 2@9 S0@10 D@11"), firings=6 + 4, latency=4),
    # workspaces of 3, 1, 2 entries: the first is filled by 3 and emitted in 4..7, the third is filled in 8..10
    "accumulate: the third workspace waits for the first to be emitted": accumulate(
        "0 S0 0 S0 0 S1 D", "1 2 3 S1 1 S1 1 2 S2 D", "1 2 3 S1 1 S1 1 2 S2 D", fired="1@4 2@5 3@6 S0@7 1@8 S0@9 1@11 2@12 S1@13 D@14"
    ),
    "accumulate: an empty workspace is its stop alone": accumulate("S0 D", "S1-1 D", "S1-1 D", fired=("S0@1 D@2",) * 2),
    "accumulate: an empty workspace of order 2": accumulate(
        "S0 D", "S1-1 D", "S2-2 D", "S2-2 D", fired=("S0@1 D@2", "S1-1@1 D@2", "S1-1@1 D@2")
    ),
    "accumulate: a coordinate with nothing below costs a firing and leaves no entry": accumulate(
        "3 S0 D", "S1 D", "S1 D", fired=("S0@2 D@3",) * 2, firings=3 + 2
    ),
    "accumulate: an outer coordinate goes with its first entry": accumulate(
        "0 1 S0 D", "7 8 S0 7 S1 D", "1 S0 2 S1 0 S2 D", "1 S0 2 S1 3 S2 D",
        fired=("7@6 8@9 S0@10 D@11", "0@6 1@7 S0@8 2@9 S1@10 D@11", "3@6 1@7 S0@8 2@9 S1@10 D@11"),
    ),
    # the value is taken in 10, the stop in 20: emit follows in 21, and `D` comes in 30
    "accumulate: late outer tokens are waited for where they are due": accumulate(
        "0@10 S0@20 D@30", "4 S1 D", "1 S1 D", fired=("4@21 S0@22 D@31", "1@21 S0@22 D@31")
    ),
    "accumulate: and late inner ones": accumulate("0@10 S0@10 D", "4 S1@20 D", "1 S1 D", fired="4@21 S0@22 D@23"),
    "accumulate: an end above the reduced fiber has no workspace": accumulate(*BARE, fired="S1-1@1 D@2"),
    "permute: emit starts L after the last fill": permute(
        (1, 0), *TWO_ROWS, fired=("2@5 5@8 S0@9 D@10", "0@5 1@6 S0@7 0@8 S1@9 D@10", "1@5 4@6 S0@7 2@8 S1@9 D@10"), firings=6 + 6
    ),
    "permute: with L = 4": permute((1, 0), *TWO_ROWS, fired="2@8 5@11 S0@12 D@13", latency=4),
    "permute: the order of the input passes too": permute(
        (0, 1), *TWO_ROWS, fired=("0@5 1@8 S0@9 D@10", "2@5 5@6 S0@7 2@8 S1@9 D@10", "1@5 2@6 S0@7 4@8 S1@9 D@10")
    ),
    # workspaces of 3, 1, 1 entries: the first is filled by 3 and emitted in 4..9, the third is filled from 10 on
    "permute: the third workspace waits for the first to be emitted": permute(
        (1, 0), "0 S0 0 S0 0 S1 D", "1 2 3 S1 1 S1 1 S2 D", "1 2 3 S1 1 S1 1 S2 D",
        fired=("1@4 2@6 3@8 S0@9 1@10 S0@11 1@12 S1@13 D@14", "0@4 S0@5 0@6 S0@7 0@8 S1@9 0@10 S1@11 0@12 S2@13 D@14"),
    ),
    "permute: an empty workspace is its stop alone": permute(
        (1, 0), "S0 D", "S1-1 D", "S1-1 D", fired=("S0@1 D@2", "S1-1@1 D@2", "S1-1@1 D@2")
    ),
    "permute: a coordinate with nothing below costs a firing and leaves no entry": permute(
        (1, 0), "3 S0 D", "S1 D", "S1 D", fired=("S0@2 D@3", "S1-1@2 D@3", "S1-1@2 D@3"), firings=3 + 2
    ),
    "permute: an end above the outermost fiber has no workspace": permute(
        (1, 0), *BARE, fired=("S1-1@1 D@2", "S2-2@1 D@2", "S2-2@1 D@2")
    ),
    "select: emit starts L after the last fill": select(2, 0, *FOUR, fired=("2@5 7@6 S0@7 D@8", "-5@5 4@6 S0@7 D@8"), firings=6 + 4),
    "select: with L = 3": select(2, 0, *FOUR, fired="2@7 7@8 S0@9 D@10", latency=3),
    # the last coordinate of the first group comes in cycle 1, the first one of the second in cycle 9
    "select: a group ends when the next one is seen": select(
        1, 4, "0 3 4@9 5 S0@20 D", "1 2 4@9 3 S0@20 D", fired=("3@10 4@21 S0@22 D@23", "2@10 4@21 S0@22 D@23")
    ),
    "select: a group ends with the stop of its fiber": select(
        1, 4, "0 3 S0@9 1 S1@20 D", "1 2 S0@9 4 S1@20 D", fired="3@10 S0@11 1@21 S1@22 D@23"
    ),
    "select: a group without entries costs nothing": select(1, 2, "0 1 8 S0 D", "1 2 3 S0 D", fired="1@3 8@4 S0@5 D@6"),
    # L = 9, groups of one coordinate each: the first ends in 1, with the first firing for the second, and is emitted in 10. In 11 the third
    # one begins, which ends the second; that is emitted in 20, and so on; the stop behind the fifth takes no workspace
    "select: the third group waits for the first to be emitted": select(
        1, 1, "0 1 2 3 4 S0 D", "1 1 1 1 1 S0 D", fired="0@10 1@20 2@30 3@40 4@41 S0@42 D@43", latency=9
    ),
    # fibers of 3, 1, 1 entries: the first is filled by 3 and emitted in 4..7, the third is filled from 8 on
    "select: the third fiber waits for the first to be emitted": select(
        3, 0, "0 1 2 S0 1 S0 1 S1 D", "1 2 3 S0 1 S0 1 S1 D", fired="0@4 1@5 2@6 S0@7 1@8 S0@9 1@10 S1@11 D@12"
    ),
    "select: an outer coordinate goes with its first entry and leaves with its last": select(
        2, 0, "0 1 2 S0 D", "2 5 S0 2 S0 4 S1 D", "3 5 S0 1 S0 -4 S1 D",
        fired=("0@7 2@9 S0@10 D@11", "5@7 S0@8 4@9 S1@10 D@11", "5@7 S0@8 -4@9 S1@10 D@11"),
    ),
    "select: an empty fiber is its stop alone": select(1, 0, "S0 D", "S0 D", fired=("S0@1 D@2",) * 2),
    "select: an empty fiber of groups": select(1, 2, "S0 D", "S0 D", fired=("S0@1 D@2",) * 2),
    "select: an empty fiber of two levels": select(
        1, 0, "S0 D", "S1-1 D", "S1-1 D", fired=("S0@1 D@2", "S1-1@1 D@2", "S1-1@1 D@2")
    ),
    "select: a coordinate with nothing below costs a firing and leaves no entry": select(
        1, 0, "3 S0 D", "S1 D", "S1 D", fired=("S0@2 D@3", "S1-1@2 D@3", "S1-1@2 D@3"), firings=3 + 2
    ),
    "select: an end above the fiber has no workspace": select(1, 0, "S1-1 D", "S1-1 D", fired=("S1-1@1 D@2",) * 2),
    "drop: one firing a token at one level": drop(
        "0 1 2 S0 S1 D", "5 0 N S0 S1 D", value=0.0, fired=("0@0 S0@3 S1@4 D@5", "5@0 S0@3 S1@4 D@5")
    ),
    # 1, S0 (held); N, S0; the held S0, 2, S1
    "drop: a held stop goes before the next kept value": drop(
        "0 1 2 S0 D", "4 S0 5 S0 6 S1 D", "1 S0 N S0 2 S1 D", fired=("0@0 2@5 S0@6 D@7", "4@0 S0@4 6@5 S1@6 D@7", "1@0 S0@4 2@5 S1@6 D@7")
    ),
    "drop: a list with nothing left is closed by its stop": drop(
        "0 S0 D", "4 S1 D", "N S1 D", fired=("S0@1 D@2", "S1-1@1 D@2", "S1-1@1 D@2")
    ),
    "drop: a coordinate with nothing below costs a firing": drop(
        "0 S0 D", "S1 D", "S1 D", fired=("S0@1 D@2", "S1-1@1 D@2", "S1-1@1 D@2")
    ),
    "drop: late outer tokens are waited for where they are due": drop(
        "0@10 S0@20 D@30", "4 S1 D", "1 S1 D", fired=("0@10 S0@20 D@30", "4@10 S1@20 D@30", "1@10 S1@20 D@30")
    ),
    "flatten: late outer tokens are waited for where they are due": of(
        n.Flatten("f", inputs_of(2), 4), "1@10 S0@20 D@30", "0 S1 D", fired="4@10 S0@20 D@30"
    ),
    "flatten: fires once a token of the inner stream": of(
        n.Flatten("f", inputs_of(2), 4), "0 2 S0 D", "0 3 S0 1 S1 D", fired="0@0 3@1 9@3 S0@4 D@5"
    ),
    "flatten: of nothing": of(n.Flatten("f", inputs_of(2), 4), "0 S0 D", "S1 D", fired="S0@1 D@2"),
    "split: ends an inner fiber before a new outer coordinate": of(
        n.SplitLevel("s", inputs_of(1), 4), "0 3 9@9 S0 D", fired=("0@0 2@10 S0@11 D@12", "0@0 3@1 S0@9 1@10 S1@11 D@12")
    ),
    "split: of nothing": of(n.SplitLevel("s", inputs_of(1), 4), "S0 D", fired=("S0@0 D@1", "S1-1@0 D@1")),
}  # fmt: skip
"""Where fewer streams are given than a node has outputs, the first ones are compared."""


@pytest.mark.parametrize("name", EXAMPLES)
def test_it_fires_as_the_contract_says(name: str) -> None:
    example = EXAMPLES[name]
    driven = example.drive()
    assert tuple(driven.fired[: len(example.fired)]) == example.fired
    assert example.firings in (None, driven.firings)


@pytest.mark.parametrize(
    ("example", "message"),
    [
        (
            permute((1, 0), "0 S0 D", "1 1 S1 D", "1 2 S1 D", fired=""),
            r"node `p` \(permute\): got two values at the same coordinates",
        ),
        (permute((1, 0), "0 S0 D", "1 S1 D", "N S1 D", fired=""), "refuses"),
        (select(1, 0, "1 S0 D", "N S0 D"), "refuses"),
    ],
)
def test_what_is_refused(example: Example, message: str) -> None:
    with pytest.raises(SimulationError, match=message):
        example.drive()


def test_a_coordinate_below_one_whose_first_list_is_empty_is_selected() -> None:
    # below 5 there are 7, with nothing, and 8: 5 goes out with the entry of 8
    fired = select(1, 0, "4 5 S0 D", "1 S0 7 8 S1 D", "2 S1 S0 6 S2 D", "1 S1 S0 9 S2 D").drive().fired
    assert [stream.replace("@", " ").split()[0] for stream in fired] == ["5", "8", "6", "9"]


def test_writers_take_a_token_a_cycle() -> None:
    decl = n.TensorDecl("Y", (9,), ANY)
    driven = drive(n.WriteLevel("w", inputs_of(1), "Y", 0), "1@4 5 S0@9 S1 D", declared=(decl,))
    assert (driven.firings, driven.last) == (5, 11)
    assert driven.written["Y"].crd[0].tolist() == [1, 5]
    assert driven.written["Y"].pos[0].tolist() == [0, 2, 2]


@pytest.mark.parametrize("late", range(6))
def test_every_gate_is_tight(late: int) -> None:
    """A token that comes one cycle after the node could have used it delays the firing by one cycle, no more and no less."""
    words = ["1", "2", "S0", "3", "S1", "D"]
    on_time = [f"{word}@{k}" for k, word in enumerate(words)]
    on_time[late:] = [f"{word}@{k + late + 1}" for k, word in enumerate(words[late:])]
    assert alu("copy", n.Operand(0.0), streams=(" ".join(on_time),), fired="").drive().fired == [" ".join(on_time)]


@pytest.mark.parametrize(("latency", "interval"), [(1, 1), (4, 1), (4, 3)])
def test_latency_delays_what_is_seen_and_the_interval_what_is_done(latency: int, interval: int) -> None:
    streams = ("1@0 2@0 S0@0 3@0 S1@0 D@0",)
    driven = alu("copy", n.Operand(0.0), streams=streams, fired="", latency=latency, interval=interval).drive()
    values = [0, interval, 2 * interval, 2 * interval + 1, 3 * interval + 1, 3 * interval + 2]
    assert [cycle - latency for _, cycle in driven.outputs[0]] == values
