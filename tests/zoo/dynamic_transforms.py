"""Fourier layers, transformed functions, recurrences, writes to computed places, and triangular systems."""

from __future__ import annotations

from functools import partial

import torch
import torch.nn.functional as F
from torch import nn
from torch.func import functional_call, grad, jacrev, stack_module_state, vmap
from zoo_registry import Brought, zoo

TOKENS, WIDTH = 16, 8
model = partial(zoo.model, "dynamic")


@model()
def global_filter() -> Brought:
    class Filter(nn.Module):
        """A product with learned numbers in the frequencies of an image, as in GFNet."""

        def __init__(self) -> None:
            super().__init__()
            self.complex_weight = nn.Parameter(torch.randn(8, 5, 4, 2) * 0.1)

        def forward(self, x):
            spectrum = torch.fft.rfft2(x, dim=(1, 2), norm="ortho") * torch.view_as_complex(self.complex_weight)
            return torch.fft.irfft2(spectrum, s=(8, 8), dim=(1, 2), norm="ortho")

    return Filter(), (torch.randn(1, 8, 8, 4),)


@model()
def diagonal_state_space() -> Brought:
    class S4D(nn.Module):
        """A convolution as long as the sequence, whose kernel is a sum of exponentials: S4D."""

        def __init__(self, states: int = 8) -> None:
            super().__init__()
            self.D, self.log_dt = nn.Parameter(torch.randn(WIDTH)), nn.Parameter(torch.rand(WIDTH) - 3)
            self.C = nn.Parameter(torch.randn(WIDTH, states // 2, 2))
            self.log_A_real = nn.Parameter(torch.log(0.5 * torch.ones(WIDTH, states // 2)))
            self.A_imag = nn.Parameter(torch.pi * torch.arange(states // 2).float().repeat(WIDTH, 1))
            self.output = nn.Sequential(nn.Conv1d(WIDTH, 2 * WIDTH, 1), nn.GLU(dim=-2))

        def kernel(self, length):
            dt, C = torch.exp(self.log_dt), torch.view_as_complex(self.C)
            A = -torch.exp(self.log_A_real) + 1j * self.A_imag
            dtA = A * dt.unsqueeze(-1)
            K = dtA.unsqueeze(-1) * torch.arange(length)
            C = C * (torch.exp(dtA) - 1.0) / A
            return 2 * torch.einsum("hn,hnl->hl", C, torch.exp(K)).real

        def forward(self, u):
            length = u.size(-1)
            k_f = torch.fft.rfft(self.kernel(length), n=2 * length)
            u_f = torch.fft.rfft(u, n=2 * length)
            y = torch.fft.irfft(u_f * k_f, n=2 * length)[..., :length]
            return self.output(F.gelu(y + u * self.D.unsqueeze(-1)))

    return S4D(), (torch.randn(2, WIDTH, TOKENS),)


@model()
def fourier_operator() -> Brought:
    class SpectralConv2d(nn.Module):
        """The lowest frequencies of an image are mixed by complex weights: a layer of a Fourier neural operator."""

        def __init__(self, channels: int = 3, modes: int = 3) -> None:
            super().__init__()
            self.modes, self.w = modes, nn.Conv2d(channels, channels, 1)
            shape = (channels, channels, modes, modes)
            self.weights1 = nn.Parameter(torch.rand(shape, dtype=torch.cfloat) / channels**2)
            self.weights2 = nn.Parameter(torch.rand(shape, dtype=torch.cfloat) / channels**2)

        def forward(self, x):
            m = self.modes
            x_ft = torch.fft.rfft2(x)
            out_ft = torch.zeros(*x.shape[:2], x.size(-2), x.size(-1) // 2 + 1, dtype=torch.cfloat)
            out_ft[:, :, :m, :m] = torch.einsum("bixy,ioxy->boxy", x_ft[:, :, :m, :m], self.weights1)
            out_ft[:, :, -m:, :m] = torch.einsum("bixy,ioxy->boxy", x_ft[:, :, -m:, :m], self.weights2)
            return F.gelu(torch.fft.irfft2(out_ft, s=(x.size(-2), x.size(-1))) + self.w(x))

    return SpectralConv2d(), (torch.randn(2, 3, 8, 8),)


@model()
def auto_correlation() -> Brought:
    class AutoCorrelation(nn.Module):
        """Values are added up at the delays at which queries and keys agree best, as in Autoformer."""

        def __init__(self, kept: int = 2) -> None:
            super().__init__()
            self.kept = kept

        def forward(self, q, k, v):
            length = q.shape[-1]
            product = torch.fft.rfft(q, dim=-1) * torch.conj(torch.fft.rfft(k, dim=-1))
            correlation = torch.fft.irfft(product, n=length, dim=-1)
            weights, delays = torch.topk(correlation.mean(dim=(1, 2)), self.kept, dim=-1)
            weights = torch.softmax(weights, dim=-1)
            doubled, start = v.repeat(1, 1, 1, 2), torch.arange(length)
            out = torch.zeros_like(v)
            for i in range(self.kept):
                index = start + delays[:, i, None, None, None].expand(*v.shape[:3], 1)
                out = out + torch.gather(doubled, -1, index) * weights[:, i, None, None, None]
            return out

    return AutoCorrelation(), tuple(torch.randn(3, 2, 2, 4, TOKENS))


@model()
def ensemble_by_vmap() -> Brought:
    class Ensemble(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.members = nn.ModuleList(nn.Sequential(nn.Linear(WIDTH, 12), nn.ReLU(), nn.Linear(12, 3)) for _ in range(4))

        def forward(self, x):
            parameters, buffers = stack_module_state(list(self.members))
            base = self.members[0]
            logits = vmap(lambda p, b: functional_call(base, (p, b), (x,)))(parameters, buffers)
            return logits.softmax(-1).mean(0)

    return Ensemble(), (torch.randn(5, WIDTH),)


@model()
def divergence_by_jacobian() -> Brought:
    class Flow(nn.Module):
        """The velocity of a continuous flow, and its divergence, which is the trace of a Jacobian."""

        def __init__(self) -> None:
            super().__init__()
            self.net = nn.Sequential(nn.Linear(3, WIDTH), nn.Tanh(), nn.Linear(WIDTH, 3))

        def forward(self, x):
            jacobian = vmap(jacrev(self.net))(x)
            return self.net(x), jacobian.diagonal(dim1=-2, dim2=-1).sum(-1)

    return Flow(), (torch.randn(6, 3),)


@model()
def energy_forces() -> Brought:
    class Potential(nn.Module):
        """A potential of pairs and the forces of it, which are the gradient of the energy."""

        def __init__(self) -> None:
            super().__init__()
            self.net = nn.Sequential(nn.Linear(1, WIDTH), nn.SiLU(), nn.Linear(WIDTH, 1))

        def energy(self, position):
            i, j = torch.triu_indices(len(position), len(position), 1)
            distance = (position[i] - position[j]).square().sum(-1, keepdim=True).sqrt()
            return self.net(distance).sum()

        def forward(self, position):
            return self.energy(position), -grad(self.energy)(position)

    return Potential(), (torch.randn(5, 3),)


@model()
def selective_scan() -> Brought:
    class Selective(nn.Module):
        """A recurrence whose decay depends on the input, one step for each token: Mamba without its kernel."""

        def __init__(self, states: int = 4) -> None:
            super().__init__()
            self.x_proj, self.dt_proj = nn.Linear(WIDTH, 2 + 2 * states, bias=False), nn.Linear(2, WIDTH)
            self.A_log = nn.Parameter(torch.log(torch.arange(1.0, states + 1).repeat(WIDTH, 1)))
            self.D, self.states = nn.Parameter(torch.ones(WIDTH)), states

        def forward(self, u):
            delta, B, C = self.x_proj(u).split([2, self.states, self.states], dim=-1)
            delta = F.softplus(self.dt_proj(delta))
            deltaA = torch.exp(torch.einsum("bld,dn->bldn", delta, -torch.exp(self.A_log)))
            deltaB_u = torch.einsum("bld,bln,bld->bldn", delta, B, u)
            h, ys = u.new_zeros(u.shape[0], WIDTH, self.states), []
            for i in range(u.shape[1]):
                h = deltaA[:, i] * h + deltaB_u[:, i]
                ys.append(torch.einsum("bdn,bn->bd", h, C[:, i]))
            return torch.stack(ys, dim=1) + u * self.D

    return Selective(), (torch.randn(1, 6, WIDTH),)


@model()
def rwkv_time_mixing() -> Brought:
    class TimeMixing(nn.Module):
        """The attention of RWKV, which keeps a state in place from token to token."""

        def __init__(self) -> None:
            super().__init__()
            self.time_decay, self.time_first = nn.Parameter(-torch.rand(WIDTH)), nn.Parameter(torch.rand(WIDTH))
            self.mix_k, self.mix_v, self.mix_r = (nn.Parameter(torch.rand(WIDTH)) for _ in range(3))
            self.key, self.value, self.receptance, self.output = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(4))

        def forward(self, tokens, state):
            state, outputs = state.clone(), []
            for x in tokens:
                k = self.key(x * self.mix_k + state[0] * (1 - self.mix_k))
                v = self.value(x * self.mix_v + state[0] * (1 - self.mix_v))
                r = torch.sigmoid(self.receptance(x * self.mix_r + state[0] * (1 - self.mix_r)))
                state[0] = x
                aa, bb, pp = state[1].clone(), state[2].clone(), state[3].clone()
                ww = self.time_first + k
                qq = torch.maximum(pp, ww)
                e1, e2 = torch.exp(pp - qq), torch.exp(ww - qq)
                outputs.append(self.output(r * (e1 * aa + e2 * v) / (e1 * bb + e2)))
                ww = pp + self.time_decay
                qq = torch.maximum(ww, k)
                e1, e2 = torch.exp(ww - qq), torch.exp(k - qq)
                state[1], state[2], state[3] = e1 * aa + e2 * v, e1 * bb + e2, qq
            return torch.stack(outputs), state

    state = torch.zeros(4, WIDTH)
    state[3] = -1e30
    return TimeMixing(), (torch.randn(5, WIDTH), state)


@model()
def equilibrium_layer() -> Brought:
    class Equilibrium(nn.Module):
        """A layer that is applied until its output stays as it is."""

        def __init__(self) -> None:
            super().__init__()
            self.inner, self.outer = nn.Linear(WIDTH, WIDTH, bias=False), nn.Linear(WIDTH, WIDTH)
            nn.init.orthogonal_(self.inner.weight, gain=0.3)

        def forward(self, x):
            injected = self.outer(x)
            z = torch.zeros_like(x)
            for _ in range(50):
                previous, z = z, torch.tanh(self.inner(z) + injected)
                if (z - previous).norm() < 1e-4:
                    break
            return z

    return Equilibrium(), (torch.randn(3, WIDTH),)


@model()
def spatial_transformer() -> Brought:
    class Transformer(nn.Module):
        """An image sampled at places that a small network computes from it."""

        def __init__(self) -> None:
            super().__init__()
            self.theta = nn.Linear(2 * 6 * 6, 6)
            nn.init.normal_(self.theta.weight, std=0.01)
            self.theta.bias.data = torch.tensor([1.0, 0.1, 0.0, -0.1, 1.0, 0.1])

        def forward(self, x):
            theta = self.theta(x.flatten(1)).view(-1, 2, 3)
            grid = F.affine_grid(theta, list(x.size()), align_corners=False)
            return F.grid_sample(x, grid, mode="bilinear", padding_mode="zeros", align_corners=False)

    return Transformer(), (torch.randn(2, 2, 6, 6),)


@model()
def least_used_memory() -> Brought:
    class Memory(nn.Module):
        """A memory that is written at the slots that were read least."""

        def __init__(self) -> None:
            super().__init__()
            self.key, self.query = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)

        def forward(self, x, memory, usage):
            slots = usage.topk(x.shape[0], largest=False).indices
            memory = memory.index_copy(0, slots, self.key(x))
            weights = F.softmax(F.normalize(self.query(x), dim=-1) @ F.normalize(memory, dim=-1).t(), dim=-1)
            return weights @ memory, usage + weights.sum(0)

    return Memory(), (torch.randn(3, WIDTH), torch.randn(10, WIDTH), torch.rand(10))


@model(fast=True)
def delta_rule_chunk() -> Brought:
    class DeltaRule(nn.Module):
        """A chunk of a linear attention that replaces what it finds at a key: a unit triangular system, as in DeltaNet."""

        def forward(self, q, k, v, beta):
            k = F.normalize(k, dim=-1)
            k_beta, v_beta = k * beta[..., None], v * beta[..., None]
            system = torch.eye(k.shape[-2]) + (k_beta @ k.transpose(-1, -2)).tril(-1)
            solution = torch.linalg.solve_triangular(system, v_beta, upper=False, unitriangular=True)
            return (q @ k.transpose(-1, -2)).tril() @ solution

    q, k, v = torch.randn(3, 2, WIDTH, 4)
    return DeltaRule(), (q, k, v, torch.rand(2, WIDTH))
