"""Noticing what happens in functions that are not taken apart: failures, and tensors that should not be there."""

from collections.abc import Callable
from typing import Any, final

from torch.overrides import TorchFunctionMode

__all__ = ["Noticing"]


@final
class Noticing(TorchFunctionMode):
    """Remembers whether a function failed.

    A model may catch an error and go on in another way. What failed for one example then decides for all of them,
    though no number of the batch came to Python.
    """

    def __init__(self) -> None:
        super().__init__()
        self.failed = False

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Call a function, and remember if it fails."""
        del types
        try:
            return func(*args, **(kwargs or {}))
        except Exception:
            self.failed = True
            raise
