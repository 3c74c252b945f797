"""Plans: a sparse constant operand of a product is divided into simpler parts, and the product becomes the sum of theirs.

`plan` holds what a user decides, and `decompose` rewrites a program. `cover`, `nm_policy` and `rounding` decide which entry is in which
part. What a block costs is measured by whoever calls, so nothing here knows of simulators.
"""
