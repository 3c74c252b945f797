"""Named regions: parts of a model that schedules can name like modules."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

import fuseflow as ff
from fuseflow.errors import UsageError


class Block(nn.Module):
    """A block whose code names two parts of it."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        with ff.region("head"):
            y = torch.relu(self.first(x))
            with ff.region("inner"):
                y = y * 2
        return self.second(y)


class Stack(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList([Block(), Block()])

    def forward(self, x: Tensor) -> Tensor:
        for block in self.blocks:
            x = block(x)
        return x


def paths(model: object, *inputs: Tensor) -> list[str]:
    """The module paths of the Einsums of a model, each once, in order."""
    return list(dict.fromkeys(e.location.path for e in ff.compile(model, inputs).program.einsums))


def test_region_is_a_part_of_the_path_of_what_it_calls() -> None:
    expected = ["head.first", "head", "head.inner", "second"]
    assert paths(Block().eval(), torch.ones(3, 4)) == expected
    assert paths(Stack().eval(), torch.ones(3, 4)) == [f"blocks.{n}.{path}" for n in range(2) for path in expected]


def test_schedule_fuses_a_region_by_its_name() -> None:
    program = ff.compile(Block().eval(), (torch.ones(3, 4),), schedule=ff.Schedule.fuse("head"))
    fused = max(program.regions, key=lambda region: len(region.einsums))
    assert {e.location.path for e in program.program.einsums if e.name in fused.einsums} == {"head.first", "head", "head.inner"}
    assert program.run().check.passed


def test_decorator_of_a_function_that_is_called_in_a_loop() -> None:
    @ff.region("layer")
    def layer(x: Tensor, w: Tensor) -> Tensor:
        return torch.relu(x @ w)

    def model(x: Tensor, w: Tensor) -> Tensor:
        for _ in range(3):
            x = layer(x, w)
        return x.sum(0)

    assert paths(model, torch.ones(3, 4), torch.ones(4, 4)) == ["layer", ""]


def test_region_does_nothing_outside_of_a_compile() -> None:
    x = torch.rand(3, 4)
    block = Block().eval()
    assert torch.equal(block(x), block.second(torch.relu(block.first(x)) * 2))


def test_region_ends_where_an_exception_leaves_it() -> None:
    def model(x: Tensor) -> Tensor:
        try:
            with ff.region("broken"):
                raise KeyError
        except KeyError:
            return x * 2

    assert paths(model, torch.ones(3)) == [""]


@pytest.mark.parametrize("name", ["", "a b", "a..b", ".a", "a\nb", 3])
def test_bad_name(name: str) -> None:
    with pytest.raises(UsageError, match="no name of a region"):
        ff.region(name)
