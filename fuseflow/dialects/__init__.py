"""MLIR dialects, declared in Python. Importing one imports torch-mlir, never torch."""
