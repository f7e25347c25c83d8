"""Scales and shifts of normalising layers: layer, group, instance and RMS norm, batch norm with fixed statistics."""

from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional as F  # noqa: N812 -- its name everywhere

from defocus.errors import UnfitModelError
from defocus.learning.gradients.handlers.linear import bare
from defocus.learning.gradients.hooks import Handler, Watch
from defocus.learning.gradients.layouts import Layout
from defocus.learning.gradients.pieces import Direct
from defocus.learning.gradients.pieces.piece import wide
from defocus.learning.gradients.tape import Tape

__all__ = ["HANDLERS"]

_Normalise = Callable[[torch.Tensor, Any, Any], torch.Tensor]


def _layer_norm(watch: Watch, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    def layer(input: torch.Tensor, shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Any:  # noqa: A002 -- PyTorch's name
        return _trailing(watch, lambda x, w, b: func(x, shape, w, b, eps), input, weight, bias)

    return layer(*args, **_renamed(kwargs))


def _rms_norm(watch: Watch, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    def layer(input: torch.Tensor, shape: Any, weight: Any = None, eps: float | None = None) -> Any:  # noqa: A002 -- PyTorch's name
        return _trailing(watch, lambda x, w, _: func(x, shape, w, eps), input, weight, None)

    return layer(*args, **_renamed(kwargs))


def _group_norm(watch: Watch, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    def layer(input: torch.Tensor, num_groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Any:  # noqa: A002 -- PyTorch's name
        return _channels(watch, lambda x, w, b: func(x, num_groups, w, b, eps), input, weight, bias)

    return layer(*args, **kwargs)


def _instance_norm(watch: Watch, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    def layer(
        input: torch.Tensor,  # noqa: A002 -- PyTorch's name
        running_mean: Any = None,
        running_var: Any = None,
        weight: Any = None,
        bias: Any = None,
        use_input_stats: bool = True,
        momentum: float = 0.1,
        eps: float = 1e-5,
    ) -> Any:
        if use_input_stats and running_mean is not None:
            raise UnfitModelError(
                "An instance norm that tracks running statistics would store data of the batch without noise.",
                fix="make it with track_running_stats=False.",
            )

        def call(x: torch.Tensor, w: Any, b: Any) -> torch.Tensor:
            found: torch.Tensor = func(x, running_mean, running_var, w, b, use_input_stats, momentum, eps)
            return found

        return _channels(watch, call, input, weight, bias)

    return layer(*args, **kwargs)


def _batch_norm(watch: Watch, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    def layer(
        input: torch.Tensor,  # noqa: A002 -- PyTorch's name
        running_mean: Any,
        running_var: Any,
        weight: Any = None,
        bias: Any = None,
        training: bool = False,
        momentum: float = 0.1,
        eps: float = 1e-5,
    ) -> Any:
        if training:
            raise UnfitModelError(
                "A batch norm in training mode mixes the examples of a batch.",
                fix="use GroupNorm or LayerNorm, or put the batch norm in eval mode to keep its statistics fixed.",
            )

        def call(x: torch.Tensor, w: Any, b: Any) -> torch.Tensor:
            found: torch.Tensor = func(x, running_mean, running_var, w, b, False, momentum, eps)
            return found

        return _channels(watch, call, input, weight, bias)

    return layer(*args, **kwargs)


def _renamed(kwargs: dict[str, Any]) -> dict[str, Any]:
    return {"shape" if name == "normalized_shape" else name: value for name, value in kwargs.items()}


def _trailing(watch: Watch, call: _Normalise, x: torch.Tensor, weight: Any, bias: Any) -> Any:
    """Parameters that share the last dimensions of the input."""

    def reduced(values: torch.Tensor, layout: Layout) -> torch.Tensor:
        apart = layout.apart(values, watch.examples)
        shape = (weight if weight is not None else bias).shape
        return apart.reshape(watch.examples, -1, *shape).sum(1, dtype=wide(apart.dtype))

    return _meet(watch, call, x, weight, bias, reduced)


def _channels(watch: Watch, call: _Normalise, x: torch.Tensor, weight: Any, bias: Any) -> Any:
    """Parameters that belong to the second dimension of the input."""

    def reduced(values: torch.Tensor, layout: Layout) -> torch.Tensor:
        del layout
        return values.flatten(2).sum(2, dtype=wide(values.dtype)) if values.dim() > 2 else values

    return _meet(watch, call, x, weight, bias, reduced, channels=True)


def _meet(
    watch: Watch,
    call: _Normalise,
    x: torch.Tensor,
    weight: Any,
    bias: Any,
    reduced: Callable[[torch.Tensor, Layout], torch.Tensor],
    *,
    channels: bool = False,
) -> Any:
    """The input is normalised a second time when its gradient arrives, which costs less than keeping it."""
    scale, shift = watch.region(weight), watch.region(bias)
    if (scale is None and shift is None) or watch.region(x) is not None:
        return NotImplemented
    layout = watch.seat("norm", x, scale, shift)
    if layout is None or layout.axis is None or (channels and not layout.plain):
        return NotImplemented
    if layout.axis >= x.dim() - (0 if channels else (weight if weight is not None else bias).dim()):
        return NotImplemented
    weight = bare(weight) if scale is not None else weight
    bias = bare(bias) if shift is not None else bias
    output = watch.run(lambda: call(x, weight, bias), x, weight, bias)

    def arrived(tape: Tape, gradient: torch.Tensor) -> None:
        if scale is not None:
            normal = call(x.detach().to(gradient.dtype), None, None)
            tape.take(Direct(scale, reduced(normal.mul_(gradient), layout)))
        if shift is not None:
            tape.take(Direct(shift, reduced(gradient, layout)))

    watch.listen(output, arrived, x)
    return output


HANDLERS: dict[Any, Handler] = {
    F.layer_norm: _layer_norm,
    torch.layer_norm: _layer_norm,
    F.rms_norm: _rms_norm,
    torch.rms_norm: _rms_norm,
    F.group_norm: _group_norm,
    F.instance_norm: _instance_norm,
    F.batch_norm: _batch_norm,
}
