"""Products of many small matrices are the same by every library, and none of them says what it met."""

import pytest
import torch

from defocus.learning.gradients.choosing import Choices
from defocus.learning.gradients.pieces.small import fastest
from defocus.learning.gradients.tools import Tools


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
