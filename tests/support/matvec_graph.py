"""The graph of a product of a sparse matrix and a vector, of which what it occupies and what it does are counted by hand."""

MATVEC = """graph matvec
tensor A[4, 6]  csr
tensor x[6]  dense
tensor y[4]  dense
output y
root = root()
A_i = scan(root) A.0
A_k = scan(A_i.ref) A.1
x_k = locate(A_k.crd) x.0
A_v = load(A_k.ref) A
x_v = load(x_k) x
mul = alu(A_v, x_v) mul N->0,N->0
red = reduce(mul) sum
y_i = write(A_i.crd) y.0
y_v = write(red) y.vals
"""
