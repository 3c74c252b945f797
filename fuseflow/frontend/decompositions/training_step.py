"""What a training step computes behind the loss: gradients, the new values of parameters and states, and those of buffers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.fx import Node

from fuseflow.einsum.phases import GRADIENT, LOSS, NEXT, UPDATE
from fuseflow.errors import first_names
from fuseflow.frontend.decompositions.backward import Backward
from fuseflow.frontend.decompositions.graph_writer import GraphWriter, description
from fuseflow.frontend.trace.fx_origin import PHASE, joined

if TYPE_CHECKING:
    from fuseflow.frontend.draws import Draw
    from fuseflow.training.spec import TrainingSpec


@dataclass(frozen=True, slots=True)
class TrainedParameter:
    """A parameter that a step changes: its name in the model, its argument, the arguments of the states of its optimizer by their names in
    PyTorch, and the argument with the pattern that its gradient is restricted to, or ''."""

    original: str
    name: str
    states: Mapping[str, str]
    pattern: str = ""


@dataclass(slots=True)
class StepContinuation:
    """The continuation of a dense graph whose only output is a loss. `arguments` are the names of the arguments in order, and `buffers`
    those of them whose content a model may change. `draws` are drawn in this order. Afterwards, `outputs` has the names of the outputs
    of the step, and `untouched` the parameters that the loss does not depend on."""

    training: TrainingSpec
    arguments: Sequence[str]
    parameters: Sequence[TrainedParameter]
    buffers: frozenset[str]
    draws: Sequence[Draw] = ()
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
        backward = Backward(writer, [nodes[p.name] for p in self.parameters])
        gradients = backward.gradients(loss)
        results = {LOSS: loss}
        known: dict[str, Node] = {}
        for parameter in self.parameters:
            gradient = gradients.get(nodes[parameter.name])
            if gradient is None:
                self.untouched.append(parameter.original)
                continue
            own = {PHASE: joined(GRADIENT, parameter.name.rpartition(".")[0])}
            if backward.is_zero(gradient):
                gradient = writer.record(None, _zero_like, [nodes[parameter.name]], own).values
            if parameter.pattern:
                gradient = writer.record(None, torch.mul, [nodes[parameter.pattern], gradient], own).values
                gradient.meta.update(own)
            known[joined(GRADIENT, parameter.name)] = gradient
            results |= self._updated(writer, parameter, nodes, gradient)
        for argument, content in list(writer.written_arguments().items()):
            name = self.arguments[writer.arguments.index(argument)]
            if name in self.buffers:
                results[joined(NEXT, name)] = content
                writer.forget_write(argument)
        if self.training.gradients:
            results |= known
        self.outputs = list(results)
        return list(results.values())

    @property
    def notices(self) -> list[str]:
        """Sentences about parameters that the step leaves as they are."""
        if not self.untouched:
            return []
        rest = "which is left as it is" if len(self.untouched) == 1 else "which are left as they are"
        return [f"the loss does not depend on {first_names(self.untouched)}, {rest}"]

    def _updated(
        self, writer: GraphWriter, parameter: TrainedParameter, nodes: Mapping[str, Node], gradient: Node
    ) -> Mapping[str, Node]:
        """Append the formula of the optimizer, and return the new values by the names of the outputs."""
        scalars = list(self.training.scalars(1))
        inputs = [nodes[parameter.name], gradient, *[nodes[name] for name in (*parameter.states.values(), *scalars)]]

        def compute(value: Tensor, slope: Tensor, *others: Tensor) -> list[Tensor]:
            states = dict(zip(parameter.states, others, strict=False))
            numbers = dict(zip(scalars, others[len(states) :], strict=True))
            updated, new_states = self.training.update(parameter.original, value, slope, states, numbers)
            return [updated, *(new_states[name] for name in parameter.states)]

        own: dict[str, Any] = {PHASE: joined(UPDATE, parameter.name)}
        optimizer = self.training.optimizer_of(parameter.original)
        key = (UPDATE, optimizer, tuple(map(inputs.index, inputs)), *[description(node.meta["val"]) for node in inputs])
        with torch.fx.traceback.set_current_meta(gradient):
            record = writer.record(key, compute, inputs, own)
        for node in record.nodes:
            node.meta.pop("nn_module_stack", None)
            node.meta.pop("custom", None)
            node.meta.update(own)
        names = [joined(NEXT, name) for name in (parameter.name, *parameter.states.values())]
        return dict(zip(names, record.values, strict=True))


def _zero_like(parameter: Tensor) -> Tensor:
    """Return the gradient of a parameter that no change of it shows in, as behind `round`: 0, computed from it, as all outputs are."""
    return torch.where(parameter != parameter, parameter, 0.0)
