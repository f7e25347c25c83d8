r"""Scattering features: two layers of fixed wavelets and moduli, averaged. Nothing in them is learned from data.

With Morlet wavelets :math:`\psi_{j,\theta}` of two scales and eight angles and a Gaussian window :math:`\phi`, an
image x has the 81 channels :math:`x*\phi`, :math:`|x*\psi_{j,\theta}|*\phi` and
:math:`||x*\psi_{0,\theta}|*\psi_{1,\theta'}|*\phi`, each read at every fourth pixel: 7 times 7 for 28 times 28.

Reference:
    Bruna, Mallat (2013), Invariant scattering convolution networks; Oyallon, Mallat (2015), Deep roto-translation
    scattering; Tramèr, Boneh (2021), Differentially private learning needs better features (or much more data).
"""

import math

import torch

__all__ = ["CHANNELS", "scattering"]

SCALES, ANGLES = 2, 8
CHANNELS = 1 + SCALES * ANGLES + ANGLES * ANGLES
_STRIDE = 2**SCALES
_MARGIN = 4


def _envelope(side: int, sigma: float, angle: float, slant: float, frequency: float) -> torch.Tensor:
    """A wave in a Gaussian window, on a torus of this many pixels each way."""
    near = torch.arange(side, dtype=torch.float64)
    made = torch.zeros(side, side, dtype=torch.complex128)
    for down in (-2, -1, 0, 1, 2):
        for right in (-2, -1, 0, 1, 2):
            y, x = torch.meshgrid(near + down * side, near + right * side, indexing="ij")
            along = x * math.cos(angle) + y * math.sin(angle)
            across = y * math.cos(angle) - x * math.sin(angle)
            window = torch.exp(-(along**2 + (slant * across) ** 2) / (2 * sigma**2))
            made += window * torch.exp(1j * frequency * along)
    return made * slant / (2 * math.pi * sigma**2)


def _wavelet(side: int, scale: int, angle: int) -> torch.Tensor:
    """The Fourier transform of a Morlet wavelet: a wave in a window, less the window so that it sums to zero."""
    turned, sigma, slant = math.pi * angle / ANGLES, 0.8 * 2**scale, 4 / ANGLES
    wave = _envelope(side, sigma, turned, slant, 0.75 * math.pi / 2**scale)
    window = _envelope(side, sigma, turned, slant, 0.0)
    return torch.fft.fft2(wave - window * (wave.sum() / window.sum()))


def scattering(images: torch.Tensor, *, chunk: int = 256) -> torch.Tensor:
    """Features of images of shape (n, side, side), on their device: (n, 81, side/4, side/4)."""
    side = images.shape[-1] + 2 * _MARGIN
    device = images.device
    low = torch.fft.fft2(_envelope(side, 0.8 * 2 ** (SCALES - 1), 0.0, 1.0, 0.0)).real.float().to(device)
    waves = torch.stack([_wavelet(side, j, t) for j in range(SCALES) for t in range(ANGLES)])
    waves = waves.to(torch.complex64).to(device)

    def smooth(spectrum: torch.Tensor, window: torch.Tensor, stride: int) -> torch.Tensor:
        return torch.fft.ifft2(_thinned(spectrum * window, stride)).real[..., 1:-1, 1:-1]

    found = []
    for part in images.split(chunk):
        padded = torch.nn.functional.pad(part.float()[:, None], [_MARGIN] * 4, mode="reflect")
        spectrum = torch.fft.fft2(padded)
        first = torch.fft.fft2(torch.fft.ifft2(spectrum * waves).abs())
        coarse = torch.fft.ifft2(_thinned(first[:, :ANGLES, None] * waves[ANGLES:], 2)).abs().flatten(1, 2)
        layers = [
            smooth(spectrum, low, _STRIDE),
            smooth(first, low, _STRIDE),
            smooth(torch.fft.fft2(coarse), 4 * _thinned(low, 2), _STRIDE // 2),
        ]
        found.append(torch.cat(layers, dim=1))
    return torch.cat(found)


def _thinned(spectrum: torch.Tensor, stride: int) -> torch.Tensor:
    """The spectrum of every so-manieth pixel each way: frequencies that look alike there are added."""
    side = spectrum.shape[-1] // stride
    return spectrum.unflatten(-1, (stride, side)).unflatten(-3, (stride, side)).mean((-4, -2))
