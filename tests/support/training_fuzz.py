"""Random training steps: a small model of random layers and random Einsums with weights in random layouts, a loss, an optimizer and a
schedule (cut, lanes, formats, and how loops are ordered and levels are read), all of one seed.

A step is right if its check passes, which compares losses, gradients, parameters and states with PyTorch's. Of every eighth, the slope of
the loss in a random direction is measured in f64, too, as a difference of two losses, which needs no derivative of anybody.
"""

from __future__ import annotations

import multiprocessing
import random
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal, TypeAlias

import numpy as np
import torch
import torch.nn.functional as F
from tiled_programs import in_tiles
from tiled_programs import machine as scratchpad_machine
from torch import Tensor, nn

import fuseflow as ff
from fuseflow.compiler import compile_source
from fuseflow.einsum.nodes import Program
from fuseflow.einsum.phases import carried_inputs
from fuseflow.einsum.verify import extents
from fuseflow.errors import FuseFlowError
from fuseflow.frontend.model_spec import TrainingRequest
from fuseflow.frontend.sources import load_model
from fuseflow.run.compiled import Compiled
from fuseflow.run.training.training_run import TrainingRun
from fuseflow.schedule import form_regions
from fuseflow.sim import load_machine
from fuseflow.sparsity.spec import parse_sparsify
from fuseflow.sparsity.weights import replica
from fuseflow.training.losses import LossFunction, as_loss

FEATURES = 4
"""The columns of inputs."""
SAMPLED = 8
"""One seed of so many is checked by a slope."""
LARGEST_SLOPE_ERROR = 1e-3
"""The largest difference of a slope, for the sum of the magnitudes of what it is the sum of."""
Outcome: TypeAlias = Literal["right", "refused", "wrong", "crash"]
Stage: TypeAlias = Callable[[random.Random, int, int], nn.Module]
"""What makes a layer of a matrix of so many rows and columns, of which the result has the same shape."""


class Lambda(nn.Module):
    """A function of a matrix and of parameters."""

    def __init__(self, function: Callable[..., Tensor], *shapes: tuple[int, ...]) -> None:
        super().__init__()
        self.function = function
        self.own = nn.ParameterList(nn.Parameter(torch.randn(shape) * 0.7) for shape in shapes)

    def forward(self, x: Tensor) -> Tensor:
        return self.function(x, *self.own)


class Adjacency(nn.Module):
    """A product with a sparse matrix, and maybe a linear layer."""

    def __init__(self, draw: random.Random, rows: int, columns: int) -> None:
        super().__init__()
        matrix = torch.randn(rows, rows) * (torch.rand(rows, rows) < 0.5)
        layouts: list[Callable[[Tensor], Tensor]] = [Tensor.to_sparse_csr, Tensor.to_sparse_csc, Tensor.to_sparse, Tensor.clone]
        self.register_buffer("adjacency", draw.choice(layouts)(matrix))
        self.linear = nn.Linear(columns, columns, bias=draw.random() < 0.5)

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.adjacency @ self.linear(x)
        return result


class Attention(nn.Module):
    """Masked attention of rows to rows, in which every row sees itself."""

    def __init__(self, rows: int, columns: int) -> None:
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(columns, columns) for _ in range(3))
        self.register_buffer("mask", (torch.rand(rows, rows) < 0.4) | torch.eye(rows, dtype=torch.bool))

    def forward(self, x: Tensor) -> Tensor:
        scores = (self.query(x) @ self.key(x).t()).masked_fill(~self.mask, float("-inf"))
        return scores.softmax(-1) @ self.value(x)


class Residual(nn.Module):
    """What a layer adds to its operand, or multiplies it by."""

    def __init__(self, layer: nn.Module, *, gate: bool) -> None:
        super().__init__()
        self.layer, self.gate = layer, gate

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.sigmoid(self.layer(x)) if self.gate else x + self.layer(x)


class Twice(nn.Module):
    """One layer two times, with an activation between."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(torch.tanh(self.layer(x)))  # type: ignore[no-any-return]


class Contraction(nn.Module):
    """A product of a matrix with parameters, summed over the indices that the matrix lacks, such as `ij,jk,ik->ij`. Some products read the
    matrix twice."""

    def __init__(self, draw: random.Random, rows: int, columns: int) -> None:
        super().__init__()
        sizes = {"i": rows, "j": columns, "k": draw.choice([1, 2, 3]), "l": 2}
        x = draw.choice(["ij", "ij", "ik", "kj"])
        sizes["k"] = {"ik": columns, "kj": rows}.get(x, sizes["k"])
        twice = draw.random() < 0.3
        operands = ["".join(draw.sample("ijkl", draw.choice([1, 2, 2, 3]))) for _ in range(draw.choice([1, 1, 2]))]
        operands += ["".join(missing)] if (missing := sorted({*"ij"}.difference(*operands, x))) else []
        self.equation, self.twice = f"{','.join([x] * (1 + twice) + operands)}->ij", twice
        self.outer = draw.choice([torch.tanh, torch.sin, F.relu, F.softplus, torch.abs, lambda y: y])
        self.own = nn.ParameterList(nn.Parameter(torch.randn([sizes[v] for v in name]) * 0.7) for name in operands)

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.outer(torch.einsum(self.equation, *([x] * (1 + self.twice)), *self.own))
        return result


def _linear(draw: random.Random, _: int, columns: int) -> nn.Module:
    return nn.Linear(columns, columns, bias=draw.random() < 0.7)


def _activation(draw: random.Random, _: int, __: int) -> nn.Module:
    kinds: list[type[nn.Module]] = [
        nn.ReLU, nn.Tanh, nn.GELU, nn.Sigmoid, nn.SiLU, nn.ELU, nn.Softplus, nn.LeakyReLU, nn.Hardtanh, nn.Mish, nn.ReLU6, nn.Softsign,
    ]  # fmt: skip
    return draw.choice(kinds)()


def _norm(draw: random.Random, _: int, columns: int) -> nn.Module:
    kinds = [nn.LayerNorm(columns), nn.RMSNorm(columns), nn.BatchNorm1d(columns), nn.GroupNorm(1, columns)]
    return draw.choice(kinds)


def _function(draw: random.Random, rows: int, columns: int) -> nn.Module:
    order = torch.randint(0, rows, (rows,), dtype=draw.choice([torch.int64, torch.int64, torch.int32]))
    mask = torch.rand(rows, columns) < 0.6
    row, column, square = (1, columns), (rows, 1), (rows, rows)
    return draw.choice(
        [
            lambda: Lambda(lambda x: x[order]),
            lambda: Lambda(lambda x: torch.where(mask, x, 0.0)),
            lambda: Lambda(lambda x: x * mask),
            lambda: Lambda(lambda x: x - x.mean(0)),
            lambda: Lambda(lambda x: x / (1 + x.norm(dim=1, keepdim=True))),
            lambda: Lambda(lambda x: x - x.amax(1, keepdim=True)),
            lambda: Lambda(lambda x: x * x.max(0).values),
            lambda: Lambda(lambda x: x.softmax(-1)),
            lambda: Lambda(lambda x: x.log_softmax(0)),
            lambda: Lambda(lambda x: x.cumsum(1)),
            lambda: Lambda(lambda x: x - x.logsumexp(1, keepdim=True)),
            lambda: Lambda(lambda x: x / (0.5 + x.var(1, keepdim=True))),
            lambda: Lambda(lambda x: x * (0.1 + x.abs().sum(0)).sqrt()),
            lambda: Lambda(lambda x: torch.minimum(x, x.flip(1))),
            lambda: Lambda(lambda x: x @ x.t() @ x),
            lambda: Lambda(lambda x: torch.cat([x[:, 1:], x[:, :1]], 1)),
            lambda: Lambda(lambda x: x.flip(0) + x.roll(1, 1)),
            lambda: Lambda(lambda x: F.normalize(x, dim=1)),
            lambda: Lambda(lambda x: x.clamp(-0.8, 0.9)),
            lambda: Lambda(lambda x, w: x * w, row),
            lambda: Lambda(lambda x, w: x + w, column),
            lambda: Lambda(lambda x, w: torch.maximum(x, w), row),
            lambda: Lambda(lambda x, w: torch.where(x > w, x, w), row),
            lambda: Lambda(lambda x, w: w @ x, square),
            lambda: Lambda(lambda x, w: x * torch.exp(-w.abs()), row),
            lambda: Lambda(lambda x, w: x + F.embedding(order % 2, w), (2, columns)),
            lambda: Lambda(lambda x, w: x.index_add(0, order, w), (rows, columns)),
            lambda: Lambda(lambda x, w: F.conv1d(x[:, None], w, padding=1)[:, 0], (1, 1, 3)),
        ]
    )()


STAGES: list[tuple[int, Stage]] = [
    (6, _linear),
    (5, _activation),
    (5, _function),
    (2, _norm),
    (4, Contraction),
    (2, Adjacency),
    (1, lambda _, rows, columns: Attention(rows, columns)),
    (1, lambda draw, rows, columns: Residual(_linear(draw, rows, columns), gate=draw.random() < 0.5)),
    (1, lambda draw, rows, columns: Twice(_linear(draw, rows, columns))),
    (1, lambda *_: nn.Dropout(0.3)),
]
LAYOUTS = [
    "magnitude:0.6:csr",
    "magnitude:0.5:csc",
    "magnitude:0.5:masked",
    "random:0.5:csr",
    "block:0.5:2x2",
    "magnitude:0.5:coo",
    "topk:2:csr",
]
OPTIMIZERS = [
    "sgd:lr=0.1",
    "sgd:lr=0.1,momentum=0.9",
    "sgd:lr=0.1,momentum=0.9,nesterov=True,weight_decay=0.01",
    "sgd:lr=0.1,momentum=0.5,dampening=0.2",
    "adam:lr=0.01",
    "adam:lr=0.01,weight_decay=0.1,amsgrad=True",
    "adamw:lr=0.01,weight_decay=0.1",
    "rmsprop:lr=0.01",
    "rmsprop:lr=0.01,momentum=0.9,centered=True",
    "adagrad:lr=0.1,weight_decay=0.01",
]
CUTS = {"none": 40, "pieces": 40, "layerwise": 12, "full": 6, "best": 1}
"""How often each cut is drawn. `pieces` are regions that the schedule names, of up to four Einsums that follow each other. The compiler
tries several cuts for the last three, which takes three to twenty times as long."""
ARRANGED = 16
"""One draw of so many leaves the formats of its tensors to the compiler. That takes as long as all else."""
FORMATS = {1: ["compressed"], 2: ["csr", "csc", "dcsr", "coo", "(dense, dense) order (1, 0)"]}
"""Formats of inputs, by the number of their dimensions."""


def _weighted(output: Tensor, target: Tensor) -> Tensor:
    return (output * target).sum() + 0.1 * (output * output).mean()


def _contrast(output: Tensor, target: Tensor) -> Tensor:
    return torch.einsum("ij,kj,kj->ik", output.softmax(1), target, target).logsumexp(1).mean()


def _margins(output: Tensor, target: Tensor) -> Tensor:
    return (1 - output * target).clamp(min=0).pow(2).sum(1).amax() + (output - target).norm()


@dataclass(frozen=True, slots=True)
class Draw:
    """A training step. `batches` are further values of x for later steps."""

    seed: int
    model: nn.Module
    x: Tensor
    target: Tensor
    loss: str | LossFunction
    optimizer: str
    cut: str
    sparsity: str | None
    batches: tuple[Tensor, ...]

    def __str__(self) -> str:
        return f"seed {self.seed}: loss {self.loss}, {self.optimizer}, {self.cut}, weights {self.sparsity}, {len(self.batches)} batches"


def draw_step(seed: int) -> Draw:
    """Return the training step of a seed."""
    draw = random.Random(seed)
    torch.manual_seed(seed)
    rows, columns = draw.choice([2, 3, 4]), draw.choice([2, 3, 4])
    weights, kinds = zip(*STAGES, strict=True)
    layers = [kind(draw, rows, columns) for kind in draw.choices(kinds, weights, k=draw.choice([1, 1, 2, 2, 3]))]
    last = [nn.Linear(columns, columns)] if draw.random() < 0.3 else []
    model = nn.Sequential(nn.Linear(FEATURES, columns), *layers, *last).train(draw.random() < 0.8)
    classes = torch.randint(0, columns, (rows,))
    if draw.random() < 0.3:
        classes[0] = -100
    target = torch.randn(rows, columns)
    loss, target = draw.choice(
        [
            ("mse", target),
            ("cross_entropy", classes),
            ("cross_entropy:label_smoothing=0.1", classes),
            ("cross_entropy", target.softmax(1)),
            ("huber", target),
            ("smooth_l1", target),
            ("bce_with_logits", target.sigmoid()),
            ("l1", target),
            (_weighted, target),
            (_contrast, target),
            (_margins, target),
            ("mse:reduction=sum", target),
        ]
    )
    layouts = [layout for layout in LAYOUTS if columns % 2 == 0 or not layout.startswith("block")]
    sparsity = draw.choice(layouts) if draw.random() < 0.6 else None
    batches = tuple(torch.randn(rows, FEATURES) for _ in range(draw.choice([0, 0, 0, 1, 2])))
    x = torch.randn(rows, FEATURES) * (torch.rand(rows, FEATURES) < draw.choice([0.5, 1.0]))
    cut = draw.choices(list(CUTS), list(CUTS.values()))[0]
    return Draw(seed, model, x, target, loss, draw.choice(OPTIMIZERS), cut, sparsity, batches)


def draw_schedule(draw: Draw, program: Program) -> ff.Schedule:
    """Return the schedule of a training step, whose program is known."""
    choose = random.Random(draw.seed)
    schedule = _pieces(choose, program) if draw.cut == "pieces" else ff.Schedule.fuse(draw.cut)
    schedule = schedule.lower(
        order_policy=choose.choice(["first", "first", "best"]),
        locate=choose.choice(["auto", "auto", "never", "always"]),
        repeat=choose.choice(["value", "value", "reference"]),
        rescan=choose.choice(["auto", "auto", "every"]),
    )
    carried = set(carried_inputs(program).values())
    free = [
        t
        for t in program.inputs
        if t.name not in carried and not t.like and t.dtype == "float32" and t.format and t.format.all_dense
    ]
    for tensor in free:
        if len(tensor.shape) in FORMATS and choose.random() < 0.3:
            schedule = schedule.format(tensor.name, choose.choice(FORMATS[len(tensor.shape)]))
    alone = (
        [region for region in form_regions(program, schedule) if len(region.einsums) == 1]
        if draw.cut in ("none", "pieces")
        else []
    )
    if alone and choose.random() < 0.3:
        region = choose.choice(alone)
        loops = list(extents(program)[region.einsums[0]])
        choose.shuffle(loops)
        schedule = schedule.order(region.name, loops) if len(loops) > 1 else schedule
    if draw.cut in ("none", "pieces") and choose.random() < 0.3:
        region = choose.choice(form_regions(program, schedule))
        einsum = program.defined[region.einsums[-1]]
        if einsum.indices:
            schedule = schedule.par(**{f"{region.name}.{einsum.indices[0]}": 2})
    return schedule


def _pieces(choose: random.Random, program: Program) -> ff.Schedule:
    """Return a schedule that names regions of one to four Einsums that follow each other."""
    schedule, waiting = ff.Schedule(), [einsum.name for einsum in program.einsums]
    names = []
    while waiting:
        size = choose.randint(1, 4)
        piece, waiting = waiting[:size], waiting[size:]
        names.append(f"piece{len(names)}")
        schedule = schedule.region(names[-1], *piece)
    return schedule.fuse(*names)


def outcome(draw: Draw, tile: bool = False) -> tuple[Outcome, str]:
    """Return what becomes of a training step, and why it is not right. With `tile`, "tiles" if it is right, and ran with regions in tiles
    too."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return _checked(draw, tile)
    except FuseFlowError as error:
        return "refused", error.message
    except Exception:
        return "crash", traceback.format_exc()


def _checked(draw: Draw, tile: bool) -> tuple[Outcome, str]:
    sparsity = None if draw.sparsity is None else parse_sparsify(f"*.weight={draw.sparsity}")
    request = TrainingRequest(draw.loss, draw.optimizer, draw.target, gradients=True)
    source = load_model(draw.model, (draw.x,), {"training": request, "sparsity": sparsity}, ff.training_step)
    source = replace(source, arranged=draw.seed % ARRANGED != 0)
    rng = random.Random(f"tiles of {draw.seed}")
    at = scratchpad_machine(rng) if tile else load_machine("rda")
    step = compile_source(source, draw_schedule(draw, source.program), at)
    assert step.source.step is not None
    run = _run(draw, step)
    if run.check is None or not run.check.passed:
        return "wrong", str(run.check)
    if tile:
        tiled = in_tiles(step, lambda schedule: compile_source(source, schedule, at), rng)
        difference = _first_difference(run, _run(draw, tiled))
        return ("wrong", difference) if difference else ("right", "tiles" * any(region.tiles for region in tiled.regions))
    drops = any(isinstance(module, nn.Dropout) for module in draw.model.modules()) and draw.model.training
    if draw.seed % SAMPLED == 0 and not drops and draw.sparsity is None:
        gradients = {step.source.step.original(key): value for key, value in run.gradients[0].items()}
        found = _slope_error(draw, gradients)
        if found > LARGEST_SLOPE_ERROR:
            return "wrong", f"the slope of the loss in a random direction is off by {found:.3g}"
    return "right", ""


def _run(draw: Draw, step: Compiled) -> TrainingRun:
    batches = [{"input": x} for x in (draw.x, *draw.batches)]
    torch.manual_seed(draw.seed)
    return step.run(steps=len(batches), batches=batches, gradients=True, jobs=1)


def _first_difference(run: TrainingRun, tiled: TrainingRun) -> str:
    """Return what a run in tiles has otherwise, to the last bit; nothing if it has all that the run without tiles has."""
    if run.losses != tiled.losses:
        return f"losses {tiled.losses} in tiles, not {run.losses}"
    pairs = [(run.state, tiled.state), *zip(run.gradients, tiled.gradients, strict=True)]
    for plain, found in pairs:
        for name, tensor in plain.items():
            if not np.array_equal(np.asarray(tensor.to_dense()), np.asarray(found[name].to_dense()), equal_nan=True):
                return f"`{name}` is {found[name].to_dense().tolist()} in tiles, not {tensor.to_dense().tolist()}"
    return ""


def _slope_error(draw: Draw, gradients: dict[str, Any]) -> float:
    """Return the difference of the slope of the loss in a random direction from the product of gradients and direction, for the sum of the
    magnitudes of its terms."""
    loss, width = as_loss(draw.loss), 1e-6
    generator = torch.Generator().manual_seed(draw.seed)
    target = draw.target.double() if draw.target.is_floating_point() else draw.target
    directions = {
        name: torch.randn(p.shape, generator=generator, dtype=torch.float64) for name, p in draw.model.named_parameters()
    }
    values = []
    for sign in (1, -1):
        moved = replica(draw.model).double()
        with torch.no_grad():
            for name, parameter in moved.named_parameters():
                parameter += sign * width * directions[name]
            values.append(float(loss(moved(draw.x.double()), target)))
    slope = (values[0] - values[1]) / (2 * width)
    shapes = {name: parameter.shape for name, parameter in draw.model.named_parameters()}
    terms = [torch.as_tensor(g.to_dense()).reshape(shapes[name]) * directions[name] for name, g in gradients.items()]
    total = sum(float(term.sum()) for term in terms)
    size = sum(float(term.abs().sum()) for term in terms)
    return abs(slope - total) / max(size, 1e-6)


def outcomes(seeds: Sequence[int], jobs: int = 1, tile: bool = False) -> Iterator[tuple[int, Outcome, str]]:
    """Return what becomes of the training steps of some seeds, in order: the seed, the outcome and its reason."""
    one = partial(_of_seed, tile=tile)
    if jobs == 1:
        yield from map(one, seeds)
        return
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        yield from pool.imap(one, seeds)


def _of_seed(seed: int, tile: bool) -> tuple[int, Outcome, str]:
    return seed, *outcome(draw_step(seed), tile)


@dataclass
class Tally:
    """How many training steps had which outcome, and what is to be seen of the others."""

    outcomes: Counter[Outcome] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    tiled: int = 0

    @property
    def summary(self) -> str:
        counts = ", ".join(f"{count} {kind}" for kind, count in self.outcomes.most_common())
        return counts + f", {self.tiled} in tiles, too" * (self.tiled > 0)

    def add(self, seed: int, kind: Outcome, reason: str) -> None:
        self.outcomes[kind] += 1
        self.tiled += (kind, reason) == ("right", "tiles")
        if kind == "refused":
            self.refusals[reason.partition("\n")[0]] += 1
        elif kind != "right":
            self.faults.append(f"{kind}: {draw_step(seed)}\n{draw_step(seed).model}\n{reason}")
