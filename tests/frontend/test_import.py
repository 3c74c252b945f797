"""Models of many kinds: the program, evaluated densely, equals eager PyTorch, and the printed MLIR reads back as the same program."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import fuseflow as ff
from fuseflow.einsum.format_inference import infer
from fuseflow.einsum.interpret import evaluate
from fuseflow.einsum.parse import parse
from fuseflow.einsum.text import show
from fuseflow.frontend import import_model, load_data, read_mlir
from fuseflow.frontend.imported_program import Source

pytestmark = pytest.mark.filterwarnings("ignore:Sparse")


class Function(nn.Module):
    """A function of tensors as a module."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor, *others: Tensor) -> Any:
        return self.function(x, *others)


def checked(module: nn.Module, inputs: tuple[Any, ...], formats: dict[str, str] | None = None) -> Source:
    imported = import_model(module.eval(), inputs, formats)
    assert parse(show(imported.program)) == imported.program
    assert read_mlir(imported.mlir) == imported.program
    infer(imported.program)
    assert tuple(imported.tensors) == tuple(t.name for t in imported.program.inputs)
    for tensor in imported.program.inputs:
        packed = imported.tensors[tensor.name]
        assert (packed.shape, packed.format) == (tensor.shape, tensor.format)
    results = evaluate(imported.program, {name: t.to_dense() for name, t in imported.tensors.items()})
    assert tuple(imported.expected) == imported.program.outputs
    for name, expected in imported.expected.items():
        np.testing.assert_allclose(results[name], expected, rtol=2e-5, atol=2e-6, err_msg=name)
        assert results[name].shape == expected.shape
    return imported


def names(imported: Source) -> list[str]:
    return [e.name for e in imported.program.einsums]


def random(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape) + len(shape)))


def sparse(rows: int = 9, columns: int = 9) -> Tensor:
    dense = random(rows, columns)
    dense[dense < 0.4] = 0
    dense[0] = dense[:, -1] = 0  # empty first row and last column
    return dense


LAYOUTS: dict[str, Callable[[Tensor], Tensor]] = {
    "csr": lambda t: t.to_sparse_csr(),
    "csc": lambda t: t.to_sparse_csc(),
    "coo": lambda t: t.to_sparse_coo(),
    "dense": lambda t: t,
}


class BlockSparse(nn.Module):
    """A linear layer with a weight in square blocks, and a buffer in others by column."""

    def __init__(self) -> None:
        super().__init__()
        mask = torch.tensor([[1.0, 0.0, 1.0], [0.0, 0.0, 1.0]]).repeat_interleave(4, 0).repeat_interleave(4, 1)
        self.weight = nn.Parameter((random(8, 12) * mask).to_sparse_bsr((4, 4)), requires_grad=False)
        self.register_buffer("mix", (random(6, 8) * mask[:6, 4:]).to_sparse_bsc((3, 4)))
        self.bias = nn.Parameter(random(8))

    def forward(self, x: Tensor) -> Tensor:
        y = torch.relu(nn.functional.linear(x, self.weight) + self.bias)
        return y @ self.mix.to_dense().t()


def test_weights_in_blocks() -> None:
    imported = checked(BlockSparse(), (random(5, 12),))
    found = {t.name: (t.format.short(), t.block) for t in imported.program.inputs if t.format}
    assert found == {"weight": ("csr", (4, 4)), "bias": ("dense", ()), "x": ("dense", ()), "mix": ("csc", (3, 4))}
    assert imported.tensors["weight"].stored == 48 and imported.tensors["mix"].stored == 24
    assert "d0 floordiv 3 : compressed, d0 mod 3 : dense, d1 mod 4 : dense)" in imported.mlir


def test_a_format_is_that_of_the_blocks() -> None:
    a, product = torch.eye(6).to_sparse_bsr((3, 3)), Function(lambda a, x: a @ x)
    for format in ("dcsr", "dense"):
        (t, *_) = checked(product, (a, random(6, 2)), {"x": format}).program.inputs
        assert t.format is not None and (t.format.short(), t.block) == (format, (3, 3))


def test_blocks_lose_dimensions_of_one() -> None:
    for shape, block in (((1, 6), (1, 3)), ((6, 1), (2, 1)), ((1, 1), (1, 1))):
        for layout in ("to_sparse_bsr", "to_sparse_bsc"):
            (t, *_) = checked(Function(lambda a: a.to_dense() * 2), (getattr(random(*shape), layout)(block),)).program.inputs
            assert t.block == tuple(size for size in block if size > 1)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_gcn(layout: str) -> None:
    class Layer(nn.Module):
        def __init__(self, inputs: int, outputs: int) -> None:
            super().__init__()
            self.weight = nn.Parameter(random(inputs, outputs))
            self.bias = nn.Parameter(random(outputs))

        def forward(self, adj: Tensor, x: Tensor) -> Tensor:
            return adj @ (x @ self.weight) + self.bias

    class GCN(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer1, self.layer2 = Layer(5, 4), Layer(4, 3)

        def forward(self, adj: Tensor, x: Tensor) -> Tensor:
            return F.log_softmax(self.layer2(adj, F.relu(self.layer1(adj, x))), dim=1)

    imported = checked(GCN(), (LAYOUTS[layout](sparse()), random(9, 5)))
    adjacency = imported.program.declared["adj"]
    assert adjacency.format is not None and adjacency.format.short() == layout
    assert names(imported)[:5] == ["layer1.matmul", "layer1.matmul_2", "layer1.add", "relu", "layer2.matmul"]
    assert names(imported)[-6:] == [f"log_softmax.{n}" for n in ("max", "sub", "exp", "sum", "log", "sub_2")]


@pytest.mark.parametrize("layout", ["csr", "csc", "coo"])
def test_products_with_vectors_and_matrices_are_one_einsum(layout: str) -> None:
    a = LAYOUTS[layout](sparse())
    for x in (random(9), random(9, 4)):
        assert names(checked(Function(lambda a, x: a @ x), (a, x))) == ["matmul"]


SPARSE: dict[str, tuple[Callable[..., Any], Callable[[], tuple[Tensor, ...]]]] = {
    "sparse times sparse": (lambda a, b: a @ b, lambda: (sparse().to_sparse_csr(), sparse().T.to_sparse_csr())),
    "sparse plus sparse": (lambda a, b: a + b, lambda: (sparse().to_sparse_csr(), sparse().T.to_sparse_csr())),
    "sparse times dense, pointwise": (lambda a, b: a * b, lambda: (sparse().to_sparse_coo(), random(9, 9))),
    "transposed": (lambda a, x: a.t() @ x, lambda: (sparse().to_sparse_csr(), random(9, 4))),
    "made dense": (lambda a, x: a.to_dense() + x, lambda: (sparse().to_sparse_csr(), random(9, 9))),
    "relu of sparse": (lambda a, x: torch.relu(a) @ x, lambda: (sparse().to_sparse_csr(), random(9, 4))),
    "row sums": (lambda a: a.sum(1, keepdim=True).to_dense(), lambda: (sparse().to_sparse_csr(),)),
    "addmm": (lambda a, b, x: torch.sparse.addmm(b, a, x), lambda: (sparse().to_sparse_coo(), random(9, 4), random(9, 4))),
    "mean over neighbours": (lambda a, x: torch.sparse.mm(a, x, "mean"), lambda: (sparse().to_sparse_csr(), random(9, 4))),
    "sampled product": (torch.sparse.sampled_addmm, lambda: (sparse().to_sparse_csr(), random(9, 3), random(3, 9))),
    "sampled einsum": (lambda m, a, b: m * torch.einsum("ik,jk->ij", a, b), lambda: (sparse(), random(9, 3), random(9, 3))),
    "sparse mask": (lambda m, x: x.sparse_mask(m).to_dense(), lambda: (sparse().to_sparse_coo(), random(9, 9))),
    "a transposed view": (lambda a, x: a @ x, lambda: (sparse().to_sparse_csr().t(), random(9, 4))),
    "a transposed COO": (lambda a, x: a @ x, lambda: (sparse().to_sparse_coo().t(), random(9, 4))),
    "cast": (lambda a, x: a.float() @ x, lambda: (sparse().to(torch.int64).to_sparse_csr(), random(9, 4))),
    "truth values": (lambda a, x: a.to_dense().float() @ x, lambda: ((sparse() != 0).to_sparse_coo(), random(9, 4))),
    "uncoalesced": (
        lambda a, x: a @ x,
        lambda: (torch.sparse_coo_tensor([[0, 0, 2], [1, 1, 0]], [1.0, 2.0, 3.0], (9, 9)), random(9, 4)),
    ),
    "rows at known places": (
        lambda a, x: a.to_dense() @ x,
        lambda: (torch.sparse_coo_tensor([[4, 1, 4]], random(3, 9), (6, 9)), random(9, 4)),
    ),
    "an array for each entry": (
        lambda a, x: (a.coalesce() * 2).to_dense() @ x,
        lambda: (torch.sparse_coo_tensor([[0, 0, 2], [1, 1, 0]], random(3, 5, 9), (3, 2, 5, 9)), random(9, 4)),
    ),
}


@pytest.mark.parametrize("case", SPARSE)
def test_sparse_operators(case: str) -> None:
    function, inputs = SPARSE[case]
    checked(Function(function), inputs())


def test_stored_zeros_stay_stored() -> None:
    a = torch.sparse_csr_tensor([0, 2, 2, 3], [0, 2, 1], [1.0, 0.0, 2.0], (3, 3))
    imported = checked(Function(lambda a, x: a @ x), (a, random(3, 2)))
    assert imported.tensors["x"].values.tolist() == [1.0, 0.0, 2.0]


POINTWISE: dict[str, Callable[[Tensor], Tensor]] = {
    "leaky_relu": lambda x: F.leaky_relu(x, 0.1),
    "elu": F.elu,
    "softplus": F.softplus,
    "hardtanh": F.hardtanh,
    "tanh-gelu": lambda x: F.gelu(x, approximate="tanh"),
    "clamp": lambda x: x.clamp(-0.5, 0.5),
    "powers": lambda x: x**2 + x**3 + x**4 + x**5,
    "roots": lambda x: (x * x + 1) ** 0.5 + (x * x + 1) ** -0.5 + (x * x + 1) ** 2.5,
    "reciprocals": lambda x: 1 / (x * x + 1) + (x * x + 2).reciprocal(),
    "log1p and expm1": lambda x: torch.log1p(x * x) + torch.expm1(x),
    "where": lambda x: torch.where(x > 0, x, 0.1 * x),
    "truth as number": lambda x: (x > 0).float() * x,
    "sines": lambda x: torch.sin(x) * torch.cos(x),
    "minimum": lambda x: torch.minimum(x, torch.maximum(x * 0.5, -x)),
    "constants": lambda x: (torch.ones(6) + torch.full((5, 6), 2.0)) * x + x.new_zeros(6),
    "in place": lambda x: (x * 2).add_(1).relu_(),
    "f64": lambda x: x.double() * 2,
    **{f.__name__: f for f in (F.relu, F.gelu, F.silu, F.selu, F.mish, F.hardswish, F.softsign)},
    **{f.__name__: f for f in (torch.tanh, torch.sigmoid, torch.exp, torch.erf, torch.abs, torch.sign, torch.tan, torch.sinh)},
    "logarithms": lambda x: torch.log(x * x + 0.5) + torch.log2(x * x + 0.5) + torch.log10(x * x + 0.5),
    "square roots": lambda x: torch.sqrt(x * x + 0.5) + torch.rsqrt(x * x + 0.5) + torch.cosh(x),
    "exponents": lambda x: (x * x + 1) ** x + 2**x + (x * x + 1) ** -3 + x**0,
    "comparisons": lambda x: (((x > 0) & (x < 1)) | (x <= -1) | ~(x >= -2)).float() + ((x > 0) ^ (x == 1)) * x,
    "where with a number": lambda x: torch.where(x > 0, 1.0, x),
    "clamp on one side": lambda x: x.clamp(min=-0.3) + x.clip(max=0.3),
    "clamp by tensors": lambda x: torch.clamp(x, x.mean(0) - 0.1, x.mean(0) + 0.1),
    "dropout in evaluation": lambda x: F.dropout(x, 0.5, training=False) + F.alpha_dropout(x, 0.5, training=False),
    "constants of any rank": lambda x: x * torch.tensor(2.0) * torch.arange(6) * torch.tensor([[[1.0]], [[2.0]]]),
    "numbers on the left": lambda x: 1 - x + 1 / (x * x + 1),
    "hypot and isnan": lambda x: torch.hypot(x, x * 2) + torch.isnan(x),
    "infinities": lambda x: torch.where(torch.relu(x).pow(-0.5).isinf(), 0.0, x),
}
REDUCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "mean": lambda x: x.mean(1),
    "mean of all": lambda x: x.mean(),
    "amax": lambda x: x.amax(1),
    "amin": lambda x: x.amin(0),
    "max": lambda x: x.max(1).values,
    "prod": lambda x: x.prod(1),
    "variance": lambda x: x.var(1) + x.std(1, unbiased=False),
    "variances of all": lambda x: x.var() + x.std(correction=0),
    "variance and mean": lambda x: sum(torch.var_mean(x, 1)),
    "any and all": lambda x: (x > 1).any(1).float() + (x > -1).all(1) + (x > 5).any(),
    "cosine similarity": lambda x: F.cosine_similarity(x, x * 2 + 1, dim=1),
    "log softmax over columns": lambda x: x.log_softmax(0) + F.softmin(x, 1),
    "softmax in f64": lambda x: x.softmax(1, dtype=torch.float64),
    "group norm": lambda x: F.group_norm(x, 2, torch.ones(6) * 2, torch.ones(6)),
    "layer norm, affine": lambda x: F.layer_norm(x, (6,), torch.arange(6.0), torch.ones(6)),
    "logsumexp": lambda x: torch.logsumexp(x, 1),
    "norms": lambda x: x.norm(dim=1) + torch.linalg.vector_norm(x, 1, 1) + torch.linalg.vector_norm(x, float("inf"), 1),
    "norms of all": lambda x: x.norm() + torch.linalg.norm(x) + torch.linalg.vector_norm(x, 3),
    "normalize": lambda x: F.normalize(x, dim=1),
    "softmax over rows": lambda x: x.softmax(0),
    "layer norm over two": lambda x: F.layer_norm(x, (5, 6)),
    "rms norm": lambda x: F.rms_norm(x, (6,)),
    "count": lambda x: (x > 0).sum(1),
    "cross entropy": lambda x: -(F.log_softmax(x, 1) * x).sum(1).mean(),
    "over a broadcast": lambda x: torch.exp(x.sum(0).expand(3, 6)).sum(0),
}
SHAPES: dict[str, Callable[[Tensor], Any]] = {
    "transposed": lambda x: x.t(),
    "the input": lambda x: x,
    "twice": lambda x: (x * 2,) * 2,
    "several": lambda x: {"a": x * 2, "b": [x.t() + 1]},
    "broadcast": lambda x: x.sum(0).expand(3, 6),
    "truth": lambda x: x > 0,
    "flattened": lambda x: x.flatten() * 2,
    "reshaped": lambda x: x.reshape(3, 10) * 2,
    "split in three": lambda x: x.reshape(5, 3, 1, 2).permute(3, 2, 0, 1) * 2,
    "split and merged": lambda x: x.reshape(5, 3, 2).transpose(1, 2).reshape(10, 3) * 2,
    "repeated heads": lambda x: x.unsqueeze(1).expand(5, 3, 6).reshape(15, 6) * 2,
    "outer": lambda x: x[:, None, :] * x[None, :, :],
    "whole slices": lambda x: x[:, :] * 2,
    "a result and nothing": lambda x: (x * 2, None),
}


@pytest.mark.parametrize("group", [POINTWISE, REDUCTIONS], ids=["pointwise", "reductions"])
def test_dense_operators(group: dict[str, Callable[[Tensor], Tensor]]) -> None:
    """One import for all of a group: tracing costs more than what it traces."""
    checked(Function(lambda x: [function(x) for function in group.values()]), (random(5, 6),))


@pytest.mark.parametrize("group", [POINTWISE, REDUCTIONS], ids=["pointwise", "reductions"])
def test_dense_operators_run(group: dict[str, Callable[[Tensor], Tensor]]) -> None:
    module = Function(lambda x: [function(x) for function in group.values()])
    result = ff.compile(module.eval(), (random(5, 6),), schedule=ff.Schedule.fuse("none"), machine="ideal").run()
    assert result.check is not None and result.check.passed, result.check


@pytest.mark.parametrize("case", SHAPES)
def test_shapes(case: str) -> None:
    checked(Function(SHAPES[case]), (random(5, 6),))


@pytest.mark.parametrize("equation", ["ij,jk->ik", "ik,jk->ij", "bij,bjk->bik", "ijk,kl->ilj", "ij,j->", "ij,jk,kl->il"])
def test_einsum(equation: str) -> None:
    sizes = {"b": 2, "i": 4, "j": 5, "k": 3, "l": 6}
    operands = [random(*(sizes[c] for c in term)) for term in equation.split("->")[0].split(",")]
    checked(Function(lambda *xs: torch.einsum(equation, *xs)), tuple(operands))


def test_a_layer_on_a_batch_is_one_product() -> None:
    imported = checked(nn.Sequential(nn.Linear(6, 4), nn.LeakyReLU()), (random(2, 5, 6),))
    assert names(imported) == ["0.matmul", "0.add", "1.mul", "1.leaky_relu"]


def test_a_sampled_product_without_beta_reads_the_mask_once() -> None:
    operands = (sparse().to_sparse_csr(), random(9, 3), random(3, 9))
    imported = checked(Function(lambda m, a, b: torch.sparse.sampled_addmm(m, a, b, beta=0)), operands)
    assert names(imported) == ["matmul", "sparse_sampled_addmm"]


def test_mlp_with_activations() -> None:
    layers = [
        nn.Linear(6, 4),
        nn.GELU(),
        nn.Linear(4, 4),
        nn.SiLU(),
        nn.BatchNorm1d(4),
        nn.Tanh(),
        nn.Dropout(),
        nn.Linear(4, 1),
        nn.Sigmoid(),
    ]
    imported = checked(nn.Sequential(*layers), (random(5, 6),))
    assert "3.sigmoid" in names(imported) and "1.erf" in names(imported)
    double = checked(nn.Sequential(*layers).double(), (random(5, 6).double(),))
    assert {t.dtype for t in double.program.inputs} == {"f64"}


class Attention(nn.Module):
    def __init__(self, mask: Tensor, kind: str) -> None:
        super().__init__()
        self.ln, self.kind = nn.LayerNorm(6), kind
        self.qkv = nn.ModuleList(nn.Linear(6, 6) for _ in "qkv")
        self.register_buffer("mask", mask)

    def forward(self, x: Tensor) -> Tensor:
        b, n, d = x.shape
        y = self.ln(x)
        q, k, v = (linear(y).view(b, n, 2, -1).transpose(1, 2) for linear in self.qkv)
        if self.kind == "sdpa":
            out = F.scaled_dot_product_attention(q, k, v, attn_mask=self.mask != 0)
        else:
            scores = q @ k.transpose(-1, -2)
            scores = scores * self.mask if self.kind == "product" else scores.masked_fill(self.mask == 0, float("-inf"))
            out = torch.softmax(scores, -1) @ v
        return x + out.transpose(1, 2).reshape(b, n, d)


@pytest.mark.parametrize("kind", ["masked_fill", "product", "sdpa"])
@pytest.mark.parametrize("batch", [1, 2])
def test_attention(kind: str, batch: int) -> None:
    mask = (sparse(7, 7) != 0).float() + torch.eye(7)
    formats = {"mask": "csr"}
    imported = checked(Attention(mask, kind), (random(batch, 7, 6),), formats)
    assert imported.tensors["mask"].stored == int((mask != 0).sum())
    assert imported.program.declared["x"].shape == ((7, 6) if batch == 1 else (2, 7, 6))
    text = show(imported.program)
    if kind != "product":
        assert "== 0, -inf, " in text or "!= 0, " in text
    assert "merge" in text and "*3 + " in text  # two heads of size 3


def test_boolean_masks_are_numbers() -> None:
    mask = sparse(7, 7) == 0
    imported = checked(Function(lambda x, mask: x.masked_fill(mask, -1.0) * (~mask)), (random(7, 7), mask))
    assert [t.dtype for t in imported.program.inputs] == ["f32", "i32"]


@pytest.mark.parametrize("stored", ["csr", "coo", "(compressed, dense)"])
def test_boolean_masks_with_a_format(stored: str) -> None:
    mask = sparse(7, 7) != 0
    imported = checked(Function(lambda x, mask: x.masked_fill(~mask, float("-inf"))), (random(7, 7), mask), {"others_0": stored})
    assert imported.tensors["others_0"].dtype == np.int32
    assert "= where(others_0[i, j] == 0, -inf, x[i, j])" in show(imported.program)


def test_shared_weights_have_their_first_name() -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Linear(4, 4)
            self.second = self.first

        def forward(self, x: Tensor) -> Tensor:
            return self.second(F.relu(self.first(x)))

    imported = checked(Tied(), (random(5, 4),), {"first.weight": "csr"})
    assert set(imported.tensors) == {"first.weight", "first.bias", "x"}
    assert imported.tensors["first.weight"].format.short() == "csr"


def test_unit_dimensions_of_arguments_are_folded_into_the_access() -> None:
    mask = (sparse(7, 7) != 0).float()[None, None]
    imported = checked(Function(lambda x, mask: x.masked_fill(mask == 0, 0.5)), (random(1, 2, 7, 7), mask), {"others_0": "csr"})
    assert imported.program.declared["others_0"].shape == (7, 7)
    assert imported.tensors["others_0"].stored == int(mask.sum())
    assert len(imported.program.einsums) == 1


@pytest.mark.parametrize("rows", [0, 1])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_smallest_matrices(rows: int, layout: str) -> None:
    checked(Function(lambda a, x: a @ x), (LAYOUTS[layout](random(rows, rows)), random(rows, 3)))


def test_names_are_unique_and_stable() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.shared, self.x = nn.Linear(4, 4), nn.Parameter(random(4))
            self.parts = nn.ModuleDict({"a-b": nn.Linear(4, 4)})

        def forward(self, x: Tensor) -> Tensor:
            return self.parts["a-b"](self.shared(F.relu(self.shared(x))) + self.x)

    first, second = (checked(Model(), (random(5, 4),)) for _ in range(2))
    assert names(first) == names(second)
    assert names(first) == [
        "shared.matmul",
        "shared.add",
        "relu",
        "shared.matmul_2",
        "shared.add_2",
        "add",
        "parts.a_b.matmul",
        "parts.a_b.add",
    ]
    assert {"x", "x_2", "parts.a_b.weight"} <= set(first.tensors)


def test_locations_are_the_user_s_lines() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lin = nn.Linear(4, 4)

        def forward(self, x: Tensor) -> Tensor:
            x = self.lin(x)
            return torch.relu(x)

    line = Model.forward.__code__.co_firstlineno
    imported = checked(Model(), (random(5, 4),))
    found = [(e.location.path, e.location.span.line - line) for e in imported.program.einsums if e.location.span]
    assert found == [("lin", 1), ("lin", 1), ("", 2)]
    assert all(e.location.span and e.location.span.file.endswith("test_import.py") for e in imported.program.einsums)
    back = read_mlir(imported.mlir)
    assert [e.location for e in back.einsums] == [e.location for e in imported.program.einsums]


def test_unused_inputs_and_dead_results_are_left_out() -> None:
    imported = checked(Function(lambda x, unused: (x.topk(2), x.max(1).values)[1]), (random(5, 6), random(3)))
    assert list(imported.tensors) == ["x"]
    assert len(imported.program.einsums) == 1


def test_a_large_graph_stays_sparse() -> None:
    data = load_data("random:nodes=100000,degree=4,features=8")  # dense it would be 40 GB
    imported = import_model(
        Function(lambda a, x: torch.sparse.mm(a, torch.sparse.mm(x, torch.ones(8, 2)))), (data.adjacency, data.features)
    )
    assert imported.tensors["x"].stored == 500_000


@pytest.mark.parametrize("function", [torch.softmax, torch.log_softmax])
def test_masked_softmax(function: Callable[..., Tensor]) -> None:
    mask = (sparse(7, 7) != 0).float() + torch.eye(7)

    def masked(x: Tensor, mask: Tensor) -> Tensor:
        return function(x.masked_fill(mask == 0, float("-inf")), -1)

    imported = checked(Function(masked), (random(7, 7), mask), {"others_0": "csr"})
    assert "where(others_0[i, j] == 0, -inf, x[i, j])" in show(imported.program)


def test_dense_weights_are_in_memory_once() -> None:
    linear = nn.Linear(6, 4)
    imported = checked(linear, (random(5, 6),))
    for name, parameter in linear.named_parameters():
        values = imported.tensors[name].values
        assert values.ctypes.data == parameter.data_ptr() and not values.flags.writeable


def test_a_sparse_input_is_an_output_too() -> None:
    for layout in (*LAYOUTS.values(), lambda t: t.to_sparse_bsr((3, 1))):
        imported = checked(Function(lambda a, x: (a.to_dense() @ x, a)), (layout(sparse()), random(9, 2)))
        assert imported.program.outputs == ("matmul", "output")
