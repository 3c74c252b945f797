"""Decompositions of operands: parts sum to the whole, and the program means the same, also on the simulator."""

from __future__ import annotations

import numpy as np
import pytest
from random_plans import Case, arrays_of, packed, random_case, scattered_parts

import fuseflow as ff
from fuseflow.einsum.interpret import evaluate
from fuseflow.einsum.parse import parse
from fuseflow.einsum.text import show
from fuseflow.einsum.verify import verify
from fuseflow.errors import PlanError
from fuseflow.plan import decompose as module
from fuseflow.plan.decompose import Decomposed, decompose
from fuseflow.plan.partition import Form, Part, partition

PRODUCT = "tensor A[4, 8] dense\ntensor B[8, 6] csr\nY[i, j] = sum(k) A[i, k] * B[k, j]\noutput Y"


def parts_of(seed: int, case: Case) -> tuple[Part, ...]:
    """The parts of a plan, and for every other seed any others."""
    if seed % 2:
        return scattered_parts(seed, case)
    values = case.arrays["B"]
    return partition("B", values, np.ones(values.shape, dtype=bool), case.planned, case.innermost)


def near(found: np.ndarray, wanted: np.ndarray, error: float = 1e-6) -> bool:
    return bool(np.abs(found - wanted).max(initial=0) <= error * max(np.abs(wanted).max(initial=0), 1))


def test_parts_of_1000_random_operands_sum_to_the_whole():
    for seed in range(1000):
        case = random_case(seed)
        parts, values = parts_of(seed, case), case.arrays["B"]
        count = np.sum([part.entries for part in parts], axis=0)
        assert (count == (values != 0)).all(), seed
        found = decompose(case.given, "B", parts)
        verify(found.program)
        stored = [tensor.to_dense() for name, tensor in found.tensors.items() if name.startswith("B")]
        assert near(np.sum(stored, axis=0), values), seed
        wanted = evaluate(case.program, case.arrays, outputs_only=True)["Y"]
        assert near(evaluate(found.program, arrays_of(found.tensors), outputs_only=True)["Y"], wanted), seed


def simulate(seed: int) -> None:
    case = random_case(seed)
    found = decompose(case.given, "B", parts_of(seed, case))
    result = ff.compile(found.program, tensors=arrays_of(found.tensors), machine="ideal").run()
    assert result.check is not None and result.check.passed, seed
    output = result.outputs["Y"]
    dense = output if isinstance(output, np.ndarray) else output.toarray()
    assert near(dense, evaluate(case.program, case.arrays, outputs_only=True)["Y"], 1e-5), seed


@pytest.mark.parametrize("seed", range(5))
def test_the_simulator_computes_the_same(seed: int):
    simulate(seed)


@pytest.mark.slow
def test_the_simulator_computes_the_same_of_50():
    for seed in range(1000, 1050):
        simulate(seed)


def example() -> Decomposed:
    program = parse(PRODUCT)
    rng = np.random.default_rng(0)
    return Decomposed(program, packed(program, {"A": rng.random((4, 8)), "B": 1 + rng.random((8, 6))}))


def halves(left: str = "4x1", dtype: str = "", shift: int = 0, right: str = "elements") -> list[Part]:
    """Two parts, of the left and of the right columns, which overlap by `shift` of them, or leave as many out."""
    columns = np.broadcast_to(np.arange(6), (8, 6))
    return [Part(Form.parse(left, dtype), columns < 3 + shift), Part(Form.parse(right), columns >= 3)]


def test_one_statement_has_a_product_for_each_part():
    found = decompose(example(), "B", halves())
    assert show(found.program).splitlines() == [
        "tensor A[4, 8]   dense",
        "tensor A1[4, 8]  dense",
        "tensor B1[8, 6]  csr block 4x1",
        "tensor B2[8, 6]  csr",
        "Y[i, j] = sum(k) A1[i, k] * B1[k, j] + sum(l) A[i, l] * B2[l, j]",
        "output Y",
    ]
    assert set(found.tensors) == {"A", "A1", "B1", "B2"}


def test_a_part_without_entries_is_left_out():
    everything, nothing = np.ones((8, 6), dtype=bool), np.zeros((8, 6), dtype=bool)
    found = decompose(example(), "B", [Part(Form((4, 4)), nothing), Part(Form((2, 2)), everything)])
    assert "Y[i, j] = sum(k) A[i, k] * B[k, j]" in show(found.program)
    assert found.program.declared["B"].block == (2, 2)


def test_a_copy_is_made_of_an_input_that_is_gone():
    """What was divided first leaves only copies of the others, and these are divided then."""
    program = parse(
        "tensor X[4, 8] dense block 1x2\ntensor V[8, 6]\ntensor D[8] dense\nY[i, j] = sum(k) X[i, k] * V[k, j] * D[k]\noutput Y"
    )
    arrays = {"X": np.arange(32.0).reshape(4, 8), "V": np.ones((8, 6)), "D": np.arange(8.0)}
    first = decompose(Decomposed(program, packed(program, arrays)), "V", halves("8x1", right="4x1"))
    assert set(first.tensors) == {"X1", "X2", "V1", "V2", "D1", "D2"}
    second = decompose(first, "V1", [Part(Form(), first.tensors["V1"].to_dense() != 0)])
    assert "X3" in second.tensors
    assert (evaluate(second.program, arrays_of(second.tensors))["Y"] == evaluate(program, arrays)["Y"]).all()


def test_an_operand_without_entries_keeps_one_part():
    given = example()
    empty = Decomposed(given.program, packed(given.program, {"A": np.ones((4, 8)), "B": np.zeros((8, 6))}))
    nothing = np.zeros((8, 6), dtype=bool)
    found = decompose(empty, "B", [Part(Form((4, 4)), nothing), Part(Form(), nothing)])
    assert set(found.tensors) == {"A", "B"} and not found.tensors["B"].to_dense().any()


def test_entries_that_are_not_needed_may_be_in_no_part():
    needed = np.broadcast_to(np.arange(6) != 2, (8, 6))
    found = decompose(example(), "B", halves(shift=-1), needed)
    kept = sum(found.tensors[name].to_dense() for name in ("B1", "B2"))
    assert (kept == np.where(needed, example().tensors["B"].to_dense(), 0)).all()


@pytest.mark.parametrize(
    ("shift", "message"),
    [
        (1, r"the parts `4x1` and `elements` of `B` overlap\n  hint: both have the entry \(0, 3\)"),
        (-1, r"no part of `B` holds the entry \(0, 2\), which is 1\.\d+\n  hint: add a part that holds every entry"),
    ],
)
def test_parts_are_disjoint_and_hold_everything(shift: int, message: str):
    with pytest.raises(PlanError, match=message):
        decompose(example(), "B", halves(shift=shift))


def test_a_part_holds_what_its_type_holds():
    with pytest.raises(PlanError, match=r"the part `4x1 i8` of `B` cannot hold the entry \(0, 0\), which is 1\.\d+"):
        decompose(example(), "B", halves(dtype="i8"))


def test_a_part_that_is_stored_n_of_m_has_room_for_its_entries():
    with pytest.raises(PlanError, match=r"the part `nm\(2:4\)` of `B`: .*3 of 4 coordinates are stored"):
        decompose(example(), "B", halves("nm(2:4)"))


def test_masks_have_the_shape_of_the_operand():
    with pytest.raises(PlanError, match=r"the mask of the part `elements` of `B` has the shape \(8, 5\), and `B` \(8, 6\)"):
        decompose(example(), "B", [Part(Form(), np.ones((8, 5), dtype=bool))])
    with pytest.raises(PlanError, match=r"the mask of `B` has the shape \(1, 6\), and `B` \(8, 6\)"):
        decompose(example(), "B", halves(), np.ones((1, 6), dtype=bool))


def test_masks_are_of_booleans():
    with pytest.raises(PlanError, match="the mask of the part `elements` of `B` has int64"):
        decompose(example(), "B", [Part(Form(), np.ones((8, 6), dtype=np.int64))])  # type: ignore[arg-type]
    with pytest.raises(PlanError, match="the mask of `B` has float64"):
        decompose(example(), "B", halves(), np.ones((8, 6)))  # type: ignore[arg-type]


def test_an_operand_has_a_part():
    with pytest.raises(PlanError, match="`B` has no parts"):
        decompose(example(), "B", [])


@pytest.mark.parametrize(
    ("lines", "operand", "message"),
    [
        ("tensor BB[8, 6]\nY[i] = sum(k) A[i, k]", "Bb", r"the program has no tensor `Bb`\n  hint: did you mean `B[Bb]?`\?"),
        ("Y[i, k] = A[i, k] + 1", "Y", r"`Y` is computed\n  hint: only constants are decomposed"),
        ("Y[i, k] = A[i, k] + 1", "B", r"nothing reads `B`\n  hint: leave it out of the plan"),
        ("Y[k, j] = B[k, j] + 1", "B", r"`B` is no factor of a sum of products in `Y\[k, j\] = B\[k, j\] \+ 1`"),
        ("Y[j] = max(k) B[k, j]", "B", r"`B` is no factor of a sum of products"),
        ("Y[i, j] = sum(k) A[i, k] * exp(B[k, j])", "B", r"`B` is no factor of a sum of products"),
        ("Y[j] = sum(k) B[k, j] * B[k, j]", "B", r"`B` is no factor of a sum of products"),
        ("tensor D[8, 8]\nY[i] = sum(k) A[i, k] * D[k, k]", "D", r"`D` is not read as a matrix in `Y\[i\] = "),
        ("tensor D[8]\nY[i] = sum(k) A[i, k] * D[k]", "D", r"`D` has 1 dimensions\n  hint: only matrices are decomposed"),
        ("tensor D[8, 2] csr fill 1\nY[i, j] = sum(k) A[i, k] * D[k, j]", "D", r"`D` has the implicit value 1"),
    ],
)
def test_what_cannot_be_divided_is_refused(lines: str, operand: str, message: str):
    program = parse(f"tensor A[4, 8] dense\ntensor B[8, 6] csr\n{lines}\noutput Y")
    given = Decomposed(program, packed(program, {tensor.name: np.ones(tensor.shape) for tensor in program.inputs}))
    shape = program.declared[operand].shape if operand in program.declared else (8, 6)
    with pytest.raises(PlanError, match=message):
        decompose(given, operand, [Part(Form(), np.ones(shape, dtype=bool))])


def test_an_operand_without_numbers_is_refused():
    with pytest.raises(PlanError, match=r"`B` has no numbers\n  hint: only constants are decomposed"):
        decompose(Decomposed(parse(PRODUCT), {}), "B", halves())


def test_an_operand_that_is_too_large_is_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "MOST_ENTRIES", 47)
    with pytest.raises(PlanError, match=r"`B` has 8 x 6 entries\n  hint: at most 47"):
        decompose(example(), "B", halves())
