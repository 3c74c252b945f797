"""`keep` in programs: its text and MLIR form, what it must satisfy, the formats that follow, and its dense and sparse meaning."""

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from scipy import sparse

import fuseflow as ff
from fuseflow.einsum import interpret
from fuseflow.einsum.format_inference import infer
from fuseflow.einsum.interpret import evaluate
from fuseflow.einsum.mlir import from_mlir, to_mlir
from fuseflow.einsum.nodes import Apply, Keep
from fuseflow.einsum.parse import parse
from fuseflow.einsum.reshapes import eliminate_reshapes
from fuseflow.einsum.text import show
from fuseflow.einsum.verify import verify
from fuseflow.errors import ProgramError
from fuseflow.keep_rules import NONZERO, Largest, Threshold
from fuseflow.schedule import Schedule

RULES = {
    "threshold 0.5": (Threshold(0.5), ()),
    "nonzero": (NONZERO, ()),
    "3 over j": (Largest(3), ("j",)),
    "2 of 4 over j": (Largest(2, 4), ("j",)),
    "7 over i, j": (Largest(7), ("i", "j")),
    "7 over j, i": (Largest(7), ("j", "i")),
}
SIGNED = {
    "keep(3 greatest over j)": (Largest(3, by="greatest"), ("j",)),
    "keep(3 least over j)": (Largest(3, by="least"), ("j",)),
    "mark(3 greatest over j)": (Largest(3, by="greatest", marks=True), ("j",)),
    "mark(1 of 4 least over j)": (Largest(1, 4, "least", marks=True), ("j",)),
    "mark(7 over i, j)": (Largest(7, marks=True), ("i", "j")),
}


def program(rule: str, body: str = "A[i, j]", declared: str = "tensor A[6, 10] csr") -> str:
    return f"{declared}\nH[i, j] = keep({rule}) {body}\noutput H"


def pytorch(rule: str, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """What PyTorch keeps of a matrix of different magnitudes."""
    array = torch.from_numpy(values)
    magnitudes = array.abs()
    match rule:
        case "threshold 0.5":
            mask = magnitudes >= 0.5
        case "nonzero":
            mask = magnitudes > 0
        case "3 over j":
            mask = torch.zeros_like(array, dtype=torch.bool).scatter_(1, magnitudes.topk(3, 1).indices, True)
        case "2 of 4 over j":
            groups = [magnitudes[:, start : start + 4] for start in range(0, 10, 4)]
            chosen = [torch.zeros_like(g, dtype=torch.bool).scatter_(1, g.topk(2, 1).indices, True) for g in groups]
            mask = torch.cat(chosen, 1)
        case _:
            mask = torch.zeros(60, dtype=torch.bool).scatter_(0, magnitudes.flatten().topk(7).indices, True).reshape(6, 10)
    result: npt.NDArray[Any] = torch.where(mask, array, 0.0).numpy()
    return result


@pytest.mark.parametrize("rule", RULES)
def test_text_and_mlir_are_read_as_they_were_printed(rule: str) -> None:
    read = parse(program(rule, "relu(A[i, j]) + 1"))
    assert isinstance(keep := read.einsums[0].body, Keep)
    assert (keep.rule, keep.over) == RULES[rule]
    assert f"keep({rule}) relu(A[i, j]) + 1" in show(read)
    assert parse(show(read)) == read
    assert from_mlir(to_mlir(read)) == read


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("rule", RULES)
def test_what_is_kept_is_what_pytorch_keeps(rule: str, seed: int) -> None:
    values = np.random.default_rng(seed).standard_normal((6, 10))
    assert np.array_equal(evaluate(parse(program(rule)), {"A": values})["H"], pytorch(rule, values))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("rule", RULES)
def test_sparse_operands_keep_the_same(rule: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What stores little is never made dense, and has many equal magnitudes here."""
    rng = np.random.default_rng(seed)
    values = rng.integers(-2, 3, (6, 10)) * (rng.random((6, 10)) < 0.6)
    read = parse(program(rule))
    dense = evaluate(read, {"A": values})["H"]
    monkeypatch.setattr(interpret, "MAX_POINTS", 1)
    kept = interpret.evaluate_operands(read, {"A": sparse.csr_array(values)})["H"]
    assert isinstance(kept, interpret.SparseArray)
    assert np.array_equal(kept.toarray(), dense)


@pytest.mark.parametrize("head", SIGNED)
def test_signed_orders_and_marks_are_read_as_they_were_printed(head: str) -> None:
    read = parse(f"tensor A[6, 10] csr\nH[i, j] = {head} relu(A[i, j]) + 1\noutput H")
    assert isinstance(keep := read.einsums[0].body, Keep)
    assert (keep.rule, keep.over) == SIGNED[head]
    assert f"H[i, j] = {head} relu(A[i, j]) + 1" in show(read)
    assert parse(show(read)) == from_mlir(to_mlir(read)) == read


@pytest.mark.parametrize("fuse", ["none", "full"])
@pytest.mark.parametrize("engine", ["fast", "reference"])
@pytest.mark.parametrize("form", ["dense", "csr"])
@pytest.mark.parametrize("least", [False, True])
def test_elements_that_are_not_stored_are_kept_as_in_pytorch(least: bool, form: str, engine: Any, fuse: str) -> None:
    """Of a row with few negative numbers, zeros are among the three least; a row without entries has marks, too."""
    rng = np.random.default_rng(0)
    values = np.round(rng.standard_normal((6, 10)), 2) * (rng.random((6, 10)) < 0.3)
    values[0] = 0
    order = torch.from_numpy(values if least else -values).sort(dim=1, stable=True).indices[:, :3]
    marks = torch.zeros(6, 10, dtype=torch.float64).scatter_(1, order, 1.0).numpy()
    by = "least" if least else "greatest"
    text = f"tensor A[6, 10] {form}\nT[i, j] = A[i, j] * 2\nK[i, j] = keep(3 {by} over j) T[i, j]\n"
    text += f"M[i, j] = mark(3 {by} over j) T[i, j]\noutput K, M"
    run = ff.compile(parse(text), tensors={"A": values}, schedule=Schedule.fuse(fuse)).run(engine=engine)
    kept, found = (array.toarray() if sparse.issparse(array) else array for array in run.outputs.values())
    assert np.array_equal(found, marks)
    assert np.array_equal(kept, (2 * marks * values).astype(np.float32))


def test_marks_are_sparse_and_computed_from_any_implicit_value() -> None:
    read = parse("tensor A[6, 10] csr fill -inf\nH[i, j] = mark(3 greatest over j) A[i, j]\noutput H")
    result = infer(read).declared["H"]
    assert result.format is not None
    assert (result.format.short(), result.fill) == ("csr", 0.0)


def test_levels_that_are_decided_are_compressed_and_others_follow_the_operand() -> None:
    formats = {}
    for rule in RULES:
        format = infer(parse(program(rule, declared="tensor A[6, 10] dense"))).declared["H"].format
        assert format is not None
        formats[rule] = format.short()
    assert formats == {
        "threshold 0.5": "dcsr",
        "nonzero": "dcsr",
        "3 over j": "csr",
        "2 of 4 over j": "csr",
        "7 over i, j": "dcsr",
        "7 over j, i": "dcsr",
    }


def test_a_result_has_the_type_of_its_operand_and_the_implicit_value_0() -> None:
    result = infer(parse(program("3 over j", declared="tensor A[6, 10] csr i32"))).declared["H"]
    assert (result.dtype, result.fill) == ("i32", 0.0)


def test_a_dense_operand_has_no_implicit_entries() -> None:
    read = parse(program("3 over j", "exp(A[i, j])", "tensor A[6, 10] dense"))
    assert infer(read).declared["H"].fill == 0
    values = np.random.default_rng(0).standard_normal((6, 10))
    assert np.array_equal(evaluate(read, {"A": values}, wide=True)["H"], pytorch("3 over j", np.exp(values)))


def test_dimensions_that_are_compared_are_not_taken_apart() -> None:
    text = "tensor A[6, 12]\nH[i, j] = keep(3 over j) A[i, j]\nS[i, h, d] = H[i, h*4 + d]\nY[i, h] = sum(d) S[i, h, d]\noutput Y"
    rewritten = eliminate_reshapes(parse(text), frozenset()).program
    assert next(e for e in rewritten.einsums if e.name == "H") == parse(text).defined["H"]


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        (program("0 over j"), "0 entries cannot be kept of 10", "keep between 1 and 10"),
        (program("11 over j"), "11 entries cannot be kept of 10", "keep between 1 and 10"),
        (program("61 over i, j"), "61 entries cannot be kept of 60", "keep between 1 and 60"),
        (program("3 of 2 over j"), "3 entries cannot be kept of every 2", "keep between 1 and 2"),
        (program("0 of 2 over j"), "0 entries cannot be kept of every 2", "keep between 1 and 2"),
        (program("1 of 0 over j"), "a group cannot have 0 coordinates", "between 1 and 256"),
        (program("1 of 257 over j"), "a group cannot have 257 coordinates", "between 1 and 256"),
        (program("2 of 4 over i, j"), "counts coordinates of one index, not of 2", "keep(2 of 4 over i)"),
        (program("threshold -1"), "a threshold is a magnitude, and -1.0 is none", "at least 0"),
        (program("threshold nan"), "a threshold is a magnitude, and nan is none", "at least 0"),
        (program("3 over j, j"), "names an index twice", ""),
        (program("3 over k"), "is over `k`, which its operand does not have", "indices there: i, j"),
        (program("3 over k", "sum(k) A[i, k] * A[i, j]"), "is over `k`, which its operand does not have", "indices there: i, j"),
        (program("3 over j", "2 * keep(1 over j) A[i, j]"), "`keep(...)` inside an expression", "a statement of its own"),
        (program("3 over j", "sum(k) keep(1 over j) A[i, j]"), "`keep(...)` inside an expression", "a statement of its own"),
        (program("3"), "expected `over`", ""),
        (program("3 greatest"), "expected `over`", ""),
        ("tensor A[4]\nH[j] = mark(nonzero) A[j]\noutput H", "how many entries to mark", ""),
        (program("j"), "`nonzero`, `threshold`, or how many entries to keep", ""),
        (program("2.5 over j"), "`nonzero`, `threshold`, or how many entries to keep", ""),
    ],
)
def test_what_makes_no_sense_is_refused(text: str, message: str, hint: str) -> None:
    with pytest.raises(ProgramError) as refused:
        verify(parse(text))
    assert message in refused.value.message and hint in refused.value.hint
    assert refused.value.span is not None and refused.value.span.line == 2


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        (program("3 over j", declared="tensor A[6, 10] csr fill -inf"), "that of its operand is -inf", "store the operand dense"),
        (program("3 over j", "exp(A[i, j])"), "that of its operand is 1", "before the operator"),
        (
            program("3 over j", declared="tensor A[6, 10] dense block 2x2"),
            "`A` is stored in blocks",
            "leave the block of `A` out",
        ),
        (
            program("3 over j", declared="tensor A[6, 10]\ntensor H[6, 10] dense block 2x2"),
            "`H` is stored in blocks",
            "of `H` out",
        ),
        (
            program("3 over j", declared="tensor A[6, 10]\ntensor H[6, 10] csr fill 2"),
            "with the implicit value 2, it has 0",
            "leave",
        ),
    ],
)
def test_what_cannot_be_stored_so_is_refused(text: str, message: str, hint: str) -> None:
    with pytest.raises(ProgramError) as refused:
        infer(parse(text))
    assert message in refused.value.message and hint in refused.value.hint
    assert refused.value.span is not None


def test_a_program_that_is_built_with_a_keep_inside_is_refused() -> None:
    read = parse(program("3 over j"))
    inside = replace(read.einsums[0], body=Apply("relu", (read.einsums[0].body,)))
    with pytest.raises(ProgramError, match="stands inside an expression"):
        verify(replace(read, einsums=(inside,)))


@pytest.mark.parametrize("rule", RULES)
def test_what_is_not_stored_may_be_kept(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where an operand is not stored, this one is 3: more than most of what is stored."""
    rng = np.random.default_rng(0)
    values = rng.standard_normal((6, 10)) * (rng.random((6, 10)) < 0.6)
    read = parse(program(rule, body="A[i, j] + 3"))
    dense = evaluate(read, {"A": values})["H"]
    monkeypatch.setattr(interpret, "MAX_POINTS", 1)
    assert np.array_equal(evaluate(read, {"A": sparse.csr_array(values)})["H"], dense)
    assert (dense == 3).any() or rule[0] == "7", "something is kept that is not stored"
