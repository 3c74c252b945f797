"""Operators that take, add up or move elements, as products with selections or as comparisons of positions.

selection_pass    the pass: each operator on data is replaced by a form in a table here
selections, selection_operators    sparse matrices of ones, and products with them
gathers, scatters    elements that are taken, or go, to positions that are known before the model runs, or are data; bags of embeddings
linear_operators    cumulative sums and extremes, averages, interpolation, triangles, diagonals, masks of attention, triangular systems
order_statistics, ranking    elements of a given rank, and sorting by comparisons
sparse_values, sliced_products    values of sparse matrices, and operators on their stored elements
losses, grid_samples    losses and distances, with known or computed classes; samples of images
edge_matrix, edge_spaces    values of edges as matrices
chosen_matrix    values at places that `topk` chooses as matrices: the rule of each operator, and those whose results leave the slots
chosen_values    dimensions that count chosen elements, and the matrices of values that have one
chosen_slots, chosen_operators    the other rules, by what an operator does with these dimensions
"""
