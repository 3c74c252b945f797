"""Sparsity in PyTorch models: which tensors are sparse, by which rule, and how they are stored. `import fuseflow.sparsity as sp`."""
