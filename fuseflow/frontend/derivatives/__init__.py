"""Derivatives of operators where the derivative of the formula would be wasteful, not PyTorch's, or without an Einsum form.

rule        the type of a rule
rules       all rules, by operator
attention   scaled dot product attention
extremes    the largest and the smallest element
kept        what a rule of `keep` leaves
normalization    norms of layers, groups, batches and pictures
norms       norms, distances and deviations
pointwise   operators on single elements
products    products, and reductions of all elements up to each
softmax     softmax, its logarithm, and the logarithm of a sum of exponentials
tables      tables of embeddings
windows     windows side by side
"""
