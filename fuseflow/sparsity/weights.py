"""The weights of a model, and their pruning: a spec chooses them by name, sparsifiers select their entries, and the others become 0.

PyTorch itself may store a weight sparse. In a sparse model it is a dense parameter, and all other entries are pruned."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TypeVar

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from fuseflow.errors import SparsityError
from fuseflow.loop_progress import counted
from fuseflow.sparsity.layouts.layout import require_fit
from fuseflow.sparsity.model_sparsity import SparseWeight
from fuseflow.sparsity.sparsifiers.built_in import KeepAll
from fuseflow.sparsity.sparsifiers.sparsifier import Sparsifier
from fuseflow.sparsity.spec import KEEP_ALL, OutputFormat, SparseSpec, WeightEntry, require_matches
from fuseflow.sparsity.storage_tensor import StorageTensor


def select_weights(model: nn.Module, spec: SparseSpec, *, in_training: bool = False) -> dict[str, SparseWeight]:
    """Return the rule and the mask of every weight that a spec names, by its qualified name. The model is not changed.

    A rule that needs scores keeps all if the model is `in_training`, since these are gathered there; otherwise it is refused.

    Raise `SparsityError` for a pattern that names nothing, for a weight that is not a tensor of real numbers in memory, and for a mask
    that does not fit its layout.
    """
    entries = weight_entries(model, spec)
    parameters = dict(model.named_parameters())
    for name in entries:
        require_real(name, parameters[name])
    rules = {
        name: KEEP_ALL if in_training and entry.sparsifier.needs_scores else entry.sparsifier for name, entry in entries.items()
    }
    masks = selected_masks(rules, {name: dense_values(parameters[name]) for name in entries})
    for name, entry in entries.items():
        within = masks[name] & stored_entries(parameters[name])
        masks[name] = output_mask(dense_values(parameters[name]), entry.update, name, within=within)
    return {name: SparseWeight(entry, masks[name]) for name, entry in entries.items()}


def weight_names(model: nn.Module) -> dict[str, tuple[str, ...]]:
    """Return the qualified names of all weights of a model: the first name of each with all names that it has. A tied one has several."""
    names: dict[int, list[str]] = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        names.setdefault(id(parameter), []).append(name)
    return {group[0]: tuple(group) for group in names.values()}


def output_mask(
    tensor: Tensor, format: OutputFormat, name: str, scores: Tensor | None = None, within: Tensor | None = None
) -> Tensor:
    """Return the mask of the entries of a dense tensor `name` that an output format keeps, within the mask `within` if it is given.

    A rule that needs scores keeps all as long as there are none.

    Raise `SparsityError` if the mask of the inline sparsifier does not fit the layout between, or the result does not fit its layout.
    """
    mask = torch.ones(tensor.shape, dtype=torch.bool, device=tensor.device) if within is None else within
    mask = _selected(format.inline, tensor, mask, scores)
    require_fit(format.tmp, mask, name)
    mask = _selected(format.external, tensor, mask, scores)
    require_fit(format.layout, mask, name)
    return mask


def _selected(sparsifier: Sparsifier, tensor: Tensor, mask: Tensor, scores: Tensor | None) -> Tensor:
    """Return the mask of the entries that a sparsifier selects, among the entries of a tensor that a mask keeps. Without scores
    that it needs, all."""
    if isinstance(sparsifier, KeepAll) or (sparsifier.needs_scores and scores is None):
        return mask
    return mask & sparsifier.select(tensor.masked_fill(~mask, 0), scores)


def weight_entries(model: nn.Module, spec: SparseSpec) -> dict[str, WeightEntry]:
    """Return the entry of each weight that the spec names, by the first name of the weight. Of several patterns that name a
    weight the last one counts.

    Raise `SparsityError` for a pattern that names nothing, or nothing that its rule and layout are for.
    """
    names, parameters = weight_names(model), dict(model.named_parameters())
    require_matches(spec.weights, [name for group in names.values() for name in group], "weight")
    for pattern, entry in spec.weights:
        if not any(_speaks_of(pattern, entry, group, parameters[first]) for first, group in names.items()):
            raise SparsityError(
                f"no weight that `{pattern}` names has {entry.least_rank} dimensions, which `{entry.sparsifier}` with the layout "
                f"`{entry.layout}` is for",
                hint="choose a pattern that names matrices, or the layout `coo` or `masked`",
            )
    entries = {}
    for first, group in names.items():
        matches = [entry for pattern, entry in spec.weights if _speaks_of(pattern, entry, group, parameters[first])]
        if matches:
            entries[first] = matches[-1]
    return entries


def _speaks_of(pattern: str, entry: WeightEntry, names: Sequence[str], parameter: Tensor) -> bool:
    """Return whether a pattern names a weight. One with a wildcard leaves out weights with too few dimensions for its rule, such
    as the weights of norms."""
    if not any(fnmatchcase(name, pattern) for name in names):
        return False
    return pattern in names or is_lazy(parameter) or parameter.dim() >= entry.least_rank


def selected_masks(
    rules: Mapping[str, Sparsifier], tensors: Mapping[str, Tensor], scores: Mapping[str, Tensor | None] | None = None
) -> dict[str, Tensor]:
    """Return the masks that sparsifiers select of dense tensors, by name. A sparsifier that compares tensors gets all tensors of
    its rule together.

    Raise `SparsityError` for a tensor that its sparsifier does not fit.
    """
    masks: dict[str, Tensor] = {}
    for rule in dict.fromkeys(rules.values()):
        names = [name for name, other in rules.items() if other == rule]
        if rule.compares_tensors:
            masks |= zip(names, rule.select_together([tensors[name] for name in names]), strict=True)
        else:
            for name in counted(names, "pruning weights"):
                try:
                    masks[name] = rule.select(tensors[name], (scores or {}).get(name))
                except SparsityError as error:
                    hint = f"{error.hint}; or choose a pattern that does not name `{name}`"
                    raise SparsityError(f"the weight `{name}`: {error.message}", hint=hint) from None
    return {name: masks[name] for name in rules}


def require_real(name: str, parameter: Tensor) -> None:
    """Raise `SparsityError` for a weight that is not a tensor of real numbers in memory, which can be changed."""
    if isinstance(parameter, StorageTensor):
        raise SparsityError(f"the weight `{name}` is packed already", hint="make the model sparse first, and pack it then")
    if is_lazy(parameter):
        raise SparsityError(f"the weight `{name}` has no numbers yet", hint="run the model once: its input gives the shape")
    if parameter.is_meta:
        raise SparsityError(f"the weight `{name}` has no numbers yet: it is on the meta device", hint="load the weights first")
    if not parameter.is_floating_point():
        kind = "complex numbers" if parameter.is_complex() else "integers"
        raise SparsityError(f"the weight `{name}` has {kind}", hint="weights of real numbers are made sparse")
    if parameter.element_size() < 2:
        raise SparsityError(
            f"the weight `{name}` has floats of 8 bits", hint="make the model sparse first, and its numbers narrow then"
        )
    if parameter.is_inference() and not torch.is_inference_mode_enabled():
        hint = "make or copy the model outside of `torch.inference_mode`"
        raise SparsityError(f"the weight `{name}` cannot be changed: it was made in inference mode", hint=hint)


M = TypeVar("M", bound=nn.Module)


def replica(model: M) -> M:
    """Return a copy of a model. Unlike `copy.deepcopy`, it copies parameters, buffers and attributes in the layouts CSR, CSC, BSR and BSC,
    too."""
    attributes = (value for module in model.modules() for value in vars(module).values() if isinstance(value, Tensor))
    others = {id(t): t.detach().clone() for t in (*model.buffers(), *attributes) if t.layout != torch.strided}
    sparse = {id(p): nn.Parameter(p.detach().clone(), p.requires_grad) for p in model.parameters() if p.layout != torch.strided}
    return copy.deepcopy(model, {**others, **sparse})


def dense_values(weight: Tensor) -> Tensor:
    """Return the numbers of a weight as a dense tensor, which is the weight itself unless it is stored sparse."""
    values = weight.detach()
    return values if values.layout == torch.strided else values.to_dense()


def stored_entries(weight: Tensor) -> Tensor:
    """Return the mask of the entries that a weight stores, also where they are 0."""
    values = weight.detach()
    if values.layout == torch.strided:
        return torch.ones(values.shape, dtype=torch.bool, device=values.device)
    ones = values.coalesce().clone() if values.layout == torch.sparse_coo else values.clone()
    ones.values().fill_(1)
    return ones.to_dense() != 0


def make_dense(model: nn.Module, name: str) -> nn.Parameter:
    """Replace a weight of a model, under all of its names, by a dense parameter, and return that. A dense weight stays."""
    parameters = dict(model.named_parameters())
    parameter = parameters[name]
    if parameter.layout == torch.strided:
        return parameter
    dense = nn.Parameter(dense_values(parameter), parameter.requires_grad)
    for module in model.modules():
        for key, value in module._parameters.items():
            if value is parameter:
                module._parameters[key] = dense
    return dense
