"""Primitives and kernels against streams recorded from the public SAM simulator (tests/data/sam/README.md).

Its stops know only the highest level, so streams are compared after the lowest is dropped; tokens read from it have lowest level 0
unless a stream next to it says more (`under`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from driving import drive, inputs_of

from fuseflow.samml import nodes as n
from fuseflow.samml.tokens import D, N, Stop, Stream, decode, encode, stop
from fuseflow.tensors import Format, Tensor
from fuseflow.tensors.levels import Fibers
from fuseflow.tensors.levels.compressed import CompressedFibers
from fuseflow.tensors.levels.dense import DenseFibers

DATA = Path(__file__).parents[2] / "data" / "sam"
Case = dict[str, Any]

NOT_APPLICABLE = {
    "stkndrop_all": "a stream without stops: our accumulators take stops, so no primitive makes one",
}


def case(name: str) -> Case:
    return json.loads((DATA / f"prim_{name}.json").read_text())


def read(tokens: Sequence[Any]) -> Stream:
    found: Stream = []
    for token in tokens:
        if isinstance(token, str):
            found.append(stop(0, int(token[1:])) if token[0] == "S" else {"N": N, "D": D}[token])
        else:
            found.append(token)
    return found


def highest(stream: Iterable[Any]) -> list[Any]:
    """The stream as SAM writes it."""
    return [f"S{t.high}" if isinstance(t, Stop) else str(t) if t in (N, D) else t for t in stream]


def under(outer: Stream, inner: Sequence[Any]) -> Stream:
    """Lowest levels of the stops of a stream, from the stream one level further out. `inner` may have stops without any level."""
    found: Stream = []
    above = iter(outer)
    head = next(above)
    for token in inner:
        if token in ("S", "R") or (isinstance(token, str) and token[0] == "S"):
            if token == "R":
                found.append(0)
                continue
            low = head.low + 1 if isinstance(head, Stop) else 0
            if low == 0:
                head = next(above)
            high = head.high + 1 if isinstance(head, Stop) else 0
            if isinstance(head, Stop):
                head = next(above)
            found.append(stop(low, high))
        else:
            found.append({"D": D, "N": N}.get(token, token) if isinstance(token, str) else token)
    return found


def check(found: Sequence[Stream], *expected: Sequence[Any]) -> None:
    assert [highest(stream) for stream in found] == [list(stream) for stream in expected]


def fibers(params: Case) -> Fibers:
    if params["format"] == "dense":
        return DenseFibers(params["dim"], 4)
    return CompressedFibers(100, np.array(params["seg"]), np.array(params["crd"], dtype=np.int64))


def level_scanner(c: Case) -> None:
    level = fibers(c["params"])
    tensors = {"A": Tensor((level.size,), Format.of("compressed"), (level,), np.zeros(level.entries))}
    found = drive(n.Scan("s", inputs_of(1), "A", 0), read(c["inputs"]["in_ref"]), tensors=tensors).tokens
    # SAM emits an `N` in the fiber below an `N`; here that fiber is empty
    check(found, *([t for t in c["outputs"][port] if t != "N"] for port in ("out_crd", "out_ref")))


def joined(kind: str) -> Callable[[Case], None]:
    def run(c: Case) -> None:
        streams = [read(c["inputs"][port]) for port in ("crd1", "ref1", "crd2", "ref2")]
        found = drive(n.Join("j", inputs_of(4), kind, (1, 1)), *streams).tokens
        check(found, c["outputs"]["out_crd"], c["outputs"]["out_ref1"], c["outputs"]["out_ref2"])

    return run


def repeated(c: Case) -> None:
    x = read(c["inputs"]["in_ref"])
    found = drive(n.Repeat("r", inputs_of(2)), x, under(x, c["inputs"]["in_repsig"])).tokens
    check(found, c["outputs"]["out_ref"])


def signal_generator(c: Case) -> None:
    """Signal and repeat are one primitive here: what is repeated by a coordinate stream follows the signal."""
    crd = read(c["inputs"]["in_crd"])
    x = encode(collapsed(decode(crd, depth(crd)), depth(crd)), depth(crd) - 1)
    (found,) = drive(n.Repeat("r", inputs_of(2)), x, crd).tokens
    signal = ["D" if t is D else "S" if isinstance(t, Stop) else "R" for t in found]
    assert signal == c["outputs"]["out_repsig"]


def collapsed(nested: Any, levels: int) -> Any:
    """Each innermost list replaced by one value."""
    return 7 if levels == 1 else [collapsed(x, levels - 1) for x in nested]


def depth(stream: Stream) -> int:
    return max(t.high + 1 for t in stream if isinstance(t, Stop))


def array_load(c: Case) -> None:
    values = np.array(c["params"]["vals"], dtype=float)
    tensor = Tensor((len(values),), Format.dense(1), (DenseFibers(len(values), 1),), values)
    decl = n.TensorDecl("A", tensor.shape, tensor.format)
    found = drive(n.Load("l", inputs_of(1), "A"), read(c["inputs"]["in_ref"]), tensors={"A": tensor}, declared=(decl,)).tokens
    check(found, c["outputs"]["out_val"])


def alu(function: str) -> Callable[[Case], None]:
    def run(c: Case) -> None:
        node = n.Alu("a", inputs_of(2), function, (n.Operand(0.0), n.Operand(0.0)))
        check(drive(node, read(c["inputs"]["in1"]), read(c["inputs"]["in2"])).tokens, c["outputs"]["out_val"])

    return run


def reduce_sum(c: Case) -> None:
    check(drive(n.Reduce("r", inputs_of(1), "sum"), read(c["inputs"]["in_val"])).tokens, c["outputs"]["out_val"])


def accumulate_rows(c: Case) -> None:
    """Points (row, column, value): a workspace for each row, its points cut into fibers where the column does not ascend."""
    points = list(zip(*(c["inputs"][port][:-1] for port in ("outer_crdpt", "inner_crdpt", "val")), strict=True))
    rows = [(row, list(of)) for row, of in groupby(points, key=lambda point: point[0])]
    columns = [ascending([(column, value) for _, column, value in of]) for _, of in rows]
    crd_0 = [list(range(len(runs))) for runs in columns]
    crd_1 = [[[column for column, _ in run] for run in runs] for runs in columns]
    val = [[[value for _, value in run] for run in runs] for runs in columns]
    node = n.Accumulate("a", inputs_of(3), "sum", 1)
    crd, sums = drive(node, encode(crd_0, 2), encode(crd_1, 3), encode(val, 3)).tokens
    assert [row for row, _ in rows] == [t for t in c["outputs"]["out_crd_outer"] if not isinstance(t, str)]
    check([crd], c["outputs"]["out_crd_inner"])
    if c["params"]["val_stkn"]:
        check([sums], c["outputs"]["out_val"])
    else:  # values without stops
        assert [t for t in highest(sums) if t == "D" or not isinstance(t, str)] == c["outputs"]["out_val"]


def ascending(run: list[tuple[int, float]]) -> list[list[tuple[int, float]]]:
    cuts = [0, *(k for k, (a, b) in enumerate(pairwise(run), 1) if b[0] <= a[0]), len(run)]
    return [run[a:b] for a, b in pairwise(cuts)]


def accumulate_matrix(c: Case) -> None:
    """Points (row, column, value) in one workspace of two levels, each a matrix of its own."""
    crd_1, crd_2, val = (c["inputs"][port][:-1] for port in ("crd1_pt", "crd0_pt", "val"))
    streams = (
        encode(list(range(len(val))), 1),
        encode([[x] for x in crd_1], 2),
        encode([[[x]] for x in crd_2], 3),
        encode([[[x]] for x in val], 3),
    )
    found = drive(n.Accumulate("a", inputs_of(4), "sum", 2), *streams).tokens
    check(found, *(c["outputs"][port] for port in ("out_crd_outer", "out_crd_inner", "out_val")))


def coordinate_drop(c: Case) -> None:
    """Our drop also removes the empty fibers from the inner stream, which SAM passes unchanged."""
    outer = read(c["inputs"]["in_outer"])
    inner = under(outer, c["inputs"]["in_inner"])
    crd, found, _ = drive(n.Drop("d", inputs_of(3)), outer, inner, inner).tokens
    check([crd], c["outputs"]["out_crd_outer"])
    passed = decode(under(outer, c["outputs"]["out_crd_inner"]), 2)
    assert decode(found, 2) == [fiber for fiber in passed if fiber]


def coordinate_hold(c: Case) -> None:
    """A coordinate held for each inner one is repeated by the inner stream."""
    outer = read(c["inputs"]["in_outer"])
    inner = under(outer, c["inputs"]["in_inner"])
    check(drive(n.Repeat("r", inputs_of(2)), outer, inner).tokens, c["outputs"]["out_crd_outer"])
    assert c["outputs"]["out_crd_inner"] == c["inputs"]["in_inner"]


def empty_fiber_drop(c: Case) -> None:
    """Consecutive stops merge where coordinates with nothing below them are dropped."""
    stream = read(c["inputs"]["in"])
    levels = depth(stream)
    nested = decode(stream, levels)
    outer = [encode(numbered(nested, level), level + 1) for level in range(levels - 1)]
    found = drive(n.Drop("d", inputs_of(levels + 1)), *outer, stream, stream).tokens
    check([found[-2], found[-1]], c["outputs"]["out"], c["outputs"]["out"])


def numbered(nested: list[Any], level: int) -> list[Any]:
    """The coordinates 0, 1, ... of the elements of each list `level` levels down."""
    return list(range(len(nested))) if level == 0 else [numbered(x, level - 1) for x in nested]


def flatten(c: Case) -> None:
    node = n.Flatten("f", inputs_of(2), c["params"]["factor"])
    check(drive(node, read(c["inputs"]["in_outer"]), read(c["inputs"]["in_inner"])).tokens, c["outputs"]["out_crd"])


def split(c: Case) -> None:
    node = n.SplitLevel("s", inputs_of(1), c["params"]["factor"])
    check(drive(node, read(c["inputs"]["in_crd"])).tokens, c["outputs"]["out_outer"], c["outputs"]["out_inner"])


def level_writer(c: Case) -> None:
    decl = n.TensorDecl("Y", (9,), Format.of("compressed"))
    written = drive(n.WriteLevel("w", inputs_of(1), "Y", 0), read(c["inputs"]["in_crd"]), declared=(decl,)).written["Y"]
    arrays = c.get("correct_arrays", c["arrays"])
    assert (written.pos[0].tolist(), written.crd[0].tolist()) == (arrays["seg"], arrays["crd"])


def value_writer(c: Case) -> None:
    decl = n.TensorDecl("Y", (9,), Format.of("compressed"))
    written = drive(n.WriteValues("w", inputs_of(1), "Y"), read(c["inputs"]["in_val"]), declared=(decl,)).written["Y"]
    assert written.values.tolist() == c["arrays"]["vals"]


RUNS: dict[str, Callable[[Case], None]] = {
    "level_scanner": level_scanner, "intersect": joined("intersect"), "union": joined("union"), "repeat": repeated,
    "repeat_sig_gen": signal_generator, "array_load": array_load, "alu_add": alu("add"), "alu_mul": alu("mul"),
    "reduce_sum": reduce_sum, "spacc1_point": accumulate_rows, "spacc2_point": accumulate_matrix, "crd_drop": coordinate_drop,
    "crd_hold": coordinate_hold, "empty_fiber_drop": empty_fiber_drop, "flatten": flatten, "split": split,
    "level_writer": level_writer, "val_writer": value_writer,
}  # fmt: skip

INDEX = [entry for entry in json.loads((DATA / "index.json").read_text())["cases"] if entry["kind"] == "primitive"]


def test_every_case_is_run_or_listed() -> None:
    missing = {entry["name"] for entry in INDEX if entry["primitive"] not in RUNS}
    assert missing == set(NOT_APPLICABLE)
    assert len(INDEX) == len(list(DATA.glob("prim_*.json"))) == 46


@pytest.mark.parametrize("name", [entry["name"] for entry in INDEX])
def test_primitive(name: str) -> None:
    if name in NOT_APPLICABLE:
        pytest.skip(NOT_APPLICABLE[name])
    c = case(name)
    RUNS[c["primitive"]](c)
