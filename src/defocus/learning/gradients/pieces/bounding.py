r"""Norms that are not told too small.

A squared norm out of products of pairs adds up numbers as large as :math:`S^2`, where
:math:`S = \sum_t \|l_t\| \|r_t\|`, and is off by about the precision times that. Where the contributions of an example
cancel, the norm is far below :math:`S`, and can be lost altogether: the example would not be clipped. What is told is
then the largest norm that the rounding allows.

Reference:
    Higham, Accuracy and Stability of Numerical Algorithms (2nd ed.), section 3.1: an inner product of n numbers is off
    by at most about :math:`n u` times the product of the norms, in any order of summation.
"""

import torch

__all__ = ["bounded", "convolution_rounding", "product_rounding", "reach", "total_rounding"]

_FINE = 500
"""A square so many times its margin is right to 1/500, and its norm to 1e-3: it is told as it is."""


def bounded(
    squares: torch.Tensor, reach: torch.Tensor, numbers: int, *, products: float = 0.0, totals: float = 0.0
) -> torch.Tensor:
    """Squared norms (B,) that are not below the true ones by more than 1/500, from terms (B,) or (B, terms).

    ``reach`` (B,) is the square of the sum of the norms of what is added up, and ``numbers`` how many numbers are added
    up one after the other. ``products`` and ``totals`` are what a product of matrices is off by in the norm and in the
    clipped sum, relative to the norms of its factors, where processors round its inputs.
    """
    found = (squares if squares.dim() == 1 else squares.sum(1)).clamp(min=0)
    margin = (numbers * torch.finfo(found.dtype).eps / 2 + 2 * products) * reach
    found = torch.where(found >= _FINE * margin, found, found + margin)
    if not totals:
        return found
    norms, away = found.sqrt(), totals * reach.sqrt()
    return torch.where(norms >= 2 * _FINE * away, norms, norms + away).square()


def reach(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """The sum over the positions of the products of the norms, (B,), of two tensors (B, T, ...)."""
    wide = torch.promote_types(left.dtype, torch.float32)
    norms = [torch.linalg.vector_norm(side, dim=2, dtype=wide) for side in (left, right)]
    return (norms[0] * norms[1]).sum(1)


def product_rounding(like: torch.Tensor) -> float:
    """What a product of float32 matrices is off by because processors may round its inputs; narrow ones are exact."""
    if like.dtype != torch.float32:
        return 0.0
    return _ROUNDING.get(torch.get_float32_matmul_precision(), 0.0)


def total_rounding(like: torch.Tensor) -> float:
    """What the clipped sum is off by: narrow factors are scaled, and then written as two narrow numbers on a GPU."""
    if like.dtype in {torch.float32, torch.float64}:
        return product_rounding(like)
    return 2.0**-15 if like.is_cuda else _ROUNDING.get(torch.get_float32_matmul_precision(), 0.0)


def convolution_rounding(like: torch.Tensor) -> float:
    """What a convolution's weight gradient is off by: on a GPU its inputs may be rounded."""
    return 2.0**-10 if like.is_cuda and like.dtype != torch.float64 and torch.backends.cudnn.allow_tf32 else 0.0


_ROUNDING = {"high": 2.0**-10, "medium": 2.0**-8}
