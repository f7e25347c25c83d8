"""Multi-head attention: PyTorch's own function, run with its inside in view."""

import types
from collections.abc import Callable
from typing import Any

from torch.nn import functional as F  # noqa: N812 -- its name everywhere

from defocus.learning.gradients.hooks import Handler, Watch

__all__ = ["HANDLERS"]


def _opened(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function, which asks nobody else to act in its place, so that the calls inside of it are seen."""
    inner = {**F.__dict__, "has_torch_function": lambda _: False}
    copy = types.FunctionType(function.__code__, inner, function.__name__, function.__defaults__, function.__closure__)
    copy.__kwdefaults__ = function.__kwdefaults__
    return copy


_ATTENTION = _opened(F.multi_head_attention_forward)


def _attention(watch: Watch, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    del func
    with watch:
        return _ATTENTION(*args, **kwargs)


HANDLERS: dict[Any, Handler] = {F.multi_head_attention_forward: _attention}
