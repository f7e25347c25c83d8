"""Norms of outer products are not told too small, however large one side is and however small the other."""

import pytest
import torch

from defocus.learning.gradients.choosing import Choices
from defocus.learning.gradients.pieces import Outer
from defocus.learning.gradients.pieces.bounding import bounded
from defocus.learning.gradients.pieces.piece import Rough
from defocus.learning.gradients.regions import Region
from defocus.learning.gradients.tools import Tools

POWERS = (-100, -76, -70, -60, -30, 0, 30, 60)


def told(left: torch.Tensor, right: torch.Tensor, way: str) -> torch.Tensor:
    region = Region("w", (left.shape[-1], right.shape[-1]), (right.shape[-1], 1), 0)
    squares = Outer(region, left, right, Tools(Choices(forced=(way,)))).squares()
    return (bounded([squares])[0] if isinstance(squares, Rough) else squares).double().sqrt()


@pytest.mark.parametrize("way", ["ghost", "instantiated"])
@pytest.mark.parametrize("length", [0, 1, 3])
def test_norms_of_sides_of_any_size_are_bounded(way: str, length: int) -> None:
    """Squares of one side may vanish while the other makes up for it."""
    torch.manual_seed(0)
    shape = (len(POWERS) ** 2, *([length] if length else []))
    each = torch.cartesian_prod(*[torch.tensor([2.0**power for power in POWERS])] * 2).T
    left, right = (
        torch.randn(*shape, n) * size.view(-1, *[1] * len(shape)) for n, size in zip((64, 5), each, strict=True)
    )
    true = torch.einsum("btr,btc->brc", *(side.double().view(len(side), -1, side.shape[-1]) for side in (left, right)))
    expected = true.flatten(1).norm(dim=1)
    found = told(left, right, way).nan_to_num(nan=torch.inf)  # neither is used
    assert bool((found >= 0.999 * expected - 1e-15).all())
    ordinary = (each.log2().abs() <= 30).all(0) & (expected < 1e18)
    assert torch.allclose(found[ordinary], expected[ordinary], rtol=2e-3 if length > 1 else 1e-5, atol=1e-12)
