"""Evaluation of exported models in which what an analysis calls superfluous is gone: the oracle of `fuseflow.frontend.lifting`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.fx import Interpreter, Node
from torch.utils import _pytree as pytree

from fuseflow.frontend.lifting.analysis import analyse_exported, table_rule
from fuseflow.frontend.lifting.calls import in_layout_of
from fuseflow.frontend.lifting.exported import export_module, named_results
from fuseflow.frontend.lifting.result import TensorAttributes
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


class Lifted:
    """A model with masks, as a graph, with what an analysis found."""

    def __init__(
        self, model: nn.Module, inputs: Sequence[Any], masks: Mapping[str, Tensor], scrambler: Scrambler | None = None
    ) -> None:
        self.exported = export_module(model_call(model, inputs, None))
        self.inputs, self.masks = inputs, masks
        self.found = analyse_exported(self.exported, masks, scrambler or Scrambler(0, False), table_rule)
        self.by_node: dict[Node, TensorAttributes] = {node: self.found[name] for name, node in named_results(self.exported)}
        self.by_node |= {node: self.found[argument.names[0]] for node, argument in self.exported.arguments.items()}

    @property
    def outputs(self) -> list[TensorAttributes]:
        return [self.by_node[node] for node in self.exported.outputs]

    def run(self, how: str = "") -> list[Tensor]:
        """The outputs, where what is dead is changed as `Changed` says."""
        given = iter(pytree.tree_leaves(self.inputs))
        values = [self._value(node, given) for node in self.exported.graph.nodes if node.op == "placeholder"]
        with torch.no_grad():
            return list(Changed(self, how).run(*values))

    def assert_unchanged(self) -> None:
        """The outputs do not depend on what is dead."""
        whole = self.run()
        for how in HOWS:
            torch.testing.assert_close(self.run(how), whole, rtol=1e-5, atol=1e-5, equal_nan=True)

    def _value(self, node: Node, given: Iterator[Any]) -> Any:
        argument = self.exported.arguments.get(node)
        if argument is None or argument.tensor is None:
            return next(given)
        masks = [self.masks[name] for name in argument.names if name in self.masks]
        return argument.tensor.masked_fill(~masks[0], 0) if masks else argument.tensor


HOWS = ("check", "junk", "zero")


class Changed(Interpreter):
    """Runs a graph, and changes what it computes as an analysis allows.

    - `junk`: unknown entries that are not needed become junk, and what is dead because it is known becomes 0.
    - `zero`: dead entries become 0, other known ones the number that they are known to have, and what is not needed then, junk.
    - `check`: nothing is changed, but what is known must be so.
    """

    def __init__(self, lifted: Lifted, how: str) -> None:
        super().__init__(torch.fx.GraphModule(nn.Module(), lifted.exported.graph))
        self.how, self.found = how, lifted.by_node

    def run_node(self, n: Node) -> Any:
        result = super().run_node(n)
        return in_layout_of(self.changed(result, self.found[n]), n.meta["val"]) if self.how and n in self.found else result

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
