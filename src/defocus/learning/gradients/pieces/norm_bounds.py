r"""Upper bounds on norms of gradients, rounding included.

How processors multiply: what they round before, and how they add.

Reference:
    Fasi, Higham, Mikaitis, Pranesh (2021), Numerical behavior of NVIDIA tensor cores.

Norms that are not told too small.

A squared norm out of products of pairs adds up numbers as large as :math:`S^2`, where
:math:`S = \sum_t \|l_t\| \|r_t\|`, and is off by about the precision times that. Where the contributions of an example
cancel, the norm is far below :math:`S`, and can be lost altogether: the example would not be clipped. What is told is
then the largest norm that the rounding allows.

Contributions that point anywhere have a norm of about :math:`S/\sqrt T`, so that a margin that is small beside their
squared norm must be small beside :math:`S^2/T`. Inner products are therefore made of parts short enough for that, and
where none are, the gradients are written out, a few at a time: then the *norm*, not its square, is off by the precision
times :math:`S`. On a CPU this is also done for single examples whose contributions cancel more than that. A margin of
that size always stays, since the clipped sum is rounded, too: an example whose contributions cancel adds as much.

Reference:
    Higham, Accuracy and Stability of Numerical Algorithms (2nd ed.), section 3.1: an inner product of n numbers is off
    by at most about :math:`n u` times the product of the norms, in any order of summation; section 4.2 for sums of
    sums, where n is the number of additions that a number goes through. Blanchard, Higham, Lopez, Mary, Pranesh (2020),
    Mixed precision block fused multiply-add, for matrix units.
"""

from collections.abc import Sequence
from math import sqrt

import torch

from defocus.learning.gradients.pieces.piece import RUN, Rough, product, squared_norms, wide

__all__ = [
    "TOLD",
    "bounded",
    "by_matrix_units",
    "convolution_rounding",
    "part_width",
    "reach",
    "rounding",
    "times",
    "total_rounding",
    "unit",
    "written",
    "written_margin",
]


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


TOLD = 1 + 2.0**-9
"""How much longer than its norm says a gradient may be, on every device. Noise is made for it."""
_USED = 1 + 1.8e-3
"""So much of that may be the rounding that is bounded here; the rest is for the plain sums of squares and factors."""
_FINE = 1 / 280
"""With a margin of so much of its square a norm is told as it is."""
_COARSE = 1 / 50
"""With a margin of so much of its square a norm is told 1 % too large."""
_SAFE = 1.01
"""For the rounding of the margins themselves."""
_WIDTHS = (512, 256, 128, 64)


def times(like: torch.Tensor) -> int:
    """How many positions are added up at once where gradients are written out: fewer where that is exact."""
    return 512 if by_matrix_units(like) else 128


def bounded(found: Sequence[Rough]) -> torch.Tensor:
    r"""Squared norms of several pieces, (pieces, B): a true norm is at most :data:`_USED` times the one told.

    With a square s that is off by at most m, and a sum off by at most a in norm, a gradient is no longer than
    :math:`\sqrt{s + m} + a`. What is told is that over the slack, and not less than :math:`\sqrt s`: where rounding is
    smaller than the slack, the norm as it came out. Pieces are looked at together, because on a GPU many small steps
    cost more than one large one.
    """
    squares = torch.stack([each.squares for each in found]).to(found[0].reach.dtype).clamp_(min=0)
    margins = _times(found, [sqrt(each.rounding) for each in found]).square_()
    norms, longest = squares.sqrt(), (squares + margins).sqrt_()
    if not squares.is_cuda:
        doubtful = margins > _COARSE * squares
        for number in doubtful.any(1).nonzero()[:, 0].tolist():
            again, rows = found[number].again, doubtful[number].nonzero()[:, 0]
            if again is not None:
                better = again(rows).to(squares.dtype).sqrt()
                norms[number, rows] = torch.minimum(norms[number, rows], better)
                longest[number, rows] = torch.minimum(longest[number, rows], better * _USED)
    off = [each.off for each in found]
    if any(off):
        longest += _times(found, off)
    return torch.maximum(norms, longest / _USED).square_()


def _times(found: Sequence[Rough], factors: list[float]) -> torch.Tensor:
    """The reaches of all pieces, each times its factor, (pieces, B)."""
    scaled = torch._foreach_mul([each.reach for each in found], factors)  # noqa: SLF001 -- one kernel for all
    return torch.stack(scaled)


def reach(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """The sum over the positions of the products of the norms, (B,), of two tensors (B, T, ...)."""
    norms = [torch.linalg.vector_norm(side, dim=2, dtype=wide(side.dtype)) for side in (left, right)]
    return (norms[0] * norms[1]).sum(1)


def rounding(features: tuple[int, ...], width: int, like: torch.Tensor, more: int = 0) -> float:
    """What a squared norm by products of pairs is off by, relative to the square of the reach."""
    return (_additions(features, width, like) + more) * _SAFE * unit(like)


def _additions(features: tuple[int, ...], width: int, like: torch.Tensor) -> int:
    """How many additions a number goes through on its way into a squared norm by products of pairs.

    Inner products over so many features are made of parts of a width; then come the product, a run and its rounding.
    """
    return sum(_chain(min(width, each), like) + -(-each // width) - 1 for each in features) + RUN + 2


def part_width(length: int, features: tuple[int, ...], like: torch.Tensor, more: int = 0) -> int | None:
    """The largest width for which ordinary norms are told as they are, or at most 1 % too large where none is so small.

    Matrix units, which round what they multiply anyway, are not slowed down for the former. None if even that fails.
    Where inner products are themselves added up, these are so many additions ``more``.
    """
    for most, least in ((_COARSE, 128),) if by_matrix_units(like) else ((_FINE, 64), (_COARSE, 128)):
        for width in (max(features), *_WIDTHS):
            additions = _additions(features, width, like) + more
            if width >= min(least, max(features)) and additions * unit(like) * length <= most:
                return width
    return None


def _chain(numbers: int, like: torch.Tensor) -> int:
    """How many additions a number goes through in an inner product: matrix units add eight and more at once."""
    return -(-numbers // 8) + 8 if by_matrix_units(like) else numbers


def written(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """Squared norms (B,) of the sums over t of the outer products of (B, T, rows) and (B, T, columns).

    The gradients are written out in parts that stay in the cache, and no part of them is kept.
    """
    (examples, _, rows), columns = left.shape, right.shape[2]
    room = 2**26 if left.is_cuda else 2**20
    few, high = max(1, room // (rows * columns)), max(1, room // columns)
    found = []
    for start in range(0, examples, few):
        some = slice(start, start + few)
        squares = torch.zeros(len(left[some]), dtype=torch.float64, device=left.device)
        for part in left[some].split(high, 2):
            squares += squared_norms(product(part.transpose(1, 2), right[some], times(left)))
        found.append(squares)
    return torch.cat(found).to(wide(left.dtype))


def written_margin(length: int, like: torch.Tensor) -> float:
    """What a gradient that is written out, so many positions in parts of :func:`times`, is off by of the reach."""
    return (_chain(min(length, times(like)), like) + -(-length // times(like))) * _SAFE * unit(like)
