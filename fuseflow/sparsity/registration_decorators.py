"""The decorators of registrations. Whoever imports them from here has the built-in implementations first, and so may replace them."""

from fuseflow.sparsity.dispatch.registry import (
    register_bwd_op_impl,
    register_conversion,
    register_fwd_op_impl,
    register_sparsifier_implementation,
)
from fuseflow.sparsity.kernels import matrix_kernels, pointwise, products

MODULES = (matrix_kernels, pointwise, products)
"""The modules that register the built-in implementations when they are imported."""

__all__ = ["register_bwd_op_impl", "register_conversion", "register_fwd_op_impl", "register_sparsifier_implementation"]
