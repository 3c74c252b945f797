"""Training steps: losses, optimizers as formulas of tensors, and the same steps in PyTorch, with which a run is compared."""
