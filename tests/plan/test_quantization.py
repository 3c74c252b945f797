"""Programs in narrower types are compared with PyTorch's fake quantization, which shares no code with them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import count
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from random_programs import Case, cases, view_programs, wide_programs

import fuseflow as ff
from fuseflow.einsum.interpret import evaluate_einsum
from fuseflow.einsum.nodes import Access, Apply, Expr, Keep, Program, Reduce
from fuseflow.einsum.parse import parse
from fuseflow.einsum.rounding import rounded
from fuseflow.einsum.verify import extents
from fuseflow.errors import FileError, FuseFlowError, PlanError
from fuseflow.plan.quantization import Quantization, Scale
from fuseflow.run.compiled import Compiled
from fuseflow.tensors.dtypes import DTYPES

Arrays = Mapping[str, npt.NDArray[np.float64]]
SCHEDULES = (ff.Schedule(), ff.Schedule.fuse("full"), ff.Schedule.fuse("none"))


def check_case(case: Case, number: int) -> int:
    """Narrow a program, run it, compare it with PyTorch, and return how many of its tensors are integers. `number` varies how."""
    try:
        whole = ff.compile(case.program, tensors=case.arrays, schedule=SCHEDULES[number % 3], machine="ideal")
        tolerance = 1e-2 if number % 2 else float("inf")
        narrow = ff.quantize(whole, tolerance, constants=[t.name for t in case.program.inputs][:: 1 + number % 3])
    except FuseFlowError:  # it cannot be compiled so, or computes infinities
        return 0
    result = ff.compile(narrow.program, tensors=narrow.tensors, schedule=SCHEDULES[number % 3], machine="ideal").run()
    assert result.check is not None and result.check.passed
    tensors = {name: tensor.to_dense().astype(np.float64) for name, tensor in whole.source.tensors.items()}
    for name, expected in fake_quantized(whole.source.program, tensors, narrow.scales).items():
        size = np.abs(expected[np.isfinite(expected)]).max(initial=1)
        np.testing.assert_allclose(result.tensors[name].to_dense(), expected, rtol=1e-5, atol=1e-5 * size)
    return len(narrow.scales)


def fake_quantized(program: Program, tensors: Arrays, scales: Mapping[str, Scale]) -> Arrays:
    """Return the outputs of a program whose products read numbers that PyTorch rounded to the integers of these scales."""
    arrays, sizes = dict(tensors), extents(program)
    for einsum in program.einsums:
        einsum = rounded(einsum, program.declared)
        arrays |= {_fake(name): _rounded(arrays[name], scales[name]) for name in einsum.operands if name in scales}
        arrays[einsum.name] = evaluate_einsum(replace(einsum, body=_faked(einsum.body, scales)), arrays, sizes[einsum.name])
    return {name: arrays[name] for name in program.outputs}


def _fake(name: str) -> str:
    return f"{name} as PyTorch rounds it"


def _rounded(array: npt.NDArray[np.float64], scale: Scale) -> npt.NDArray[np.float64]:
    """PyTorch returns floats of 32 bits. So its integers are scaled again."""
    least, greatest = DTYPES[scale.dtype].range
    fake = torch.fake_quantize_per_tensor_affine(torch.tensor(array), scale.step, 0, int(least), int(greatest))
    return np.rint(fake.numpy() / scale.step) * scale.step


def _faked(node: Expr, scales: Mapping[str, Scale], inside: bool = False) -> Expr:
    """Return an expression whose products read the tensors that PyTorch rounded."""
    match node:
        case Access() if inside and node.tensor in scales:
            return replace(node, tensor=_fake(node.tensor))
        case Apply():
            return replace(node, args=tuple(_faked(arg, scales, inside and node.op == "mul") for arg in node.args))
        case Reduce():
            product = node.op == "sum" and sum(isinstance(factor, Access) for factor in _factors(node.body)) > 1
            return replace(node, body=_faked(node.body, scales, product))
        case Keep():
            return replace(node, body=_faked(node.body, scales))
        case _:
            return node


def _factors(node: Expr) -> Iterator[Expr]:
    if isinstance(node, Apply) and node.op == "mul":
        for arg in node.args:
            yield from _factors(arg)
    else:
        yield node


Array = npt.NDArray[np.float64]
BITS = [32, 16, 8, 4]


@pytest.fixture(scope="module")
def mlp() -> tuple[torch.nn.Sequential, torch.Tensor, torch.Tensor]:
    """A network that was trained to tell four classes of points apart, with points that it was not trained on, and their classes."""
    generator = torch.Generator().manual_seed(0)
    points, teacher = torch.randn(576, 16, generator=generator), torch.randn(16, 4, generator=generator)
    classes = (points @ teacher).argmax(1)
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4))
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    for _ in range(100):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(points[:512]), classes[:512]).backward()
        optimizer.step()
    return model.eval(), points[512:], classes[512:]


@pytest.fixture(scope="module")
def compiled(mlp: tuple[torch.nn.Sequential, torch.Tensor, torch.Tensor]) -> Compiled:
    return ff.compile(mlp[0], (mlp[1],))


def accuracy(classes: torch.Tensor, outputs: Mapping[str, Array]) -> float:
    (logits,) = outputs.values()
    return float((logits.argmax(1) == classes.numpy()).mean())


@pytest.mark.parametrize(("tolerance", "again"), [(1e-9, True), (1e-4, True), (1e-4, False), (1e-2, False)])
def test_a_trained_network_in_narrower_types_equals_pytorch_s_fake_quantization(
    mlp: tuple[torch.nn.Sequential, torch.Tensor, torch.Tensor], compiled: Compiled, tolerance: float, again: bool
) -> None:
    """Steps of 16 bits are so small that the rounding of a number to 32 bits moves some to another integer: PyTorch rounds the numbers that
    integers stand for, and a run rounds what it stores. So the integers of PyTorch are scaled `again` in 64 bits, and all is fused."""
    model, points, classes = mlp
    before = accuracy(classes, {"logits": model(points).detach().double().numpy()})
    assert before > 0.9
    narrow = ff.quantize(compiled, tolerance, lambda outputs: accuracy(classes, outputs))
    schedule = ff.Schedule.fuse("full") if again else None
    machine = ff.load_machine("rda", {"arithmetic": "f64" if again else "element"})
    run = ff.compile(narrow.program, tensors=narrow.tensors, schedule=schedule, machine=machine).run()
    assert run.check is not None and run.check.passed
    (logits,) = run.outputs.values()
    np.testing.assert_allclose(logits, _fake_quantized(model, points, narrow.scales, again), rtol=1e-6, atol=1e-6)
    assert narrow.scales or tolerance == 1e-9
    assert before - accuracy(classes, {"logits": np.asarray(logits)}) <= tolerance
    assert _widths_fall(narrow)


def _fake_quantized(model: torch.nn.Sequential, points: torch.Tensor, scales: Mapping[str, Scale], again: bool) -> Array:
    """Return what PyTorch computes with the same scales, in 64-bit floats."""

    def rounded(tensor: torch.Tensor, name: str) -> torch.Tensor:
        if name not in scales:
            return tensor
        least, greatest = DTYPES[scales[name].dtype].range
        step = scales[name].step
        fake = torch.fake_quantize_per_tensor_affine(tensor, step, 0, int(least), int(greatest))
        return (fake / step).round() * step if again else fake

    weights = {name: value.detach().double() for name, value in model.state_dict().items()}
    with torch.no_grad():
        hidden = rounded(points.double(), "input") @ rounded(weights["0.weight"], "0.weight").T + weights["0.bias"]
        hidden = rounded(hidden.relu(), "1.relu") @ rounded(weights["2.weight"], "2.weight").T + weights["2.bias"]
    return hidden.numpy()


def _widths_fall(narrow: Quantization) -> bool:
    """Whether the types that are tried for a tensor become narrower, and none is tried after one that was not kept."""
    kept: dict[str, list[int]] = {}
    for trial in narrow.trials:
        bits = kept.setdefault(trial.tensor, [32])
        if BITS.index(DTYPES[trial.dtype].bits) != BITS.index(bits[-1]) + 1:
            return False
        bits.extend([DTYPES[trial.dtype].bits] if trial.kept else [])
    return all(DTYPES[scale.dtype].bits == kept[name][-1] for name, scale in narrow.scales.items())


def test_nothing_becomes_narrower_without_tolerance(compiled: Compiled) -> None:
    narrow = ff.quantize(compiled, 0)
    assert narrow.scales == {} and narrow.program == compiled.source.program
    assert [trial.dtype for trial in narrow.trials] == ["i16"] * 4


def test_the_choice_is_the_same_each_time_and_is_shown(compiled: Compiled) -> None:
    first, second = ff.quantize(compiled, 1e-2), ff.quantize(compiled, 1e-2)
    assert str(first) == str(second)
    assert str(first).splitlines()[0].split() == ["tensor", "type", "error", "drop"]
    assert first.to_json()["scales"]["input"]["dtype"] == first.scales["input"].dtype == "i8"
    assert len(first.to_json()["trials"]) == len(first.trials)


SPMM = """
tensor X[64, 64] dense block 32x32
tensor W[64, 64] csr block 32x32
Y[i, j] = sum(k) X[i, k] * W[k, j]
output Y
"""


def _spmm(text: str = SPMM, weight: Array | None = None) -> Compiled:
    rng = np.random.default_rng(0)
    values = rng.normal(size=(64, 64)) * np.kron([[1, 0], [1, 1]], np.ones((32, 32))) if weight is None else weight
    return ff.compile(parse(text), tensors={"X": rng.normal(size=(64, 64)), "W": values}, machine="ideal")


def test_blocks_of_bytes_take_fewer_cycles_than_blocks_of_floats() -> None:
    whole = _spmm()
    narrow = ff.quantize(whole, 1e-3, constants=("X", "W"))
    assert {name: scale.dtype for name, scale in narrow.scales.items()} == {"X": "i8", "W": "i8"}
    run = ff.compile(narrow.program, tensors=narrow.tensors, machine="ideal").run()
    assert run.check is not None and run.check.passed
    assert run.cycles < 0.3 * whole.run().cycles
    assert narrow.tensors["W1"].stored == whole.source.tensors["W"].stored  # what is sparse stays so


def test_a_weight_that_two_products_share_has_one_scale_and_is_kept_where_something_else_reads_it() -> None:
    compiled = _spmm("""
    tensor X[64, 64] dense
    tensor W[64, 64] csr
    Y[i, j] = sum(k) X[i, k] * W[k, j]
    Z[i, j] = sum(k) Y[i, k] * W[j, k]
    V[i, j] = Z[i, j] + W[i, j]
    output V
    """)
    narrow = ff.quantize(compiled, 1e-3, constants=("W",))
    assert list(narrow.scales) == ["X", "W", "Y"]
    assert {"W", "W1", "X"} == set(narrow.tensors)
    assert ff.compile(narrow.program, tensors=narrow.tensors).run().check.passed  # type: ignore[union-attr]


def test_a_tensor_of_zeros_and_one_of_integers_stay_as_they_are() -> None:
    zeros = ff.quantize(_spmm(weight=np.zeros((64, 64))), 1e-3)
    assert list(zeros.scales) == ["X"]
    text = "tensor X[64, 64] dense i32\ntensor W[64, 64] csr\nY[i, j] = sum(k) X[i, k] * W[k, j]\noutput Y\n"
    whole = np.arange(64 * 64).reshape(64, 64) % 5
    integers = ff.quantize(ff.compile(parse(text), tensors={"X": whole, "W": whole / 3}), 1e-3)
    assert list(integers.scales) == ["W"]


@pytest.mark.parametrize("stored", ["coo", "nm(2:4)", "csr", "dense"])
def test_an_input_that_is_rounded_may_be_stored_as_no_result_can_be(stored: str) -> None:
    mask = np.tile([1.0, 0, 1, 0], (64, 16))
    compiled = _spmm(
        f"""
    tensor X[64, 64] dense
    tensor W[64, 64] {stored}
    Y[i, j] = sum(k) X[i, k] * W[k, j]
    output Y
    """,
        weight=mask,
    )
    narrow = ff.quantize(compiled, 1e-3)
    assert list(narrow.scales) == ["X", "W"]
    assert ff.compile(narrow.program, tensors=narrow.tensors).run().check.passed  # type: ignore[union-attr]


def test_outputs_that_are_infinite_stay_so() -> None:
    compiled = _spmm("""
    tensor X[64, 64] dense
    tensor W[64, 64] csr
    Y[i, j] = log(relu(sum(k) X[i, k] * W[k, j]))
    output Y
    """)
    narrow = ff.quantize(compiled, 1e-2)
    assert narrow.scales and all(trial.error < 1e-2 for trial in narrow.trials if trial.kept)
    (before,), (after,) = (program.run().outputs.values() for program in (compiled, _again(narrow)))
    np.testing.assert_array_equal(np.isinf(before), np.isinf(after))


def _again(narrow: Quantization) -> Compiled:
    return ff.compile(narrow.program, tensors=narrow.tensors, machine="ideal")


def test_the_names_of_integers_are_new() -> None:
    compiled = _spmm("""
    tensor X[64, 64] dense
    tensor W[64, 64] csr
    W1[i, j] = sum(k) X[i, k] * W[k, j]
    output W1
    """)
    narrow = ff.quantize(compiled, 1e-3, constants=("W",))
    assert set(narrow.tensors) == {"X", "W2"}


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "good", None])
def test_a_metric_that_is_no_finite_number_is_refused(compiled: Compiled, value: Any) -> None:
    with pytest.raises(PlanError, match=f"the metric is {value!r}"):
        ff.quantize(compiled, 1e-3, lambda _: value)


@pytest.mark.parametrize("tolerance", [-1.0, float("nan"), "0.1", None])
def test_a_tolerance_is_a_number_of_at_least_0(compiled: Compiled, tolerance: Any) -> None:
    with pytest.raises(PlanError, match="a tolerance of"):
        ff.quantize(compiled, tolerance)


def test_numbers_that_are_not_finite_have_no_scale() -> None:
    weight = np.zeros((64, 64))
    weight[3, 5] = np.inf
    with pytest.raises(PlanError, match="`W` has an entry that is inf"):
        ff.quantize(_spmm(weight=weight), 1e-3)


def test_a_program_without_data_is_refused() -> None:
    with pytest.raises(PlanError, match="the input `X` has no data"):
        ff.quantize(ff.compile(parse(SPMM)))


def test_a_constant_is_an_input() -> None:
    with pytest.raises(PlanError, match="no input `w`") as error:
        ff.quantize(_spmm(), constants=("w",))
    assert "`W`" in str(error.value.hint)
    with pytest.raises(PlanError, match="`constants` is the text `W`"):
        ff.quantize(_spmm(), constants="W")


def test_packed_tensors_are_taken_as_they_are_and_refused_if_the_program_declares_others() -> None:
    compiled = _spmm()
    again = ff.compile(compiled.source.program, tensors=compiled.source.tensors)
    assert again.source.tensors["W"] is compiled.source.tensors["W"]
    with pytest.raises(FileError, match=r"tensor `W`: packed as f32, .dense, compressed., implicit value 0, declared f32, "):
        ff.compile(parse(SPMM.replace("csr block 32x32", "csc")), tensors=compiled.source.tensors)
    with pytest.raises(FileError, match=r"tensor `W`: shape \[64, 64\], declared \[64, 32\]"):
        ff.compile(parse(SPMM.replace("W[64, 64]", "W[64, 32]")), tensors=compiled.source.tensors)


@settings(max_examples=10, deadline=None)
@given(st.one_of(cases(), cases(max_einsums=6), wide_programs()), st.integers(0, 5))
def test_random_programs_compute_what_pytorch_s_fake_quantization_says(case: Case, number: int) -> None:
    check_case(case, number)


@pytest.mark.slow
def test_many_random_programs_compute_what_pytorch_s_fake_quantization_says(draws: Callable[[int], range]) -> None:
    numbers = draws(2000)
    many = settings(
        max_examples=len(numbers), deadline=None, database=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck)
    )
    left = count(numbers.start)

    @seed(numbers.start)
    @many
    @given(st.one_of(cases(), cases(max_einsums=6), wide_programs(), view_programs()))
    def check(case: Case) -> None:
        check_case(case, next(left))

    check()
