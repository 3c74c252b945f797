"""Formats and `#sparse_tensor.encoding` attributes, both ways and through MLIR itself."""

from itertools import permutations

import pytest

from fuseflow.errors import FrontendError
from fuseflow.frontend.encodings import from_encoding, to_encoding
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
FORMATS = [Format.of(*levels, order=order) for levels in LEVELS for order in permutations(range(len(levels)))]


@pytest.mark.parametrize("format", FORMATS, ids=str)
def test_round_trip(format: Format) -> None:
    assert from_encoding(to_encoding(format)) == format


@pytest.mark.parametrize("format", FORMATS, ids=str)
def test_mlir_accepts_and_keeps_it(format: Format) -> None:
    from torch_mlir import ir

    with ir.Context() as context, ir.Location.unknown():
        context.load_all_available_dialects()
        attribute = ir.Attribute.parse(to_encoding(format))
        kind = ir.RankedTensorType.get([3] * format.rank, ir.F32Type.get(), attribute)
        assert from_encoding(str(kind.encoding)) == format


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
    assert from_encoding(text) == Format.parse(format, 2)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("#sparse_tensor.encoding<{ map = (i, j) -> (i floordiv 2 : dense, j : compressed, i mod 2 : dense) }>", "blocked"),
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
