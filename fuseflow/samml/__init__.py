"""SAMML: the dataflow graph of a region, and its forms.

`graph` and `primitives` define the graph and its nodes, and `tokens` defines the streams that run between them. `verify` checks that a
graph is well-formed: each primitive checks its own nodes, and `stream_shapes` proves that streams are aligned. `text` prints and
parses a graph, `dot` draws it, and `mlir` and `proto` translate it to and from the MLIR dialect and the wire format. The last two import
their libraries, so this package does not import them.
"""
