"""Formats and `#sparse_tensor.encoding` attributes, both ways and through MLIR itself."""

from itertools import permutations
from pathlib import Path

import pytest

import fuseflow as ff
from fuseflow.errors import FrontendError, Span
from fuseflow.frontend import read_mlir
from fuseflow.frontend.linalg.sparse_encodings import from_encoding, has_encoding, screen_encodings, to_encoding
from fuseflow.tensors import Format

LEVELS = [
    ("dense",),
    ("compressed",),
    ("dense", "dense"),
    ("dense", "compressed"),
    ("compressed", "dense"),
    ("compressed", "compressed"),
    ("compressed(nonunique)", "singleton"),
    ("compressed", "singleton"),
    ("dense", "compressed", "dense"),
    ("compressed(nonunique)", "singleton(nonunique)", "singleton"),
    ("dense", "compressed(nonunique)", "singleton"),
]
BLOCKS = {1: [(4,)], 2: [(2, 3), (2, 1), (1, 3)], 3: [(2, 1, 3), (1, 2, 2), (1, 1, 4)]}
FORMATS = [Format.of(*levels, order=order) for levels in LEVELS for order in permutations(range(len(levels)))]


def blocks(rank: int) -> list[tuple[int, ...]]:
    return [(), *BLOCKS[rank]]


@pytest.mark.parametrize("format", FORMATS, ids=str)
def test_round_trip(format: Format) -> None:
    for block in blocks(format.rank):
        assert from_encoding(to_encoding(format, block)) == (format, block)


@pytest.mark.parametrize("format", FORMATS, ids=str)
def test_mlir_accepts_and_keeps_it(format: Format) -> None:
    from torch_mlir import ir

    with ir.Context() as context, ir.Location.unknown():
        context.load_all_available_dialects()
        for block in blocks(format.rank):
            attribute = ir.Attribute.parse(to_encoding(format, block))
            kind = ir.RankedTensorType.get([7] * format.rank, ir.F32Type.get(), attribute)
            assert from_encoding(str(kind.encoding)) == (format, block)


def test_a_matrix_in_blocks() -> None:
    text = "map = (i, j) -> (i floordiv 2 : dense, j floordiv 3 : compressed, i mod 2 : dense, j mod 3 : dense), posWidth = 32"
    assert from_encoding(f"#sparse_tensor.encoding<{{ {text} }}>") == (Format.parse("csr", 2), (2, 3))


@pytest.mark.parametrize(
    ("text", "format"),
    [
        ("#sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed) }>", "csr"),
        ("#sparse_tensor.encoding<{map=(i,j)->(j:dense,i:compressed),posWidth=32,crdWidth=32}>", "csc"),
        (
            "#sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : compressed(nonunique), d1 : singleton(soa)), posWidth = 64 }>",
            "coo",
        ),
        ("#sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : compressed(nonunique), d1 : singleton) }>", "coo"),
    ],
)
def test_other_spellings(text: str, format: str) -> None:
    assert from_encoding(text) == (Format.parse(format, 2), ())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("#sparse_tensor.encoding<{ map = (i, j) -> (i : dense, j : structured[2, 4]) }>", "structured"),
        ("#sparse_tensor.encoding<{ map = (i, j) -> (i : dense, j : compressed(nonordered)) }>", "ordered"),
        ("#sparse_tensor.encoding<{ map = (i, j) -> (i : dense, j : singleton) }>", "singleton level needs"),
        ("#sparse_tensor.encoding<{ map = (i, j) -> (i : dense, i : compressed) }>", "permutation"),
        ("dense<0>", "cannot read"),
    ],
)
def test_what_has_no_format_is_refused(text: str, message: str) -> None:
    with pytest.raises(FrontendError, match=message):
        from_encoding(text)


@pytest.mark.parametrize(
    ("levels", "message"),
    [
        ("i floordiv 2 : dense, j floordiv 3 : compressed, i mod 2 : dense", "there is no level `j mod 3` for the elements"),
        ("i floordiv 2 : dense, j : compressed", "there is no level `i mod 2`"),
        ("i floordiv 2 : dense, j : compressed, i mod 4 : dense", "there is no level `i mod 2`"),
        ("i floordiv 2 : dense, j : compressed, i mod 2 : compressed", "every level is dense, `i mod 2` is compressed"),
        ("i floordiv 2 : dense, i mod 2 : dense, j : compressed", "come last"),
        ("i floordiv 2 : dense, j floordiv 3 : dense, j mod 3 : dense, i mod 2 : dense", "blocks are stored row by row"),
        ("i floordiv 2 : dense, j : dense, i mod 2 : dense, j mod 2 : dense", "`j mod 2` is inside no block"),
        ("i floordiv 2048 : dense, j : compressed, i mod 2048 : dense", "its sizes are 1 to 1024"),
        ("i floordiv 1025 : dense, j : compressed, i mod 1025 : dense", "its sizes are 1 to 1024"),
        ("i + j : dense, j : compressed", "`i [+] j : dense` of a sparse encoding is not one dimension"),
        ("i ceildiv 2 : dense, j : compressed", "not one dimension"),
    ],
)
def test_blocks_that_are_none_of_ours(levels: str, message: str) -> None:
    text = f"#sparse_tensor.encoding<{{ map = (i, j) -> ({levels}) }}>"
    with pytest.raises(FrontendError, match=message):
        from_encoding(text)


def test_three_dimensions_in_blocks() -> None:
    parts = [f"{d} {what} 2 : dense" for what in ("floordiv", "mod") for d in "ijk"]
    with pytest.raises(FrontendError, match="has 3 dimensions\n  hint: at most two"):
        from_encoding(f"#sparse_tensor.encoding<{{ map = (i, j, k) -> ({', '.join(parts)}) }}>")


def test_a_module_is_screened_before_mlir_reads_it() -> None:
    bad = "#sparse_tensor.encoding<{ map = (i, j) -> (i floordiv 2 : dense, j floordiv 3 : compressed, i mod 2 : dense) }>"
    screen_encodings(f"// #A = {bad}\n#B = {to_encoding(Format.parse('csr', 2), (2, 3))}\n", "m.mlir")
    with pytest.raises(FrontendError) as caught:
        screen_encodings(f"// blocks\n#A = {bad}\n", "m.mlir")
    assert str(caught.value.span) == "m.mlir:2"


def test_a_level_that_mlir_does_not_have_is_said_beside_the_encoding() -> None:
    """The encoding shows a compressed level in its place; the format itself comes through a whole model."""
    import torch

    import fuseflow as ff

    class Product(torch.nn.Module):
        def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
            return a @ b

    format = Format.parse("(dense, bitmap)", 2)
    assert not has_encoding(format)
    assert from_encoding(to_encoding(format)) == (Format.parse("csr", 2), ())
    a, b = torch.randn(5, 40), torch.randn(40, 6)
    a[torch.rand(5, 40) < 0.7] = 0
    compiled = ff.compile(Product().eval(), [a, b], formats={"a": "(dense, bitmap)"})
    assert compiled.program.declared["a"].format == format
    result = compiled.run()
    assert result.check.passed


STRUCTURED = {
    "i : dense, j floordiv 4 : dense, j mod 4 : structured[2, 4]": "(dense, nm(2:4))",
    "i : dense, j floordiv 8 : dense, j mod 8 : structured[ 3 , 8 ]": "(dense, nm(3:8))",
    "j : dense, i floordiv 4 : dense, i mod 4 : structured[1, 4]": "(dense, nm(1:4)) order (1, 0)",
    "i : compressed, j floordiv 2 : dense, j mod 2 : structured[1, 2]": "(compressed, nm(1:2))",
}


@pytest.mark.parametrize("levels", STRUCTURED)
def test_structured_levels_are_entries_of_groups(levels: str) -> None:
    text = f"#sparse_tensor.encoding<{{ map = (i, j) -> ({levels}) }}>"
    assert from_encoding(text) == (Format.parse(STRUCTURED[levels], 2), ())


@pytest.mark.parametrize(
    "levels",
    [
        "i : dense, j floordiv 4 : compressed, j mod 4 : structured[2, 4]",
        "i : dense, j floordiv 8 : dense, j mod 8 : structured[2, 4]",
        "j floordiv 4 : dense, i : dense, j mod 4 : structured[2, 4]",
        "i : dense, j : structured[2, 4]",
    ],
)
def test_a_structured_level_without_its_groups_is_refused(levels: str) -> None:
    with pytest.raises(FrontendError, match="does not follow the dense level of its groups\n  hint: write `j floordiv 4 : dense"):
        from_encoding(f"#sparse_tensor.encoding<{{ map = (i, j) -> ({levels}) }}>")


def test_more_entries_than_a_group_has_are_refused() -> None:
    with pytest.raises(FrontendError, match="5 entries are stored of a group of 4"):
        from_encoding(
            "#sparse_tensor.encoding<{ map = (i, j) -> (i : dense, j floordiv 4 : dense, j mod 4 : structured[5, 4]) }>"
        )


@pytest.mark.parametrize("fuse", ["none", "full"])
def test_a_module_with_structured_weights_runs(fuse: str) -> None:
    import numpy as np

    import fuseflow as ff

    encoding = "#sparse_tensor.encoding<{ map = (i, j) -> (i : dense, j floordiv 4 : dense, j mod 4 : structured[2, 4]) }>"
    text = f"""#NV = {encoding}
func.func @f(%w: tensor<3x8xf32, #NV>, %x: tensor<8x2xf32>) -> tensor<3x2xf32> {{
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<3x2xf32>
  %fill = linalg.fill ins(%zero : f32) outs(%empty : tensor<3x2xf32>) -> tensor<3x2xf32>
  %y = linalg.matmul ins(%w, %x : tensor<3x8xf32, #NV>, tensor<8x2xf32>) outs(%fill : tensor<3x2xf32>) -> tensor<3x2xf32>
  return %y : tensor<3x2xf32>
}}
"""
    program = ff.frontend.read_mlir(text)
    assert str(program.declared["arg0"].format) == "(dense, nm(2:4))"
    draw = np.random.default_rng(0)
    weights, x = draw.normal(size=(3, 8)).astype(np.float32), draw.normal(size=(8, 2)).astype(np.float32)
    weights[:, [0, 1, 4, 6]] = 0
    result = ff.compile(program, tensors={"arg0": weights, "arg1": x}, schedule=ff.Schedule.fuse(fuse)).run()
    np.testing.assert_allclose(result.outputs["matmul"], weights @ x, rtol=1e-5)


ENCODED = """\
#e = #sparse_tensor.encoding<{{ map = (d0, d1) -> (d0 : {outer}, d1 : compressed){keys} }}>
module {{
  func.func @main(%A: tensor<4x4xf32, #e>, %x: tensor<4x4xf32>) -> tensor<4x4xf32> {{
    %z = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<4x4xf32>
    %f = linalg.fill ins(%z : f32) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
    %0 = linalg.matmul ins(%A, %x : tensor<4x4xf32, #e>, tensor<4x4xf32>) outs(%f : tensor<4x4xf32>) -> tensor<4x4xf32>
    return %0 : tensor<4x4xf32>
  }}
}}
"""
REFUSED = {
    "narrow positions": ("dense", ", posWidth = 16", "`posWidth = 16` of a sparse encoding: machines move positions of 32 bits"),
    "narrow coordinates": ("dense", ", posWidth = 32, crdWidth = 8", "machines move coordinates of 32 bits"),
    "no number of bits": ("dense", ", crdWidth = 33", "`crdWidth = 33`"),
    "values that are one": ("dense", ", explicitVal = 1.0 : f32", "`explicitVal = 1.0 : f32`"),
    "an implicit value": ("dense", ", implicitVal = 1.0 : f32", "MLIR knows no other implicit value"),
    "an implicit value of integers": ("dense", ", implicitVal = 2 : i32", "`implicitVal = 2 : i32`"),
    "batches": ("batch", "", "level `batch` of a sparse encoding stores each batch as a tensor of its own"),
}


@pytest.mark.parametrize(("outer", "keys", "message"), REFUSED.values(), ids=REFUSED)
def test_what_an_encoding_asks_for_is_refused_with_its_line(outer: str, keys: str, message: str) -> None:
    with pytest.raises(FrontendError) as error:
        read_mlir(ENCODED.format(outer=outer, keys=keys), "m.mlir")
    assert message in error.value.message and error.value.hint
    assert error.value.span == Span("m.mlir", 1)


@pytest.mark.parametrize(
    "keys", ["", ", posWidth = 32, crdWidth = 32", ", posWidth = 64", ", implicitVal = 0.0 : f32", ", crdWidth = 0"]
)
def test_what_an_encoding_says_and_is_so_is_read(keys: str) -> None:
    program = read_mlir(ENCODED.format(outer="dense", keys=keys), "m.mlir")
    assert program.inputs[0].format == Format.parse("csr", 2)


def test_wide_positions_are_told(tmp_path: Path) -> None:
    for keys, told in ((", posWidth = 64, crdWidth = 64", True), (", posWidth = 32, crdWidth = 32", False)):
        file = tmp_path / "m.mlir"
        file.write_text(ENCODED.format(outer="dense", keys=keys))
        notices = ff.compile(file).notices
        assert any("posWidth = 64 and crdWidth = 64, as PyTorch holds them" in notice for notice in notices) == told
