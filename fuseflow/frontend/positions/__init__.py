"""Operators that take, add up or move elements, as products with selections or as comparisons of positions.

data_selection    the pass: each operator on data is replaced by a form in a table here
selections, selection_products    sparse matrices of ones, and products with them
gathers, scatters  elements that are taken, or go, to positions that are known before the model runs, or are data
known_matrices    cumulative sums and extremes, averages, interpolation, triangles, diagonals and masks of attention
ranking           sorting, by comparisons
neighbours        operators on the stored elements of a sparse matrix
losses            losses and distances, with known or computed classes
edge_matrix, edge_spaces    values of edges as matrices
chosen_matrix     values at places that `topk` chooses as matrices: the rule of each operator
chosen_spaces, chosen_values    dimensions that count chosen elements, and the matrices of values that have one
chosen_slots, chosen_operators, chosen_products, chosen_exits    the rules, by what an operator does with these dimensions
"""
