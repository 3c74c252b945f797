"""Each rule against the operator: on operands of which some entries are unknown, some 0 and some other constants, what is called known does
not change with the unknown entries, and what is called superfluous changes nothing. For sums of products, nothing is missed either."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from lifted import HOWS, Changed, exported
from torch import Tensor, nn
from torch.fx import Node

from fuseflow.frontend.model_propagation import Known, TensorAttributes
from fuseflow.frontend.model_propagation.dependence_rules import table_rule
from fuseflow.frontend.model_propagation.export import ExportedModule
from fuseflow.frontend.model_propagation.operator_step import operator_steps, result_of
from fuseflow.frontend.model_propagation.scrambling import Scrambler
from fuseflow.propagation.sweeps import known_after, needed_before


@dataclass(frozen=True)
class Case:
    """A function of operands, the shapes of these, and whether nothing is missed."""

    name: str
    function: Callable[..., Any]
    shapes: tuple[tuple[int, ...], ...]
    exact: bool = True


def case(name: str, function: Callable[..., Any], *shapes: tuple[int, ...], exact: bool = True) -> Any:
    return pytest.param(Case(name, function, shapes, exact), id=name)


X, IMAGE = (4, 6), (2, 3, 6, 5)
INDEX = torch.tensor([2, 0, 2])
EXACT = [
    case("matmul", lambda a, b: a @ b, X, (6, 5)),
    case("batched", lambda a, b: a @ b, (2, 4, 6), (2, 6, 3)),
    case("matrix times vector", lambda a, b: a @ b, X, (6,)),
    case("linear", F.linear, X, (5, 6), (5,)),
    case("einsum", lambda a, b, c: torch.einsum("ij,jk,k->i", a, b, c), X, (6, 5), (5,)),
    case("mul", lambda a, b: a * b, X, (6,)),
    case("mul by a negative number", lambda a: a * -2.0, X),
    case("add", lambda a, b: a + b, X, (6,)),
    case("sub", lambda a, b: torch.sub(a, b, alpha=-2), X, (4, 1)),
    case("convolution", lambda x, w: F.conv2d(x, w, padding=1, stride=2), IMAGE, (4, 3, 3, 3)),
    case("depthwise", lambda x, w, b: F.conv2d(x, w, b, groups=3, dilation=2), IMAGE, (6, 1, 2, 2), (6,)),
    case("transposed convolution", lambda x, w: F.conv_transpose2d(x, w, stride=2), IMAGE, (3, 2, 3, 3)),
    case("one-dimensional convolution", lambda x, w: F.conv1d(x, w), (2, 3, 8), (4, 3, 3)),
    case("sum", lambda x: x.sum((0, 2)), IMAGE),
    case("whole sum", lambda x: x.sum(), X),
    case("mean", lambda x: x.mean((2, 3), keepdim=True), IMAGE),
    case("cumsum", lambda x: x.cumsum(1), X),
    case("views", lambda x: x.T.reshape(3, 8)[1:, ::2].flip(0).unsqueeze(1).expand(2, 3, 4), X),
    case(
        "split and cat", lambda x: torch.cat([*x.chunk(2, 1), *x.unbind(0)[:1][0].view(1, 1, 6).expand(1, 4, 6)[:, :, :2]], 1), X
    ),
    case("stack", lambda a, b: torch.stack([a, b], 1), X, X),
    case("roll and repeat", lambda x: x.roll(1, 0).repeat(2, 1), X),
    case("pad with a constant", lambda x: F.pad(x, (1, 2), value=3.0), X),
    case("pad with a reflection", lambda x: F.pad(x, (1, 2), mode="reflect"), X),
    case("average pool", lambda x: F.avg_pool2d(x, 2, padding=1), IMAGE),
    case("adaptive average pool", lambda x: F.adaptive_avg_pool2d(x, (4, 2)), IMAGE),
    case("nearest", lambda x: F.interpolate(x, scale_factor=2.0), IMAGE),
    case("bilinear", lambda x: F.interpolate(x, size=(9, 7), mode="bilinear"), IMAGE),
    case("index", lambda x: x[:, INDEX], X),
    case("gather", lambda x: x.gather(1, INDEX[None].expand(4, 3)), X),
    case("index_add", lambda a, b: a.index_add(0, INDEX, b), X, (3, 6)),
    case("scatter", lambda a, b: a.scatter(0, torch.tensor([2, 0, 1])[:, None].expand(3, 6), b), X, (3, 6)),
    case("embedding", lambda w: F.embedding(INDEX, w), X),
    case("tril", torch.tril, X),
    case("masked_fill", lambda x: x.masked_fill(torch.ones(4, 6).triu() > 0, 7.0), X),
    case("where", lambda a, b: torch.where(torch.eye(4, 6) > 0, a, b), X, X),
    case("unfold", lambda x: F.unfold(x, 2), IMAGE),
    case("slices written", lambda a, b: a.slice_scatter(b, 1, 0, 6, 2), X, (4, 3)),
    case("gelu", F.gelu, X),
    case("cos", torch.cos, X),
    case("sigmoid", torch.sigmoid, X),
    case("residual", lambda a, w: a + torch.tanh(a @ w), X, (6, 6)),
    case("converted", lambda x: (x.double() * 2).float(), X),
]
INEXACT = [
    case("relu", torch.relu, X, exact=False),
    case("abs and clamp", lambda x: x.abs().clamp(0.1, 0.5), X, exact=False),
    case("quotient", lambda a, b: a / (b.abs() + 1), X, (6,), exact=False),
    case("square", lambda x: x * x, X, exact=False),
    case("maximum", torch.maximum, X, X, exact=False),
    case("comparison", lambda a, b: (a > b).float(), X, X, exact=False),
    case("both", lambda a, b: ((a > 0) & (b > 0)).float(), X, X, exact=False),
    case("choice by data", lambda a, b, c: torch.where(a > 0, b, c), X, X, X, exact=False),
    case("steps", torch.round, X, exact=False),
    case("softmax", lambda x: x.softmax(1), X, exact=False),
    case("log_softmax", lambda x: x.log_softmax(0), X, exact=False),
    case("largest", lambda x: x.amax(1), X, exact=False),
    case("largest and place", lambda x: torch.stack([part.float() for part in x.max(0)]), X, exact=False),
    case("top", lambda x: x.topk(2, 1).values, X, exact=False),
    case("sorted", lambda x: x.sort(0).values, X, exact=False),
    case("product", lambda x: x.prod(1), X, exact=False),
    case("variance", lambda x: x.var(1), X, exact=False),
    case("norm of vectors", lambda x: torch.linalg.vector_norm(x, dim=1), X, exact=False),
    case("norm of all", lambda x: torch.linalg.vector_norm(x), X, exact=False),
    case("layer norm", lambda x, w, b: F.layer_norm(x, (6,), w, b), X, (6,), (6,), exact=False),
    case("group norm", lambda x, w, b: F.group_norm(x.permute(0, 1, 3, 2), 3, w, b), IMAGE, (3,), (3,), exact=False),
    case("instance norm", F.instance_norm, IMAGE, exact=False),
    case(
        "attention",
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v),
        (1, 2, 4, 6),
        (1, 2, 5, 6),
        (1, 2, 5, 3),
        exact=False,
    ),
    case("causal", lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), *[(1, 2, 4, 6)] * 3, exact=False),
    case("max pool", lambda x: F.max_pool2d(x, 2), IMAGE, exact=False),
    case("max pool, ceiled", lambda x: F.max_pool2d(x, (3, 2), (2, 3), (1, 1), ceil_mode=True), IMAGE, exact=False),
    case("max pool, dilated", lambda x: F.max_pool2d(x, 2, 1, 1, 2), IMAGE, exact=False),
    case("max pool, one-dimensional", lambda x: F.max_pool1d(x, 2, 3), (2, 3, 8), exact=False),
    case("max pool, three-dimensional", lambda x: F.max_pool3d(x, 2, ceil_mode=True), (2, 3, 4, 5), exact=False),
    case("adaptive max pool", lambda x: F.adaptive_max_pool2d(x, (4, 2)), IMAGE, exact=False),
    case("leaky", lambda x: F.leaky_relu(F.hardswish(x)), X, exact=False),
    case("prelu", lambda x, a: F.prelu(x, a), X, (6,), exact=False),
    case("like another", lambda x: torch.ones_like(x) + torch.full_like(x, 2.0), X, exact=False),
    case("embedding with padding", lambda w: F.embedding(INDEX, w, padding_idx=2), X, exact=False),
    case("part of a scatter", lambda a, b: a.scatter(0, INDEX[None].expand(1, 3).T, b), X, (3, 6), exact=False),
    case("one number scattered", lambda a: a.scatter(0, INDEX[None], 3.0), X, exact=False),
]


class Operators(nn.Module):
    """All functions side by side, in one graph, because an export takes as long as many operators."""

    def forward(self, operands: list[list[Tensor]]) -> list[Tensor]:
        return [case.function(*given) for case, given in zip(CASES, operands, strict=True)]


CASES = [parameter.values[0] for parameter in (*EXACT, *INEXACT)]
SEEDS = range(2)


@dataclass(frozen=True, eq=False)
class Drawn:
    """An operand of which some entries are unknown, with the values that these have this time. The others are 0, or other numbers."""

    values: Tensor
    unknown: Tensor

    @classmethod
    def of_shape(cls, shape: tuple[int, ...], generator: torch.Generator) -> Drawn:
        kind = torch.rand(shape, generator=generator)
        rows = torch.rand((*shape[:-1], 1), generator=generator) < 0.3  # so that whole rows are known, too
        unknown = (kind < 0.5) & ~rows
        return cls(torch.randn(shape, generator=generator) * (unknown | (kind > 0.8)), unknown)


@cache
def drawn(seed: int) -> list[list[Drawn]]:
    generators = [torch.Generator().manual_seed(seed) for _ in CASES]
    return [[Drawn.of_shape(shape, g) for shape in case.shapes] for case, g in zip(CASES, generators, strict=True)]


def values(seed: int) -> list[list[Tensor]]:
    return [[operand.values for operand in operands] for operands in drawn(seed)]


@cache
def graph() -> ExportedModule:
    return exported(Operators(), (values(0),))


@dataclass(frozen=True, eq=False)
class Swept:
    """What both sweeps say of the operands and the results of each function."""

    by_node: dict[Node, TensorAttributes]
    scrambler: Scrambler

    @property
    def operands(self) -> list[list[TensorAttributes]]:
        rest = (node for node, argument in graph().arguments.items() if argument.kind == "input")
        return [[self.by_node[next(rest)] for _ in case.shapes] for case in CASES]

    @property
    def outputs(self) -> list[TensorAttributes]:
        return [self.by_node[node] for node in graph().outputs]


def given(seed: int) -> dict[Node, Known]:
    """What is known of the operands, and of constants of the functions, such as indices."""
    rest = iter([operand for operands in drawn(seed) for operand in operands])
    return {
        node: Known.exactly(argument.tensor) if argument.kind != "input" else Known.where(~(o := next(rest)).unknown, o.values)
        for node, argument in graph().arguments.items()
    }


@cache
def swept(seed: int) -> Swept:
    scrambler, start = Scrambler(0, False), given(seed)
    steps, outputs = operator_steps(graph().graph, table_rule, scrambler), {result_of(node) for node in graph().outputs}
    known = known_after(steps, {result_of(node): of for node, of in start.items()})
    needed = needed_before(steps, known, {r: torch.full(k.mask.shape, r in outputs) for r, k in known.items()})
    nodes = [node for node in graph().graph.nodes if isinstance(node.meta.get("val"), Tensor)]
    single = {node: (known[result_of(node)], needed[result_of(node)]) for node in nodes}
    return Swept(
        {n: TensorAttributes(n.name, "input", ~k.mask, k.mask, k.value, wanted) for n, (k, wanted) in single.items()}, scrambler
    )


@cache
def changed(seed: int, how: str) -> list[Tensor]:
    torch.manual_seed(seed)
    rest = iter([operand for operands in values(seed) for operand in operands])
    operands = [next(rest) if argument.kind == "input" else argument.tensor for argument in graph().arguments.values()]
    return Changed(graph(), swept(seed).by_node, how).outputs(operands)


@pytest.mark.parametrize("case", [*EXACT, *INEXACT])
def test_what_is_dead_changes_nothing(case: Case):
    place = CASES.index(case)
    for seed, how in product(SEEDS, HOWS):
        whole, without = changed(seed, "")[place], changed(seed, how)[place]
        torch.testing.assert_close(without, whole, rtol=1e-5, atol=1e-5, equal_nan=True, msg=lambda text: f"{how}: {text}")  # noqa: B023


def test_every_operator_has_a_rule():
    assert swept(0).scrambler.guesses() == ()


def jacobians(case: Case, operands: list[Drawn]) -> list[Tensor]:
    """The derivatives of each entry of the result by the unknown entries of each operand, and 0 by the known ones."""
    slopes = torch.autograd.functional.jacobian(case.function, tuple(operand.values for operand in operands))
    return [slope * operand.unknown for slope, operand in zip(slopes, operands, strict=True)]


@pytest.mark.parametrize("case", EXACT)
def test_nothing_is_missed(case: Case):
    place = CASES.index(case)
    for seed in SEEDS:
        known = swept(seed).outputs[place].known
        slopes = jacobians(case, drawn(seed)[place])
        depends = torch.stack([(slope != 0).flatten(known.dim()).any(-1) for slope in slopes]).any(0)
        assert torch.equal(~known, depends), "what is known"
        for n, (slope, operand) in enumerate(zip(slopes, swept(seed).operands[place], strict=True)):
            needed = (slope != 0).flatten(0, known.dim() - 1).any(0) if known.dim() else slope != 0
            assert torch.equal(operand.needed & ~operand.known, needed), f"what is needed of operand {n}"
