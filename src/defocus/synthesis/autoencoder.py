r"""Variational autoencoders of examples, trained privately: the only file of the room that needs PyTorch.

An encoder tells a few latent numbers of an example, and a decoder makes an example of them and of its class. Both are
small: one hidden layer each. What is trained is the bound of Kingma and Welling on the log-likelihood, one term for
each example: latent numbers are drawn for each by itself. A term is multiplied by one, or by NaN where the example has
not the declared form: a gradient that is no number counts as zero.

The decoder of a sequence sees the symbols before, one place at a time, so what the latent numbers have to tell is what
the whole sequence has in common. How long sequences are, and of which class examples are, is no part of that: a
gradient that is brought to one length weighs short sequences and frequent classes in its own way. Both are counted
beside the gradients, with noise of their own: :class:`.Tally`.

Every gradient is brought to one length, so that no clip has to be chosen, and neither is anything else by private data:
the learning rate and the sizes were chosen on other images (see ``benchmarks/private_autoencoder.py``).

Reference:
    Kingma, Welling (2014), Auto-encoding variational Bayes; Sohn, Lee, Yan (2015), Learning structured output
    representation using deep conditional generative models.
"""

from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn import functional

from defocus.learning.clipping import AutomaticClipping
from defocus.learning.metrics import NoisyMetrics, Tally
from defocus.learning.trainer import Trainer
from defocus.synthesis.forms import Coded, Decoder, Form, Images, Sequences, nearest

__all__ = ["HIDDEN", "LATENT", "decoder_of", "network_of", "shares_of", "trainer_of"]

LATENT, HIDDEN = 8, 128
"""How many latent numbers there are, and how wide the hidden layers are."""
_RATE = 1e-2
_SURE = 0.1
_ROOM = 1 << 25
"""So many numbers of a batch are computed at a time, about, in the widest layer."""
_Tensor: TypeAlias = torch.Tensor


class _Autoencoder(nn.Module):  # type: ignore[misc]  # torch's classes are Any to the checker
    """The encoder, and the decoder of one form."""

    def __init__(self, form: Form, classes: int) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(form.size + classes, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, 2 * LATENT))
        self.decoder = nn.Sequential(
            nn.Linear(form.inputs(LATENT + classes), HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, form.outputs)
        )
        nn.init.zeros_(self.encoder[2].weight)
        nn.init.zeros_(self.encoder[2].bias)

    def seen(self, flat: _Tensor, label: tuple[_Tensor, ...]) -> tuple[_Tensor, _Tensor]:
        """Latent numbers with the label, and what they tell of each example in nats."""
        mean, log_variance = self.encoder(torch.cat([flat, *label], 1)).chunk(2, 1)
        told = 0.5 * (mean.square() + log_variance.exp() - 1 - log_variance).sum(1)
        latent = mean + (0.5 * log_variance).exp() * torch.randn_like(mean)
        return torch.cat([latent, *label], 1), told


class _OfImages(_Autoencoder):
    def forward(self, pixels: _Tensor, *label: _Tensor) -> _Tensor:
        conditions, told = self.seen(pixels, label)
        made = self.decoder(conditions)
        return functional.binary_cross_entropy_with_logits(made, pixels, reduction="none").sum(1) + told


class _OfSequences(_Autoencoder):
    def __init__(self, form: Sequences, classes: int) -> None:
        super().__init__(form, classes)
        self.before = form.before
        self.register_buffer("places", torch.eye(form.length), persistent=False)
        self.register_buffer("last", torch.arange(form.before), persistent=False)
        self.register_buffer("ahead", torch.arange(1, form.length + 1), persistent=False)

    def forward(self, symbols: _Tensor, *label: _Tensor) -> _Tensor:
        there = symbols.to(self.places.dtype)
        length = there.shape[1]
        conditions, told = self.seen(there.flatten(1), label)
        padded = functional.pad(there, (0, 0, self.before, 0))
        seen = [padded[:, self.before - back : self.before - back + length] for back in range(1, self.before + 1)]
        whole = conditions[:, None].expand(-1, length, -1)
        where = self.places.expand(len(there), -1, -1)
        left = there.sum((1, 2))[:, None] - self.ahead
        last = (left[:, :, None] == self.last).to(there.dtype)
        scores = self.decoder(torch.cat([whole, *seen, where, last], 2)).log_softmax(2)
        return told - (scores * there).flatten(1).sum(1)


def network_of(form: Form, classes: int) -> nn.Module:
    """The autoencoder of a form; its first weights are public, and the same each time."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return _OfImages(form, classes) if isinstance(form, Images) else _OfSequences(form, classes)


def trainer_of(
    network: nn.Module, form: Form, coded: Coded, labels: NDArray[np.int64] | None, classes: int, **how: Any
) -> Trainer:
    """The run that trains it on encoded examples; a label of -1 is none, and the example counts as zero."""
    made, fits = coded
    inputs: tuple[Any, ...] = (torch.from_numpy(made),)
    cells = form.kind(made)
    if labels is not None:
        inputs += (torch.from_numpy(np.eye(classes, dtype=np.float32)[labels]),)
        fits = fits & (labels >= 0)
        cells = cells + form.kinds * labels
    weighted = np.where(fits[:, None], np.stack([np.ones(len(cells)), cells], 1), [np.nan, -1])
    counts = torch.from_numpy(weighted.astype(np.float32))
    optimizer = torch.optim.Adam(network.parameters(), lr=_RATE)
    data = (inputs if labels is not None else inputs[0], counts)
    wide = form.size if isinstance(form, Images) else form.length * form.inputs(LATENT + classes)
    number = form.kinds * max(1, classes)
    tally = Tally(number) if number > 1 else None
    settings: dict[str, Any] = {
        "max_grad_norm": AutomaticClipping(),
        "metrics": "nothing" if tally is None else tally,
        **how,
    }
    settings["chunk"] = max(1, _ROOM // wide)
    return Trainer(network, _weighted, optimizer, data, **settings)


def decoder_of(network: nn.Module) -> Decoder:
    """The trained decoder, without PyTorch."""
    first, _, second = network.decoder
    arrays = (each.detach().numpy().copy() for each in (first.weight, first.bias, second.weight, second.bias))
    return Decoder(*arrays)


def shares_of(counted: NoisyMetrics | None, form: Form, classes: int) -> NDArray[Any] | None:
    """Which share of examples is of each class and kind, by what was counted; none where all are alike."""
    if counted is None:
        return None
    found = np.sum(counted.noisy, axis=0) / (len(counted.noisy) * counted.batch)
    whole = found.sum()  # less than one where examples have not the declared form
    return nearest(found / whole if whole > _SURE else found).reshape(max(1, classes), form.kinds)


def _weighted(terms: _Tensor, counts: _Tensor) -> _Tensor:
    return terms * counts[:, 0]
