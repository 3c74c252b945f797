"""Linalg modules of MLIR, and Einsum programs of them. Only `torch_mlir` loads PyTorch.

torch_mlir        torch-mlir makes Linalg of a graph of PyTorch
module_io         reading, verifying and printing of modules, and the names of their attributes
reader            a text of the user becomes a program, by one of two readers:
to_einsum         ... of a model: each operation that computes something is one Einsum
roundtrip_reader  ... of a program that `program_writer` wrote: each operation with a name is an Einsum
generic, scalars, operators    what single operations mean
symbolic_values, emitter, unit_dimensions    how Einsums are made of them
program_writer, text    a scheduled program as Linalg
locations, sparse_encodings    the user's lines with names of Einsums, and storage formats, as attributes
"""
