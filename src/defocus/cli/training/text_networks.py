"""Small networks for texts; loaded where one is trained or predicts, since they need PyTorch."""

from typing import final

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812 -- its name everywhere

__all__ = ["Attention", "Bag"]


@final
class Bag(nn.Module):
    """The sum of what tokens mean, over the root of how many there are: in whatever order.

    >>> Bag(vocabulary=10, hidden=4, classes=2)(torch.tensor([[1, 2, 0]])).shape
    torch.Size([1, 2])
    """

    def __init__(self, vocabulary: int, hidden: int, classes: int) -> None:
        super().__init__()
        self.tokens, self.out = nn.Embedding(vocabulary, hidden), nn.Linear(hidden, classes)

    def forward(self, numbers: torch.Tensor) -> torch.Tensor:
        """The scores of the classes."""
        found: torch.Tensor = self.out(_pooled(self.tokens(numbers), numbers))
        return found


@final
class Attention(nn.Module):
    """The same, after each token has looked at all others and at where they stand.

    >>> Attention(vocabulary=10, length=3, hidden=4, classes=2)(torch.tensor([[1, 2, 0]])).shape
    torch.Size([1, 2])
    """

    def __init__(self, vocabulary: int, length: int, hidden: int, classes: int) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocabulary, hidden), nn.Parameter(torch.zeros(length, hidden))
        self.before, self.looks = nn.LayerNorm(hidden), nn.Linear(hidden, 3 * hidden)
        self.seen, self.out = nn.Linear(hidden, hidden), nn.Linear(hidden, classes)

    def forward(self, numbers: torch.Tensor) -> torch.Tensor:
        """The scores of the classes."""
        x = self.tokens(numbers) + self.places
        query, key, value = self.looks(self.before(x)).chunk(3, dim=-1)
        there = F.pad(numbers[:, 1:] > 0, (1, 0), value=True)  # a text of nothing looks at its first place
        seen = F.scaled_dot_product_attention(query, key, value, attn_mask=there[:, None])
        found: torch.Tensor = self.out(_pooled(x + self.seen(seen), numbers))
        return found


def _pooled(x: torch.Tensor, numbers: torch.Tensor) -> torch.Tensor:
    there = (numbers > 0).to(x.dtype)[:, :, None]
    return (x * there).sum(dim=1) / there.sum(dim=1).clamp(min=1).sqrt()
