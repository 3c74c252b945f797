"""What the front end refuses, one small model each: the operator, the way out, the module path and the source line."""

import copy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from fuseflow.errors import FrontendError
from fuseflow.frontend import import_model


class Function(nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor, *others: Any) -> Any:
        return self.function(x, *others)


def refused(module: nn.Module, *inputs: Any) -> FrontendError:
    with pytest.raises(FrontendError) as caught:
        import_model(module, inputs)
    return caught.value


OPERATORS: dict[str, tuple[Callable[[Tensor], Any], str, str]] = {
    "nonzero": (lambda x: x.nonzero(), "the size of the result of `aten.nonzero.default` depends on data", "torch.where"),
    "selected": (lambda x: x.masked_select(x > 0), "the size of the result of `aten.masked_select.default`", "torch.where"),
    "selected rows": (lambda x: x[x.sum(1) > 5], "the size of the result of `aten.index.Tensor` depends on data", "torch.where"),
    "places": (lambda x: x[torch.where(x > 0)[0]], "the size of the result of `aten.where.default` depends on data", "mask"),
    "several numbers": (lambda x: x * torch.tensor([x.sum()]), "taken out of a tensor by `tensor`, depends", "torch.stack"),
    "unique": (lambda x: torch.unique(x), "the size of the result of `aten._unique2.default` depends on data", "torch.where"),
    "equal": (lambda x: x * torch.equal(x, x + 1), "taken out of a tensor by `equal`, depends on data", "torch.where"),
    "nested": (
        lambda x: torch.nested.as_nested_tensor([x, x]).to_padded_tensor(0.0),
        "a nested tensor in the strided layout cannot be recorded",
        "layout=torch.jagged",
    ),
    "copied": (lambda x: copy.deepcopy(x) * 2, "the model takes the memory of a tensor", "clone"),
    "number of an operator": (lambda x: x * torch.ops.aten.item(x.sum()), "taken out of a tensor by `aten.item`", "where"),
    "mode": (lambda x: x.mode(1).values, "sorting or scanning (`aten.mode.default`)", "outside"),
    "median": (lambda x: x.nanmedian(1).values, "sorting or scanning", "outside"),
    "where the largest are": (lambda x: x.cummax(1).indices * 1.0, "sorting or scanning", "outside"),
    "argmax of all": (lambda x: x.argmax(keepdim=True), "a loop index used as a value (`aten.argmax.default`)", "buffer"),
    "tril of truth values": (lambda x: torch.tril(x > 0) * x, "a loop index used as a value", "buffer"),
    "rand": (lambda x: x + torch.rand(6, 4), "random numbers (`aten.rand.default`)", ".eval()"),
    "dropout": (lambda x: F.dropout(x), "random numbers: `dropout` in training mode", "training=self.training"),
    "diagonal": (lambda x: torch.diag(x.sum(0), 1), "a diagonal (`aten.diag.default`)", "`d[:, None] * a`"),
    "batch norm": (
        lambda x: F.batch_norm(x, torch.zeros(4), torch.ones(4), training=True),
        "statistics of the batch: `batch_norm`",
        ".eval()",
    ),
    "item": (lambda x: x * x.sum().item(), "a Python number, taken out of a tensor by `item`, depends on data", "torch.where"),
    "fft": (lambda x: torch.fft.fft(x).angle(), "complex numbers in `aten.angle.default`", "`.real`"),
    "inverse": (
        lambda x: torch.linalg.inv(x @ x.t() + torch.eye(6)),
        "`linalg_inv`, through `aten.linalg_inv_ex.default`, has no Einsum form",
        "outside",
    ),
    "lgamma": (lambda x: torch.lgamma(x), "`lgamma` has no Einsum form", "outside"),
    "to small integers": (lambda x: x.to(torch.int8), "arithmetic in torch.int8, which wraps around", "int32"),
    "complex": (lambda x: x + 1j, "an output of complex numbers", "view_as_real"),
}


@pytest.mark.parametrize("case", OPERATORS)
def test_operators_without_einsum_form(case: str) -> None:
    function, message, hint = OPERATORS[case]
    error = refused(Function(function), torch.ones(6, 4))
    assert message in error.message
    assert hint in error.hint
    assert error.span is not None and error.span.file.endswith("test_refusals.py")


PATTERNS: dict[str, tuple[Callable[[Tensor], Any], str]] = {
    "values": (lambda a: a.values() * 2, "(`aten.values.default`)"),
    "indices": (lambda a: a.crow_indices() * 2, "crow_indices"),
    "softmax": (lambda a: torch.sparse.softmax(a.to_sparse_coo(), 1), "_sparse_softmax"),
}


@pytest.mark.parametrize("case", PATTERNS)
def test_operators_on_the_pattern_of_a_result(case: str) -> None:
    function, name = PATTERNS[case]
    product = Function(lambda a, x: function(torch.sparse.mm(torch.sparse.sampled_addmm(a, x, x), a)))
    error = refused(product, torch.eye(4).to_sparse_csr(), torch.ones(4, 4))
    assert "stored pattern of a sparse tensor" in error.message
    assert name in error.message
    assert "dense form" in error.hint


def test_the_line_of_a_function() -> None:
    with pytest.raises(FrontendError) as caught:
        import_model(lambda x: x.lgamma(), (torch.ones(3),))
    assert caught.value.span is not None and caught.value.span.file.endswith("test_refusals.py")


def test_module_path_and_line() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.block = nn.Sequential(nn.Linear(4, 4), nn.Dropout())

        def forward(self, x: Tensor) -> Tensor:
            return self.block(x)

    error = refused(Model(), torch.ones(6, 4))
    assert error.message.endswith("at module `block.1`")
    assert error.span is not None and error.span.line == Model.forward.__code__.co_firstlineno + 1


def test_library_modules_without_a_user_s_line() -> None:
    assert "a recurrent layer with a projection" in refused(nn.LSTM(4, 3, proj_size=2), torch.ones(6, 4)).message
    assert "in training mode at module `0`" in refused(nn.Sequential(nn.BatchNorm1d(4)), torch.ones(6, 4)).message


def test_control_flow_on_data(capfd: pytest.CaptureFixture[str]) -> None:
    class Model(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            if x.sum() > 0:
                return x * 2
            return x

    error = refused(Model(), torch.ones(6, 4))
    assert error.message == "control flow depends on data"
    assert error.span is not None and error.span.line == Model.forward.__code__.co_firstlineno + 1
    captured = capfd.readouterr()
    assert (captured.out, captured.err) == ("", "")


def test_mutation() -> None:
    class Counter(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("count", torch.zeros(1))

        def forward(self, x: Tensor) -> Tensor:
            self.count.add_(1)
            return x * self.count

    module = Counter()
    assert refused(module, torch.ones(6, 4)).message == "the model mutates `count`"
    assert module.count.item() == 0
    assert refused(Function(lambda x: x.add_(1) * 2), torch.ones(6, 4)).message == "the model mutates `x`"


def test_inputs_and_outputs_that_are_not_tensors() -> None:
    class Scale(nn.Module):
        def forward(self, x: Tensor, k: Any) -> Tensor:
            return x * 2

    x = torch.ones(2)
    for k in (3, 2.5, None, "text"):
        assert [t.name for t in import_model(Scale(), (x, k)).program.inputs] == ["x"]
    notices = import_model(Function(lambda x: (x * 2, 3)), (x,)).notices
    assert notices == ("an output of the model that is no tensor but a int is left out",)
    assert "does not depend on its inputs" in refused(Function(lambda x: torch.ones(3)), torch.ones(2)).message
    assert refused(3, torch.ones(2)).message == "the model is a int"  # type: ignore[arg-type]


def test_layouts_and_dtypes() -> None:
    twice = Function(lambda a: a * 2)
    assert "batch of sparse matrices" in refused(twice, torch.ones(2, 4, 4).to_sparse_bsr((2, 2))).message
    too_long = refused(twice, torch.ones(2048, 2).to_sparse_bsr((2048, 1)))
    assert too_long.message == "tensor `x`: a block of 2048x1: its sizes are 1 to 1024" and "to_sparse_bsr" in too_long.hint
    outside = torch.sparse_bsr_tensor([0, 2], [0, 2], torch.ones(2, 2, 2), (2, 4), check_invariants=False)
    assert "`x` is not a valid sparse tensor" in refused(twice, outside).message
    assert "a sparse matrix of arrays" in refused(twice, torch.ones(3, 3, 2).to_sparse_csr(dense_dim=1)).message
    assert "torch.float8_e4m3fnuz" in refused(Function(lambda a: a.float()), torch.ones(2).to(torch.float8_e4m3fnuz)).message
    neighbours = Function(lambda a, x: torch.sparse.mm(a + a, x, "amax"))
    assert "the result of `add` stores" in refused(neighbours, torch.eye(4).to_sparse_csr(), torch.eye(4)).message


def test_stored_zeros_where_they_count() -> None:
    pattern = Function(lambda x, y: y.sparse_mask(x))
    assert "counts the zeros that `x` stores" in refused(pattern, torch.eye(4).to_sparse_bsr((2, 2)), torch.ones(4, 4)).message
    a = torch.sparse_csr_tensor([0, 2, 2, 3], [0, 2, 1], [1.0, 0.0, 2.0], (3, 3))
    mean = Function(lambda a, x: torch.sparse.mm(a + a, x, "mean"))
    assert "depends on which elements the result of `add` stores" in refused(mean, a, torch.eye(3)).message
    made_sparse = Function(lambda a, x: torch.sparse.mm(torch.relu(a.to_sparse_csr()), x, "mean"))
    assert "the result of `relu` stores" in refused(made_sparse, torch.eye(3), torch.eye(3)).message
    import_model(Function(lambda a, x: torch.sparse.mm(a + a, x, "sum")), (a, torch.eye(3)))


def test_tensors_without_numbers() -> None:
    assert "`x` is on the meta device" in refused(Function(torch.relu), torch.ones(2, device="meta")).message


def test_the_model_fails_in_pytorch_itself(capfd: pytest.CaptureFixture[str]) -> None:
    error = refused(Function(lambda x: x @ x), torch.ones(6, 4))
    assert error.message.startswith("the model fails in PyTorch itself: RuntimeError: mat1 and mat2 shapes")
    assert error.span is not None and error.span.file.endswith("test_refusals.py")
    assert (
        len(refused(Function(lambda x: x.cumsum(1)), torch.eye(4).to_sparse_csr()).message) < 250
    )  # not the list of all backends
    assert "takes 2 positional arguments" in refused(nn.Linear(2, 2), torch.ones(2), torch.ones(2)).message
    assert capfd.readouterr().err == ""


def test_products_that_pytorch_has_no_kernel_for() -> None:
    a = torch.ones(4, 6).to_sparse_bsc((2, 3))
    error = refused(Function(lambda a, x: a @ x), a, torch.ones(6, 2))
    assert error.message.startswith("the model fails in PyTorch itself: RuntimeError: addmm") and "to_dense" in error.hint


def test_formats() -> None:
    x, relu = torch.ones(6, 4), Function(torch.relu)
    for formats, message in (
        ({"y": "csr"}, "format for an unknown tensor `y`"),
        ({"x": "crs"}, "format of tensor `x`: unknown format `crs`"),
        ({"x": "(dense, dense, dense)"}, "3 levels"),
        ({"x": "bsr(2, 2)"}, "blocks are given apart"),
    ):
        with pytest.raises(FrontendError) as caught:
            import_model(relu, (x,), formats)
        assert message in caught.value.message
    with pytest.raises(FrontendError, match="did you mean `csr`"):
        import_model(relu, (x,), {"x": "crs"})


def test_torch_mlir_errors_are_shown(capfd: pytest.CaptureFixture[str]) -> None:
    from fuseflow.frontend.linalg import module_io as linalg_modules

    text = "func.func @f(%x: !torch.vtensor<[2],f32>) -> !torch.vtensor<[2],f32> {\n"
    text += '  %0 = torch.operator "torch.aten.nothing"(%x) : (!torch.vtensor<[2],f32>) -> !torch.vtensor<[2],f32>\n'
    text += "  return %0 : !torch.vtensor<[2],f32>\n}"
    module = linalg_modules.parse_module(text, "m.mlir")
    with pytest.raises(FrontendError) as caught:
        linalg_modules.run_pipeline(
            module, "builtin.module(torch-backend-to-linalg-on-tensors-backend-pipeline)", "lowering", "m.mlir"
        )
    assert "lowering failed in torch-mlir" in caught.value.message
    assert any("torch.aten.nothing" in note for note in caught.value.notes)
    assert str(caught.value.span).startswith("m.mlir:2:")
    assert capfd.readouterr().err == ""


def test_importing_the_front_end_does_not_import_torch() -> None:
    code = "import sys, fuseflow.frontend; assert not {'torch', 'torch_mlir'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
    code = "import sys; from fuseflow import frontend; frontend.read_mlir(open(0).read()); assert 'torch' not in sys.modules"
    text = "func.func @f(%x: tensor<2xf32>) -> tensor<2xf32> { return %x : tensor<2xf32> }"
    subprocess.run([sys.executable, "-c", code], check=True, input=text, text=True)


def test_sparse_tensors_that_pytorch_did_not_check() -> None:
    past_the_end = torch.sparse_csr_tensor([0, 5, 5, 5], [0, 1], [1.0, 2.0], (3, 3), check_invariants=False)
    outside = torch.sparse_coo_tensor([[0], [7]], [1.0], (3, 3), check_invariants=False, is_coalesced=True)
    for tensor in (past_the_end, outside):
        assert "`x` is not a valid sparse tensor: " in refused(Function(lambda a, x: a @ x), tensor, torch.ones(3, 2)).message


def test_code_of_a_library_is_not_to_be_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hint for code that the user did not write says nothing of moving it, and the place of the library is told."""

    class Model(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.erfinv(x)

    with pytest.raises(FrontendError) as own:
        import_model(Model(), (torch.rand(3, 2),))
    assert "outside" in own.value.hint
    monkeypatch.setattr("fuseflow.frontend.trace.fx_origin._LIBRARIES", (str(Path(__file__).parent),))
    with pytest.raises(FrontendError) as library:
        import_model(Model(), (torch.rand(3, 2),))
    assert "outside" not in library.value.hint and "another layer" in library.value.hint
    assert any("of shape (3, 2) in test_refusals.py:" in note for note in library.value.notes)


def test_operators_without_a_dense_form_are_all_told() -> None:
    """PyTorch stops at the first of them; the import goes on behind it."""

    def model(x: torch.Tensor) -> torch.Tensor:
        return (
            torch.linalg.det(x @ x.T)
            + torch.linalg.inv(x @ x.T).sum()
            + torch.mode(torch.linalg.cholesky(x @ x.T), 0).values.sum()
        )

    with pytest.raises(FrontendError) as error:
        import_model(model, (torch.rand(3, 4),))
    assert all(name in str(error.value) for name in ("mode", "det", "inv", "cholesky"))
