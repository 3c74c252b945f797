"""Einsums that compute one number alone: they vanish where nothing needs their extent, and models with constant parts run at every cut."""

import numpy as np
import pytest
import torch
from eager import drawn, matches, sparse
from torch import Tensor, nn
from torch.nn import functional as F

import fuseflow as ff
from fuseflow.einsum.constants import inline_constants
from fuseflow.einsum.interpret import evaluate
from fuseflow.einsum.nodes import Program
from fuseflow.einsum.parse import parse

PLAIN = """tensor x[3]
tensor a[3]
a[i] = 2
y[i] = x[i] * a[i]
output y
"""


def _names(text: str) -> tuple[Program, list[str]]:
    program = inline_constants(parse(text))
    return program, [einsum.name for einsum in program.einsums]


def test_a_number_takes_the_place_of_its_tensor() -> None:
    program, names = _names(PLAIN)
    assert names == ["y"]
    x = np.arange(3.0)
    assert evaluate(program, {"x": x})["y"].tolist() == evaluate(parse(PLAIN), {"x": x})["y"].tolist() == [0, 2, 4]


def test_a_narrow_number_is_rounded() -> None:
    program, names = _names(PLAIN.replace("tensor a[3]", "tensor a[3] bf16").replace("= 2", "= 0.3"))
    assert names == ["y"]
    assert evaluate(program, {"x": np.ones(3)})["y"].tolist() == [float(torch.tensor(0.3).bfloat16())] * 3


@pytest.mark.parametrize(
    "text",
    [
        PLAIN.replace("output y", "output y, a"),
        PLAIN.replace("tensor a[3]", "tensor a[3] dense"),
        "tensor x[3]\ntensor a[5]\na[i] = 2\ny[i] = x[i] * (sum(j) a[j])\noutput y",
        "tensor x[3]\ntensor a[3, 5]\na[i, j] = 2\ny[i, j] = x[i] * a[i, j]\noutput y",
        "tensor x[3]\ntensor a[3]\na[i] = 2\nb[i] = keep(2 over i) a[i]\ny[i] = x[i] * b[i]\noutput y",
    ],
)
def test_a_tensor_that_is_needed_stays(text: str) -> None:
    assert "a" in _names(text)[1]


@pytest.mark.parametrize("fuse", ["none", "layerwise", "full"])
def test_a_program_with_a_constant_runs(fuse: str) -> None:
    assert ff.compile(parse(PLAIN), schedule=ff.Schedule.fuse(fuse)).estimate().cycles > 0


# Models ----------------------------------------------------------------------------------------------------------------


class Loops(nn.Module):
    """Weights of edges that are computed, followed by those of self loops, which are 1; then one weighted sum."""

    def forward(self, weights: Tensor, rows: Tensor) -> Tensor:
        return torch.cat([weights * 2, torch.ones(3)]) @ rows


def _written(x: Tensor) -> Tensor:
    y = torch.ones(4, 3)
    y[1:3] = x * 2
    return y * 2


MODELS = {
    "self loops": (Loops(), (drawn(4), drawn(7, 2))),
    "in front": (lambda w, r: torch.cat([torch.full((2,), 3.0), w]) @ r, (drawn(4), drawn(6, 2))),
    "between": (lambda w, r: torch.cat([w, torch.full((2, 3), 0.5), w * 2]) @ r, (drawn(4, 3), drawn(3, 2))),
    "two": (lambda w, r: torch.cat([torch.ones(2), w * 2, torch.ones(3) * 2]) @ r, (drawn(4), drawn(9, 2))),
    "a column": (lambda w, v: torch.relu(torch.cat([w, torch.ones(4, 1)], 1) @ v), (drawn(4, 2), drawn(3, 5))),
    "the output": (lambda w: torch.cat([w * 2, torch.ones(3)]), (drawn(4),)),
    "stacked": (lambda w: torch.stack([w * 2, torch.ones(4)]).sum(0), (drawn(4),)),
    "a dimension of one": (lambda w: torch.cat([w * 2, torch.ones(2, 1, 3)], 1).sum(-1), (drawn(2, 1, 3),)),
    "padding": (lambda w: F.pad(w * 2, (1, 2), value=3.0).sum(1), (drawn(4, 2),)),
    "rolled": (lambda w: torch.cat([w, torch.ones(2)]).roll(1) * 2, (drawn(4),)),
    "sliced": (lambda w: torch.cat([w * 2, torch.ones(3)])[2:6], (drawn(4),)),
    "turned": (lambda w: torch.cat([w * 2, torch.ones(3)]).flip(0) * 3, (drawn(4),)),
    "reshaped": (lambda w: torch.cat([w * 2, torch.ones(2)]).reshape(2, 3) @ torch.ones(3, 1), (drawn(4),)),
    "integers": (lambda w: torch.cat([w * 2, torch.ones(3, dtype=torch.long)]), (torch.arange(4),)),
    "truth values": (lambda w: torch.where(torch.cat([w > 0, torch.ones(3) > 0]), 1.0, 2.0), (drawn(4),)),
    "sparse": (lambda a, w: a @ torch.cat([w * 2, torch.ones(2, 3)]), (sparse(5, 6), drawn(4, 3))),
    "written into": (_written, (drawn(2, 3),)),
}


@pytest.mark.parametrize("name", MODELS)
def test_constant_parts_at_every_cut(name: str) -> None:
    matches(*MODELS[name])
