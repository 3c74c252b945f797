"""A sparse format on a tensor that PyTorch holds dense stores what is not zero, however it is said; `all` stores the zeros, too."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from click.testing import CliRunner

import fuseflow as ff
from fuseflow.cli.main import main
from fuseflow.einsum.mlir import from_mlir, to_mlir
from fuseflow.einsum.parse import parse
from fuseflow.einsum.text import show
from fuseflow.errors import FuseFlowError
from fuseflow.tensors import Format, pack
from fuseflow.tensors.pack import repack

GENERATOR = torch.Generator().manual_seed(0)
X = torch.where(torch.rand(8, 16, generator=GENERATOR) < 0.1, torch.randn(8, 16, generator=GENERATOR), 0.0)
W = torch.where(torch.rand(16, 6, generator=GENERATOR) < 0.1, torch.randn(16, 6, generator=GENERATOR), 0.0)
PROGRAM = "tensor x[8, 16] {0}\ntensor w[16, 6] {0}\nY[i, j] = sum(k) x[i, k] * w[k, j]\noutput Y\n"
MODEL = "import torch\ndef model(x, w):\n    return x @ w\n"
STORED = {"csr": int(X.count_nonzero() + W.count_nonzero()), "csr all": X.numel() + W.numel()}


def by_formats(text: str) -> ff.Compiled:
    return ff.compile(torch.matmul, (X, W), formats={"arg0": text, "arg1": text})


def by_schedule(text: str) -> ff.Compiled:
    return ff.compile(torch.matmul, (X, W), schedule=ff.Schedule.format("arg0", text).format("arg1", text))


def by_schedule_file(text: str) -> ff.Compiled:
    schedule = ff.Schedule.format("arg0", text).format("arg1", text)
    return ff.compile(torch.matmul, (X, W), schedule=ff.Schedule.from_yaml(schedule.to_yaml()))


def by_declaration(text: str) -> ff.Compiled:
    return ff.compile(parse(PROGRAM.format(text)), tensors={"x": X.numpy(), "w": W.numpy()})


def by_printed_program(text: str) -> ff.Compiled:
    program = parse(PROGRAM.format(text))
    assert parse(show(program)).tensors == program.tensors
    return ff.compile(from_mlir(to_mlir(program)), tensors={"x": X.numpy(), "w": W.numpy()})


WAYS = (by_formats, by_schedule, by_schedule_file, by_declaration, by_printed_program)


@pytest.mark.parametrize("text", ["csr", "csr all"])
def test_a_format_means_the_same_on_every_way(text: str) -> None:
    runs = [way(text) for way in WAYS]
    assert [sum(len(t.values) for t in compiled.inputs().values()) for compiled in runs] == [STORED[text]] * len(WAYS)
    assert len({compiled.run().cycles for compiled in runs}) == 1
    expected = (X @ W).numpy()
    for compiled in runs:
        (output,) = compiled.run().tensors.values()
        np.testing.assert_allclose(output.to_dense(), expected, rtol=1e-5, atol=1e-6)


def test_the_command_line_means_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", X.numpy())
    np.save("w.npy", W.numpy())
    Path("t.yaml").write_text("x: {path: x.npy}\nw: {path: w.npy}\n")
    Path("p.ein").write_text(PROGRAM.format("dense"))
    for text in STORED:
        options = [word for name in "xw" for word in ("--format", f"{name}={text}")]
        result = CliRunner().invoke(main, ["run", "p.ein", "--tensors", "t.yaml", *options])
        assert result.exit_code == 0, result.output
        assert f"{by_declaration(text).run().cycles:,}" in result.output


def test_a_pattern_is_kept_with_its_zeros() -> None:
    a = torch.sparse_csr_tensor([0, 2, 3], [0, 2, 1], [1.0, 0.0, 2.0], (2, 3))
    compiled = ff.compile(torch.matmul, (a, torch.ones(3, 2)), schedule=ff.Schedule.format("arg0", "coo"))
    assert compiled.inputs()["arg0"].values.tolist() == [1, 0, 2]
    everything = ff.compile(torch.matmul, (a, torch.ones(3, 2)), formats={"arg0": "csr all"})
    assert everything.inputs()["arg0"].values.tolist() == [1, 0, 0, 0, 2, 0]


@pytest.mark.parametrize("text", ["csr all", "csc all", "(compressed, dense) order (1, 0) all", "coo all"])
def test_printing_and_packing(text: str) -> None:
    format = Format.parse(text, 2)
    assert format.complete and Format.parse(format.short(), 2) == format == Format.parse(str(format), 2)
    array = np.array([[0, 1, 0], [2, 0, 0]])
    for tensor in (pack(array, format), repack(pack(array, Format.parse("csr", 2)), format)):
        assert tensor.stored == 6 and (tensor.to_dense() == array).all()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Format.parse("dense all", 2), "dense levels do anyway"),
        (lambda: ff.Schedule.format("x", "dense all"), "dense levels do anyway"),
        (
            lambda: ff.compile(parse("tensor A[3]\ntensor Y[3] csf all\nY[i] = A[i]\noutput Y"), tensors={"A": [1, 0, 2]}),
            "is computed",
        ),
        (
            lambda: ff.compile(
                parse(PROGRAM.format("dense")),
                tensors={"x": X.numpy(), "w": W.numpy()},
                schedule=ff.Schedule.format("Y", "csr all"),
            ),
            "is computed",
        ),
        (lambda: Format.parse("csr every", 2), "`every` behind the format `csr`"),
    ],
)
def test_what_makes_no_sense_is_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises(FuseFlowError) as error:
        make()
    assert message in str(error.value)
