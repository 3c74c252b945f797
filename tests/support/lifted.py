"""Evaluation of exported models without what an analysis calls superfluous: the oracle of `fuseflow.frontend.model_propagation`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate
from typing import Any

import torch
from torch import Tensor, nn
from torch.fx import Interpreter, Node
from torch.utils import _pytree as pytree

from fuseflow.frontend.model_propagation import ModuleAttributes, TensorAttributes
from fuseflow.frontend.model_propagation.analysis import analyse_exported
from fuseflow.frontend.model_propagation.dependence_rules import in_layout_of, table_rule
from fuseflow.frontend.model_propagation.export import ExportedModule, export_module, named_results
from fuseflow.frontend.model_propagation.scrambling import Scrambler
from fuseflow.frontend.trace.model_call import model_call


def exported(model: nn.Module, inputs: Sequence[Any]) -> ExportedModule:
    return export_module(model_call(model, inputs, None))


def analysed(
    graph: ExportedModule, masks: Mapping[str, Tensor], scrambler: Scrambler | None = None, rule_of: Any = table_rule
) -> ModuleAttributes:
    """What an analysis says of a graph. Graphs are shared by tests, because an export takes as long as many analyses."""
    return analyse_exported(graph, masks, scrambler or Scrambler(0, False), rule_of)


def random_masks(model: nn.Module, generator: torch.Generator, share: float = 0.5) -> dict[str, Tensor]:
    """Masks that keep this share of the entries of each weight, and of its rows."""
    masks = {}
    for name, weight in model.named_parameters():
        rows = torch.rand(len(weight), generator=generator) < share
        entries = torch.rand(weight.shape, generator=generator) < share
        masks[name] = (entries & rows.view(-1, *[1] * (weight.dim() - 1))) if weight.dim() > 1 else entries
    return masks


@dataclass(frozen=True, eq=False)
class Lifted:
    """The graph of a model, with inputs and with masks of its weights."""

    graph: ExportedModule
    inputs: Sequence[Any]
    masks: Mapping[str, Tensor]
    scrambler: Scrambler = field(default_factory=lambda: Scrambler(0, False))

    @cached_property
    def analysis(self) -> ModuleAttributes:
        return analysed(self.graph, self.masks, self.scrambler)

    @cached_property
    def outputs(self) -> dict[str, list[Tensor]]:
        """The outputs as they are, and those where what is dead is changed as `Changed` says."""
        by_node = {node: self.analysis[name] for name, node in named_results(self.graph)}
        by_node |= {node: self.analysis[argument.names[0]] for node, argument in self.graph.arguments.items()}
        given = iter(pytree.tree_leaves(self.inputs))
        values = [self._value(node, given) for node in self.graph.graph.nodes if node.op == "placeholder"]
        return {how: Changed(self.graph, by_node, how).outputs(values) for how in ("", *HOWS)}

    def _value(self, node: Node, given: Iterator[Any]) -> Any:
        argument = self.graph.arguments.get(node)
        if argument is None or argument.tensor is None:
            return next(given)
        masks = [self.masks[name] for name in argument.names if name in self.masks]
        return argument.tensor.masked_fill(~masks[0], 0) if masks else argument.tensor

    def assert_unchanged(self, outputs: slice = slice(None)) -> None:
        """The outputs do not depend on what is dead."""
        for how in HOWS:
            torch.testing.assert_close(
                self.outputs[how][outputs], self.outputs[""][outputs], rtol=1e-5, atol=1e-5, equal_nan=True
            )


@dataclass(frozen=True, eq=False)
class Example:
    """A model with its inputs, and masks of its weights."""

    model: nn.Module
    inputs: tuple[Any, ...]
    masks: Mapping[str, Tensor] = field(default_factory=dict)


class SideBySide(nn.Module):
    """Models in one graph, because an export takes as long as many operators."""

    def __init__(self, models: Sequence[nn.Module]) -> None:
        super().__init__()
        self.models = nn.ModuleList(models)

    def forward(self, inputs: list[tuple[Any, ...]]) -> list[list[Tensor]]:
        return [pytree.tree_leaves(model(*given)) for model, given in zip(self.models, inputs, strict=True)]


@dataclass(frozen=True, eq=False)
class Examples(Mapping[str, Example]):
    """Examples by name, which are exported and analysed together."""

    examples: Mapping[str, Example]
    scrambler: Scrambler = field(default_factory=lambda: Scrambler(0, False))

    def __getitem__(self, name: str) -> Example:
        return self.examples[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.examples)

    def __len__(self) -> int:
        return len(self.examples)

    @cached_property
    def lifted(self) -> Lifted:
        inputs = ([example.inputs for example in self.values()],)
        masks = {f"models.{n}.{key}": mask for n, example in enumerate(self.values()) for key, mask in example.masks.items()}
        return Lifted(exported(SideBySide([example.model for example in self.values()]), inputs), inputs, masks, self.scrambler)

    def attributes(self, name: str) -> ModuleAttributes:
        """What the analysis says of one example, by the names in its own model."""
        analysis, prefix = self.lifted.analysis, f"models.{list(self).index(name)}."
        inner = {key: key.removeprefix(prefix) for key in (*analysis, *analysis.aliases) if key.startswith(prefix)}
        return ModuleAttributes(
            {inner[key]: replace(tensor, name=inner[key]) for key, tensor in analysis.items() if key in inner},
            {inner[key]: inner[first] for key, first in analysis.aliases.items() if key in inner},
            tuple(guess for guess in analysis.guesses if f"{guess.module}.".startswith(prefix)),
        )

    def input(self, name: str) -> TensorAttributes:
        """What the analysis says of the first input of an example."""
        return self.lifted.analysis[f"inputs_{list(self).index(name)}_0"]

    def assert_unchanged(self, name: str) -> None:
        """The outputs of an example do not depend on what is dead."""
        self.lifted.assert_unchanged(self._places[name])

    @cached_property
    def _places(self) -> dict[str, slice]:
        with torch.no_grad():
            counts = [len(pytree.tree_leaves(example.model(*example.inputs))) for example in self.values()]
        ends = list(accumulate(counts))
        return {name: slice(end - count, end) for name, count, end in zip(self, counts, ends, strict=True)}


HOWS = ("check", "junk", "zero")


class Changed(Interpreter):
    """Runs a graph, and changes what it computes as an analysis allows.

    - `junk`: unknown entries that are not needed become junk, and what is dead because it is known becomes 0.
    - `zero`: dead entries become 0, other known ones the number that they are known to have, and what is not needed then, junk.
    - `check`: nothing is changed, but what is known must be so.
    """

    def __init__(self, graph: ExportedModule, by_node: Mapping[Node, TensorAttributes], how: str) -> None:
        super().__init__(torch.fx.GraphModule(nn.Module(), graph.graph))
        self.how, self.by_node = how, by_node

    def outputs(self, values: Sequence[Any]) -> list[Tensor]:
        with torch.no_grad():
            return list(self.run(*values))

    def run_node(self, n: Node) -> Any:
        result = super().run_node(n)
        return in_layout_of(self.changed(result, self.by_node[n]), n.meta["val"]) if self.how and n in self.by_node else result

    def changed(self, tensor: Tensor, attributes: TensorAttributes) -> Tensor:
        known, needed, dead = attributes.known, attributes.needed, attributes.dead
        if self.how == "check":
            torch.testing.assert_close(tensor[known], attributes.value[known], rtol=1e-5, atol=1e-5, equal_nan=True)
            return tensor
        junk = torch.randn(tensor.shape).to(tensor.dtype) * 100 if tensor.is_floating_point() else torch.zeros_like(tensor)
        if self.how == "junk":
            return torch.where(~known & ~needed, junk, tensor.masked_fill(known & dead, 0))
        tensor = torch.where(known, attributes.value, tensor)
        return torch.where(dead, torch.zeros_like(tensor), torch.where(needed, tensor, junk))
