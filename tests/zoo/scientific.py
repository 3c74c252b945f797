"""Scientific kernels, as a user writes them in PyTorch: solvers, stencils, graph algorithms and tensor kernels."""

from __future__ import annotations

from functools import partial

import torch
import torch.nn.functional as F
from zoo_registry import Brought, zoo

N = 16
model = partial(zoo.model, "scientific")


class Kernel(torch.nn.Module):
    """A function as a module, the way users wrap what is not a network."""

    def __init__(self, function) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args):
        return self.function(*args)


def sparse(rows: int = N, columns: int = N, density: float = 0.2) -> torch.Tensor:
    return torch.randn(rows, columns) * (torch.rand(rows, columns) < density)


def positive_definite() -> torch.Tensor:
    """A diagonally dominant symmetric matrix."""
    off = sparse()
    return off + off.T + 8 * torch.eye(N)


def adjacency() -> torch.Tensor:
    edges = (torch.rand(N, N) < 0.2).float()
    return torch.maximum(edges, torch.eye(N))


@model(fast=True)
def spmv() -> Brought:
    return Kernel(lambda A, x: A @ x), (sparse().to_sparse_csr(), torch.randn(N))


@model()
def spmm() -> Brought:
    return Kernel(lambda A, X: torch.sparse.mm(A, X)), (sparse().to_sparse_csr(), torch.randn(N, 8))


@model()
def spmm_coo() -> Brought:
    return Kernel(lambda A, X: A @ X), (sparse().to_sparse_coo(), torch.randn(N, 8))


@model()
def sp_gemm() -> Brought:
    return Kernel(lambda A, B: (A @ B).to_dense()), (sparse().to_sparse_csr(), sparse().to_sparse_csr())


@model(fast=True)
def sddmm() -> Brought:
    return Kernel(lambda S, A, B: S * (A @ B.T)), ((torch.rand(N, N) < 0.2).float(), torch.randn(N, 4), torch.randn(N, 4))


@model()
def sddmm_sampled_addmm() -> Brought:
    kernel = Kernel(lambda S, A, B: torch.sparse.sampled_addmm(S, A, B, beta=0.0).to_dense())
    return kernel, (sparse().to_sparse_csr(), torch.randn(N, 4), torch.randn(4, N))


@model(fast=True)
def mttkrp() -> Brought:
    kernel = Kernel(lambda X, B, C: torch.einsum("ijk,jr,kr->ir", X, B, C))
    return kernel, (torch.randn(6, 5, 4), torch.randn(5, 3), torch.randn(4, 3))


@model()
def ttm() -> Brought:
    return Kernel(lambda X, U: torch.einsum("ijk,kr->ijr", X, U)), (torch.randn(6, 5, 4), torch.randn(4, 3))


@model()
def tucker() -> Brought:
    kernel = Kernel(lambda G, U, V, W: torch.einsum("abc,ia,jb,kc->ijk", G, U, V, W))
    return kernel, (torch.randn(2, 3, 2), torch.randn(4, 2), torch.randn(5, 3), torch.randn(4, 2))


@model(fast=True)
def jacobi_sweep() -> Brought:
    def sweep(A, b, x):
        d = torch.diag(A)
        return (b - (A - torch.diag(d)) @ x) / d

    return Kernel(sweep), (positive_definite(), torch.randn(N), torch.randn(N))


@model()
def jacobi_ten_sweeps() -> Brought:
    def sweeps(A, D, b):
        x = torch.zeros_like(b)
        for _ in range(10):
            x = (b - A @ x) / D
        return x

    A = positive_definite()
    return Kernel(sweeps), (A - torch.diag(A.diag()), A.diag(), torch.randn(N))


@model(fast=True)
def conjugate_gradient_step() -> Brought:
    def step(A, x, r, p):
        Ap = A @ p
        rs = r @ r
        alpha = rs / (p @ Ap)
        x = x + alpha * p
        r_new = r - alpha * Ap
        return x, r_new, r_new + (r_new @ r_new) / rs * p

    return Kernel(step), (positive_definite().to_sparse_csr(), *torch.randn(3, N))


@model()
def conjugate_gradient() -> Brought:
    def solve(A, b):
        x, r, p = torch.zeros_like(b), b, b
        rs = torch.dot(r, r)
        for _ in range(4):
            Ap = A @ p
            alpha = rs / torch.dot(p, Ap)
            x = x + alpha * p
            r = r - alpha * Ap
            rs_new = torch.dot(r, r)
            p = r + (rs_new / rs) * p
            rs = rs_new
        return x

    return Kernel(solve), (positive_definite(), torch.randn(N))


@model(fast=True)
def power_iteration() -> Brought:
    def iterate(A, x):
        for _ in range(4):
            x = A @ x
            x = x / torch.linalg.vector_norm(x)
        return x

    return Kernel(iterate), (positive_definite().to_sparse_csr(), torch.randn(N))


@model(fast=True)
def pagerank() -> Brought:
    class PageRank(torch.nn.Module):
        def __init__(self, A: torch.Tensor, damping: float = 0.85) -> None:
            super().__init__()
            self.register_buffer("P", (A / A.sum(0)).to_sparse_csr())
            self.damping = damping

        def forward(self, rank):
            for _ in range(5):
                rank = self.damping * (self.P @ rank) + (1 - self.damping) / rank.shape[0]
            return rank

    return PageRank(adjacency()), (torch.full((N,), 1 / N),)


@model()
def label_propagation() -> Brought:
    def propagate(A, Y):
        P = A / A.sum(1, keepdim=True)
        F = Y
        for _ in range(3):
            F = 0.9 * P @ F + 0.1 * Y
        return F.argmax(dim=1)

    return Kernel(propagate), (adjacency(), torch.eye(N)[:, :4])


@model()
def label_spreading_scores() -> Brought:
    def propagate(A, Y):
        F = Y
        for _ in range(3):
            F = 0.9 * A @ F + 0.1 * Y
        return F.softmax(dim=1)

    return Kernel(propagate), (adjacency().to_sparse_csr(), torch.randn(N, 4))


@model()
def breadth_first_search() -> Brought:
    def search(A, frontier):
        visited = frontier
        for _ in range(3):
            frontier = ((A @ frontier) > 0).float() * (1 - visited)
            visited = visited + frontier
        return visited

    return Kernel(search), (adjacency(), F.one_hot(torch.tensor(0), N).float())


@model()
def shortest_paths() -> Brought:
    def relax(D, x):
        for _ in range(3):
            x = torch.minimum(x, (D + x[None, :]).amin(dim=1))
        return x

    weights = torch.where(adjacency() > 0, torch.rand(N, N), torch.tensor(1e6))
    return Kernel(relax), (weights, torch.cat([torch.zeros(1), torch.full((N - 1,), 1e6)]))


@model()
def triangle_count() -> Brought:
    return Kernel(lambda A: ((A @ A) * A).sum() / 6), (adjacency(),)


@model(fast=True)
def stencil_1d() -> Brought:
    return Kernel(lambda u: 0.25 * u[:-2] + 0.5 * u[1:-1] + 0.25 * u[2:]), (torch.randn(32),)


@model()
def stencil_convolution() -> Brought:
    kernel = torch.tensor([[0.0, 1.0, 0.0], [1.0, -4.0, 1.0], [0.0, 1.0, 0.0]]).reshape(1, 1, 3, 3)
    return Kernel(lambda u: F.conv2d(u, kernel, padding=1)), (torch.randn(1, 1, 8, 8),)


@model()
def heat_equation() -> Brought:
    def heat(u):
        for _ in range(3):
            lap = torch.roll(u, 1, 0) + torch.roll(u, -1, 0) + torch.roll(u, 1, 1) + torch.roll(u, -1, 1) - 4 * u
            u = u + 0.1 * lap
        return u

    return Kernel(heat), (torch.randn(8, 8),)


@model()
def heat_equation_padded() -> Brought:
    def heat(u):
        for _ in range(2):
            p = F.pad(u, (1, 1))
            u = u + 0.1 * (p[2:] - 2 * u + p[:-2])
        return u

    return Kernel(heat), (torch.randn(16),)


@model()
def wave_equation() -> Brought:
    def wave(u, before):
        for _ in range(2):
            inner = u[1:-1] * 2 - before[1:-1] + 0.1 * (u[2:] - 2 * u[1:-1] + u[:-2])
            u, before = torch.cat([u[:1], inner, u[-1:]]), u
        return u

    return Kernel(wave), (torch.randn(16), torch.randn(16))


@model()
def n_body_forces() -> Brought:
    def forces(x, m):
        d = x[:, None, :] - x[None, :, :]
        r2 = (d * d).sum(-1) + 0.1
        return -(m[None, :, None] * d / (r2 * r2.sqrt())[:, :, None]).sum(1)

    return Kernel(forces), (torch.randn(N, 3), torch.rand(N))


@model()
def chebyshev_filter() -> Brought:
    def chebyshev(L, x, c):
        t0, t1 = x, L @ x
        y = c[0] * t0 + c[1] * t1
        for k in range(2, 4):
            t0, t1 = t1, 2 * (L @ t1) - t0
            y = y + c[k] * t1
        return y

    return Kernel(chebyshev), (positive_definite().to_sparse_csr() * 0.1, torch.randn(N, 2), torch.randn(4))


@model()
def fourier_transform() -> Brought:
    return Kernel(lambda x: torch.fft.rfft(x).abs()), (torch.randn(N),)


@model()
def k_means_step() -> Brought:
    def step(x, c):
        assign = F.one_hot(torch.cdist(x, c).argmin(1), 4).to(x.dtype)
        return (assign.T @ x) / assign.sum(0).clamp(min=1)[:, None]

    return Kernel(step), (torch.randn(N, 3), torch.randn(4, 3))


@model()
def matrix_factorisation_loss() -> Brought:
    kernel = Kernel(lambda M, R, U, V: (M * (R - U @ V.T)).square().sum())
    return kernel, ((torch.rand(N, N) < 0.3).float(), torch.randn(N, N), torch.randn(N, 4), torch.randn(N, 4))


@model()
def non_negative_factorisation_step() -> Brought:
    return Kernel(lambda V, W, H: H * (W.T @ V) / (W.T @ W @ H + 1e-6)), (torch.rand(N, 8), torch.rand(N, 3), torch.rand(3, 8))


@model()
def block_diagonal_product() -> Brought:
    return Kernel(lambda A, x: torch.block_diag(*A) @ x), (torch.randn(4, 4, 4), torch.randn(N))


@model()
def sparse_row_softmax() -> Brought:
    A = adjacency().to_sparse_coo()
    return Kernel(lambda A, X: torch.sparse.mm(torch.sparse.softmax(A, dim=1), X)), (A, torch.randn(N, 4))
