"""Products of many small matrices, and their norms, while these are in the cache.

Libraries are made for large matrices and differ by half in small ones, so that which is faster is measured: torch's, or
numpy's, which comes with another one.
"""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import torch

from defocus.learning.gradients.tools import Tools

__all__ = ["Product", "fastest"]

Product: TypeAlias = Callable[[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor], None]
"""From two tensors (B, n, m) and (B, m, k), and room for their product (B, n, k) and its norms, of one or more of B."""

_SMALL = 2**18
"""Products of no more multiplications are made by one thread, whatever the library."""


def _by_torch(a: torch.Tensor, b: torch.Tensor, product: torch.Tensor, norms: torch.Tensor) -> None:
    torch.bmm(a, b, out=product)
    torch.linalg.vector_norm(product.view(len(norms), -1), dim=1, out=norms)


def _by_numpy(a: torch.Tensor, b: torch.Tensor, product: torch.Tensor, norms: torch.Tensor) -> None:
    with np.errstate(all="ignore"):  # what is not finite is found later, and told to nobody
        found = np.matmul(a.numpy(), b.numpy(), out=product.numpy()).reshape(len(norms), -1)
        np.sqrt(np.vecdot(found, found), out=norms.numpy())


def fastest(a: torch.Tensor, b: torch.Tensor, product: torch.Tensor, norms: torch.Tensor, tools: Tools) -> Product:
    """Which way is faster for matrices of this shape and order."""
    ways: dict[str, Product] = {"torch": _by_torch}
    if a.device.type == "cpu" and a[0].numel() * b.shape[2] <= _SMALL:
        ways["numpy"] = _by_numpy
    shapes = f"{tuple(a.shape[1:])}x{b.shape[2]} {a.stride(2) == 1} {b.stride(2) == 1}"
    work = f"small products {shapes} {a.dtype} {a.device.type}"
    rehearsals = {name: lambda way=way: way(a, b, product, norms) for name, way in ways.items()}
    return ways[tools.choices.pick(work, rehearsals)]
