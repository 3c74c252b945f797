"""Complex numbers as pairs, and Fourier transforms as products: each gives what PyTorch and NumPy give."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from sources import compiled_at
from torch import Tensor, nn
from torch.nn import functional as F

import fuseflow as ff
from fuseflow.errors import FrontendError

GENERATOR = torch.Generator().manual_seed(5)
X = torch.randn(4, 6, generator=GENERATOR)
Y = torch.randn(4, 6, generator=GENERATOR)
Z = torch.complex(X, Y)
fft = torch.fft


class SpectralConvolution(nn.Module):
    """The layer of a Fourier neural operator: the lowest frequencies are weighed by complex weights, and the others are 0."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(2, 3, 3, dtype=torch.complex64, generator=GENERATOR))

    def forward(self, x: Tensor) -> Tensor:
        frequencies = fft.rfft(x)
        out = torch.zeros(x.shape[0], 3, frequencies.shape[-1], dtype=torch.cfloat)
        out[:, :, :3] = torch.einsum("bix,iox->box", frequencies[:, :, :3], self.weight)
        y: Tensor = fft.irfft(out, n=x.shape[-1])
        return y


def rotated(x: Tensor, y: Tensor) -> Tensor:
    """Rotary positions, as models of language write them."""
    angles = torch.outer(torch.arange(4.0), 1 / torch.tensor([1.0, 10.0, 100.0]))
    turned = torch.view_as_complex(x.reshape(4, 3, 2)) * torch.polar(torch.ones_like(angles), angles)
    z: Tensor = torch.view_as_real(turned).flatten(1) + y
    return z


def written_parts(x: Tensor, y: Tensor) -> Tensor:
    z = fft.fft(x)
    z.real[0] = y[0]
    z[1, :2] = 1j * y[1, :2]
    difference: Tensor = z.real - z.imag
    return difference


CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "magnitudes": (lambda x: fft.rfft(x).abs(), (X,)),
    "back again": (lambda x: fft.irfft(fft.rfft(x), n=6), (X,)),
    "odd length": (lambda x: fft.irfft(fft.rfft(x[:, :5]), n=5), (X,)),
    "cut and padded": (lambda x: fft.rfft(x, n=4).real.sum(1) + fft.rfft(x, n=9).imag.sum(1), (X,)),
    "frequencies are padded": (lambda x: fft.irfft(F.pad(fft.rfft(x), (0, 2))), (X,)),
    "padded with a number": (lambda x: torch.view_as_real(F.pad(fft.fft(x), (1, 2), value=3.0)), (X,)),
    "padded around": (lambda x: torch.view_as_real(F.pad(fft.fft(torch.stack([x, x])), (1, 2), mode="circular")), (X,)),
    "norms": (lambda x: fft.fft(x, norm="ortho").real + fft.ifft(x, norm="forward").imag, (X,)),
    "two dimensions": (lambda x: fft.ifft2(fft.fft2(x) * 2).real, (X,)),
    "real, two dimensions": (lambda x: fft.irfft2(fft.rfft2(x), s=(4, 6)), (X,)),
    "all dimensions": (lambda x: fft.rfftn(x.reshape(2, 2, 6), dim=(0, 2)).imag, (X,)),
    "lengths of all": (lambda x: fft.irfftn(fft.rfftn(x, s=(3, 8)), s=(3, 8)), (X,)),
    "fnet": (lambda x: fft.fft(fft.fft(x, dim=-1), dim=-2).real, (X,)),
    "hermitian": (lambda x: fft.hfft(fft.ihfft(x), n=6), (X,)),
    "correlation": (lambda x, y: fft.ifft(fft.fft(x) * fft.fft(y).conj()).real, (X, Y)),
    "division": (lambda x, y: (fft.fft(x) / (fft.fft(y) + 4)).imag, (X, Y)),
    "division by real": (lambda x, y: (fft.fft(x) / (y.abs() + 1)).imag, (X, Y)),
    "reciprocal": (lambda x: (1 / (fft.fft(x) + 5j)).real, (X,)),
    "powers": (lambda x: (fft.fft(x) ** 3).imag + fft.fft(x).square().real, (X,)),
    "an imaginary number": (lambda x, y: ((x + 2j).T @ (y + 0j).conj()).imag, (X, Y)),
    "one less": (lambda x: (1 - fft.fft(x)).real + (1j - fft.fft(x)).imag, (X,)),
    "exponentials": (lambda x, y: torch.exp(1j * x).real + torch.exp(torch.complex(x, y)).imag, (X, Y)),
    "broadcast parts": (lambda x, y: (x[:, :1] + 1j * y[:1]).sum(1).imag, (X, Y)),
    "lists": (lambda x: torch.stack(fft.fft(x).unbind(0)[:2]).imag + fft.fft(x).split(2)[1].real, (X,)),
    "movements": (
        lambda x: torch.cat([fft.fft(x).roll(1, 1), fft.fftshift(fft.fft(x)).flip(0), fft.ifftshift(fft.fft(x), 1)]).imag,
        (X,),
    ),
    "real beside complex": (lambda x, y: torch.cat([fft.fft(x), (y + 0j)]).imag, (X, Y)),
    "products": (lambda x, y: (fft.fft(x) @ fft.fft(y).T).real, (X, Y)),
    "rotary": (rotated, (X, Y)),
    "complex inputs": (lambda z, y: (z * z.conj()).real + (z * y).imag, (Z, Y)),
    "known frequencies": (lambda x: fft.irfft(fft.rfft(x) * fft.rfft(torch.arange(6.0)), n=6), (X,)),
    "spectral convolution": (SpectralConvolution(), (torch.randn(2, 2, 8, generator=GENERATOR),)),
    "known magnitudes": (lambda x: x * fft.fft(torch.arange(6.0)).abs(), (X,)),
    "written parts": (written_parts, (X, Y)),
    "f64": (lambda x: fft.fft(x).imag, (X.double(),)),
}


@pytest.mark.parametrize("case", CASES)
def test_complex_numbers_give_what_pytorch_gives(case: str) -> None:
    model, inputs = CASES[case]
    expected = model(*inputs).detach().numpy()
    for compiled in compiled_at(model, inputs, "none", "layerwise", "full"):
        (output,) = compiled.run().outputs.values()
        np.testing.assert_allclose(
            np.asarray(output, dtype=np.float64), expected, rtol=1e-4, atol=2e-5, err_msg=str(compiled.schedule)
        )


def test_transforms_give_what_numpy_gives() -> None:
    result = ff.compile(lambda x: torch.view_as_real(fft.fft(x)), (X.double(),)).run()
    (output,) = result.outputs.values()
    pairs, expected = np.asarray(output, dtype=np.float64), np.fft.fft(X.double().numpy())
    np.testing.assert_allclose(pairs, np.stack((expected.real, expected.imag), -1), atol=1e-12)


def written_later(x: Tensor) -> Tensor:
    z = fft.fft(x)
    pairs = torch.view_as_real(z)
    pairs[:, :, 0] = 0.0
    real: Tensor = z.real
    return real


REFUSED: dict[str, tuple[Callable[..., Any], str]] = {
    "a complex output": (fft.fft, "return `torch.view_as_real`"),
    "angles": (lambda x: fft.fft(x).angle(), "compute with `.real` and `.imag`"),
    "a view that is written to": (written_later, "compute with `.real` and `.imag`"),
    "a matrix too large": (lambda x: fft.rfft(x.sum() * torch.ones(5003)).abs(), "transform it outside the model"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_has_no_pairs_is_refused_with_what_to_do(case: str) -> None:
    model, hint = REFUSED[case]
    with pytest.raises(FrontendError) as caught:
        ff.compile(model, (X,))
    assert hint in str(caught.value)
