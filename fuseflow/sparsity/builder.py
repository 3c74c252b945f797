"""The builder of sparse models: which tensors of an existing model become sparse, by which rule, stored how.

Its methods and their arguments have the names of the STen paper (arXiv 2304.07613, section 3.4).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeVar

import torch
from torch import nn

from fuseflow.errors import SparsityError
from fuseflow.sparsity.application import sparse_copy, sparsify
from fuseflow.sparsity.dispatch_formats import storage_class
from fuseflow.sparsity.intermediates import own_name
from fuseflow.sparsity.layouts.layout import Dense, DenseTensor, Layout, Masked, MaskedSparseTensor
from fuseflow.sparsity.layouts.listing import as_layout
from fuseflow.sparsity.sparsifiers.sparsifier import Sparsifier
from fuseflow.sparsity.spec import KEEP_ALL, IntermediateEntry, OutputFormat, SparseSpec, WeightEntry, usual_layout
from fuseflow.sparsity.training.holding import attach
from fuseflow.sparsity.user_classes import ClassLayout, ClassSparsifier, is_registered, is_user_class

M = TypeVar("M", bound=nn.Module)


class SparsityBuilder:
    """A collection of rules for the tensors of a model, which makes a dense model sparse by them.

    >>> import fuseflow.sparsity as sp
    >>> sb = sp.SparsityBuilder()
    >>> sb.set_weight("*.weight", initial_sparsifier=sp.Magnitude(0.5), out_format=sp.CSR)
    >>> sparse = sb.get_sparse_model(torch.nn.Sequential(torch.nn.Linear(4, 4)))
    >>> int((sparse[0].weight != 0).sum())
    8
    """

    def __init__(self) -> None:
        self._weights: dict[str, WeightEntry] = {}
        self._weight_grads: dict[str, OutputFormat] = {}
        self._intermediates: dict[str, OutputFormat] = {}
        self._intermediate_grads: dict[str, OutputFormat] = {}

    def set_weight(
        self,
        name: str,
        initial_sparsifier: Any = KEEP_ALL,
        inline_sparsifier: Any = None,
        tmp_format: Any = Dense,
        external_sparsifier: Any = None,
        out_format: Any = None,
    ) -> None:
        """Make the weights that a pattern names sparse.

        `initial_sparsifier` selects their entries once. After each step of an optimizer, the other two select again, the inline one first;
        without them, the mask stays. `out_format` is how the weight is stored: a layout, its class, the class of its tensors, or any class
        with a method `to_dense`. Without it, the weight is stored as the initial sparsifier proposes, as in a text. A sparsifier is one of
        this package, or an object for which an implementation is registered.
        """
        initial = _sparsifier(initial_sparsifier, Masked if out_format is None else out_format)
        proposed = usual_layout(initial, written=initial != KEEP_ALL)
        layout = proposed if out_format is None else out_format
        update = _output_format(inline_sparsifier, tmp_format, external_sparsifier, layout, initial)
        self._set(self._weights, name, WeightEntry(initial, update))

    def set_weight_grad(
        self,
        name: str,
        inline_sparsifier: Any = None,
        tmp_format: Any = Dense,
        external_sparsifier: Any = None,
        out_format: Any = Dense,
    ) -> None:
        """Make the gradients of the weights that a pattern names sparse, before an optimizer sees them. The arguments are as in
        `set_weight`, for the gradient."""
        self._set(self._weight_grads, name, _output_format(inline_sparsifier, tmp_format, external_sparsifier, out_format))

    def set_interm(
        self,
        name: str,
        inline_sparsifier: Any = None,
        tmp_format: Any = Dense,
        external_sparsifier: Any = None,
        out_format: Any = Dense,
    ) -> None:
        """Make the intermediates sparse whose names match a pattern. `fuseflow.sparsity.intermediates` lists the names. A name that
        `torch.fx` gives to a node of a module, as in STen, is taken, too."""
        self._set(self._intermediates, name, _output_format(inline_sparsifier, tmp_format, external_sparsifier, out_format))

    def set_interm_grad(
        self,
        name: str,
        inline_sparsifier: Any = None,
        tmp_format: Any = Dense,
        external_sparsifier: Any = None,
        out_format: Any = Dense,
    ) -> None:
        """Make the gradients of the intermediates sparse whose names match a pattern. Otherwise they have the mask of the value.
        Arguments are as in `set_weight`."""
        self._set(self._intermediate_grads, name, _output_format(inline_sparsifier, tmp_format, external_sparsifier, out_format))

    def spec(self) -> SparseSpec:
        """Return the rules as a spec. A rule for a gradient alone leaves the tensor itself as it is."""
        weights = {name: replace(entry, grad=self._weight_grads.get(name)) for name, entry in self._weights.items()}
        weights |= {name: WeightEntry(grad=grad) for name, grad in self._weight_grads.items() if name not in weights}
        intermediates = {
            name: IntermediateEntry(output, self._intermediate_grads.get(name)) for name, output in self._intermediates.items()
        }
        alone = {name: grad for name, grad in self._intermediate_grads.items() if name not in intermediates}
        intermediates |= {name: IntermediateEntry(grad=grad) for name, grad in alone.items()}
        return SparseSpec(tuple(weights.items()), tuple(intermediates.items()))

    def get_sparse_model(self, model: M) -> M:
        """Return a sparse copy of a model. Its parameters have the names and the `state_dict` that they had."""
        return sparse_copy(model, self._spec_of(model))

    def sparsify_model_inplace(self, model: M) -> M:
        """Make a model itself sparse and return it."""
        sparsify(model, self._spec_of(model))
        return model

    def sparsify_model_and_optimizer_inplace(self, model: M, optimizer: torch.optim.Optimizer) -> tuple[M, torch.optim.Optimizer]:
        """Make a model sparse, and let its optimizer hold the masks after each step; see `attach`. Return both."""
        attach(model, self._spec_of(model), optimizer)
        return model, optimizer

    def _spec_of(self, model: nn.Module) -> SparseSpec:
        """Return the rules as a spec, with the names of fuseflow for intermediates that have names of `torch.fx`."""
        spec = self.spec()
        return replace(spec, intermediates=tuple((own_name(model, name), entry) for name, entry in spec.intermediates))

    def _set(self, entries: dict[str, Any], name: str, entry: Any) -> None:
        if not isinstance(name, str):
            raise SparsityError(f"`{name}` is no name of a tensor", hint="give a text, as in `layer1.weight` or `*.weight`")
        if name in entries:
            raise SparsityError(f"`{name}` has a rule already", hint="set each tensor once")
        entries[name] = entry


def _output_format(inline: Any, tmp: Any, external: Any, out: Any, initial: Sparsifier = KEEP_ALL) -> OutputFormat:
    chosen = (_sparsifier(inline, tmp), _sparsifier(external, out), initial)
    return OutputFormat(chosen[0], _layout(tmp, chosen), chosen[1], _layout(out, chosen))


def _sparsifier(value: Any, format: Any) -> Sparsifier:
    """Return the sparsifier that an argument means: none keeps all. An object of the user has a registered implementation, which
    makes tensors of this format."""
    if value is None:
        return KEEP_ALL
    if isinstance(value, Sparsifier):
        return value
    if is_registered(value):
        storage = storage_class(format)
        return ClassSparsifier(value, torch.Tensor if storage in (DenseTensor, MaskedSparseTensor) else storage)
    raise SparsityError(
        f"`{value}` is no sparsifier",
        hint="pass one, such as `sp.Magnitude(0.9)`, or register yours with `sp.register_sparsifier_implementation`",
    )


def _layout(value: Any, sparsifiers: tuple[Sparsifier, ...]) -> Layout:
    """Return the layout that an argument names. The class of a layout with parameters takes them from the sparsifier that
    proposes the layout."""
    proposed = (sparsifier.layout for sparsifier in sparsifiers)
    named = next((layout for layout in proposed if value in (type(layout), layout.storage)), None)
    if named is not None:
        return named
    return ClassLayout(value) if is_user_class(value) else as_layout(value)
