"""Where programs come from: what each kind of model takes, and that nothing else is silently ignored."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fuseflow.compiler import load
from fuseflow.einsum.parse import parse
from fuseflow.errors import FuseFlowError, UsageError

TEXT = "tensor x[3] dense\ny[i] = relu(x[i])\noutput y\n"
ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("given", "source"),
    [
        ({"inputs": (np.zeros(3),)}, "tensors"),
        ({"data": ""}, "tensors"),
        ({"data_dir": ""}, "tensors"),
        ({"formats": {}}, "tensors"),
    ],
)
def test_a_program_takes_tensors_only(tmp_path: Path, given: dict[str, Any], source: str) -> None:
    (tmp_path / "p.ein").write_text(TEXT)
    for program in (parse(TEXT), tmp_path / "p.ein"):
        with pytest.raises(UsageError, match="takes no") as error:
            load(program, **given)
        assert error.value.hint == f"its inputs are given by `{source}`"


@pytest.mark.parametrize("given", [{"inputs": (np.zeros(3),)}, {"tensors": {}}])
def test_a_model_file_takes_data_only(given: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="takes no") as error:
        load(ROOT / "models" / "gcn.py", **given)
    assert error.value.hint == "its inputs are given by `data`"


def test_an_empty_data_set_name_is_not_the_default() -> None:
    with pytest.raises(FuseFlowError, match="unknown data set ``"):
        load(ROOT / "models" / "gcn.py", data="")


def test_arrays_by_name() -> None:
    source = load(parse(TEXT), tensors={"x": [1, -2, 3]})
    assert source.tensors["x"].to_dense().tolist() == [1, -2, 3]
    with pytest.raises(UsageError, match="no input `X`") as error:
        load(parse(TEXT), tensors={"X": [1, 2, 3]})
    assert error.value.hint == "did you mean `x`?"
