"""Operators that take, add up or move elements, as products with selections or as comparisons of positions.

data_selection    the pass: each operator on data is replaced by a form in a table here
selections, selection_products    sparse matrices of ones, and products with them
known_positions, data_positions   gathers and scatters by positions that are known before the model runs, or are data
movements, segments, linear_maps  repetition and padding, reductions of segments, cumulative sums and interpolation
ranking, scans    sorting and cumulative extremes, by comparisons
known_masks, causal_attention     triangles and diagonals as masks
neighbours        operators on the stored elements of a sparse matrix
losses            losses and distances, with known or computed classes
edge_matrix, edge_spaces, edge_softmax, edge_products    values of edges as matrices
"""
