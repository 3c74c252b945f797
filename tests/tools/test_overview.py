"""The picture of the README shows what its commands print."""

from __future__ import annotations

import overview


def test_the_committed_picture_is_what_the_tool_draws() -> None:
    drawn = overview.picture({fuse: overview.measured(fuse) for fuse in overview.CUTS})
    committed = (overview.MODEL.parents[1] / "docs" / "overview.svg").read_text(encoding="utf-8")
    assert drawn == committed, "redo it: python evaluation/overview.py --plot docs/overview.svg"


def test_operators_are_those_of_the_model() -> None:
    assert overview.operators(("layer1.matmul", "layer1.add", "relu")) == ("matmul", "add", "relu")
    assert overview.operators(("log_softmax.max", "log_softmax.sub")) == ("log_softmax",)
