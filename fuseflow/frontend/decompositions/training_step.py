"""What a training step computes behind the loss: gradients, the new values of parameters and states, and those of buffers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.fx import Node

from fuseflow.frontend.decompositions.backward import GRADIENT, Backward
from fuseflow.frontend.decompositions.graph_writer import GraphWriter, description
from fuseflow.frontend.trace.fx_origin import PHASE, joined

if TYPE_CHECKING:
    from fuseflow.training.optimizers.optimizer import Optimizer

UPDATE, NEXT, LOSS = "update", "next", "loss"
"""The phase of the update, the beginning of the name of a new value, and the name of the loss."""


@dataclass(frozen=True, slots=True)
class TrainedParameter:
    """A parameter that a step changes: its name, the optimizer of its group, the name of each state and scalar of the optimizer among the
    arguments, and the name of the pattern that its gradient is restricted to, or ''."""

    name: str
    optimizer: Optimizer
    states: Mapping[str, str]
    scalars: Mapping[str, str]
    pattern: str = ""


@dataclass(slots=True)
class StepContinuation:
    """The continuation of a dense graph whose only output is a loss. `arguments` are the names of the arguments in order, and `written`
    those of them whose content a model may change, which are its buffers. Afterwards, `outputs` has the names of the outputs of the
    step, and `untouched` the parameters that the loss does not depend on."""

    arguments: Sequence[str]
    parameters: Sequence[TrainedParameter]
    buffers: frozenset[str]
    gradients: bool
    outputs: list[str] = field(default_factory=list)
    untouched: list[str] = field(default_factory=list)

    @property
    def patterns(self) -> frozenset[str]:
        """The names of the patterns that gradients are restricted to."""
        return frozenset(parameter.pattern for parameter in self.parameters if parameter.pattern)

    def __call__(self, writer: GraphWriter, outputs: Sequence[Node]) -> Sequence[Node]:
        self.outputs, self.untouched = [], []
        (loss,) = outputs
        nodes = dict(zip(self.arguments, writer.arguments, strict=True))
        gradients = Backward(writer, [nodes[p.name] for p in self.parameters]).gradients(loss)
        results = {LOSS: loss}
        known: dict[str, Node] = {}
        for parameter in self.parameters:
            gradient = gradients.get(nodes[parameter.name])
            if gradient is None:
                self.untouched.append(parameter.name)
                continue
            own = {PHASE: joined(GRADIENT, parameter.name.rpartition(".")[0])}
            if parameter.pattern:
                gradient = writer.record(None, torch.mul, [nodes[parameter.pattern], gradient], own).values
                gradient.meta.update(own)
            known[joined(GRADIENT, parameter.name)] = gradient
            results |= _updated(writer, parameter, nodes, gradient)
        for argument, content in list(writer.written_arguments().items()):
            name = self.arguments[writer.arguments.index(argument)]
            if name in self.buffers:
                results[joined(NEXT, name)] = content
                writer.forget_write(argument)
        if self.gradients:
            results |= known
        self.outputs = list(results)
        return list(results.values())


def _updated(
    writer: GraphWriter, parameter: TrainedParameter, nodes: Mapping[str, Node], gradient: Node
) -> Mapping[str, Node]:
    """Append the formula of the optimizer, and return the new values by the names of the outputs."""
    inputs = [nodes[parameter.name], gradient]
    inputs += [nodes[name] for name in (*parameter.states.values(), *parameter.scalars.values())]

    def compute(value: Tensor, slope: Tensor, *others: Tensor) -> list[Tensor]:
        states = dict(zip(parameter.states, others, strict=False))
        scalars = dict(zip(parameter.scalars, others[len(states) :], strict=True))
        updated, new_states = parameter.optimizer.update(value, slope, states, scalars)
        return [updated, *(new_states[name] for name in parameter.states)]

    own: dict[str, Any] = {PHASE: joined(UPDATE, parameter.name)}
    key = (parameter.optimizer, tuple(map(inputs.index, inputs)), *[description(node.meta["val"]) for node in inputs])
    with torch.fx.traceback.set_current_meta(gradient):
        record = writer.record((UPDATE, *key), compute, inputs, own)
    for node in record.nodes:
        node.meta.pop("nn_module_stack", None)
        node.meta.pop("custom", None)
        node.meta.update(own)
    names = [joined(NEXT, name) for name in (parameter.name, *parameter.states.values())]
    return dict(zip(names, record.values, strict=True))
