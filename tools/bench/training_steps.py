"""How many steps of training a second of processor time takes: simulated ones, and ones whose values alone are computed.

    python tools/bench/training_steps.py [--data cora --data-dir DIR] [--hidden 16] [--steps 20] [--json FILE|-]

The program is a whole step of a GCN of two layers, written by hand: forward, cross entropy, backward, and SGD with momentum of four
parameters. Its features and its adjacency are CSR. All places of entries stay, so that a run simulates its first step and computes the
values of the others. *Simulated* is a second run of the first step, and *values* the mean of `--steps` others, both without a check. Exits
with 1 if a step of values takes more than 0.2 seconds of the processor.
"""

from __future__ import annotations

import time
from pathlib import Path

import click
import numpy as np
from host import JSON, finish

import fuseflow as ff
from fuseflow.einsum.parse import parse
from fuseflow.frontend.data import load_data
from fuseflow.run.training.training_run import TrainingRun

BAR = 0.2
PARAMETERS = ("W1", "b1", "W2", "b2")
STEP = """
program gcn_step
tensor adj[{nodes}, {nodes}] csr
tensor x[{nodes}, {features}] csr
tensor target[{nodes}, {classes}] csr
tensor W1[{features}, {hidden}]
tensor b1[{hidden}]
tensor W2[{hidden}, {classes}]
tensor b2[{classes}]
tensor W1.momentum_buffer[{features}, {hidden}]
tensor b1.momentum_buffer[{hidden}]
tensor W2.momentum_buffer[{hidden}, {classes}]
tensor b2.momentum_buffer[{classes}]
tensor lr[]
support[i, j] = sum(k) x[i, k] * W1[k, j]
hidden[i, j] = sum(k) adj[i, k] * support[k, j] + b1[j]
active[i, j] = relu(hidden[i, j])
support2[i, j] = sum(k) active[i, k] * W2[k, j]
score[i, j] = sum(k) adj[i, k] * support2[k, j] + b2[j]
largest[i] = max(j) score[i, j]
shifted[i, j] = score[i, j] - largest[i]
power[i, j] = exp(shifted[i, j])
total[i] = sum(j) power[i, j]
log.p[i, j] = shifted[i, j] - log(total[i])
labels[i] = sum(j) target[i, j]
loss = 0 - (sum(i, j) target[i, j] * log.p[i, j])
grad.score[i, j] = power[i, j] / total[i] * labels[i] - target[i, j]
grad.b2[j] = sum(i) grad.score[i, j]
grad.support2[k, j] = sum(i) adj[i, k] * grad.score[i, j]
grad.W2[k, j] = sum(i) active[i, k] * grad.support2[i, j]
grad.active[i, k] = sum(j) grad.support2[i, j] * W2[k, j]
grad.hidden[i, k] = grad.active[i, k] * (hidden[i, k] > 0)
grad.b1[k] = sum(i) grad.hidden[i, k]
grad.support[k, j] = sum(i) adj[i, k] * grad.hidden[i, j]
grad.W1[k, j] = sum(i) x[i, k] * grad.support[i, j]
{updates}
output loss, {outputs}
"""


def step_text(nodes: int, features: int, hidden: int, classes: int) -> str:
    """Return the program of a step."""
    indices = {"W1": "i, j", "W2": "i, j", "b1": "i", "b2": "i"}
    updates, outputs = list[str](), list[str]()
    for name in PARAMETERS:
        at = f"[{indices[name]}]"
        updates.append(f"next.{name}.momentum_buffer{at} = 0.9 * {name}.momentum_buffer{at} + grad.{name}{at}")
        updates.append(f"next.{name}{at} = {name}{at} - lr * next.{name}.momentum_buffer{at}")
        outputs += [f"next.{name}", f"next.{name}.momentum_buffer"]
    return STEP.format(
        nodes=nodes, features=features, hidden=hidden, classes=classes,
        updates="\n".join(updates), outputs=", ".join(outputs),
    )  # fmt: skip


def compiled(spec: str, data_dir: str | None, hidden: int) -> ff.Compiled:
    """Return the step of a GCN on a data set. Every node has a label."""
    data = load_data(spec, data_dir=None if data_dir is None else Path(data_dir))
    nodes, features = data.inputs.shape
    rng = np.random.default_rng(0)
    target = np.zeros((nodes, data.classes))
    target[np.arange(nodes), data.labels] = 1 / nodes
    tensors = {"adj": data.matrix(), "x": data.inputs, "target": target}
    program = parse(step_text(nodes, features, hidden, data.classes))
    for tensor in (t for t in program.inputs if t.name not in ("adj", "x", "target", "lr")):
        scale = 0.0 if "momentum" in tensor.name else np.sqrt(6 / sum(tensor.shape)) if len(tensor.shape) == 2 else 0.1
        tensors[tensor.name] = rng.uniform(-scale, scale, tensor.shape)
    return ff.compile(program, tensors=tensors)


def measured(program: ff.Compiled, steps: int) -> dict[str, float]:
    """Return the processor seconds of a simulated step and of one of values, the cycles of a step, and the first and the last loss."""

    def seconds(count: int) -> tuple[float, TrainingRun]:
        start = time.process_time()
        run = program.run(steps=count, scalars=lambda step: {"lr": 0.2}, check=False, jobs=1)
        return time.process_time() - start, run

    seconds(2)  # which loads what is loaded once
    simulated, _ = seconds(1)
    total, run = seconds(steps + 1)
    return {
        "simulated": simulated,
        "values": (total - simulated) / steps,
        "cycles": run.first.cycles,
        "first_loss": run.losses[0],
        "last_loss": run.losses[-1],
    }


@click.command(help=__doc__.partition("\n")[0])
@click.option("--data", default="karate", show_default=True)
@click.option("--data-dir", help="The folder that has the data set.")
@click.option("--hidden", default=16, show_default=True)
@click.option("--steps", default=20, show_default=True)
@JSON
def main(data: str, data_dir: str | None, hidden: int, steps: int, output: str | None) -> None:
    figures = measured(compiled(data, data_dir, hidden), steps)
    lines = [
        *(
            f"{what:9} {1000 * figures[what]:8.1f} ms a step, {1 / figures[what]:6.1f} steps a second"
            for what in ("simulated", "values")
        ),
        f"{figures['cycles']:,} cycles a step, loss {figures['first_loss']:.6f} to {figures['last_loss']:.6f}",
    ]
    slow = [f"values: {figures['values']:.3f} s > {BAR} s"] if figures["values"] > BAR else []
    finish("training steps", output, lines, {"data": data, "hidden": hidden, "steps": steps, **figures}, slow)


if __name__ == "__main__":
    main()
