# a ring of three nodes
0 1 0.5
1 2 0.5
2 0 2
