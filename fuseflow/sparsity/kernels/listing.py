"""All built-in implementations. They are registered when this module is imported."""

from fuseflow.sparsity.kernels import addition, conversions, pointwise, products

MODULES = (addition, conversions, pointwise, products)
"""The modules that register the built-in implementations."""
