"""Evaluation of exported models in which what an analysis calls superfluous is gone: the oracle of `fuseflow.frontend.lifting`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.fx import Interpreter, Node

from fuseflow.frontend.lifting.analysis import analyse_exported, table_rule
from fuseflow.frontend.lifting.exported import ExportedModule, export_module, named_results
from fuseflow.frontend.lifting.result import ModuleAttributes, TensorAttributes
from fuseflow.frontend.lifting.scrambling import Scrambler
from fuseflow.frontend.model_call import model_call


def random_masks(model: nn.Module, generator: torch.Generator, share: float = 0.5) -> dict[str, Tensor]:
    """Masks that keep this share of the entries of each weight, and of its rows."""
    masks = {}
    for name, weight in model.named_parameters():
        rows = torch.rand(len(weight), generator=generator) < share
        entries = torch.rand(weight.shape, generator=generator) < share
        masks[name] = (entries & rows.view(-1, *[1] * (weight.dim() - 1))) if weight.dim() > 1 else entries
    return masks


class Changed(Interpreter):
    """Runs a graph, and changes what it computes as an analysis allows.

    - `junk`: unknown entries that are not needed become junk, and what is dead because it is known becomes 0.
    - `zero`: dead entries become 0, other known ones the number that they are known to have, and what is not needed then, junk.
    - `check`: nothing is changed, but what is known must be so.
    """

    def __init__(self, exported: ExportedModule, found: ModuleAttributes, how: str) -> None:
        super().__init__(torch.fx.GraphModule(nn.Module(), exported.graph))
        self.how = how
        self.found: dict[Node, TensorAttributes] = {node: found[name] for name, node in named_results(exported)}
        self.found |= {node: found[argument.names[0]] for node, argument in exported.arguments.items()}

    def run_node(self, n: Node) -> Any:
        result = super().run_node(n)
        return self.changed(result, self.found[n]) if n in self.found and isinstance(result, Tensor) else result

    def changed(self, tensor: Tensor, found: TensorAttributes) -> Tensor:
        if self.how == "check":
            torch.testing.assert_close(tensor[found.known], found.value[found.known], rtol=1e-5, atol=1e-5, equal_nan=True)
            return tensor
        junk = torch.randn(tensor.shape).to(tensor.dtype) * 100 if tensor.is_floating_point() else torch.zeros_like(tensor)
        if self.how == "junk":
            tensor = tensor.masked_fill(found.known & found.dead, 0)
            return torch.where(~found.known & ~found.needed, junk, tensor)
        tensor = torch.where(found.known, found.value, tensor)
        return torch.where(found.dead, torch.zeros_like(tensor), torch.where(found.needed, tensor, junk))


def outputs_without_the_dead(
    model: nn.Module, inputs: Sequence[Any], masks: Mapping[str, Tensor], how: str, scrambler: Scrambler | None = None
) -> tuple[list[Tensor], list[Tensor], ModuleAttributes]:
    """The outputs of a model with masks, those with what is dead changed, and what was found."""
    exported = export_module(model_call(model, inputs, None))
    found = analyse_exported(exported, masks, scrambler or Scrambler(0, False), table_rule)
    by_argument = {id(a): a.tensor for a in exported.arguments.values() if a.tensor is not None}
    for argument in exported.arguments.values():
        for name in argument.names:
            if name in masks:
                by_argument[id(argument)] = argument.tensor.masked_fill(~masks[name], 0)
    given = iter(torch.utils._pytree.tree_leaves(inputs))
    values = []
    for node in exported.graph.nodes:
        if node.op == "placeholder":
            argument = exported.arguments.get(node)
            values.append(next(given) if argument is None or argument.tensor is None else by_argument[id(argument)])
    with torch.no_grad():
        whole = torch.fx.Interpreter(torch.fx.GraphModule(nn.Module(), exported.graph)).run(*values)
        changed = Changed(exported, found, how).run(*values)
    return list(whole), list(changed), found
