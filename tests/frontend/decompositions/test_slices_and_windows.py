"""Slices, concatenations, padding, convolution, pooling and recurrent layers: PyTorch computes the same, unfused and fused."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch
from sources import compiled_at
from torch import Tensor, nn
from torch.nn import functional as F

import fuseflow as ff
from fuseflow.einsum.interpret import evaluate
from fuseflow.einsum.nodes import Affine, Program, Split
from fuseflow.einsum.selections import replace_affine
from fuseflow.errors import FrontendError
from fuseflow.frontend import import_model


class Function(nn.Module):
    def __init__(self, function: Callable[..., Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: Tensor) -> Tensor:
        return self.function(*inputs)


def _random(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)))


X, IMAGE, SIGNAL = _random(4, 6), _random(2, 4, 6, 6), _random(2, 4, 8)
CASES: dict[str, tuple[Callable[..., Tensor], tuple[Tensor, ...]]] = {
    "slice": (lambda x: x[1:3, 1::2] * 2, (X,)),
    "slice is the output": (lambda x: x[:, 2:5], (X,)),
    "sum of a slice": (lambda x: x[:, 1:4].sum(1), (X,)),
    "softmax of a slice": (lambda x: torch.softmax(x[:, 1:4], -1), (X,)),
    "product with a slice": (lambda x, w: x[:, 1:4] @ w, (X, _random(3, 5))),
    "select": (lambda x: x[:, -1] * x[1, 0], (X,)),
    "narrow": (lambda x: x.narrow(1, 2, 3) + 1, (X,)),
    "split": (lambda x: torch.mul(*x.split(3, 1)), (X,)),
    "chunk": (lambda x: torch.mul(*x.chunk(2, 0)), (X,)),
    "unbind": (lambda x: x.unbind(1)[2] * 2, (X,)),
    "cat": (lambda a, b: torch.relu(torch.cat([a, b, a], 1)), (X, _random(4, 3))),
    "cat of slices": (lambda x: torch.cat([x[:, 4:], x[:, 1:3]], 1) * 2, (X,)),
    "stack": (lambda a, b: torch.stack([a, b], 1) * 2, (X, X)),
    "stack of rows": (lambda x: torch.stack([x[0], x[2]]) * 2, (X,)),
    "flip": (lambda x: x.flip(0, 1) * 2, (X,)),
    "roll": (lambda x: x.roll((1, -2), (0, 1)) * 2, (X,)),
    "roll of all": (lambda x: x.roll(5) * 2, (X,)),
    "pad": (lambda x: F.pad(x, (1, 2, 0, 3)) * 2, (X,)),
    "pad of a slice": (lambda x: F.pad(x[:, 1:4], (1, 1)), (X,)),
    "pad with a number": (lambda x: F.pad(x, (1, 2), value=3.0) * 2, (X,)),
    "pad by less than nothing": (lambda x: F.pad(x, (-1, 2)) * 2, (X,)),
    "repeat": (lambda x: x.repeat(2, 3) * 2, (X,)),
    "tile": (lambda x: x.tile(2) * 2, (X,)),
    "glu": (F.glu, (X,)),
    "unfold": (lambda x: x.unfold(1, 3, 2) * 2, (X,)),
    "columns": (lambda x: F.unfold(x, 3, 1, 1, 2) * 2, (IMAGE,)),
    "pictures of columns": (lambda x: F.fold(x, (5, 6), (2, 3), (2, 1), (1, 2), (1, 2)), (_random(2, 12, 20),)),
    "one picture of columns": (lambda x: F.fold(x, (4, 4), 2), (_random(8, 9),)),
    "pictures of patches": (lambda x: F.fold(x, (4, 6), 2, stride=2) * 2, (_random(1, 8, 6),)),
    "conv1d": (lambda x, w: F.conv1d(x, w, padding=1), (SIGNAL, _random(6, 4, 3))),
    "conv1d of one signal": (lambda x, w: F.conv1d(x, w), (X, _random(2, 4, 3))),
    "conv2d": (lambda x, w: F.conv2d(x, w, padding=1), (IMAGE, _random(3, 4, 3, 3))),
    "conv2d 1 x 1": (lambda x, w: F.conv2d(x, w), (IMAGE, _random(3, 4, 1, 1))),
    "conv2d of one image and channel": (lambda x, w: F.conv2d(x, w), (_random(1, 1, 6, 6), _random(1, 1, 3, 3))),
    "conv2d strided and dilated": (lambda x, w: F.conv2d(x, w, None, 2, 2, 2), (IMAGE, _random(3, 4, 3, 3))),
    "conv2d grouped": (lambda x, w: F.conv2d(x, w, groups=2), (IMAGE, _random(6, 2, 3, 3))),
    "conv2d depthwise": (lambda x, w: F.conv2d(x, w, groups=4), (IMAGE, _random(4, 1, 3, 3))),
    "conv2d of patches": (lambda x, w: F.conv2d(x, w, stride=3), (IMAGE, _random(3, 4, 3, 3))),
    "conv_transpose1d": (lambda x, w: F.conv_transpose1d(x, w, stride=2), (SIGNAL, _random(4, 3, 3))),
    "conv_transpose2d": (
        lambda x, w: F.conv_transpose2d(x, w, stride=2, padding=1, output_padding=1, groups=2),
        (_random(1, 4, 3, 3), _random(4, 2, 3, 3)),
    ),
    "max_pool1d": (lambda x: F.max_pool1d(x, 2), (SIGNAL,)),
    "max_pool2d": (lambda x: F.max_pool2d(x, 2), (IMAGE,)),
    "max_pool2d padded": (lambda x: F.max_pool2d(x, 3, 2, 1), (-IMAGE.abs(),)),
    "max_pool2d up": (lambda x: F.max_pool2d(x, 3, 2, ceil_mode=True), (-IMAGE.abs(),)),
    "avg_pool1d": (lambda x: F.avg_pool1d(x, 2), (SIGNAL,)),
    "avg_pool2d": (lambda x: F.avg_pool2d(x, 2), (IMAGE,)),
    "avg_pool2d padded": (lambda x: F.avg_pool2d(x, 3, 2, 1), (IMAGE,)),
    "adaptive_avg_pool2d": (lambda x: F.adaptive_avg_pool2d(x, 2), (IMAGE,)),
    "adaptive_avg_pool2d of all": (lambda x: F.adaptive_avg_pool2d(x, 1), (IMAGE,)),
}
CELLS: dict[str, tuple[nn.Module, tuple[Tensor, ...]]] = {
    "LSTMCell": (nn.LSTMCell(6, 3), (X,)),
    "GRUCell": (nn.GRUCell(6, 3, bias=False), (X,)),
    "RNNCell": (nn.RNNCell(6, 3, nonlinearity="relu"), (X,)),
    "LSTM": (nn.LSTM(3, 2, batch_first=True), (_random(2, 3, 3),)),
    "GRU in two directions": (nn.GRU(3, 2, bidirectional=True), (_random(2, 2, 3),)),
    "RNN of two layers": (nn.RNN(3, 2, num_layers=2), (_random(3, 2, 3),)),
}


def _matches(module: nn.Module, inputs: tuple[Tensor, ...], *granularities: str) -> None:
    module.eval()
    with torch.no_grad():
        expected = torch.utils._pytree.tree_leaves(module(*inputs))
    for compiled in compiled_at(module, inputs, *granularities):
        outputs = compiled.run().outputs
        assert len(expected) == len(outputs)
        for output, wanted in zip(outputs.values(), expected, strict=True):
            computed, about = np.asarray(output).ravel(), str(compiled.schedule)
            np.testing.assert_allclose(computed, wanted.numpy().ravel(), rtol=1e-4, atol=1e-5, err_msg=about)


@pytest.mark.parametrize("name", CASES)
def test_an_operator_is_what_pytorch_computes(name: str) -> None:
    function, inputs = CASES[name]
    _matches(Function(function), inputs, "none", "full")


@pytest.mark.parametrize("name", CELLS)
def test_a_recurrent_module_is_what_pytorch_computes(name: str) -> None:
    _matches(*CELLS[name], "none")


def test_a_sparse_input_is_sliced_and_joined() -> None:
    kept = X * (X > 0.5)
    _matches(Function(lambda a, b: torch.cat([a, b], 1) @ b.t()[:, :1].expand(6, 2).repeat(2, 1)), (kept, kept), "none", "full")
    module = Function(lambda a, x: (a @ x)[1:3])
    _matches(module, (kept.to_sparse_csr(), _random(6, 3)), "none", "full")


def test_a_convolution_is_one_einsum_with_two_offsets() -> None:
    program = import_model(nn.Conv2d(4, 3, 3, padding=1, bias=False), (IMAGE,), {}, "m").program
    reads = [i for e in program.einsums for a in e.accesses for i in a.indices if isinstance(i, Affine)]
    assert len(program.einsums) == 2 and len(reads) == 4  # one of them pads


def test_windows_that_do_not_overlap_are_a_split() -> None:
    program = import_model(nn.MaxPool2d(2), (IMAGE,), {}, "m").program
    indices = [i for e in program.einsums for a in e.accesses for i in a.indices]
    assert any(isinstance(i, Split) for i in indices) and not any(isinstance(i, Affine) for i in indices)


@pytest.mark.parametrize("fuse", ["none", "full"])
def test_a_convolution_with_pruned_weights(fuse: str) -> None:
    conv = nn.Conv2d(4, 3, 3, padding=1)
    with torch.no_grad():
        conv.weight *= torch.rand(conv.weight.shape, generator=torch.Generator().manual_seed(0)) > 0.9
    formats = {"0.weight": "(dense, compressed, compressed, compressed)"}
    result = ff.compile(
        nn.Sequential(conv, nn.ReLU()),
        (IMAGE,),
        schedule=ff.Schedule.fuse(fuse),
        formats=formats,
    ).run()
    assert result.check.passed


def test_large_windows_and_packed_layers_are_refused() -> None:
    with pytest.raises(FrontendError, match="window of 33 positions"):
        import_model(nn.MaxPool2d((33, 2), 1), (_random(1, 1, 34, 3),), {}, "m")
    with pytest.raises(FrontendError, match="projection"):
        import_model(nn.LSTM(3, 4, proj_size=2).eval(), (_random(2, 2, 3),), {}, "m")


@pytest.mark.parametrize("fault", ["offset", "stride", "outside"])
def test_a_fault_in_an_index_is_seen(fault: str) -> None:
    """A witness of the tests above: an index that is wrong by one, that lost its stride, or that reads on inside of the tensor."""
    model = import_model(nn.Conv1d(4, 3, 3, stride=2, padding=1, bias=False), (SIGNAL,), {}, "m")
    arrays = {name: np.asarray(tensor.to_dense(), np.float64) for name, tensor in model.tensors.items()}

    def broken(index: object) -> object:
        if not isinstance(index, Affine):
            return index
        if fault == "offset":
            return replace(index, offset=index.offset + 1)
        if fault == "stride":
            return replace(index, terms=tuple((name, 1) for name, _ in index.terms))
        return replace(index, offset=0) if index.offset < 0 else index

    def output(program: Program) -> np.ndarray:
        selected, tensors = replace_affine(program)
        return evaluate(selected, {**arrays, **{n: t.to_dense() for n, t in tensors.items()}})[program.outputs[0]]

    def changed(node: object) -> object:
        from fuseflow.einsum.nodes import Access, Apply, Reduce

        match node:
            case Access():
                return replace(node, indices=tuple(map(broken, node.indices)))
            case Apply():
                return replace(node, args=tuple(map(changed, node.args)))
            case Reduce():
                return replace(node, body=changed(node.body))
        return node

    wrong = replace(model.program, einsums=tuple(replace(e, body=changed(e.body)) for e in model.program.einsums))
    expected = next(iter(model.expected.values())).squeeze()
    assert np.allclose(output(model.program), expected, atol=1e-5)
    assert not np.allclose(output(wrong), expected, atol=1e-5)
