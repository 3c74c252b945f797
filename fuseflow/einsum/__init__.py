"""The Einsum program: what a model means, before any decision of how to compute it.

`parse` reads the text form and `text` prints it, `verify` says what must hold, `interpret` is the dense meaning, `formats`
infers how results are stored.
"""
