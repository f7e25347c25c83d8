"""How processors multiply: what they round before, and how they add.

Reference:
    Fasi, Higham, Mikaitis, Pranesh (2021), Numerical behavior of NVIDIA tensor cores.
"""

import torch

from defocus.learning.gradients.pieces.piece import wide

__all__ = ["by_matrix_units", "convolution_rounding", "total_rounding", "unit"]

_ROUNDING = {"high": 2.0**-10, "medium": 2.0**-8}
_NAMES = {"tf32": "high", "bf16": "medium"}
"""PyTorch's newer names of the precisions of products."""


def unit(like: torch.Tensor) -> float:
    """The most that one addition is off by: matrix units cut off rather than round."""
    return float(torch.finfo(wide(like.dtype)).eps) / (1 if by_matrix_units(like) else 2)


def by_matrix_units(like: torch.Tensor) -> bool:
    """Whether products are made by tensor cores, as a GPU does with narrow numbers, and with others if it may."""
    if not like.is_cuda or like.dtype == torch.float64:
        return False
    return like.dtype != torch.float32 or _precision(like) != "highest"


def total_rounding(like: torch.Tensor) -> float:
    """What the clipped sum is off by, relative to the reach, because processors round what they multiply.

    Assumes:
        A number is rounded in the same way wherever it is multiplied, so that the norm told is that of a gradient whose
        factors are rounded, and the sum differs from it in the factor that is scaled before.
    """
    if like.dtype in {torch.float32, torch.float64} or not like.is_cuda:
        return 0.0 if like.dtype == torch.float64 else _ROUNDING.get(_precision(like), 0.0)
    return 2.0**-15  # scaled, and then written as two narrow numbers


def convolution_rounding(like: torch.Tensor) -> float:
    """The same of a convolution's weight gradient, whose inputs a GPU may round where those of products are not."""
    if not like.is_cuda or like.dtype == torch.float64 or not _convolutions_round():
        return 0.0
    return 2.0**-9 if like.dtype == torch.float32 and _precision(like) == "highest" else 2.0**-10


def _precision(like: torch.Tensor) -> str:
    """The precision of products of float32 by its old name, which PyTorch does not say where the new one was used."""
    try:
        return str(torch.get_float32_matmul_precision())
    except RuntimeError:
        backend = torch.backends.cuda if like.is_cuda else torch.backends.mkldnn
        name = backend.matmul.fp32_precision
        return _NAMES.get(torch.backends.fp32_precision if name == "none" else name, "highest")


def _convolutions_round() -> bool:
    try:
        return bool(torch.backends.cudnn.allow_tf32)
    except RuntimeError:
        return bool(torch.backends.cudnn.conv.fp32_precision == "tf32")
