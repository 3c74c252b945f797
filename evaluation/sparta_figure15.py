"""After Figure 15 of SparTA: how many bits each layer needs, when types become narrower along a network.

    python evaluation/figures.py sparta_figure15 --run    # train, and compute the rows again, half a minute

The paper narrows MobileNetV1, whose trained weights and pictures cannot be had here. So this shows the mechanism: a network of six layers
is trained to tell ten classes of random points apart, as a random teacher does, and `ff.quantize` narrows its factors within a tolerance,
with the accuracy as the metric. The paper starts from types that training chose, and has 3 to 8 bits in between; here all begin with
32 bits, and types have 16, 8 and 4. Early factors use up the tolerance, so that a later one
may need more bits where it is greater. The bits of the paper's 28 layers are those that its artifact stores.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from statistics import mean
from typing import Any

from claims import Check, markdown, published, rising, together, within
from frame import Data, Figure, Options
from pictures import look
from store import rows, write

STORE = "sparta_figure15"
CLASSES = 10
TOLERANCES = (0.0, 1e-4, 1e-3, 1e-2, 1e-1)


@dataclass(frozen=True, slots=True)
class Network:
    """A network of so many layers and features, the points and steps that train it, and the points that its types are chosen with."""

    layers: int = 6
    width: int = 32
    points: int = 2048
    steps: int = 400
    calibration: int = 256


SMALL = Network(layers=2, width=8, points=256, steps=60, calibration=32)
"""What a test runs in a second."""


def run(options: Options) -> None:
    """Compute every row."""
    write(STORE, ({"key": str(tolerance), **row} for tolerance, row in measured(TOLERANCES).items()))


def measured(tolerances: tuple[float, ...], network: Network = Network()) -> dict[float, dict[str, Any]]:
    """The bits of each factor, the accuracy and the error at each tolerance. The outputs are those of the simulator."""
    import fuseflow as ff
    from fuseflow.tensors.dtypes import DTYPES

    model, points, classes = _trained(network)
    compiled = ff.compile(model, (points,), machine="ideal")

    def accuracy(outputs: Mapping[str, Any]) -> float:
        (logits,) = outputs.values()
        return float((logits.argmax(1) == classes).mean())

    found = {}
    for tolerance in tolerances:
        narrow = ff.quantize(compiled, tolerance, accuracy)
        result = ff.compile(narrow.program, tensors=narrow.tensors, machine="ideal").run()
        assert result.check is not None and result.check.passed
        factors = dict.fromkeys(trial.tensor for trial in narrow.trials)
        bits = {name: DTYPES[narrow.scales[name].dtype].bits if name in narrow.scales else 32 for name in factors}
        found[tolerance] = {"bits": bits, "accuracy": accuracy(result.outputs), "before": accuracy(compiled.run().outputs)}
    return found


def _trained(network: Network) -> tuple[Any, Any, Any]:
    """The network, points that it was not trained on, and their classes.

    It is trained in 64 bits, whose rounding differs from one processor to another by too little to move a weight of 32 bits by more than
    its last place. Four hundred steps in 32 bits end in other weights on another processor, and with other types.
    """
    import torch
    from torch import nn

    torch.manual_seed(0)
    points = torch.randn(network.points + network.calibration, network.width)
    classes = (points.double() @ torch.randn(network.width, CLASSES).double()).argmax(1)
    sizes = [network.width] * network.layers + [CLASSES]
    layers = [layer for one, other in pairwise(sizes) for layer in (nn.Linear(one, other), nn.ReLU())]
    model = nn.Sequential(*layers[:-1]).double()
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    for _ in range(network.steps):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(points[: network.points].double()), classes[: network.points]).backward()
        optimizer.step()
    return model.float().eval(), points[network.points :], classes[network.points :].numpy()


def collect() -> Data:
    ours = {key: {k: row[k] for k in ("bits", "accuracy", "before")} for key, row in rows(STORE).items()}
    return {"ours": ours, "published": published(STORE)}


def table(data: Data) -> str:
    lines = [
        [key, *(str(bits) for bits in row["bits"].values()), f"{mean(row['bits'].values()):.1f}", f"{row['accuracy']:.3f}"]
        for key, row in data["ours"].items()
    ]
    factors = next(iter(data["ours"].values()), {"bits": {}})["bits"]
    ours = markdown(["tolerance", *(f"`{name}`" for name in factors), "mean", "accuracy"], lines)
    theirs = [[when, *map(str, bits), f"{mean(bits):.1f}"] for when, bits in data["published"].items()]
    return f"{ours}\nThe published bits of the weights of MobileNetV1, layer by layer:\n\n" + markdown(
        ["propagation", *map(str, range(1, 1 + len(theirs[0]) - 2)), "mean"], theirs
    )


def checks(data: Data) -> list[Check]:
    return [
        rising(
            f"bits on average, from tolerance {TOLERANCES[-1]} down to {TOLERANCES[0]}",
            [_mean(data, str(t)) for t in reversed(TOLERANCES)],
            1,
        ),
        together(
            "accuracy lost, at most the tolerance",
            [within(key, row["before"] - row["accuracy"], -1, float(key) + 1e-9, 4) for key, row in data["ours"].items()],
        ),
        within("bits on average at the greatest tolerance", _mean(data, "0.1"), 4, 8),
    ]


def _mean(data: Data, tolerance: str) -> float | None:
    row = data["ours"].get(tolerance)
    return mean(row["bits"].values()) if row else None


def draw(data: Data, figure: Any) -> None:
    ours, theirs = figure.subplots(1, 2)
    for n, (key, row) in enumerate(data["ours"].items()):
        ours.plot(list(row["bits"]), list(row["bits"].values()), label=f"tolerance {key}", **look(n, len(data["ours"])))
    ours.set(xlabel="value", ylabel="bits", title="six layers, ours", yticks=(4, 8, 16, 32))
    ours.tick_params(axis="x", rotation=60)
    for n, (when, bits) in enumerate(data["published"].items()):
        theirs.plot(range(1, 1 + len(bits)), bits, label=f"{when} propagation", **look(n, len(data["published"])))
    theirs.set(xlabel="layer", ylabel="bits", title="MobileNetV1, published")
    for plot in (ours, theirs):
        plot.legend(fontsize="small", loc="lower left", bbox_to_anchor=(0, 1.08), ncols=3)


FIGURE = Figure(STORE, "After Figure 15 of SparTA: narrower types", (STORE,), collect, table, checks, draw, run, size=(13, 4.5))
