"""A summary of the sparse tensors of a model: the rule and layout of each, how many entries it keeps, and how many bytes it takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from math import prod
from typing import Any

import torch
from torch import Tensor, nn

from fuseflow.sparsity.intermediates import Watch
from fuseflow.sparsity.layouts.layout import Layout
from fuseflow.sparsity.model_sparsity import sparse_weights, sparsity_of
from fuseflow.sparsity.numpy_arrays import energy, values_of
from fuseflow.sparsity.spec import last_match
from fuseflow.tensors import Format, from_coordinates


@dataclass(frozen=True, slots=True)
class SummaryRow:
    """The summary of one tensor.

    `kept` is the number of entries that are kept, of `size`. `energy` is the share of the magnitudes that they hold, or None if
    the pruned entries are not known any more. `bytes_before` are the bytes of all entries, and `bytes_after` the bytes that the
    compiler stores, coordinates and positions included; an intermediate has neither, because its storage depends on the schedule.
    """

    name: str
    kind: str
    shape: tuple[int, ...]
    rule: str
    layout: str
    kept: int
    size: int
    energy: float | None = None
    bytes_before: int | None = None
    bytes_after: int | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the row as plain values."""
        return {**asdict(self), "shape": list(self.shape)}


def weight_rows(dense: Mapping[str, Tensor], model: nn.Module) -> list[SummaryRow]:
    """Return a row for each sparse weight of a model. `dense` has the weights before pruning, by name, as far as known."""
    rows = []
    for name, parameter, weight in sparse_weights(model):
        mask, entry = weight.mask, weight.entry
        update = [str(s) for s in (entry.update.inline, entry.update.external) if str(s) != "keepall"]
        rows.append(
            SummaryRow(
                name,
                "weight",
                tuple(parameter.shape),
                ", then ".join([str(entry.sparsifier), *update]),
                str(entry.layout),
                int(mask.sum()),
                mask.numel(),
                energy(values_of(dense[name]), values_of(mask)) if name in dense else None,
                parameter.numel() * parameter.element_size(),
                stored_bytes(parameter.detach(), mask, entry.layout),
            )
        )
    return rows


def intermediate_rows(model: nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[SummaryRow]:
    """Run a sparse model once and return a row for each intermediate that has a rule.

    The entries that are not 0 behind the rule count as kept. Raise `SparsityError` for a rule without a tensor.
    """
    state = sparsity_of(model)
    if state is None or not state.intermediates:
        return []
    rows: list[SummaryRow] = []

    def visit(name: str, tensor: Tensor) -> Tensor:
        entry = last_match(state.intermediates.items(), name)
        if entry is not None:
            rule = " then ".join(str(s) for s in (entry.output.inline, entry.output.external) if str(s) != "keepall")
            kept, layout = int(tensor.count_nonzero()), str(entry.output.layout)
            rows.append(SummaryRow(name, "intermediate", tuple(tensor.shape), rule or "keepall", layout, kept, tensor.numel()))
        return tensor

    watch = Watch(model, visit, begin=lambda: None, end=lambda: None)
    try:
        with torch.no_grad():
            model(*args, **kwargs)
    finally:
        watch.remove()
    return rows


def stored_bytes(tensor: Tensor, mask: Tensor, layout: Layout) -> int:
    """Return the bytes that the compiler stores of a weight: values that are not 0, coordinates and positions. A layout that runs
    in PyTorch only takes the bytes of its tensors."""
    shape, itemsize = tuple(tensor.shape), tensor.element_size()
    format = layout.compiler_format(shape)
    if format is None:
        packed = layout.pack(tensor, mask)
        parts = (getattr(packed, name) for name in getattr(type(packed), "__slots__", vars(packed)))
        return sum(part.numel() * part.element_size() for part in parts if isinstance(part, Tensor))
    if format.text == "dense":
        return prod(shape) * itemsize
    mask = mask & (tensor != 0).to(mask.device)
    if format.block:
        rows, columns = format.block
        mask = mask.reshape(shape[0] // rows, rows, shape[1] // columns, columns).any(dim=3).any(dim=1)
        shape = tuple(mask.shape)
    coordinates, values = mask.nonzero().T.cpu().numpy(), values_of(tensor.new_ones(int(mask.sum())).float())
    packed_tensor = from_coordinates(shape, coordinates, values, Format.parse(format.text, len(shape)))
    elements = packed_tensor.values.size * prod(format.block)
    return packed_tensor.pos_bytes + packed_tensor.crd_bytes + elements * itemsize
