"""The selection n:m:g: of every m coordinates n are kept, and g columns in a row of a chunk are kept in the same places.

A tensor is cut into chunks of columns of m entries. A column keeps n entries; their places are its pattern. There are C(m, n) patterns, and
a chunk has g columns of each, so that a kernel walks g columns at a time that differ in nothing but their numbers. The selection is the one
of STen (Ivanov et al., arXiv 2304.07613), with two ways to give columns their patterns: its greedy one, and the best possible.
"""
