"""Sparsity in PyTorch models: which tensors are sparse, by which rule, and how they are stored.

>>> import fuseflow.sparsity as sp
>>> sb = sp.SparsityBuilder()
>>> sb.set_weight("layer1.weight", initial_sparsifier=sp.Magnitude(0.9), out_format=sp.CSR)
>>> print(sb.spec().to_yaml(), end="")
weights:
  layer1.weight: {sparsifier: magnitude:0.9}
"""

from typing import TYPE_CHECKING

from fuseflow.deferred_names import deferred_names

if TYPE_CHECKING:
    from fuseflow.errors import DispatchError, DispatchWarning
    from fuseflow.sparsity.application import clear, sparse_copy, sparsify
    from fuseflow.sparsity.builder import SparsityBuilder
    from fuseflow.sparsity.dispatch.failure import set_dispatch_failure
    from fuseflow.sparsity.dispatch.same_format import SameFormatSparsifier
    from fuseflow.sparsity.energies import energy
    from fuseflow.sparsity.kernels.product_kernel import ProductKernel
    from fuseflow.sparsity.kernels.products import register_products
    from fuseflow.sparsity.layouts.blocked import BCSR, BcsrTensor
    from fuseflow.sparsity.layouts.compressed import CSC, CSR, CscTensor, CsrTensor
    from fuseflow.sparsity.layouts.coo import COO, CooTensor
    from fuseflow.sparsity.layouts.dense import Dense, DenseTensor, Masked, MaskedSparseTensor
    from fuseflow.sparsity.layouts.ell import ELL, EllTensor
    from fuseflow.sparsity.layouts.grouped import GroupedNMTensor, NMGLayout
    from fuseflow.sparsity.layouts.layout import CompilerFormat, Layout
    from fuseflow.sparsity.layouts.listing import parse_layout, register_layout
    from fuseflow.sparsity.layouts.n_of_m import NMLayout, NMTensor
    from fuseflow.sparsity.model_names import Names, names
    from fuseflow.sparsity.packed import PackedParameter, PackedTensor
    from fuseflow.sparsity.packing import pack, pack_inplace
    from fuseflow.sparsity.patching import patch
    from fuseflow.sparsity.places.listing import register_places
    from fuseflow.sparsity.places.places import Places
    from fuseflow.sparsity.registrations import (
        register_bwd_op_impl,
        register_conversion,
        register_fwd_op_impl,
        register_sparsifier_implementation,
    )
    from fuseflow.sparsity.saved import load_sparsity, save_sparsity
    from fuseflow.sparsity.sparse_operator import sparsified_op
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
    from fuseflow.sparsity.sparsifiers.stored import Stored
    from fuseflow.sparsity.sparsifiers.threshold import Threshold
    from fuseflow.sparsity.sparsifiers.top_k import TopK
    from fuseflow.sparsity.spec import IntermediateEntry, OutputFormat, SparseSpec, WeightEntry, parse_sparsify, read_spec
    from fuseflow.sparsity.state import sparse_weights, sparsity_of
    from fuseflow.sparsity.sten_names import (
        FixedMaskTensor,
        GroupedNMSparsifier,
        PerBlockNMSparsifier,
        RandomFractionSparsifier,
        ScalarFractionSparsifier,
        ScalarThresholdSparsifier,
        SparseParameterWrapper,
        SparseTensorWrapper,
        random_fraction_sparsifier_dense_csc,
        random_mask_sparsify,
        scalar_mask_sparsify,
        torch_tensor_to_coo,
        torch_tensor_to_csr,
        torch_tensor_to_wrapped_dense,
    )
    from fuseflow.sparsity.training.handle import Handle
    from fuseflow.sparsity.training.holding import attach
    from fuseflow.sparsity.training.recipes import iterative, layer_wise, one_shot
    from fuseflow.sparsity.training.schedule import Cubic

__all__ = [
    "BCSR",
    "COO",
    "CSC",
    "CSR",
    "ELL",
    "NM",
    "NMG",
    "BcsrTensor",
    "BlockMagnitude",
    "CompilerFormat",
    "CooTensor",
    "CscTensor",
    "CsrTensor",
    "Cubic",
    "Dense",
    "DenseTensor",
    "DispatchError",
    "DispatchWarning",
    "EllTensor",
    "Filter",
    "FixedMaskTensor",
    "GroupedNMSparsifier",
    "GroupedNMTensor",
    "Handle",
    "IntermediateEntry",
    "KeepAll",
    "KeepRule",
    "Layout",
    "Magnitude",
    "Masked",
    "MaskedSparseTensor",
    "Movement",
    "NMGLayout",
    "NMLayout",
    "NMTensor",
    "Names",
    "OutputFormat",
    "PackedParameter",
    "PackedTensor",
    "PerBlockNMSparsifier",
    "Places",
    "ProductKernel",
    "RandomFraction",
    "RandomFractionSparsifier",
    "SameFormatSparsifier",
    "ScalarFractionSparsifier",
    "ScalarThresholdSparsifier",
    "SparseParameterWrapper",
    "SparseSpec",
    "SparseTensorWrapper",
    "Sparsifier",
    "SparsityBuilder",
    "Stored",
    "Threshold",
    "TopK",
    "WeightEntry",
    "attach",
    "clear",
    "energy",
    "iterative",
    "layer_wise",
    "load_sparsity",
    "names",
    "one_shot",
    "pack",
    "pack_inplace",
    "parse_layout",
    "parse_sparsifier",
    "parse_sparsify",
    "patch",
    "random_fraction_sparsifier_dense_csc",
    "random_mask_sparsify",
    "read_spec",
    "register_bwd_op_impl",
    "register_conversion",
    "register_fwd_op_impl",
    "register_layout",
    "register_places",
    "register_products",
    "register_sparsifier",
    "register_sparsifier_implementation",
    "save_sparsity",
    "scalar_mask_sparsify",
    "set_dispatch_failure",
    "sparse_copy",
    "sparse_weights",
    "sparsified_op",
    "sparsify",
    "sparsity_of",
    "torch_tensor_to_coo",
    "torch_tensor_to_csr",
    "torch_tensor_to_wrapped_dense",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = deferred_names(__name__, __file__, __all__)
