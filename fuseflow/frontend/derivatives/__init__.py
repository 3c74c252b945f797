"""Derivatives of operators where the derivative of the formula would be wasteful, not PyTorch's, or without an Einsum form.

rule        the type of a rule
rules       all rules, by operator
attention   softmax, and scaled dot product attention
extremes    the largest and the smallest element, also of windows, products, and reductions of all elements up to each
normalization    norms, distances, deviations, and norms of layers, groups, batches and pictures
pointwise   operators on single elements, rows of tables, and what a rule of `keep` leaves
"""
