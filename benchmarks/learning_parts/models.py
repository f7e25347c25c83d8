"""The models of the comparison: small ones that everybody measures, and encoders of two sizes."""

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812 -- its name everywhere

__all__ = ["MODELS", "make"]


def small_cnn() -> nn.Module:
    """The convolutional network of the MNIST tutorials of private learning."""
    return nn.Sequential(
        nn.Conv2d(1, 16, 8, 2, padding=2), nn.Tanh(), nn.MaxPool2d(2, 1),
        nn.Conv2d(16, 32, 4, 2), nn.Tanh(), nn.MaxPool2d(2, 1),
        nn.Flatten(), nn.Linear(512, 32), nn.Tanh(), nn.Linear(32, 10),
    )  # fmt: skip


def cnn() -> nn.Module:
    """A convolutional network with 3x3 kernels."""
    return nn.Sequential(
        nn.Conv2d(1, 32, 3, 1, 1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, 1, 1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(3136, 128), nn.ReLU(), nn.Linear(128, 10),
    )  # fmt: skip


def mlp() -> nn.Module:
    """Two wide hidden layers."""
    layers = [nn.Linear(784, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10)]
    return nn.Sequential(*layers)


class Block(nn.Module):
    """Attention and two linear layers, normalised before each."""

    def __init__(self, width: int, heads: int, inner: int) -> None:
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, inner), nn.Linear(inner, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        z = self.first(x)
        q, k, v = (
            each(z).view(batch, length, self.heads, -1).transpose(1, 2) for each in (self.query, self.key, self.value)
        )
        seen = F.scaled_dot_product_attention(q, k, v)
        x = x + self.out(seen.transpose(1, 2).reshape(batch, length, width))
        found: torch.Tensor = x + self.down(F.gelu(self.up(self.second(x))))
        return found


class Encoder(nn.Module):
    """A transformer encoder that classifies sequences of tokens."""

    def __init__(self, width: int, layers: int, heads: int, length: int) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(1000, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Block(width, heads, 4 * width) for _ in range(layers))
        self.last, self.head = nn.LayerNorm(width), nn.Linear(width, 10)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        places = torch.arange(tokens.shape[1], device=tokens.device).repeat(tokens.shape[0], 1)
        x = self.words(tokens) + self.places(places)
        for block in self.blocks:
            x = block(x)
        found: torch.Tensor = self.head(self.last(x).mean(1))
        return found


MODELS = {
    "mlp": (mlp, (784,)),
    "small_cnn": (small_cnn, (1, 28, 28)),
    "cnn": (cnn, (1, 28, 28)),
    "encoder": (lambda: Encoder(256, 4, 4, 128), 128),
    "large_encoder": (lambda: Encoder(768, 12, 12, 256), 256),
}


def make(name: str, batch: int, device: str) -> tuple[nn.Module, torch.Tensor, torch.Tensor]:
    """A model, inputs and targets, the same for everyone."""
    torch.manual_seed(0)
    build, shape = MODELS[name]
    model = build().to(device)
    targets = torch.randint(0, 10, (batch,), device=device)
    if isinstance(shape, int):
        return model, torch.randint(0, 1000, (batch, shape), device=device), targets
    return model, torch.randn(batch, *shape, device=device), targets
