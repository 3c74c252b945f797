"""Sparsity in PyTorch models: which tensors are sparse, by which rule, and how they are stored. `import fuseflow.sparsity as sp`."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fuseflow.errors import DispatchError, DispatchWarning
    from fuseflow.sparsity.dispatch.failure import set_dispatch_failure
    from fuseflow.sparsity.dispatch.same_format import SameFormatSparsifier
    from fuseflow.sparsity.kernels.product_kernel import ProductKernel
    from fuseflow.sparsity.kernels.products import register_products
    from fuseflow.sparsity.layouts.blocked import BCSR, BcsrTensor
    from fuseflow.sparsity.layouts.compressed import CSC, CSR, CscTensor, CsrTensor
    from fuseflow.sparsity.layouts.coo import COO, CooTensor
    from fuseflow.sparsity.layouts.dense import Dense, DenseTensor, Masked, MaskedSparseTensor
    from fuseflow.sparsity.layouts.ell import ELL, EllTensor
    from fuseflow.sparsity.layouts.n_of_m import NMLayout, NMTensor
    from fuseflow.sparsity.packed import PackedParameter, PackedTensor
    from fuseflow.sparsity.packing import pack, pack_inplace
    from fuseflow.sparsity.places.listing import register_places
    from fuseflow.sparsity.places.places import Places
    from fuseflow.sparsity.registrations import (
        register_bwd_op_impl,
        register_conversion,
        register_fwd_op_impl,
        register_sparsifier_implementation,
    )
    from fuseflow.sparsity.sparse_operator import sparsified_op
    from fuseflow.sparsity.sparsifiers.keep_all import KeepAll
    from fuseflow.sparsity.sparsifiers.magnitude import Magnitude
    from fuseflow.sparsity.sparsifiers.n_of_m import NM
    from fuseflow.sparsity.sparsifiers.random_fraction import RandomFraction
    from fuseflow.sparsity.sparsifiers.threshold import Threshold
    from fuseflow.sparsity.sten_names import (
        RandomFractionSparsifier,
        ScalarFractionSparsifier,
        SparseParameterWrapper,
        SparseTensorWrapper,
        random_fraction_sparsifier_dense_csc,
        random_mask_sparsify,
        scalar_mask_sparsify,
        torch_tensor_to_coo,
        torch_tensor_to_csr,
        torch_tensor_to_wrapped_dense,
    )

__all__ = [
    "BCSR",
    "COO",
    "CSC",
    "CSR",
    "ELL",
    "NM",
    "BcsrTensor",
    "CooTensor",
    "CscTensor",
    "CsrTensor",
    "Dense",
    "DenseTensor",
    "DispatchError",
    "DispatchWarning",
    "EllTensor",
    "KeepAll",
    "Magnitude",
    "Masked",
    "MaskedSparseTensor",
    "NMLayout",
    "NMTensor",
    "PackedParameter",
    "PackedTensor",
    "Places",
    "ProductKernel",
    "RandomFraction",
    "RandomFractionSparsifier",
    "SameFormatSparsifier",
    "ScalarFractionSparsifier",
    "SparseParameterWrapper",
    "SparseTensorWrapper",
    "Threshold",
    "pack",
    "pack_inplace",
    "random_fraction_sparsifier_dense_csc",
    "random_mask_sparsify",
    "register_bwd_op_impl",
    "register_conversion",
    "register_fwd_op_impl",
    "register_places",
    "register_products",
    "register_sparsifier_implementation",
    "scalar_mask_sparsify",
    "set_dispatch_failure",
    "sparsified_op",
    "torch_tensor_to_coo",
    "torch_tensor_to_csr",
    "torch_tensor_to_wrapped_dense",
]

_MODULES = {
    "BCSR": "sparsity.layouts.blocked",
    "BcsrTensor": "sparsity.layouts.blocked",
    "COO": "sparsity.layouts.coo",
    "CSC": "sparsity.layouts.compressed",
    "CSR": "sparsity.layouts.compressed",
    "CooTensor": "sparsity.layouts.coo",
    "CscTensor": "sparsity.layouts.compressed",
    "CsrTensor": "sparsity.layouts.compressed",
    "Dense": "sparsity.layouts.dense",
    "DenseTensor": "sparsity.layouts.dense",
    "DispatchError": "errors",
    "DispatchWarning": "errors",
    "ELL": "sparsity.layouts.ell",
    "EllTensor": "sparsity.layouts.ell",
    "KeepAll": "sparsity.sparsifiers.keep_all",
    "Magnitude": "sparsity.sparsifiers.magnitude",
    "Masked": "sparsity.layouts.dense",
    "MaskedSparseTensor": "sparsity.layouts.dense",
    "NM": "sparsity.sparsifiers.n_of_m",
    "NMLayout": "sparsity.layouts.n_of_m",
    "NMTensor": "sparsity.layouts.n_of_m",
    "PackedParameter": "sparsity.packed",
    "PackedTensor": "sparsity.packed",
    "Places": "sparsity.places.places",
    "ProductKernel": "sparsity.kernels.product_kernel",
    "RandomFraction": "sparsity.sparsifiers.random_fraction",
    "RandomFractionSparsifier": "sparsity.sten_names",
    "SameFormatSparsifier": "sparsity.dispatch.same_format",
    "ScalarFractionSparsifier": "sparsity.sten_names",
    "SparseParameterWrapper": "sparsity.sten_names",
    "SparseTensorWrapper": "sparsity.sten_names",
    "Threshold": "sparsity.sparsifiers.threshold",
    "pack": "sparsity.packing",
    "pack_inplace": "sparsity.packing",
    "random_fraction_sparsifier_dense_csc": "sparsity.sten_names",
    "random_mask_sparsify": "sparsity.sten_names",
    "register_bwd_op_impl": "sparsity.registrations",
    "register_conversion": "sparsity.registrations",
    "register_fwd_op_impl": "sparsity.registrations",
    "register_places": "sparsity.places.listing",
    "register_products": "sparsity.kernels.products",
    "register_sparsifier_implementation": "sparsity.registrations",
    "scalar_mask_sparsify": "sparsity.sten_names",
    "set_dispatch_failure": "sparsity.dispatch.failure",
    "sparsified_op": "sparsity.sparse_operator",
    "torch_tensor_to_coo": "sparsity.sten_names",
    "torch_tensor_to_csr": "sparsity.sten_names",
    "torch_tensor_to_wrapped_dense": "sparsity.sten_names",
}
"""The module of each name of the package. It is imported when the name is first used, so that specs are read without PyTorch."""


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name, obj=None)
    value = getattr(import_module(f"fuseflow.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})
