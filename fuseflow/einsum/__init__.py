"""The Einsum program: what a model means, before any decision of how to compute it.

`parse` reads the text form and `text` prints it. `verify` checks what must hold of a program, `interpret` evaluates its dense meaning, and
`format_inference` decides how its results are stored.
"""
