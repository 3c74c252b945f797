"""Operators as formulas of simpler operators, which the second, dense trace of a model runs.

dense_graph       the second trace, in which equal calls are traced once
densify           the interpreter of the traced graph, with the tables of formulas
operator_formulas    operators of single elements, and products of matrices
slices_and_windows   slices, padding, windows and convolutions
normalization     means, variances and norms
recurrent         recurrent cells and layers
backward, training_step    gradients, and what else a training step computes
backward_operators    operators of gradients
complex_pairs, pair_arithmetic    complex numbers as pairs of real ones
"""
