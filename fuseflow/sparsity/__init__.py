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
    from fuseflow.errors import DispatchError as DispatchError
    from fuseflow.errors import DispatchWarning as DispatchWarning
    from fuseflow.sparsity.application import clear as clear
    from fuseflow.sparsity.application import sparse_copy as sparse_copy
    from fuseflow.sparsity.application import sparsify as sparsify
    from fuseflow.sparsity.builder import SparsityBuilder as SparsityBuilder
    from fuseflow.sparsity.dispatch.failure import set_dispatch_failure as set_dispatch_failure
    from fuseflow.sparsity.dispatch.registry import SameFormatSparsifier as SameFormatSparsifier
    from fuseflow.sparsity.entry_positions import Places as Places
    from fuseflow.sparsity.entry_positions import register_places as register_places
    from fuseflow.sparsity.intermediates import Names as Names
    from fuseflow.sparsity.intermediates import names as names
    from fuseflow.sparsity.kernels.matrix_kernels import ProductKernel as ProductKernel
    from fuseflow.sparsity.kernels.products import register_products as register_products
    from fuseflow.sparsity.layouts.layout import CompilerFormat as CompilerFormat
    from fuseflow.sparsity.layouts.layout import Dense as Dense
    from fuseflow.sparsity.layouts.layout import DenseTensor as DenseTensor
    from fuseflow.sparsity.layouts.layout import Layout as Layout
    from fuseflow.sparsity.layouts.layout import Masked as Masked
    from fuseflow.sparsity.layouts.layout import MaskedSparseTensor as MaskedSparseTensor
    from fuseflow.sparsity.layouts.listing import parse_layout as parse_layout
    from fuseflow.sparsity.layouts.listing import register_layout as register_layout
    from fuseflow.sparsity.layouts.n_of_m import GroupedNMTensor as GroupedNMTensor
    from fuseflow.sparsity.layouts.n_of_m import NMGLayout as NMGLayout
    from fuseflow.sparsity.layouts.n_of_m import NMLayout as NMLayout
    from fuseflow.sparsity.layouts.n_of_m import NMTensor as NMTensor
    from fuseflow.sparsity.layouts.sparse import BCSR as BCSR
    from fuseflow.sparsity.layouts.sparse import COO as COO
    from fuseflow.sparsity.layouts.sparse import CSC as CSC
    from fuseflow.sparsity.layouts.sparse import CSR as CSR
    from fuseflow.sparsity.layouts.sparse import ELL as ELL
    from fuseflow.sparsity.layouts.sparse import BcsrTensor as BcsrTensor
    from fuseflow.sparsity.layouts.sparse import CooTensor as CooTensor
    from fuseflow.sparsity.layouts.sparse import CscTensor as CscTensor
    from fuseflow.sparsity.layouts.sparse import CsrTensor as CsrTensor
    from fuseflow.sparsity.layouts.sparse import EllTensor as EllTensor
    from fuseflow.sparsity.model_sparsity import sparse_weights as sparse_weights
    from fuseflow.sparsity.model_sparsity import sparsity_of as sparsity_of
    from fuseflow.sparsity.numpy_arrays import energy as energy
    from fuseflow.sparsity.packed import PackedParameter as PackedParameter
    from fuseflow.sparsity.packed import PackedTensor as PackedTensor
    from fuseflow.sparsity.packing import pack as pack
    from fuseflow.sparsity.packing import pack_inplace as pack_inplace
    from fuseflow.sparsity.packing import patch as patch
    from fuseflow.sparsity.registration_decorators import register_bwd_op_impl as register_bwd_op_impl
    from fuseflow.sparsity.registration_decorators import register_conversion as register_conversion
    from fuseflow.sparsity.registration_decorators import register_fwd_op_impl as register_fwd_op_impl
    from fuseflow.sparsity.registration_decorators import register_sparsifier_implementation as register_sparsifier_implementation
    from fuseflow.sparsity.saved import load_sparsity as load_sparsity
    from fuseflow.sparsity.saved import save_sparsity as save_sparsity
    from fuseflow.sparsity.sparsifiers.built_in import NM as NM
    from fuseflow.sparsity.sparsifiers.built_in import NMG as NMG
    from fuseflow.sparsity.sparsifiers.built_in import BlockMagnitude as BlockMagnitude
    from fuseflow.sparsity.sparsifiers.built_in import Filter as Filter
    from fuseflow.sparsity.sparsifiers.built_in import KeepAll as KeepAll
    from fuseflow.sparsity.sparsifiers.built_in import Magnitude as Magnitude
    from fuseflow.sparsity.sparsifiers.built_in import Movement as Movement
    from fuseflow.sparsity.sparsifiers.built_in import RandomFraction as RandomFraction
    from fuseflow.sparsity.sparsifiers.built_in import Stored as Stored
    from fuseflow.sparsity.sparsifiers.built_in import Threshold as Threshold
    from fuseflow.sparsity.sparsifiers.built_in import TopK as TopK
    from fuseflow.sparsity.sparsifiers.listing import parse_sparsifier as parse_sparsifier
    from fuseflow.sparsity.sparsifiers.listing import register_sparsifier as register_sparsifier
    from fuseflow.sparsity.sparsifiers.sparsifier import KeepRule as KeepRule
    from fuseflow.sparsity.sparsifiers.sparsifier import Sparsifier as Sparsifier
    from fuseflow.sparsity.spec import IntermediateEntry as IntermediateEntry
    from fuseflow.sparsity.spec import OutputFormat as OutputFormat
    from fuseflow.sparsity.spec import SparseSpec as SparseSpec
    from fuseflow.sparsity.spec import WeightEntry as WeightEntry
    from fuseflow.sparsity.spec import parse_sparsify as parse_sparsify
    from fuseflow.sparsity.spec import read_spec as read_spec
    from fuseflow.sparsity.sten_names import FixedMaskTensor as FixedMaskTensor
    from fuseflow.sparsity.sten_names import GroupedNMSparsifier as GroupedNMSparsifier
    from fuseflow.sparsity.sten_names import PerBlockNMSparsifier as PerBlockNMSparsifier
    from fuseflow.sparsity.sten_names import RandomFractionSparsifier as RandomFractionSparsifier
    from fuseflow.sparsity.sten_names import ScalarFractionSparsifier as ScalarFractionSparsifier
    from fuseflow.sparsity.sten_names import ScalarThresholdSparsifier as ScalarThresholdSparsifier
    from fuseflow.sparsity.sten_names import SparseParameterWrapper as SparseParameterWrapper
    from fuseflow.sparsity.sten_names import SparseTensorWrapper as SparseTensorWrapper
    from fuseflow.sparsity.sten_names import random_fraction_sparsifier_dense_csc as random_fraction_sparsifier_dense_csc
    from fuseflow.sparsity.sten_names import random_mask_sparsify as random_mask_sparsify
    from fuseflow.sparsity.sten_names import scalar_mask_sparsify as scalar_mask_sparsify
    from fuseflow.sparsity.sten_names import sparsified_op as sparsified_op
    from fuseflow.sparsity.sten_names import torch_tensor_to_coo as torch_tensor_to_coo
    from fuseflow.sparsity.sten_names import torch_tensor_to_csr as torch_tensor_to_csr
    from fuseflow.sparsity.sten_names import torch_tensor_to_wrapped_dense as torch_tensor_to_wrapped_dense
    from fuseflow.sparsity.training.holding import Cubic as Cubic
    from fuseflow.sparsity.training.holding import Handle as Handle
    from fuseflow.sparsity.training.holding import attach as attach
    from fuseflow.sparsity.training.holding import iterative as iterative
    from fuseflow.sparsity.training.holding import layer_wise as layer_wise
    from fuseflow.sparsity.training.holding import one_shot as one_shot
else:
    __getattr__, __dir__, __all__ = deferred_names(__name__, __file__)
