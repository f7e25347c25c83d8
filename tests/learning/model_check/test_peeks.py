"""Numbers of a batch that come to Python are noticed, and those of weights and constants are not meant."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812 -- its name everywhere

from defocus.learning.model_check.trials import peeking

X = torch.randn(4, 6, generator=torch.Generator().manual_seed(0))
T = torch.tensor([[0, 1, 1], [1, 0, 1], [0, 0, 1], [1, 1, 1]])
WEIGHTS = torch.ones(6)


def packed(x: torch.Tensor) -> Any:
    lengths = (x[:, 0] > 0).long() + 1
    return nn.utils.rnn.pack_padded_sequence(x[..., None], lengths, batch_first=True, enforce_sorted=False)


LOOKING: dict[str, Callable[[torch.Tensor], Any]] = {
    "a condition": lambda x: x / 255 if x.max() > 1 else x,
    "a condition that holds for none": lambda x: 0 if (x > 100).any() else 1,
    "item": lambda x: x.sum().item(),
    "int": lambda x: int(x[0, 0]),
    "tolist": lambda x: (2 * x).tolist(),
    "numpy": lambda x: x.numpy(),
    "an array": lambda x: np.asarray(x + 1),
    "a mask": lambda x: x[x > 0],
    "numbers by a mask": lambda x: torch.zeros(4, 6).__setitem__(x > 0, x[:1, :1].expand(int((X > 0).sum()), 1)[:, 0]),
    "nonzero": lambda x: x.nonzero(),
    "unique": lambda x: x.unique(),
    "masked_select": lambda x: x.masked_select(x > 0),
    "equal": lambda x: torch.equal(x, x + 1),
    "the row of a number": lambda x: x[x[:, 0].argmax()],
    "a slice": lambda x: x[:, : (x > 0).sum(1).max()],
    "a range": lambda x: list(range((x > 0).sum())),
    "packed by lengths": packed,
    "repeated": lambda x: WEIGHTS[:4].repeat_interleave((x[:, 0] > 0).long()),
    "one hot of unknown width": lambda x: F.one_hot((x > 0).long()),
    "what was written to": lambda x: bool(torch.zeros(6).add_(x[0]).sum() > 0),
    "in a function of its own": lambda x: torch.vmap(lambda row: row * 2)(x).sum().item(),
}

APART: dict[str, Callable[[torch.Tensor], Any]] = {
    "weights": lambda x: x * 2 if WEIGHTS.sum() > 0 else x,
    "draws": lambda x: x * 2 if torch.rand(()) > 0.5 else x,
    "shapes": lambda x: x[: len(x) // 2].reshape(-1).shape[0],
    "where": lambda x: torch.where(x > 0, x, 0.0),
    "a number by a mask": lambda x: x.clone().__setitem__(x > 0, 0.0),
    "a constant mask": lambda x: x[:, WEIGHTS > 0],
    "gathered": lambda x: x.gather(1, x.argmax(1, keepdim=True)),
    "indices": lambda x: x[torch.arange(len(x)), x.argmax(1)],
    "rows": lambda x: [row.sum() for row in x],
    "one hot": lambda x: F.one_hot((x > 0).long(), 3),
    "repeated evenly": lambda x: x.repeat_interleave(2, 0),
}


@pytest.mark.parametrize("name", LOOKING)
def test_numbers_of_a_batch_that_come_to_python_are_noticed(name: str) -> None:
    with peeking((X, None)) as seen:
        LOOKING[name](X)
    assert seen.python


@pytest.mark.parametrize("name", APART)
def test_what_looks_at_no_number_of_the_batch_is_not_meant(name: str) -> None:
    with peeking((X, None)) as seen:
        APART[name](X)
    assert not seen.python


def test_tables_tell_how_many_whole_numbers_there_are() -> None:
    table, targets = nn.Embedding(7, 3), torch.tensor([0, 1, 1, 0])
    with peeking(((X, T), targets)) as seen:
        F.cross_entropy(table(T * 1).sum(1), targets)
    assert seen.bounds == {1: 7, 2: 3}
    with peeking((T, None)) as seen:
        F.one_hot(T, 5)
        nn.EmbeddingBag(4, 2)(T)
    assert seen.bounds == {0: 4}
