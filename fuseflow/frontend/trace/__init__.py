"""The way of a model from its call to a graph of operators, and the passes over that graph.

model_call        a model with the arguments that it is called with, and its text as PyTorch exports it
tracing           the model runs once, and each operator becomes a node of a graph
flex_attention    the functions of a score and of a place, called for all at once
jagged_tensors    nested tensors of values and offsets
number_reads, named_region    the tracing of numbers in Python, and of parts with a name
fx_origin         where a node comes from: module, operator and line
dependence        the dependence of each value: on structure, weights or data
operator_support  the families of operators that have no Einsum form, and operators that lower to Linalg
refusals          all refusals of a model in one error
emptiness, layer_rewrites    passes that rewrite operators
constant_folding  the pass that lets PyTorch evaluate values that depend on no data
sparsified_tensors    the sparsity of weights and of results
training          what a training step needs beside the model
"""
