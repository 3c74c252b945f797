"""Plans: a sparse constant operand of a product is divided into simpler parts, and the product becomes a sum of products.

`plan` holds the decisions of a user, and `decompose` rewrites a program. `cover` and `partition` decide which entry is in which
part. The caller measures the cost of a block, so nothing here knows of simulators.
"""
