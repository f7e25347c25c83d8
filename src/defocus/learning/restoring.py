"""A model that is tried out and left as it was found, whatever its passes do to it."""

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import torch
from torch.nn import Module

from defocus.learning.snapshots import Snapshot

__all__ = ["Again", "generators", "left_alone"]

_OPEN = 0.1


@final
@dataclass(frozen=True, slots=True)
class Again:
    """Starts a pass: no gradients, buffers and attributes as they were found, and all generators from the seed given.

    ``seeded`` starts the generators only.
    """

    restored: Callable[[], None]
    seeded: Callable[[int], None]

    def __call__(self, seed: int) -> None:
        """Start it."""
        self.seeded(seed)
        self.restored()


@contextmanager
def left_alone(model: Module, loss: Any = None) -> Iterator[Again]:
    """Leave parameters, buffers, gradients, attributes and generators as they were, and what the loss holds.

    Inside, trainable numbers that are zero are not: a gate that starts closed would hide what is behind it.
    """
    parameters = list(model.parameters())
    grads = [parameter.grad for parameter in parameters]
    values = [parameter.detach().clone() for parameter in parameters]
    found = Snapshot(model, loss=loss)
    with generators(parameters[0].device) as seeded:

        def restored() -> None:
            found.restore()
            for parameter in parameters:
                parameter.grad = None

        again = Again(restored, seeded)
        try:
            seeded(0)
            with torch.no_grad():
                for parameter in parameters:
                    if parameter.requires_grad:
                        parameter.copy_(torch.where(parameter == 0, _OPEN * torch.randn_like(parameter), parameter))
            yield again
        finally:
            again(0)
            with torch.no_grad():
                for parameter, grad, value in zip(parameters, grads, values, strict=True):
                    parameter.grad = grad
                    parameter.copy_(value)


@contextmanager
def generators(device: torch.device) -> Iterator[Callable[[int], None]]:
    """Leave those of torch, numpy and Python as they were, which all share; what is yielded starts them anew."""
    of_python, of_numpy = random.getstate(), np.random.get_state()  # noqa: NPY002 -- what a model may draw from
    on_gpu = device.type == "cuda"

    def seeded(seed: int) -> None:
        random.seed(seed)
        np.random.seed(seed)  # noqa: NPY002
        torch.default_generator.manual_seed(seed)
        if on_gpu:
            with torch.cuda.device(device):
                torch.cuda.manual_seed(seed)

    with torch.random.fork_rng(devices=[device] if on_gpu else []):
        try:
            yield seeded
        finally:
            random.setstate(of_python)
            np.random.set_state(of_numpy)  # noqa: NPY002
