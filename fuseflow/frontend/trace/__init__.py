"""The way of a model from its call to a graph of operators, and the passes over that graph.

model_call        a model with the arguments that it is called with
tracing           the model runs once, and each operator becomes a node of a graph
autocast, strided, graph_modules, named_region    the tracing of parts of PyTorch that a graph does not tell
fx_origin         where a node comes from: module, operator and line
dependence        the dependence of each value: on structure, weights or data
aten_operators    the families of operators that have no Einsum form, and operators that lower to Linalg
operator_screen, refusals                         all refusals of a model in one error
emptiness, column_split, batch_norm               passes that rewrite operators
constant_folding, weight_folding, flops           the pass that lets PyTorch evaluate values that depend on no data
patterns, intermediates                           the sparsity of weights and of results
exported_text     the text of a model as PyTorch exports it
"""
