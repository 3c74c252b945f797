"""What a training step computes behind the loss: gradients, the new values of parameters and states, and those of buffers.

The backward pass of a dense graph goes part by part from the last to the first. A part is a call of an operator, as the traced graph has
it. Its derivative is an own rule, or PyTorch differentiates its dense form: the form is computed again, and the copy falls together with
the first one, since equal calls of the graph become one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.fx import Node, map_arg
from torch.fx.traceback import annotate
from torch.utils import _pytree as pytree

from fuseflow.einsum.phases import GRADIENT, LOSS, NEXT, UPDATE
from fuseflow.errors import FrontendError, first_names
from fuseflow.frontend.decompositions.densify import named_operator
from fuseflow.frontend.decompositions.graph_writer import OF_CALL, GraphWriter, Part, Record, description
from fuseflow.frontend.derivatives.rules import RULES
from fuseflow.frontend.draws import Draw
from fuseflow.frontend.trace.fx_origin import PHASE, joined
from fuseflow.frontend.trace.sparsified_tensors import Pattern, stored_pattern
from fuseflow.frontend.trace.tracing import Trace
from fuseflow.frontend.trace.training import Training

if TYPE_CHECKING:
    from fuseflow.frontend.draws import Draw
    from fuseflow.training.spec import TrainingSpec


aten = torch.ops.aten


class Backward:
    """The gradients of a scalar with respect to all that it depends on through `trainable` arguments."""

    def __init__(self, writer: GraphWriter, trainable: Collection[Node]) -> None:
        self._writer = writer
        self._active = set(trainable)
        self._gradients: dict[Node, list[Node]] = {}
        self._zero = set[Node]()  # gradients that are 0 for all inputs, as behind `round`
        self._parts: list[Part] = [part for part in writer.parts if self._activates(part)]

    def gradients(self, loss: Node) -> Mapping[Node, Node]:
        """Return the gradients of a scalar by argument. An argument that the scalar does not depend on has none."""
        one = self._writer.record(None, lambda x: torch.ones((), dtype=x.dtype), [loss], {})
        self._gradients[loss] = [one.values]
        for part in reversed(self._parts):
            self._pull_back(part)
        return {node: self._total(node, {}) for node in self._writer.arguments if node in self._gradients}

    def is_zero(self, gradient: Node) -> bool:
        """Return whether a gradient is 0 whatever the inputs are."""
        return gradient in self._zero

    def _activates(self, part: Part) -> bool:
        """Return whether a part has a derivative, and note which values depend on arguments through it."""
        if self._active.isdisjoint(part.record.inputs):
            return False
        self._active.update(filter(_is_float, _results(part.record)))
        return True

    def _total(self, node: Node, own: Mapping[str, Any]) -> Node:
        """Return the sum of the gradients of a value."""
        known = self._gradients[node]
        first, *others = [gradient for gradient in known if gradient not in self._zero] or known[:1]
        for other in others:
            first = self._marked(self._writer.record(None, torch.add, [first, other], own), own).values
        return first

    def _pull_back(self, part: Part) -> None:
        """Add the gradients of what a part reads to those known."""
        record = part.record
        results = _results(record)
        # A part that returns what it reads passes its gradient on by doing nothing.
        # One that writes to what it reads may return the new content, too.
        given = [
            n
            for n, node in enumerate(results)
            if node in self._gradients and node not in record.inputs and node not in results[:n]
        ]
        wanted = [n for n, node in enumerate(record.inputs) if node in self._active]
        if not given or not wanted:
            return
        own = {PHASE: GRADIENT, **{name: part.calls[-1].meta[name] for name in OF_CALL if name in part.calls[-1].meta}}
        with torch.fx.traceback.set_current_meta(part.calls[-1]):
            gradients = [self._total(results[n], own) for n in given]
            pulled = self._differentiated(part, given, wanted, gradients, own)
        for n, gradient in zip(wanted, pulled.values, strict=True):
            if gradient is not None:
                self._gradients.setdefault(record.inputs[n], []).append(gradient)
                if _is_zero(gradient) or self._zero.issuperset(gradients):
                    self._zero.add(gradient)

    def _differentiated(
        self, part: Part, given: list[int], wanted: list[int], gradients: list[Node], own: Mapping[str, Any]
    ) -> Record:
        """Record the gradients of the `wanted` inputs of a part, by those of its `given` results. None stands for no dependence."""
        inputs, results = list(part.record.inputs), _results(part.record)
        rule = RULES.get(part.calls[-1].target) if len(part.calls) == 1 else None
        read = [*inputs, *(results if rule is not None else ()), *gradients]
        positions = tuple(map(read.index, read))  # one node may be several of them
        described = tuple(description(gradient.meta["val"]) for gradient in gradients)
        key = None if part.key is None else (GRADIENT, part.key, positions, described, tuple(given), tuple(wanted))

        def by_rule(*tensors: Tensor) -> list[Tensor | None]:
            assert rule is not None
            tensor_of = dict(zip(inputs, tensors, strict=False))
            computed, known = tensors[len(inputs) :][: len(results)], dict(zip(given, tensors[-len(given) :], strict=True))
            (call,) = part.calls
            nodes = pytree.tree_leaves(map_arg((call.args, call.kwargs), part.operands.__getitem__))
            operands = {node: map_arg(value, tensor_of.__getitem__) for node, value in part.operands.items()}
            args, kwargs = map_arg((call.args, call.kwargs), operands.__getitem__)
            with annotate({"operator": named_operator(call.target)}):
                by_operand = rule(tuple(map(known.get, range(len(results)))), computed, *args, **kwargs)
                total: dict[Node, Tensor] = {}
                for node, gradient in zip([node for node in nodes if isinstance(node, Node)], by_operand, strict=True):
                    if gradient is not None:
                        total[node] = total[node] + gradient if node in total else gradient
            return [total.get(inputs[n]) for n in wanted]

        def forward(*tensors: Tensor) -> list[Any]:
            # What is written to must be no leaf.
            copies = [t.clone() if node in part.record.written else t for node, t in zip(inputs, tensors, strict=True)]
            tensor_of = dict(zip(inputs, copies, strict=True))
            operands = {node: map_arg(value, tensor_of.__getitem__) for node, value in part.operands.items()}
            values = self._writer.interpreter.run_calls(part.calls, operands)
            written = [tensor_of[node] for node in part.record.written]
            return [leaf for leaf in (*pytree.tree_leaves(values), *written) if isinstance(leaf, Tensor)]

        def by_autograd(*tensors: Tensor) -> list[Tensor | None]:
            with torch.enable_grad():
                leaves = [t.detach().requires_grad_(n in wanted) for n, t in enumerate(tensors[: len(inputs)])]
                outputs = torch.func.functionalize(forward, remove="mutations")(*leaves)
                known = {n: g for n, g in zip(given, tensors[len(inputs) :], strict=True) if outputs[n].requires_grad}
                if not known:
                    return [None for _ in wanted]
                with annotate({"operator": named_operator(part.calls[-1].target)}):
                    return list(
                        torch.autograd.grad(
                            [outputs[n] for n in known], [leaves[n] for n in wanted], list(known.values()), allow_unused=True
                        )
                    )

        return self._marked(self._writer.record(key, by_autograd if rule is None else by_rule, read, own), own)

    def _marked(self, record: Record, own: Mapping[str, Any]) -> Record:
        for node in record.nodes:
            node.meta.update(own)
        return record


def _results(record: Record) -> list[Node]:
    """Return the nodes of the tensors that a record returns, and the contents of those that it writes to."""
    return [leaf for leaf in (*pytree.tree_leaves(record.values), *record.written.values()) if isinstance(leaf, Node)]


def _is_float(node: Node) -> bool:
    value = node.meta.get("val")
    return isinstance(value, Tensor) and value.is_floating_point()


def _is_zero(node: Node) -> bool:
    """Return whether a node fills a tensor with 0."""
    if node.target in (aten.full.default, aten.full_like.default):
        return bool(node.args[1] == 0)
    return node.target in (aten.zeros_like.default, aten.zeros.default)


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


def training_step(
    traced: Trace, training: Training, original_names: Sequence[str], patterns: dict[str, Pattern], draws: tuple[Draw, ...]
) -> StepContinuation:
    """Add the arguments of a training step to a traced loss, and return what the step computes behind the loss. `original_names` are the
    names of the trainable parameters in the model. The pattern of a pruned or sparse weight becomes a tensor of ones in `patterns`, and its
    gradient is multiplied by it.

    Raise `FrontendError` for a model without a parameter that requires a gradient.
    """
    trainable = [argument for argument in traced.arguments.values() if argument.trainable]
    if not trainable:
        raise FrontendError("no parameter of the model requires a gradient", hint="`parameter.requires_grad_()`")
    arguments = dict(zip(original_names, trainable, strict=True))
    parameters = []
    for original in training.spec.trained(original_names):
        name, tensor = arguments[original].name, arguments[original].tensor
        initial = training.spec.initial({original: tensor.to_dense()})
        states = {key.removeprefix(f"{original}."): f"{name}{key.removeprefix(original)}" for key in initial}
        for state, value in zip(states.values(), initial.values(), strict=True):
            traced.add(state, training.start.states.get(f"{original}{state.removeprefix(name)}", value))
        pattern = ""
        known = patterns.get(name) or stored_pattern(tensor)
        if known is not None:
            pattern = f"{name}.pattern"
            traced.add(pattern, known.mask.to(tensor.dtype))
            patterns |= dict.fromkeys((pattern, *states.values()), known)
        parameters.append(TrainedParameter(original, name, states, pattern))
    for scalar, number in training.spec.scalars(1 + max(training.start.steps.values(), default=0)).items():
        traced.add(scalar, torch.tensor(number))
    buffers = frozenset(a.name for a in traced.arguments.values() if a.kind == "state" and not a.trainable)
    return StepContinuation(training.spec, list(traced.tensors), parameters, buffers, draws)
