"""SAMML: the dataflow graph of a region, and its forms.

`nodes` are the values, `streams` the tokens that run between them. `verify` says what must hold (`rules`: of each primitive,
`shapes`: how alignment is proved). `text` prints and parses, `dot` draws, `mlir` and `proto` translate to and from the MLIR dialect
and the wire format; the last two import their libraries and are not imported here.
"""
