"""What is refused before MLIR's parser sees it, and what is not."""

from __future__ import annotations

import pytest

from fuseflow.dialects.text_screen import MAX_NESTING, MAX_WORD_LENGTH, screen_text
from fuseflow.errors import GraphError


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("\n  " + "[" * (MAX_NESTING + 1), r"^a.mlir:2:103: .* brackets are nested more than 100 deep"),
        ("tuple<" * (MAX_NESTING + 1), "brackets are nested"),
        ("x = " + "9" * (MAX_WORD_LENGTH + 1), r"^a.mlir:1:5: .* has more than 1000 characters"),
        ("tensor<" + "1x" * (MAX_WORD_LENGTH // 2) + "f32>", "a number, a shape or a name has more than"),
        ("#e = #sparse_tensor.encoding<{ map = (i) -> (i : dense) }>", "^a.mlir:1:6: .* dialect `sparse_tensor`"),
        ("#gpu<any>", "dialect `gpu`"),
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
        '{text = "#sparse_tensor.encoding<' + "[" * (MAX_NESTING + 1) + '"}',
        "// #sparse_tensor.encoding< " + "[" * (MAX_NESTING + 1),
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
