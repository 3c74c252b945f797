"""Derivatives of operators where the derivative of the formula would be wasteful, not PyTorch's, or without an Einsum form.

rule        the type of a rule
rules       all rules, by operator
softmax     softmax, its logarithm, and the logarithm of a sum of exponentials
attention   scaled dot product attention
extremes    the largest and the smallest element
windows     windows side by side
"""
