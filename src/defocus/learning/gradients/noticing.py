"""Noticing what happens in functions that are not taken apart: failures, and tensors that should not be there."""

from collections.abc import Callable
from typing import Any, final

import torch
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as trees

from defocus.learning.gradients.places import LostError

__all__ = ["Noticing"]


@final
class Noticing(TorchFunctionMode):
    """Remembers whether a function failed.

    A model may catch an error and go on in another way. What failed for one example then decides for all of them,
    though no number of the batch came to Python. ``stray`` tells tensors that no function may be called with.
    """

    def __init__(self, stray: Callable[[torch.Tensor], bool] | None = None) -> None:
        super().__init__()
        self.failed, self._stray = False, stray

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Call a function, and remember if it fails."""
        del types
        try:
            if self._stray is not None:
                self._refuse_strays(trees.tree_leaves((args, kwargs)), self._stray)
            return func(*args, **(kwargs or {}))
        except Exception:
            self.failed = True
            raise

    def _refuse_strays(self, given: list[Any], stray: Callable[[torch.Tensor], bool]) -> None:
        if any(isinstance(each, torch.Tensor) and stray(each) for each in given):
            raise LostError
