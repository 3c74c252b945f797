"""What is refused before MLIR's parser sees it, and what is not."""

from __future__ import annotations

import pytest

from fuseflow.dialects.text_screen import MAX_NESTING, MAX_WORD_LENGTH, screen_text
from fuseflow.errors import GraphError


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("\n  " + "[" * 200_000, r"^a.mlir:2:103: .* brackets are nested more than 100 deep"),
        ("tuple<" * 200, "brackets are nested"),
        ("x = " + "9" * 100_000, r"^a.mlir:1:5: .* has more than 1000 characters"),
        ("tensor<" + "1x" * 100_000 + "f32>", "a number, a shape or a name has more than"),
        ("#e = #sparse_tensor.encoding<{ map = (i) -> (i floordiv 0 : dense) }>", "^a.mlir:1:6: .* dialect `sparse_tensor`"),
        ("#sparse_tensor<encoding<{}>>", "dialect `sparse_tensor`"),
        ("!torch.int", "dialect `torch`"),
        ("!saml.crd<1 : i64>", "did you mean `samml`"),
        ('{name = "\ud800"}', "no UTF-8 form"),
    ],
)
def test_refuses(text: str, message: str):
    with pytest.raises(GraphError, match=message):
        screen_text(text, "a.mlir", ("samml", "table"), GraphError)


@pytest.mark.parametrize(
    "text",
    [
        '{text = "#sparse_tensor.encoding<' + "[" * 200 + '"}',
        "// #sparse_tensor.encoding< " + "[" * 200,
        "() -> ()\n" * 200,
        "!samml.crd<2 : i64> #table.x<1>",
        "#alias = 3 : i64",
        "[" * MAX_NESTING + "]" * MAX_NESTING,
        "9" * MAX_WORD_LENGTH,
        '"\\"" !samml.crd',
    ],
)
def test_accepts(text: str):
    screen_text(text, "a.mlir", ("samml", "table"), GraphError)
