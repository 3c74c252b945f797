"""The zoo: models as their users bring them, by name. A model is a function that returns what a user would hand to `fuseflow.compile`.

    @zoo.model("pyg", fast=True)
    def gcn_conv() -> Brought:
        return GCNConv(8, 4), (x, edge_index)

The function returns the module, its positional arguments and, where the user would pass some, its keyword arguments. Every model is built
with one seed and set to evaluation, so that two builds are the same. Nothing in this folder knows what fuseflow accepts.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, get_args

import torch

Arguments = tuple[Any, ...]
Brought = tuple[torch.nn.Module, Arguments] | tuple[torch.nn.Module, Arguments, dict[str, Any]]
Family = Literal["pyg", "huggingface", "plain", "scientific", "dynamic"]

GRANULARITIES: dict[Family, tuple[str, ...]] = {
    **dict.fromkeys(("pyg", "huggingface", "plain", "scientific"), ("none", "layerwise", "full")),
    "dynamic": ("none", "best", "full"),
}
"""How the models of each family are fused. `best` is what is done by default."""

# The files of models, in this folder.
FILES = (
    "pyg_convolutions",
    "pyg_models",
    "huggingface_text",
    "huggingface_other",
    "plain_networks",
    "plain_layers",
    "scientific",
    "dynamic_autoencoders",
    "dynamic_experts",
    "dynamic_attention",
    "dynamic_sparse_tensors",
    "dynamic_transforms",
    "dynamic_types",
)


@dataclass(frozen=True, slots=True)
class Model:
    """A model of the zoo. `fast` ones are part of the suite; `make zoo` runs all."""

    name: str
    family: Family
    build: Callable[[], Brought]
    fast: bool

    def bring(self) -> tuple[torch.nn.Module, Arguments, dict[str, Any]]:
        """The module in evaluation, its arguments and its keyword arguments, the same at each call."""
        torch.manual_seed(0)
        module, args, *keywords = self.build()
        return module.eval(), args, keywords[0] if keywords else {}


class Zoo:
    """The models by name. A name stands once."""

    def __init__(self) -> None:
        self.models: dict[str, Model] = {}

    def model(self, family: Family, *, fast: bool = False) -> Callable[[Callable[[], Brought]], Callable[[], Brought]]:
        assert family in get_args(Family), family

        def register(build: Callable[[], Brought]) -> Callable[[], Brought]:
            name = build.__name__
            assert name not in self.models, f"two models of the zoo are called {name}"
            self.models[name] = Model(name, family, build, fast)
            return build

        return register


zoo = Zoo()


def all_models() -> dict[str, Model]:
    """All models by name, in the order of families, then of names."""
    for file in FILES:
        importlib.import_module(file)
    families = get_args(Family)
    return {model.name: model for model in sorted(zoo.models.values(), key=lambda m: (families.index(m.family), m.name))}
