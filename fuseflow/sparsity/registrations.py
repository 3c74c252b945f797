"""The decorators of registrations. Whoever imports them from here has the built-in implementations first, and so may replace them."""

from fuseflow.sparsity.dispatch.registry import (
    register_bwd_op_impl,
    register_conversion,
    register_fwd_op_impl,
    register_sparsifier_implementation,
)
from fuseflow.sparsity.kernels.listing import MODULES

assert MODULES  # The built-in implementations are registered when they are imported.

__all__ = ["register_bwd_op_impl", "register_conversion", "register_fwd_op_impl", "register_sparsifier_implementation"]
