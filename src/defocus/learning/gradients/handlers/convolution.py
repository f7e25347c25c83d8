"""Convolutions and transposed convolutions of one, two and three dimensions."""

from collections.abc import Callable
from typing import Any

import torch

from defocus.learning.gradients.handlers.linear import bare, lowered
from defocus.learning.gradients.hooks import Handler, Watch
from defocus.learning.gradients.pieces import Convolution, Direct
from defocus.learning.gradients.pieces.convolution import Shape
from defocus.learning.gradients.pieces.piece import wide
from defocus.learning.gradients.tape import Tape

__all__ = ["HANDLERS"]


def _tuple(value: Any, space: int) -> tuple[int, ...]:
    if isinstance(value, int):
        return (value,) * space
    values = tuple(value)
    return values * space if len(values) == 1 else values


def _padding(value: Any, kernel: tuple[int, ...], dilation: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
    """Padding on both sides; ``same`` puts the odd one behind, as PyTorch does."""
    if value == "valid":
        return ((0, 0),) * len(kernel)
    if value == "same":
        totals = [d * (k - 1) for k, d in zip(kernel, dilation, strict=True)]
        return tuple((total // 2, total - total // 2) for total in totals)
    return tuple((side, side) for side in _tuple(value, len(kernel)))


def _shape(weight: torch.Tensor, stride: Any, padding: Any, dilation: Any, groups: int) -> Shape:
    kernel = tuple(weight.shape[2:])
    spread = _tuple(dilation, len(kernel))
    return Shape(kernel, _tuple(stride, len(kernel)), _padding(padding, kernel, spread), spread, groups)


def _convolution(watch: Watch, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    def layer(
        input: torch.Tensor,  # noqa: A002 -- PyTorch's name
        weight: torch.Tensor,
        bias: Any = None,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
    ) -> Any:
        shape = _shape(weight, stride, padding, dilation, groups)
        call = lambda x, w, b: func(x, w, b, stride, padding, dilation, groups)  # noqa: E731 -- one use
        return _meet(watch, call, input, weight, bias, shape, transposed=False)

    return layer(*args, **kwargs)


def _transposed(watch: Watch, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    def layer(
        input: torch.Tensor,  # noqa: A002 -- PyTorch's name
        weight: torch.Tensor,
        bias: Any = None,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        dilation: Any = 1,
    ) -> Any:
        shape = _shape(weight, stride, padding, dilation, groups)
        call = lambda x, w, b: func(x, w, b, stride, padding, output_padding, groups, dilation)  # noqa: E731 -- one use
        return _meet(watch, call, input, weight, bias, shape, transposed=True)

    return layer(*args, **kwargs)


def _meet(
    watch: Watch,
    func: Callable[..., Any],
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    shape: Shape,
    *,
    transposed: bool,
) -> Any:
    """A transposed convolution sees the gradient of its output as a convolution sees its input, and the other way."""
    kernel, shift = watch.region(weight), watch.region(bias)
    if (kernel is None and shift is None) or watch.region(x) is not None or x.dim() != weight.dim():
        return NotImplemented
    layout = watch.seat("convolution", x, kernel, shift)
    if layout is None or not layout.plain:
        return NotImplemented
    kept = lowered(x)
    weight = bare(weight) if kernel is not None else weight
    bias = bare(bias) if shift is not None else bias
    output = watch.run(lambda: func(kept, weight, bias), x, weight, bias)

    def arrived(tape: Tape, gradient: torch.Tensor) -> None:
        if kernel is not None:
            pair = (gradient, kept.detach()) if transposed else (kept.detach(), gradient)
            tape.take(Convolution(kernel, *pair, shape, tape.tools))
        if shift is not None:
            tape.take(Direct(shift, gradient.sum(tuple(range(2, gradient.dim())), dtype=wide(gradient.dtype))))

    watch.listen(output, arrived, x)
    return output


HANDLERS: dict[Any, Handler] = {
    torch.conv1d: _convolution,
    torch.conv2d: _convolution,
    torch.conv3d: _convolution,
    torch.conv_transpose1d: _transposed,
    torch.conv_transpose2d: _transposed,
    torch.conv_transpose3d: _transposed,
}
