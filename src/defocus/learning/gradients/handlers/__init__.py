"""For each function that can meet a parameter: how its use is taken apart by examples."""

from typing import Any

from defocus.learning.gradients.handlers import (
    attention,
    broadcast,
    convolution,
    embedding,
    linear,
    normalisation,
    recurrent,
)
from defocus.learning.gradients.hooks import Handler

__all__ = ["HANDLERS"]

HANDLERS: dict[Any, Handler] = {
    **linear.HANDLERS,
    **convolution.HANDLERS,
    **embedding.HANDLERS,
    **normalisation.HANDLERS,
    **broadcast.HANDLERS,
    **recurrent.HANDLERS,
    **attention.HANDLERS,
}
"""By function of PyTorch, as a watch sees it called."""
