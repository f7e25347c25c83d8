"""Norms of outer products are not told too small, however large one side is and however small the other."""

import pytest
import torch
from tests.learning.gradients.comparing import told_squares

from defocus.learning.gradients.layouts import Region
from defocus.learning.gradients.pieces import Outer
from defocus.learning.gradients.pieces.norm_bounds import TOLD
from defocus.learning.gradients.pieces.outer import fastest
from defocus.learning.gradients.pieces.piece import Choices, Tools, pairs

POWERS = (-100, -76, -70, -60, -30, 0, 30, 60)


def told(left: torch.Tensor, right: torch.Tensor, way: str) -> torch.Tensor:
    region = Region("w", (left.shape[-1], right.shape[-1]), (right.shape[-1], 1), 0)
    return told_squares(Outer(region, left, right, Tools(Choices(forced=(way,))))).double().sqrt()


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
    assert bool((found >= expected / TOLD - 1e-15).all())
    ordinary = (each.log2().abs() <= 30).all(0) & (expected < 1e18)
    assert torch.allclose(found[ordinary], expected[ordinary], rtol=2e-3 if length > 1 else 1e-5, atol=1e-12)


def multiplied(a: torch.Tensor, b: torch.Tensor, library: str, several: int = 1) -> tuple[torch.Tensor, torch.Tensor]:
    product, norms = torch.empty(len(a), a.shape[1], b.shape[2]), torch.empty(len(a) // several)
    fastest(a, b, product, norms, Tools(Choices(forced=(library,))))(a, b, product, norms)
    return product, norms


@pytest.mark.parametrize("several", [1, 2])
@pytest.mark.parametrize("library", ["torch", "numpy"])
def test_products_and_norms_are_right(library: str, several: int) -> None:
    a, b = torch.randn(6, 5, 3).transpose(1, 2), torch.randn(6, 5, 4)
    product, norms = multiplied(a, b, library, several)
    assert torch.allclose(product, a @ b, atol=1e-5)
    assert torch.allclose(norms, (a @ b).reshape(6 // several, -1).norm(dim=1))


@pytest.mark.parametrize("library", ["torch", "numpy"])
def test_what_is_not_finite_stays_so_in_silence(library: str) -> None:
    a, b = torch.ones(3, 2, 2), torch.ones(3, 2, 2)
    a[0], a[1, 0, 0], b[1, 0, 0] = torch.inf, 0.0, torch.inf
    assert torch.isfinite(multiplied(a, b, library)[1]).tolist() == [False, False, True]


def test_large_products_are_left_to_torch_whose_threads_are_counted() -> None:
    tools = Tools(Choices(forced=("numpy",)))
    a, b = torch.randn(2, 100, 100), torch.randn(2, 100, 100)
    fastest(a, b, torch.empty(2, 100, 100), torch.empty(2), tools)
    assert not tools.choices.remembered


@pytest.mark.parametrize("side", ["whole", "turned", "odd", "narrow", "in parts"])
@pytest.mark.parametrize("length", [2, 3, 7, 8])
def test_products_of_pairs_are_the_same_with_lengths_filled_up(side: str, length: int) -> None:
    torch.manual_seed(0)
    values = torch.randn(5, length, 3 if side == "odd" else 8)
    values[2] = torch.inf
    values = values.mT.contiguous().mT if side == "turned" else values.bfloat16() if side == "narrow" else values
    width = 4 if side == "in parts" else None
    plain, filled = (pairs(values, width, padded=each) for each in (False, True))
    assert filled.shape == (5, -(-length // 4) * 4, -(-length // 4) * 4)
    assert torch.allclose(filled[:, :length, :length], plain, atol=1e-5)
    assert not bool(filled[:, length:].any())
    assert not bool(filled[:, :, length:].any())
