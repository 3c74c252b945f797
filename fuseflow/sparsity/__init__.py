"""Sparsity in PyTorch models: which tensors are sparse, by which rule, and how they are stored.

>>> import fuseflow.sparsity as sp
>>> sb = sp.SparsityBuilder()
>>> sb.set_weight("layer1.weight", initial_sparsifier=sp.Magnitude(0.9), out_format=sp.CSR)
>>> print(sb.spec().to_yaml(), end="")
weights:
  layer1.weight: {sparsifier: magnitude:0.9}
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fuseflow.sparsity.application import clear, sparse_copy, sparsify
    from fuseflow.sparsity.builder import SparsityBuilder
    from fuseflow.sparsity.energy import energy
    from fuseflow.sparsity.layouts.blocked import BCSR
    from fuseflow.sparsity.layouts.compressed import CSC, CSR
    from fuseflow.sparsity.layouts.coo import COO
    from fuseflow.sparsity.layouts.dense import Dense, Masked
    from fuseflow.sparsity.layouts.ell import ELL
    from fuseflow.sparsity.layouts.grouped import NMGLayout
    from fuseflow.sparsity.layouts.layout import CompilerFormat, Layout
    from fuseflow.sparsity.layouts.listing import parse_layout, register_layout
    from fuseflow.sparsity.layouts.n_of_m import NMLayout
    from fuseflow.sparsity.names import Names, names
    from fuseflow.sparsity.saved import load_sparsity, save_sparsity
    from fuseflow.sparsity.sparsifiers.blocks import BlockMagnitude
    from fuseflow.sparsity.sparsifiers.filters import Filter
    from fuseflow.sparsity.sparsifiers.grouped import NMG
    from fuseflow.sparsity.sparsifiers.keep_all import KeepAll
    from fuseflow.sparsity.sparsifiers.listing import parse_sparsifier, register_sparsifier
    from fuseflow.sparsity.sparsifiers.magnitude import Magnitude
    from fuseflow.sparsity.sparsifiers.movement import Movement
    from fuseflow.sparsity.sparsifiers.n_of_m import NM
    from fuseflow.sparsity.sparsifiers.random_fraction import RandomFraction
    from fuseflow.sparsity.sparsifiers.sparsifier import KeepRule, Sparsifier
    from fuseflow.sparsity.sparsifiers.threshold import Threshold
    from fuseflow.sparsity.sparsifiers.top_k import TopK
    from fuseflow.sparsity.spec import IntermediateEntry, OutputFormat, SparseSpec, WeightEntry, parse_sparsify, read_spec
    from fuseflow.sparsity.state import sparse_weights, sparsity_of

__all__ = [
    "BCSR",
    "COO",
    "CSC",
    "CSR",
    "ELL",
    "NM",
    "NMG",
    "BlockMagnitude",
    "CompilerFormat",
    "Dense",
    "Filter",
    "IntermediateEntry",
    "KeepAll",
    "KeepRule",
    "Layout",
    "Magnitude",
    "Masked",
    "Movement",
    "NMGLayout",
    "NMLayout",
    "Names",
    "OutputFormat",
    "RandomFraction",
    "SparseSpec",
    "Sparsifier",
    "SparsityBuilder",
    "Threshold",
    "TopK",
    "WeightEntry",
    "clear",
    "energy",
    "load_sparsity",
    "names",
    "parse_layout",
    "parse_sparsifier",
    "parse_sparsify",
    "read_spec",
    "register_layout",
    "register_sparsifier",
    "save_sparsity",
    "sparse_copy",
    "sparse_weights",
    "sparsify",
    "sparsity_of",
]

_NAMES = {
    "application": ("clear", "sparse_copy", "sparsify"),
    "builder": ("SparsityBuilder",),
    "energy": ("energy",),
    "layouts.blocked": ("BCSR",),
    "layouts.compressed": ("CSC", "CSR"),
    "layouts.coo": ("COO",),
    "layouts.dense": ("Dense", "Masked"),
    "layouts.ell": ("ELL",),
    "layouts.grouped": ("NMGLayout",),
    "layouts.layout": ("CompilerFormat", "Layout"),
    "layouts.listing": ("parse_layout", "register_layout"),
    "layouts.n_of_m": ("NMLayout",),
    "names": ("Names", "names"),
    "saved": ("load_sparsity", "save_sparsity"),
    "sparsifiers.blocks": ("BlockMagnitude",),
    "sparsifiers.filters": ("Filter",),
    "sparsifiers.grouped": ("NMG",),
    "sparsifiers.keep_all": ("KeepAll",),
    "sparsifiers.listing": ("parse_sparsifier", "register_sparsifier"),
    "sparsifiers.magnitude": ("Magnitude",),
    "sparsifiers.movement": ("Movement",),
    "sparsifiers.n_of_m": ("NM",),
    "sparsifiers.random_fraction": ("RandomFraction",),
    "sparsifiers.sparsifier": ("KeepRule", "Sparsifier"),
    "sparsifiers.threshold": ("Threshold",),
    "sparsifiers.top_k": ("TopK",),
    "spec": ("IntermediateEntry", "OutputFormat", "SparseSpec", "WeightEntry", "parse_sparsify", "read_spec"),
    "state": ("sparse_weights", "sparsity_of"),
}
"""The public names of each module of the package. A module is imported when one of its names is first used: most of them load PyTorch."""
_MODULES = {name: module for module, names_there in _NAMES.items() for name in names_there}

__all__ = sorted(_MODULES)


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name, obj=None)
    value = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})
