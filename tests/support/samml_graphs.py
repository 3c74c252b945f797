"""Graphs by hand: the worked examples of the lowering contract, and one with every other primitive."""

from fuseflow.samml.nodes import Graph
from fuseflow.samml.text import parse

SPMM = """
graph spmm
tensor A[4, 5]  dcsr
tensor X[5, 3]  dcsr
tensor Y[4, 3]  dcsr
output Y

root = root()
A_i = scan(root) A.0 sequential
A_k = scan(A_i.ref) A.1 sequential
rep_i = repeat(root, A_i.crd)
X_k = scan(rep_i) X.0
intersect_k = join(A_k.crd, A_k.ref; X_k.crd, X_k.ref) intersect
X_j = scan(intersect_k.out1) X.1
A_val = load(intersect_k.out0) A
rep_j = repeat(A_val, X_j.crd)
X_val = load(X_j.ref) X sequential
mul = alu(rep_j, X_val) mul N->0,N->0
acc_k = accumulate(intersect_k.crd, X_j.crd, mul) sum order=1
write_i = write(A_i.crd) Y.0
write_j = write(acc_k.crd) Y.1
write_val = write(acc_k.val) Y.vals
"""

CHAIN = """
graph chain
tensor A[4, 5]  dcsr
tensor W[3, 2]  dcsr
tensor X[5, 3]  dcsr
tensor Y[4, 2]  dcsr
output Y

root = root()
A_i = scan(root) A.0 sequential
A_k = scan(A_i.ref) A.1 sequential
rep_i = repeat(root, A_i.crd)
X_k = scan(rep_i) X.0
intersect_k = join(A_k.crd, A_k.ref; X_k.crd, X_k.ref) intersect
X_f = scan(intersect_k.out1) X.1
A_val = load(intersect_k.out0) A
rep_f = repeat(A_val, X_f.crd)
X_val = load(X_f.ref) X sequential
mul = alu(rep_f, X_val) mul N->0,N->0
acc_k = accumulate(intersect_k.crd, X_f.crd, mul) sum order=1
W_f = scan(rep_i) W.0
intersect_f = join(acc_k.crd, acc_k.val; W_f.crd, W_f.ref) intersect
W_h = scan(intersect_f.out1) W.1
rep_h = repeat(intersect_f.out0, W_h.crd)
W_val = load(W_h.ref) W sequential
mul'2 = alu(rep_h, W_val) mul N->0,N->0
acc_f = accumulate(intersect_f.crd, W_h.crd, mul'2) sum order=1
write_i = write(A_i.crd) Y.0
write_h = write(acc_f.crd) Y.1
write_val = write(acc_f.val) Y.vals
"""

SOFTMAX = """
graph softmax
tensor D[4, 5]  dense
tensor M[4, 5]  dcsr
tensor Y[4, 5]  dcsr
output Y

root = root()
M_i = scan(root) M.0 sequential
M_j = scan(M_i.ref) M.1 sequential
rep_i = repeat(root, M_i.crd)
D_i = locate(M_i.crd, rep_i) D.0
rep_j = repeat(D_i, M_j.crd)
D_j = locate(M_j.crd, rep_j) D.1
D_val = load(D_j) D
M_val = load(M_j.ref) M sequential
mask = alu(M_val, D_val) where N->0,N->0,-inf
max_j = reduce(mask) max
rep_j'2 = repeat(max_j, M_j.crd)
sub = alu(mask, rep_j'2) sub N->-inf,N->-inf
exp = alu(sub) exp N->-inf
sum_j = reduce(exp) sum
rep_j'3 = repeat(sum_j, M_j.crd)
div = alu(exp, rep_j'3) div N->0,N->0
write_i = write(M_i.crd) Y.0
write_j = write(M_j.crd) Y.1
write_val = write(div) Y.vals

fiber_fifo sub[0]
fiber_fifo div[0]
depth sub[0] 128
"""

SDDMM = """
graph sddmm
tensor K[5, 3]  dense
tensor M[4, 5]  dcsr
tensor Q[4, 3]  dense
tensor Y[4, 5]  dcsr
output Y

root = root()
M_i = scan(root) M.0 sequential
M_j = scan(M_i.ref) M.1 sequential
M_val = load(M_j.ref) M sequential
rep_i = repeat(root, M_i.crd)
Q_i = locate(M_i.crd, rep_i) Q.0
rep_j'2 = repeat(Q_i, M_j.crd)
Q_k = scan(rep_j'2) Q.1
Q_val = load(Q_k.ref) Q sequential
rep_j = repeat(rep_i, M_j.crd)
K_j = locate(M_j.crd, rep_j) K.0
rep_k = repeat(K_j, Q_k.crd)
K_k = locate(Q_k.crd, rep_k) K.1
K_val = load(K_k) K
mul = alu(Q_val, K_val) mul N->0,N->0
red_k = reduce(mul) sum
mul'2 = alu(M_val, red_k) mul N->0,N->0
write_i = write(M_i.crd) Y.0
write_j = write(M_j.crd) Y.1
write_val = write(mul'2) Y.vals
"""

# Not a sensible computation: every node type and attribute once, in a graph that verifies.
OTHERS = """
graph others
tensor A[4, 6]  dcsr f64 fill -inf
tensor B[4, 6]  coo
tensor C[6]  (compressed) i32
tensor S[]  dense
tensor Y[4, 6]  csr fill 1.5
tensor Z[2, 2]  csc
output Y, Z, S

root = root()
A_i = scan(root) A.0 sequential
B_i = scan(root) B.0 sequential
all_i = range(root) 4
full_i = join(all_i; A_i.crd, A_i.ref; B_i.crd, B_i.ref) left
A_j = scan(full_i.out0) A.1
B_j = scan(full_i.out1) B.1
union_j = join(A_j.crd, A_j.ref; B_j.crd, B_j.ref) union
A_val = load(union_j.out0) A
B_val = load(union_j.out1) B
add = alu(A_val, B_val) max N->-inf,N->0.1
scale = alu(add) where N->0,1e-30,2.5
drop_j = drop(union_j.crd, scale) value=0
some = drop(full_i.crd, drop_j.crd, drop_j.val)
some_i = align(full_i.crd, some.crd0, union_j.crd)
old_j = align(some.crd0, full_i.crd, some.crd1)
old_val = align(some.crd0, full_i.crd, some.val)
copy = alu(old_val) copy N->0
low_i = split(full_i.crd) 2
C_k = scan(root) C.0 sequential
C_val = load(C_k.ref) C sequential
red_k = reduce(C_val) min
rep = repeat(red_k, low_i.outer)
deep = repeat(rep, low_i.inner)
both = flatten(low_i.outer, low_i.inner) 2
rep_crd = repeat(full_i.crd, union_j.crd)
tall = accumulate(full_i.crd, union_j.crd, scale) prod order=1
turned = permute(full_i.crd, union_j.crd, scale) order=1,0
write_s = write(red_k) S.vals
write_i = write(full_i.crd) Y.0
write_j = write(old_j) Y.1
write_val = write(copy) Y.vals
write_i'2 = write(low_i.outer) Z.0
write_j'2 = write(low_i.inner) Z.1
write_val'2 = write(deep) Z.vals
"""

# Rows dealt to lanes: their sums are merged where they were dealt, what they are made of a level below.
LANES = """
graph lanes
tensor A[4, 5]  dcsr
tensor Y[4, 5]  dcsr
tensor z[4]  (compressed)
output Y, z

root = root()
A_i = scan(root) A.0 sequential
crd = fork(A_i.crd) 2
ref = fork(A_i.ref) 2
lane0 = scan(ref.lane0) A.1
lane1 = scan(ref.lane1) A.1
val0 = load(lane0.ref) A sequential
val1 = load(lane1.ref) A sequential
sum0 = reduce(val0) sum
sum1 = reduce(val1) sum
i = merge(crd.lane0, crd.lane1) levels=0
sum = merge(sum0, sum1) levels=0
k = merge(lane0.crd, lane1.crd) levels=1
val = merge(val0, val1) levels=1
write_i = write(i) Y.0
write_k = write(k) Y.1
write_val = write(val) Y.vals
write_i'2 = write(A_i.crd) z.0
write_val'2 = write(sum) z.vals
"""

# Rows dealt to lanes, each of which writes what it has of a dense tensor.
WRITTEN = """
graph written
tensor X[4, 5]  dense
tensor Y[4, 5]  dense
output Y

root = root()
X_i = scan(root) X.0 sequential
crd = fork(X_i.crd) 2
ref = fork(X_i.ref) 2
lane0 = scan(ref.lane0) X.1
lane1 = scan(ref.lane1) X.1
val0 = load(lane0.ref) X
val1 = load(lane1.ref) X
write_i/0 = write(crd.lane0) Y.0 levels=0 lane=0 lanes=2
write_i/1 = write(crd.lane1) Y.0 levels=0 lane=1 lanes=2
write_j/0 = write(lane0.crd) Y.1 levels=1 lane=0 lanes=2
write_j/1 = write(lane1.crd) Y.1 levels=1 lane=1 lanes=2
write_val/0 = write(val0) Y.vals levels=1 lane=0 lanes=2
write_val/1 = write(val1) Y.vals levels=1 lane=1 lanes=2
"""

# A block product, joined to blocks of another tensor, and what else there is on tiles.
TILES = """
graph tiles
tensor A[3, 4]  csr tile 2x3
tensor X[4, 2]  dense tile 3x2
tensor B[3, 2]  dcsr f64 tile 2x2 fill -1.5
tensor Y[3, 2]  csr f64 tile 2x2
tensor m[3]  dense f64 tile 2x1
output Y, m

root = root()
A_i = scan(root) A.0 sequential
A_k = scan(A_i.ref) A.1 sequential
A_v = load(A_k.ref) A sequential
X_k = locate(A_k.crd) X.0
X_j = scan(X_k) X.1
X_v = load(X_j.ref) X sequential
rep = repeat(A_v, X_j.crd)
mul = alu(rep, X_v) matmul N->0,N->0
acc = accumulate(A_k.crd, X_j.crd, mul) sum order=1
B_i = scan(root) B.0 sequential
i = join(A_i.crd; B_i.crd, B_i.ref) left
B_j = scan(i.out0) B.1
B_v = load(B_j.ref) B
j = join(acc.crd, acc.val; B_j.crd, B_v) union
add = alu(j.out0, j.out1) add N->0,N->-1.5
all = alu(add) row_max N->0
deep = reduce(all) max
shift = repeat(deep, j.crd)
exp = alu(add, shift) sub N->0,N->0
half = alu(exp) mul N->0,0.5
gram = alu(half, add) matmul_t N->0,N->0
few = drop(j.crd, gram)
write_i = write(A_i.crd) Y.0
write_j = write(j.crd) Y.1
write_val = write(gram) Y.vals
write_i'2 = write(A_i.crd) m.0
write_val'2 = write(deep) m.vals
"""

# Two of every four coordinates of a row, and of these the three largest of all, with their coordinates.
KEPT = """
graph kept
tensor A[4, 9]  dcsr
tensor Y[4, 9]  dcsr
tensor Z[4, 9]  dcsr
output Y, Z

root = root()
A_i = scan(root) A.0 sequential
A_j = scan(A_i.ref) A.1 sequential
A_val = load(A_j.ref) A sequential
pair = select(A_j.crd, A_val) keep=2 every=4 levels=1
top = select(A_i.crd, pair.crd, pair.val) keep=3 every=0 levels=2
write_i = write(A_i.crd) Y.0
write_j = write(pair.crd) Y.1
write_val = write(pair.val) Y.vals
write_i'2 = write(top.crd0) Z.0
write_j'2 = write(top.crd1) Z.1
write_val'2 = write(top.val) Z.vals
"""

TEXTS: dict[str, str] = {
    "spmm": SPMM,
    "chain": CHAIN,
    "softmax": SOFTMAX,
    "sddmm": SDDMM,
    "others": OTHERS,
    "lanes": LANES,
    "written in lanes": WRITTEN,
    "tiles": TILES,
    "kept": KEPT,
}
GRAPHS: dict[str, Graph] = {name: parse(text) for name, text in TEXTS.items()}
