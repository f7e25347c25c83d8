"""For each function that can meet a parameter: how its use is taken apart by examples."""

from typing import Any

from defocus.learning.gradients.handlers import (
    attention,
    broadcasting,
    convolving,
    embedding,
    multiplying,
    normalising,
    recurrent,
)
from defocus.learning.gradients.watching import Handler

__all__ = ["HANDLERS"]

HANDLERS: dict[Any, Handler] = {
    **multiplying.HANDLERS,
    **convolving.HANDLERS,
    **embedding.HANDLERS,
    **normalising.HANDLERS,
    **broadcasting.HANDLERS,
    **recurrent.HANDLERS,
    **attention.HANDLERS,
}
"""By function of PyTorch, as a watch sees it called."""
