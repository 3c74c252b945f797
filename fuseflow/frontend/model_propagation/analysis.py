"""The analysis of a model: it is exported, masks are read, and two sweeps go through the graph. What they find is a table of tensors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.fx import Node
from torch.utils import _pytree as pytree

from fuseflow.errors import FrontendError, SparsityError, UsageError, did_you_mean
from fuseflow.frontend.model_propagation import operator_rules
from fuseflow.frontend.model_propagation.dependence_rules import Known, table_rule
from fuseflow.frontend.model_propagation.export import Argument, ExportedModule, Kind, export_module, named_results
from fuseflow.frontend.model_propagation.operator_step import Resolve, operator_steps, result_of
from fuseflow.frontend.model_propagation.scrambling import Guess, Scrambler
from fuseflow.frontend.trace.model_call import ModelCall, model_call
from fuseflow.loop_progress import counted
from fuseflow.propagation.attribute_table import AttributeRow, TensorKind, total
from fuseflow.propagation.sweeps import known_after, needed_before
from fuseflow.sparsity.model_sparsity import require_zeros, sparse_weights

assert operator_rules.LINEAR  # The rules are registered when they are imported.

Masks = Mapping[str, Tensor]
"""Masks of parameters by name, which are true where an entry is kept."""


@dataclass(frozen=True, slots=True, eq=False)
class TensorAttributes:
    """The known and needed entries of a tensor, as masks of its shape.

    - `stored`: entries that the user's masks keep.
    - `known`: entries whose number is known before the model runs, with the numbers in `value`, which is 0 elsewhere.
    - `needed`: entries that some output needs.
    """

    name: str
    kind: Kind
    stored: Tensor
    known: Tensor
    value: Tensor
    needed: Tensor

    @property
    def dead(self) -> Tensor:
        """Entries that need not be stored: known to be 0, or not known and not needed."""
        return (self.known & (self.value == 0)) | (~self.known & ~self.needed)

    @property
    def row(self) -> AttributeRow:
        """The counts of this tensor. It is cut only by `shrink`, so that its shape stays."""
        masks = (self.stored, self.dead, self.known & (self.value != 0), self.needed, self.stored & ~self.dead)
        stored, dead, constant, needed, now = (int(mask.sum()) for mask in masks)
        shape, layer = tuple(self.known.shape), self.name.rpartition(".")[0]
        kind: TensorKind = "constant" if self.kind == "parameter" else self.kind
        return AttributeRow(self.name, kind, layer, shape, self.known.numel(), stored, dead, constant, needed, now, shape)


@dataclass(frozen=True, slots=True, eq=False)
class ModuleAttributes(Mapping[str, TensorAttributes]):
    """The known and needed entries of every tensor of a model, by its name: of a parameter or a buffer, of an argument of
    `forward`, or of a module and an operator in it, such as `layer1.relu`. `guesses` has the operators without a rule.

    A name of a tied weight finds the same tensor as its first name, under which it is listed.
    """

    tensors: Mapping[str, TensorAttributes]
    aliases: Mapping[str, str]
    guesses: tuple[Guess, ...]

    def __getitem__(self, name: str) -> TensorAttributes:
        tensor = self.tensors.get(self.aliases.get(name, name))
        if tensor is None:
            raise FrontendError(f"the model has no tensor `{name}`", hint=did_you_mean(name, [*self.tensors, *self.aliases]))
        return tensor

    def __contains__(self, name: object) -> bool:
        return name in self.tensors or name in self.aliases

    def __iter__(self) -> Iterator[str]:
        return iter(self.tensors)

    def __len__(self) -> int:
        return len(self.tensors)

    @property
    def rows(self) -> tuple[AttributeRow, ...]:
        """The counts of each tensor, in the order of the graph."""
        return tuple(tensor.row for tensor in self.tensors.values())

    def total(self, kind: TensorKind = "constant") -> AttributeRow:
        """Return the sums of the counts of all tensors of a kind. Parameters are `constant`."""
        return total((row for row in self.rows if row.kind == kind), "", kind)

    def __str__(self) -> str:
        rows = [row for row in self.rows if row.kind == "constant"]
        cells = [("tensor", "shape", "stored before", "dead", "constant", "needed", "now"), *map(_cells, [*rows, self.total()])]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        table = ["  ".join([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])]).rstrip() for line in cells]
        return "\n".join([*table, *map(str, self.guesses)])


def _cells(row: AttributeRow) -> tuple[str, ...]:
    counts = (f"{count:,}" for count in (row.stored, row.dead, row.constant, row.needed, row.now))
    return (row.name, " x ".join(map(str, row.shape)), *counts)


def analyse_module(
    model: nn.Module,
    inputs: Sequence[Any] | Mapping[str, Any],
    masks: Masks | None = None,
    *,
    samples: int = 1024,
    trust_scrambling: bool = False,
) -> ModuleAttributes:
    """Return which entries of everything in a model are known before it runs, and which its outputs need.

    `inputs` are the arguments of one call, or a mapping of those by name; their numbers do not matter. `masks` are true where an entry of a
    parameter is kept; without them, the masks of the model itself count. Buffers, scales and shifts of batch norms count as
    constants, other parameters and inputs as unknown.

    An operator without a rule is run on `samples` random fillings of the unknown entries. Entries that seem to be dead then are
    called dead only with `trust_scrambling`.

    Raise `SparsityError` for masks that do not fit, and `FrontendError` for a model that PyTorch cannot export, that writes in place, whose
    shapes or control flow depend on data, or that draws random numbers.
    """
    if samples < 0:
        raise UsageError(f"{samples} samples are less than none", hint="0 turns scrambling off")
    call = _dense(model_call(model, inputs, None))
    kept = _carried_masks(call.module) if masks is None else dict(masks)
    _require_fit(call.module, kept)
    return analyse_exported(export_module(call), kept, Scrambler(samples, trust_scrambling), table_rule)


def analyse_exported(exported: ExportedModule, masks: Masks, scrambler: Scrambler, rule_of: Resolve) -> ModuleAttributes:
    """Return the known and the needed entries of all tensors in an exported graph. `rule_of` returns the rules of its operators."""
    stored = {id(a): _stored(a, masks) for a in exported.arguments.values()}
    start = {result_of(node): _initial(node, a, stored[id(a)]) for node, a in exported.arguments.items()}
    steps, outputs = operator_steps(exported.graph, rule_of, scrambler), {result_of(node) for node in exported.outputs}
    known = known_after(counted(steps, "finding what is known"), start)
    needed = needed_before(steps, known, {r: torch.full(k.mask.shape, r in outputs) for r, k in known.items()})

    tensors: dict[str, TensorAttributes] = {}
    aliases: dict[str, str] = {}
    for node, argument in exported.arguments.items():
        first, of, wanted = argument.names[0], known[result_of(node)], needed[result_of(node)]
        if first in tensors:  # another placeholder of a tied weight
            wanted = wanted | tensors[first].needed
        keep = stored[id(argument)]
        kept = torch.ones_like(of.mask) if keep is None else keep
        tensors[first] = TensorAttributes(first, argument.kind, kept, of.mask, of.value, wanted)
        aliases |= dict.fromkeys(argument.names[1:], first)
    for name, node in named_results(exported):
        of, wanted = known[result_of(node)], needed[result_of(node)]
        tensors[name] = TensorAttributes(name, "intermediate", torch.ones_like(of.mask), of.mask, of.value, wanted)
    return ModuleAttributes(tensors, aliases, scrambler.guesses())


def _dense(call: ModelCall) -> ModelCall:
    """Return a call with dense arguments: an exported graph has no sparse ones, and their numbers do not matter."""

    def to_dense(leaf: Any) -> Any:
        return leaf.to_dense() if isinstance(leaf, Tensor) and leaf.layout != torch.strided else leaf

    args, kwargs = pytree.tree_map(to_dense, (call.args, dict(call.kwargs)))
    return replace(call, args=args, kwargs=kwargs)


def _carried_masks(module: nn.Module) -> dict[str, Tensor]:
    """Return the masks of the weights that a model was made sparse with. Raise `SparsityError` if a pruned entry is not 0."""
    masks = {}
    for name, parameter, weight in sparse_weights(module):
        require_zeros(name, parameter, weight.mask)
        masks[name] = weight.mask
    return masks


def _require_fit(module: nn.Module, masks: Masks) -> None:
    """Raise `SparsityError` for a mask of no parameter, or of another shape."""
    parameters = dict(module.named_parameters(remove_duplicate=False))
    for name, mask in masks.items():
        if name not in parameters:
            raise SparsityError(f"there is a mask for `{name}`, which is no parameter", hint=did_you_mean(name, parameters))
        if not isinstance(mask, Tensor):
            hint = "a mask is a tensor that is true where an entry is kept"
            raise SparsityError(f"the mask of `{name}` is a {type(mask).__name__}", hint=hint)
        shape = parameters[name].shape
        if mask.shape != shape:
            raise SparsityError(f"the mask of `{name}` has the shape {list(mask.shape)}, and `{name}` has {list(shape)}")


def _stored(argument: Argument, masks: Masks) -> Tensor | None:
    """Return the mask of the entries of an argument that are kept, or None if there is no mask for it. A mask may be under any
    name of a tied weight."""
    given = [masks[name] != 0 for name in argument.names if name in masks]
    if any(not torch.equal(given[0], other) for other in given[1:]):
        names = " and ".join(f"`{name}`" for name in argument.names)
        raise SparsityError(f"there are different masks for {names}, which are one tensor")
    return given[0] if given else None


def _initial(node: Node, argument: Argument, stored: Tensor | None) -> Known:
    """Return the known entries of an argument: all of a constant, and otherwise the entries that are pruned."""
    if argument.tensor is None:
        val = node.meta["val"]
        return Known.nothing(val.shape, val.dtype)
    if argument.constant:
        return Known.exactly(argument.tensor if stored is None else argument.tensor.masked_fill(~stored, 0))
    if stored is None:
        return Known.nothing(argument.tensor.shape, argument.tensor.dtype)
    return Known.where(~stored, torch.zeros_like(argument.tensor))
