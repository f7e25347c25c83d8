"""A small model for every kind of layer and every odd use of a parameter, with a batch for it."""

import functools
from collections.abc import Callable
from typing import Any

import torch
from tests.learning.gradients.comparing import Model, parameter
from torch import nn
from torch.nn import functional as F  # noqa: N812 -- its name everywhere

EXAMPLES = 5


def sequences(width: int = 8, length: int = 4) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(EXAMPLES, length, width), torch.randint(0, 3, (EXAMPLES,))


def tokens(words: int = 7, length: int = 6) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randint(0, words, (EXAMPLES, length)), torch.randint(0, 3, (EXAMPLES,))


def images(channels: int, *space: int) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(EXAMPLES, channels, *space), torch.randint(0, 3, (EXAMPLES,))


def bags(mode: str, padding: int | None) -> tuple[nn.Module, Any]:
    bag = nn.EmbeddingBag(7, 8, mode=mode, padding_idx=padding)
    return Model(lambda m, x: m.out(m.e(x).tanh()), e=bag, out=nn.Linear(8, 3)), tokens()


def pooled(layer: nn.Module, width: int) -> Model:
    """A layer, then the mean over everything but examples and channels, then three classes."""
    return Model(lambda m, x: m.out(m.layer(x).tanh().flatten(2).mean(2)), layer=layer, out=nn.Linear(width, 3))


def recurrent(layer: nn.Module, width: int) -> Model:
    return Model(lambda m, x: m.out(m.layer(x)[0].mean(1)), layer=layer, out=nn.Linear(width, 3))


def attending(layer: nn.Module, *, first: bool) -> Model:
    def forward(m: Any, x: torch.Tensor) -> Any:
        x = x if first else x.transpose(0, 1)
        seen = m.layer(x, x, x)[0]
        return m.out((seen if first else seen.transpose(0, 1)).mean(1))

    return Model(forward, layer=layer, out=nn.Linear(8, 3))


def lora(m: Any, x: torch.Tensor) -> Any:
    return m.out((m.base(x) + m.b(m.a(x)) * 0.5).tanh())


def frozen(module: nn.Module) -> nn.Module:
    module.requires_grad_(False)
    return module


class Picture(nn.Module):
    """What a vision transformer does with parameters outside of layers: a token, positions and a scale."""

    def __init__(self) -> None:
        super().__init__()
        self.token, self.places, self.scale = parameter(1, 1, 8), parameter(1, 5, 8), parameter(8)
        self.norm, self.out = nn.LayerNorm(8), nn.Linear(8, 3)

    def forward(self, x: torch.Tensor) -> Any:
        x = torch.cat([self.token.expand(len(x), -1, -1), x], 1) + self.places
        return self.out((self.norm(x) * self.scale)[:, 0])


MODELS: dict[str, Callable[[], tuple[nn.Module, Any]]] = {
    "linear": lambda: (
        nn.Sequential(nn.Linear(8, 6), nn.Tanh(), nn.Linear(6, 3, bias=False)),
        (images(8)[0], images(8)[1]),
    ),
    "linear of sequences": lambda: (Model(lambda m, x: m.a(x).tanh().mean(1), a=nn.Linear(8, 3)), sequences()),
    "linear of four dimensions": lambda: (
        Model(lambda m, x: m.a(x.unflatten(1, (2, 2))).tanh().mean((1, 2)), a=nn.Linear(8, 3)),
        sequences(),
    ),
    "linear with a frozen weight": lambda: (
        Model(
            lambda m, x: F.linear(x, m.w, m.b).tanh().mean(1), w=parameter(3, 8).requires_grad_(False), b=parameter(3)
        ),
        sequences(),
    ),
    "linear with a frozen bias": lambda: (
        Model(
            lambda m, x: F.linear(x, m.w, m.b).tanh().mean(1), w=parameter(3, 8), b=parameter(3).requires_grad_(False)
        ),
        sequences(),
    ),
    "examples merged into rows": lambda: (
        Model(
            lambda m, x: torch.addmm(m.b, x.reshape(-1, 8), m.w).view(len(x), -1, 3).tanh().mean(1),
            b=parameter(3),
            w=parameter(8, 3),
        ),
        sequences(),
    ),
    "copies on both sides of the examples": lambda: (
        Model(
            lambda m, x: m.out(
                (m.a(x.repeat(2, 1).repeat_interleave(3, 0)) + m.b).tanh().view(2, -1, 3, 6).mean((0, 2))
            ),
            a=nn.Linear(8, 6),
            b=parameter(6),
            out=nn.Linear(6, 3),
        ),
        images(8),
    ),
    "matrix product": lambda: (Model(lambda m, x: (x @ m.w).tanh().mean(1), w=parameter(8, 3)), sequences()),
    "convolution of one dimension": lambda: (
        pooled(nn.Conv1d(4, 6, 3, 2, padding=2, dilation=2, groups=2), 6),
        images(4, 9),
    ),
    "convolution of two dimensions": lambda: (
        pooled(nn.Conv2d(3, 4, (3, 2), (2, 1), padding=(1, 0)), 4),
        images(3, 6, 5),
    ),
    "convolution without bias, reflected": lambda: (
        pooled(nn.Conv2d(3, 4, 3, padding=1, padding_mode="reflect", bias=False), 4),
        images(3, 5, 5),
    ),
    "convolution of three dimensions": lambda: (
        pooled(nn.Conv3d(2, 4, 2, padding="same", padding_mode="circular"), 4),
        images(2, 4, 3, 4),
    ),
    "depthwise convolution": lambda: (pooled(nn.Conv2d(4, 8, 3, groups=4), 8), images(4, 5, 5)),
    "same padding of an even kernel": lambda: (pooled(nn.Conv2d(2, 3, 4, padding="same"), 3), images(2, 6, 5)),
    "transposed convolution": lambda: (
        pooled(nn.ConvTranspose2d(4, 6, 3, 2, padding=1, output_padding=1, groups=2), 6),
        images(4, 4, 4),
    ),
    "convolution before an in-place activation": lambda: (
        Model(lambda m, x: m.out(m.layer(x).relu_().flatten(2).mean(2)), layer=nn.Conv2d(2, 4, 3), out=nn.Linear(4, 3)),
        images(2, 6, 6),
    ),
    "embedding": lambda: (
        Model(lambda m, x: m.out(m.e(x).tanh().mean(1)), e=nn.Embedding(7, 8), out=nn.Linear(8, 3)),
        tokens(),
    ),
    "embedding with padding, sparse": lambda: (
        Model(
            lambda m, x: m.out(m.e(x).tanh().mean(1)),
            e=nn.Embedding(7, 8, padding_idx=2, sparse=True),
            out=nn.Linear(8, 3),
        ),
        tokens(),
    ),
    **{
        f"a bag of words, {mode}, padding {pad}": functools.partial(bags, mode, pad)
        for mode in ("mean", "sum", "max")
        for pad in (None, -2)
    },
    "a bag that holds padding only, weighed": lambda: (
        Model(
            lambda m, x: m.out(m.e(x, per_sample_weights=x.float())),
            e=nn.EmbeddingBag(7, 8, mode="sum", padding_idx=1),
            out=nn.Linear(8, 3),
        ),
        (torch.tensor([[1, 1], [1, 2], [3, 4], [0, 6], [5, 1]]), torch.randint(0, 3, (EXAMPLES,))),
    ),
    "bags that hold padding only": lambda: (
        Model(
            lambda m, x: m.out(m.mean(x) + m.most(x)),
            mean=nn.EmbeddingBag(7, 8, mode="mean", padding_idx=1),
            most=nn.EmbeddingBag(7, 8, mode="max", padding_idx=1),
            out=nn.Linear(8, 3),
        ),
        (torch.tensor([[1, 1], [1, 2], [3, 4], [0, 6], [5, 1]]), torch.randint(0, 3, (EXAMPLES,))),
    ),
    "positions without a batch": lambda: (
        Model(
            lambda m, x: m.out((m.e(x) + m.p(torch.arange(6))).tanh().mean(1)),
            e=nn.Embedding(7, 8),
            p=nn.Embedding(6, 8),
            out=nn.Linear(8, 3),
        ),
        tokens(),
    ),
    "layer norm": lambda: (
        Model(lambda m, x: m.out(m.n(x)[:, 0]), n=nn.LayerNorm(8), out=nn.Linear(8, 3)),
        sequences(),
    ),
    "layer norm of two dimensions": lambda: (
        Model(lambda m, x: m.out(m.n(x)[:, 0]), n=nn.LayerNorm((4, 8), bias=False), out=nn.Linear(8, 3)),
        sequences(),
    ),
    "rms norm": lambda: (Model(lambda m, x: m.out(m.n(x)[:, 0]), n=nn.RMSNorm(8), out=nn.Linear(8, 3)), sequences()),
    "group norm": lambda: (pooled(nn.Sequential(nn.Conv2d(3, 4, 3), nn.GroupNorm(2, 4)), 4), images(3, 5, 5)),
    "group norm of the input, then without scales": lambda: (
        pooled(nn.Sequential(nn.GroupNorm(3, 3), nn.Conv2d(3, 4, 3), nn.GroupNorm(2, 4, affine=False)), 4),
        images(3, 5, 5),
    ),
    "group norm of features": lambda: (
        Model(lambda m, x: m.out(m.n(x[:, 0])), n=nn.GroupNorm(4, 8), out=nn.Linear(8, 3)),
        sequences(),
    ),
    "instance norm": lambda: (
        pooled(nn.Sequential(nn.Conv1d(3, 4, 3), nn.InstanceNorm1d(4, affine=True)), 4),
        images(3, 7),
    ),
    "batch norm with fixed statistics": lambda: (
        pooled(nn.Sequential(nn.Conv1d(3, 4, 3), nn.BatchNorm1d(4).eval()), 4),
        images(3, 7),
    ),
    "attention": lambda: (attending(nn.MultiheadAttention(8, 2, batch_first=True), first=True), sequences()),
    "attention, time first": lambda: (attending(nn.MultiheadAttention(8, 2), first=False), sequences()),
    "attention to others": lambda: (
        Model(
            lambda m, x: m.out(m.a(x[:, :2], x, x)[0].mean(1)),
            a=nn.MultiheadAttention(8, 2, batch_first=True, add_bias_kv=True, add_zero_attn=True),
            out=nn.Linear(8, 3),
        ),
        sequences(),
    ),
    "transformer layer": lambda: (
        Model(
            lambda m, x: m.out(m.a(x).mean(1)),
            a=nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True),
            out=nn.Linear(8, 3),
        ),
        sequences(),
    ),
    "lstm": lambda: (recurrent(nn.LSTM(8, 6, 2, bidirectional=True, batch_first=True), 12), sequences()),
    "gru": lambda: (recurrent(nn.GRU(8, 6, 2, batch_first=True), 6), sequences()),
    "rnn": lambda: (recurrent(nn.RNN(8, 6, nonlinearity="relu", bias=False, batch_first=True), 6), sequences()),
    "lstm, time first": lambda: (
        Model(lambda m, x: m.out(m.a(x.transpose(0, 1))[0].mean(0)), a=nn.LSTM(8, 6), out=nn.Linear(6, 3)),
        sequences(),
    ),
    "cells": lambda: (
        Model(
            lambda m, x: m.out(m.c(x[:, 2], m.b(x[:, 1], m.b(x[:, 0])))[0]) + m.d(x[:, 3]),
            b=nn.LSTMCell(8, 6),
            c=nn.LSTMCell(8, 6),
            d=nn.GRUCell(8, 3),
            out=nn.Linear(6, 3),
        ),
        sequences(),
    ),
    "tied weights": lambda: (
        Model(lambda m, x: F.linear(m.n(m.e(x)), m.e.weight).mean(1), e=nn.Embedding(7, 8), n=nn.LayerNorm(8)),
        tokens(),
    ),
    "tied weights of an autoencoder": lambda: (
        Model(lambda m, x: m.out(F.linear(F.linear(x, m.w).tanh(), m.w.t())), w=parameter(4, 8), out=nn.Linear(8, 3)),
        (torch.randn(EXAMPLES, 8), torch.randint(0, 3, (EXAMPLES,))),
    ),
    "a linear layer twice": lambda: (
        Model(lambda m, x: m.out(m.a(m.a(x).tanh()).mean(1)), a=nn.Linear(8, 8), out=nn.Linear(8, 3)),
        sequences(),
    ),
    "a convolution twice": lambda: (
        Model(
            lambda m, x: m.out(m.a(m.a(x).tanh()).flatten(2).mean(2)),
            a=nn.Conv2d(3, 3, 3, padding=1),
            out=nn.Linear(3, 3),
        ),
        images(3, 4, 4),
    ),
    "an embedding twice": lambda: (
        Model(lambda m, x: m.out((m.e(x[:, :3]) * m.e(x[:, 3:])).mean(1)), e=nn.Embedding(7, 8), out=nn.Linear(8, 3)),
        tokens(),
    ),
    "a norm twice": lambda: (
        Model(lambda m, x: m.out(m.n(m.n(x).tanh())[:, 0]), n=nn.LayerNorm(8), out=nn.Linear(8, 3)),
        sequences(),
    ),
    "overlapping views": lambda: (
        Model(lambda m, x: (x @ m.w[:, :3] + x.tanh() @ m.w[:, 2:5] + m.b).mean(1), w=parameter(8, 6), b=parameter(3)),
        sequences(),
    ),
    "separate views": lambda: (
        Model(lambda m, x: (x @ m.w[:, :3] + x.tanh() @ m.w[:, 3:]).mean(1), w=parameter(8, 6)),
        sequences(),
    ),
    "low-rank adapters": lambda: (
        Model(
            lora,
            base=frozen(nn.Linear(8, 8)),
            a=nn.Linear(8, 2, bias=False),
            b=nn.Linear(2, 8, bias=False),
            out=frozen(nn.Linear(8, 3)),
        ),
        (torch.randn(EXAMPLES, 8), torch.randint(0, 3, (EXAMPLES,))),
    ),
    "picture transformer": lambda: (Picture(), sequences()),
    "temperature": lambda: (
        Model(lambda m, x: m.a(x).tanh().mean(1) / m.t, a=nn.Linear(8, 3), t=parameter()),
        sequences(),
    ),
    "an unused parameter": lambda: (
        Model(lambda m, x: m.a(x).mean(1), a=nn.Linear(8, 3), unused=nn.Linear(4, 4)),
        sequences(),
    ),
    "as many words as examples": lambda: (
        Model(
            lambda m, x: m.out((m.e(x) + m.p(torch.arange(EXAMPLES))).tanh().mean(1)),
            e=nn.Embedding(7, 8),
            p=nn.Embedding(EXAMPLES, 8),
            out=nn.Linear(8, 3),
        ),
        tokens(length=EXAMPLES),
    ),
}
