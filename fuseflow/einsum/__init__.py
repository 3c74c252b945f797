"""The Einsum program: the meaning of a model, before any decision of how to compute it.

`parse` reads the text form and `text` prints it. `verify` checks the rules for programs, `interpret` evaluates its dense meaning,
and `format_inference` decides how its results are stored.
"""
