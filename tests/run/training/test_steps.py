"""Steps of a program whose outputs `next.X` are its inputs `X`, beside PyTorch's optimizers and beside steps that are run one by one."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch

import fuseflow as ff
from fuseflow.einsum.parse import parse
from fuseflow.errors import UsageError
from fuseflow.run.check import Check
from fuseflow.tensors import Format, from_coordinates, pack

RNG = np.random.default_rng(0)
MASK = RNG.random((8, 3)) < 0.5
X, Y = RNG.standard_normal((16, 8)).astype(np.float32), RNG.standard_normal((16, 3)).astype(np.float32)
W = (MASK * RNG.standard_normal((8, 3))).astype(np.float32)

MOMENTUM = """
program linear
tensor x[16, 8]
tensor y[16, 3]
tensor mask[8, 3] {0}
tensor W[8, 3] {0}
tensor W.momentum_buffer[8, 3] {0}
tensor lr[]
error[n, j] = sum(i) x[n, i] * W[i, j] - y[n, j]
loss = sum(n, j) error[n, j] * error[n, j] / 48
grad.W[i, j] = mask[i, j] * (sum(n) x[n, i] * error[n, j]) / 24
next.W.momentum_buffer[i, j] = 0.9 * W.momentum_buffer[i, j] + grad.W[i, j]
next.W[i, j] = W[i, j] - lr * next.W.momentum_buffer[i, j]
output loss, next.W, next.W.momentum_buffer, grad.W
"""


def at_mask(array: np.ndarray, format: str) -> ff.tensors.Tensor:
    """Return an array that stores the entries of the mask, zeros too, or all if it is dense."""
    if format == "(dense, dense)":
        return pack(array, Format.dense(2))
    places = np.array(np.nonzero(MASK))
    return from_coordinates(MASK.shape, places, array[tuple(places)], Format.parse(format, 2))


def linear(format: str = "csr", schedule: ff.Schedule | None = None, **tensors) -> ff.Compiled:
    arrays = {"x": X, "y": Y, "mask": at_mask(MASK.astype(np.float32), format), "W": at_mask(W, format)}
    arrays |= {"W.momentum_buffer": at_mask(np.zeros_like(W), format), **tensors}
    return ff.compile(parse(MOMENTUM.format(format)), tensors=arrays, schedule=schedule or ff.Schedule.fuse("full"))


def lr(step: int) -> dict[str, float]:
    return {"lr": 0.1 / step}


def in_torch(steps: int, batches: list[np.ndarray] | None = None) -> tuple[list[float], np.ndarray, np.ndarray]:
    """Return PyTorch's losses, and its weight and momentum after these steps."""
    weight, mask = torch.tensor(W, requires_grad=True), torch.tensor(MASK.astype(np.float32))
    optimizer, losses = torch.optim.SGD([weight], lr=1.0, momentum=0.9), []
    for step in range(1, steps + 1):
        optimizer.param_groups[0]["lr"] = lr(step)["lr"]
        optimizer.zero_grad()
        x = torch.tensor(X if batches is None else batches[step - 1])
        loss = torch.nn.functional.mse_loss(x @ (weight * mask), torch.tensor(Y))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, weight.detach().numpy(), optimizer.state[weight]["momentum_buffer"].numpy()


@pytest.mark.parametrize("fuse", ["none", "full"])
@pytest.mark.parametrize("format", ["csr", "csc", "(dense, dense)"])
def test_steps_are_those_of_pytorch(format, fuse) -> None:
    run = linear(format, ff.Schedule.fuse(fuse)).run(steps=8, scalars=lr)
    losses, weight, momentum = in_torch(8)
    np.testing.assert_allclose(run.losses, losses, rtol=1e-5)
    np.testing.assert_allclose(run.state["W"].to_dense(), weight, atol=1e-6)
    np.testing.assert_allclose(run.state["W.momentum_buffer"].to_dense(), momentum, atol=1e-6)
    assert run.check.passed and run.notes == ("cycles of step 1 hold for steps 1-8",)
    assert run.cycles == (run.first.cycles,) * 8 and "8 steps" in repr(run)


def test_steps_are_runs_one_after_the_other() -> None:
    program = linear()
    run = program.run(steps=5, scalars=lr, gradients=True)
    state = {}
    for number, step in enumerate(run.steps, 1):
        one = program.run(tensors={**state, **lr(number)})
        assert step.cycles == one.cycles and step.loss == pytest.approx(float(one.outputs["loss"]), rel=1e-6)
        np.testing.assert_allclose(step.gradients["W"].to_dense(), one.tensors["grad.W"].to_dense(), atol=1e-6)
        state = {name.removeprefix("next."): t for name, t in one.tensors.items() if name.startswith("next.")}
    for name, tensor in state.items():
        assert tensor.format == run.state[name].format and (tensor.coordinates() == run.state[name].coordinates()).all()
        np.testing.assert_allclose(run.state[name].values, tensor.values, atol=1e-6)


@pytest.mark.parametrize("fuse", ["none", "full"])
@pytest.mark.parametrize("format", ["csr", "csc", "(dense, dense)", "(dense, dense) order (1, 0)"])
def test_an_output_has_the_format_of_its_input(format, fuse) -> None:
    program = linear("(dense, dense)", ff.Schedule.fuse(fuse).format("W", format).format("W.momentum_buffer", format))
    formats = {name: tensor.format for name, tensor in program.run(tensors=lr(1)).tensors.items()}
    assert formats["next.W"] == formats["next.W.momentum_buffer"] == program.program.declared["W"].format
    assert str(program.program.declared["W"].format) == str(Format.parse(format, 2))
    np.testing.assert_allclose(program.run(steps=3, scalars=lr).losses, in_torch(3)[0], rtol=1e-5)
    own = ff.compile(program.source.program, schedule=ff.Schedule().format("W", "csr").format("next.W", "(dense, dense)"))
    assert own.program.declared["next.W"].format.all_dense


def test_an_entry_that_becomes_zero_stays_stored() -> None:
    program = linear(W=at_mask(np.zeros_like(W), "csr"))
    first = program.run(tensors={"lr": 0.0})
    assert not first.tensors["next.W"].values.any() and first.tensors["next.W"].stored == MASK.sum()
    assert program.run(tensors={"lr": 0.0, "W": first.tensors["next.W"]}).cycles == first.cycles
    run = program.run(steps=3, scalars=lambda step: {"lr": 0.1 * (step > 1)})
    assert run.state["W"].stored == MASK.sum() and run.cycles == (first.cycles,) * 3


def test_places_that_change_are_simulated_again() -> None:
    """A momentum that is packed by value stores nothing at first."""
    run = linear(**{"W.momentum_buffer": np.zeros_like(W)}).run(steps=6, scalars=lr)
    assert run.cycles[0] != run.cycles[1] and run.notes == ("cycles of step 2 hold for steps 2-6",)
    np.testing.assert_allclose(run.losses, in_torch(6)[0], rtol=1e-5)
    some = linear(**{"W.momentum_buffer": np.zeros_like(W)}).run(steps=6, scalars=lr, simulate=2)
    assert some.notes == ("cycles of step 4 hold for steps 4-6", "no cycles of steps 2-3, whose values alone were computed")
    np.testing.assert_allclose(some.losses, run.losses, rtol=1e-6)
    assert (some.state["W"].coordinates() == run.state["W"].coordinates()).all()


def test_blocks() -> None:
    text = MOMENTUM.replace("mask[8, 3] {0}", "mask[8, 3] {0} block 2x1").format("csr")
    arrays = {"x": X, "y": Y, "mask": MASK, "W": W, "W.momentum_buffer": 0 * W}
    program = ff.compile(parse(text), tensors=arrays, schedule=ff.Schedule.fuse("full"))
    run = program.run(steps=4, scalars=lr)
    state = {}
    for number in range(1, 5):
        one = program.run(tensors={**state, **lr(number)})
        assert run.cycles[number - 1] == one.cycles and run.losses[number - 1] == pytest.approx(
            float(one.outputs["loss"]), rel=1e-6
        )
        state = {name.removeprefix("next."): t for name, t in one.tensors.items() if name.startswith("next.")}
    np.testing.assert_allclose(run.state["W"].to_dense(), state["W"].to_dense(), atol=1e-6)


BY_VALUE = """
program autoencoder
tensor x[6, 8]
tensor W[8, 5] (dense, dense)
tensor h[6, 5] csr
h[n, j] = relu(sum(i) x[n, i] * W[i, j])
s[n, i] = sum(j) h[n, j] * W[i, j]
loss = sum(n, i) (s[n, i] - x[n, i]) * (s[n, i] - x[n, i])
grad.W[i, j] = sum(n) (s[n, i] - x[n, i]) * h[n, j]
next.W[i, j] = W[i, j] - 0.002 * grad.W[i, j]
output loss, next.W, h
"""


def test_graphs_that_drop_entries_by_their_values() -> None:
    arrays = {"x": X[:6], "W": RNG.standard_normal((8, 5))}
    schedule = ff.Schedule.fuse("none").lower(drop_zeros=("h",))
    program = ff.compile(parse(BY_VALUE), tensors=arrays, schedule=schedule)
    every, some = program.run(steps=6), program.run(steps=6, simulate=2)
    assert len(set(every.cycles)) > 1 and every.notes == () and None not in every.cycles
    assert [step.simulated for step in some.steps] == [1, None, None, 4, None, None]
    assert some.cycles[3] == every.cycles[3] and some.check.passed
    assert some.notes == ("no cycles of steps 2-3, 5-6, whose values alone were computed",)
    np.testing.assert_allclose(some.losses, every.losses, rtol=1e-5)


def test_batches() -> None:
    batches = [RNG.standard_normal((16, 8)).astype(np.float32) for _ in range(4)]
    run = linear().run(steps=4, scalars=lr, batches=({"x": x} for x in batches))
    losses, weight, _ = in_torch(4, batches)
    np.testing.assert_allclose(run.losses, losses, rtol=1e-5)
    np.testing.assert_allclose(run.state["W"].to_dense(), weight, atol=1e-6)
    with pytest.raises(UsageError, match=r"(?s)batches end before step 3 of 4.*itertools\.cycle"):
        linear().run(steps=4, scalars=lr, batches=[{"x": x} for x in batches[:2]])


def test_batches_with_places_of_their_own_are_simulated_once_each() -> None:
    text = MOMENTUM.replace("tensor x[16, 8]", "tensor x[16, 8] csr").format("csr")
    arrays = {"x": X, "y": Y, "mask": at_mask(MASK.astype(np.float32), "csr"), "W": at_mask(W, "csr")}
    arrays["W.momentum_buffer"] = at_mask(0 * W, "csr")
    program = ff.compile(parse(text), tensors=arrays)
    batches = [{"x": X * (RNG.random(X.shape) < share)} for share in (0.2, 0.6)]
    run = program.run(steps=6, scalars=lr, batches=itertools.cycle(batches))
    assert [step.simulated for step in run.steps] == [1, 2, 1, 2, 1, 2] and run.cycles[0] < run.cycles[1]
    assert run.notes == ("cycles of step 1 hold for steps 1, 3, 5", "cycles of step 2 hold for steps 2, 4, 6")


def test_a_function_checks_each_step() -> None:
    own, seen = W.copy(), []

    def check(step, inputs, outputs) -> Check:
        own[:] = step  # as an optimizer of PyTorch changes a parameter
        seen.append((inputs["W"].to_dense(), outputs["next.W"].to_dense(), float(inputs["lr"].to_dense())))
        return Check("the test", step != 2, float(step))

    program = linear().with_values({"W": replace(at_mask(W, "csr"), values=own[tuple(np.nonzero(MASK))])})
    run = program.run(steps=3, scalars=lr, check=check)
    assert not run.check.passed and run.check.reference == "the test" and run.first.check is None
    np.testing.assert_array_equal(seen[0][0], W)
    for (_, after, _), (before, _, _) in itertools.pairwise(seen):
        np.testing.assert_array_equal(after, before)
    np.testing.assert_allclose([rate for *_, rate in seen], [0.1, 0.05, 0.1 / 3], rtol=1e-6)


def test_the_state_is_not_the_memory_of_the_user() -> None:
    weight = pack(W, Format.dense(2), copy=False)
    assert np.shares_memory(weight.values, W)
    program = linear("(dense, dense)", W=weight)

    def check(step, inputs, outputs) -> Check:
        assert not np.shares_memory(inputs["W"].values, W)
        return Check("the test", True, 0.0)

    assert program.run(steps=2, scalars=lr, check=check).check.passed


def test_unchecked_steps() -> None:
    assert linear().run(steps=2, scalars=lr, check=False).check is None


ERRORS = {
    "`steps=0` runs nothing": {"steps": 0},
    "`simulate=0` runs nothing": {"steps": 2, "simulate": 0},
    "of a run of several steps": {"simulate": 3},
    "are of a run of several steps": {"scalars": lr},
    "not sampled": {"steps": 2, "sample": ff.Sample(fraction=0.5)},
    "input `lr` of `linear` has no data": {"steps": 2},
    "no input `rate`": {"steps": 2, "scalars": lambda step: {"rate": 1.0}},
    "(?s)step 1 is given `W`, which is `next.W` of the step before.*`tensors`": {"steps": 2, "scalars": lambda step: {"W": W}},
    "only a run of several steps is checked by a function": {"check": lambda *step: None},
}


@pytest.mark.parametrize(("message", "arguments"), ERRORS.items(), ids=range(len(ERRORS)))
def test_arguments_that_do_not_fit(message, arguments) -> None:
    with pytest.raises(UsageError, match=message):
        linear().run(**arguments)


PROGRAMS = {
    r"no output `next\.X`": ("tensor a[3]\nb[i] = 2 * a[i]\noutput b", "none"),
    r"no input `b`": ("tensor a[3]\nnext.b[i] = 2 * a[i]\noutput next.b", "none"),
    r"`next\.a` has the shape \[3\], and `a`, .* has \[3, 2\]": (
        "tensor a[3, 2]\nnext.a[i] = sum(j) a[i, j]\noutput next.a",
        "none",
    ),
    r"(?s)`next\.a` has the format dense, .* has csr.*`--format next\.a=csr`": (
        "tensor a[3, 3] csr\ntensor next.a[3, 3] (dense, dense)\nnext.a[i, j] = 2 * a[i, j]\noutput next.a",
        "none",
    ),
    r"`next\.a` has the type f64": ("tensor a[3]\ntensor next.a[3] f64\nnext.a[i] = 2 * a[i]\noutput next.a", "none"),
}


@pytest.mark.parametrize(("message", "program"), PROGRAMS.items(), ids=range(len(PROGRAMS)))
def test_programs_whose_outputs_are_no_inputs(message, program) -> None:
    text, fuse = program
    parsed = parse(text)
    tensors = {t.name: np.ones(t.shape) for t in parsed.inputs}
    compiled = ff.compile(parsed, tensors=tensors, schedule=ff.Schedule.fuse(fuse), machine="ideal")
    with pytest.raises(UsageError, match=message):
        compiled.run(steps=2)


def test_a_dense_state_may_have_any_implicit_value() -> None:
    program = ff.compile(parse("tensor a[3]\nnext.a[i] = a[i] + 1\noutput next.a"), tensors={"a": np.zeros(3)})
    assert program.run().tensors["next.a"].fill == 1
    run = program.run(steps=4, simulate=1)
    assert run.state["a"].to_dense().tolist() == [4, 4, 4] and run.check.passed
    again = program.run(tensors={"a": program.run().tensors["next.a"]})
    assert again.outputs["next.a"].tolist() == [2, 2, 2]


def test_gradients_of_a_program_without_any() -> None:
    program = ff.compile(parse("tensor a[3]\nnext.a[i] = 2 * a[i]\noutput next.a"), tensors={"a": np.ones(3)})
    assert program.run(steps=3).state["a"].to_dense().tolist() == [8, 8, 8]
    assert program.run(steps=3).losses == ()
    with pytest.raises(UsageError, match=r"no output `grad\.X`"):
        program.run(steps=3, gradients=True)


def test_stand_ins_are_no_state() -> None:
    with pytest.raises(UsageError, match="dense stand-ins"):
        linear(schedule=ff.Schedule().lower(intermediates="dense")).run(steps=2, scalars=lr)
