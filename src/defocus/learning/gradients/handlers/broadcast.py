"""Parameters that meet a batch number by number: positions added, scales multiplied, tokens put in front."""

from collections.abc import Callable
from typing import Any, TypeAlias

import torch

from defocus.learning.gradients.handlers.linear import bare
from defocus.learning.gradients.hooks import Handler, UnknownUseError, Watch
from defocus.learning.gradients.layouts import Layout, Region
from defocus.learning.gradients.pieces import Direct
from defocus.learning.gradients.tape import Tape

__all__ = ["HANDLERS"]

_Then: TypeAlias = Callable[[Tape, torch.Tensor], None]

_NAMES = ("add", "sub", "mul", "div", "true_divide", "multiply", "subtract", "add_", "sub_", "mul_", "div_")
_METHODS = ("__add__", "__radd__", "__sub__", "__rsub__", "__mul__", "__rmul__", "__truediv__", "__rtruediv__")


def _elementwise(watch: Watch, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The parameter is expanded to one copy for each example, whose gradient is then the example's own."""
    if len(args) < 2 or not all(isinstance(each, torch.Tensor) for each in args[:2]):
        return NotImplemented
    regions, looked_up = [watch.region(each) for each in args[:2]], [watch.found(each) for each in args[:2]]
    if not any(regions) and not any(found for found, _ in looked_up):
        return NotImplemented
    layouts = [watch.seat("elementwise", each, region) for each, region in zip(args[:2], regions, strict=True)]
    place = 0 if layouts[0] is None or layouts[0].axis is None else 1
    layout, region, then = layouts[1 - place], regions[place], looked_up[place][1]
    if layout is None or layout.axis is None or layout.each != 1 or (region is None and then is None):
        return NotImplemented
    parameter, other = args[place], args[1 - place]
    if place == 0 and func.__name__.endswith("_") and not func.__name__.endswith("__"):
        return NotImplemented
    shape = [1] * (other.dim() - parameter.dim()) + list(parameter.shape)
    if torch.broadcast_shapes(parameter.shape, other.shape) != other.shape or shape[layout.axis] != 1:
        return NotImplemented
    shape[layout.axis] = watch.examples
    copies = watch.run(lambda: bare(parameter).expand(shape))
    _announce(watch, copies, parameter, _receiver(region, then), layout)
    return func(*args[:place], copies, *args[place + 1 :], **kwargs)


def _receiver(region: Region | None, then: _Then | None) -> _Then:
    """What to do with the gradients of each example: they are the parameter's own, or go on to where it came from."""
    if region is None:
        if then is None:
            raise UnknownUseError
        return then
    return lambda tape, own: tape.take(Direct(region, own))


def _expanded(watch: Watch, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A parameter expanded or repeated once for each example: the gradient of the copies is the examples' own."""
    parameter = args[0]
    region = watch.region(parameter)
    if region is None:
        return NotImplemented
    output = func(bare(parameter), *args[1:], **kwargs)
    layout = watch.seat("expand", output, region)
    if layout is None or layout.axis is None or layout.each != 1:
        return NotImplemented
    shape = [1] * (output.dim() - parameter.dim()) + list(parameter.shape)
    if shape[layout.axis] != 1 or any(size not in {1, full} for size, full in zip(shape, output.shape, strict=True)):
        return NotImplemented
    copies = watch.run(lambda: output)
    _announce(watch, copies, parameter, _receiver(region, None), layout)
    return copies


def _announce(watch: Watch, copies: torch.Tensor, parameter: torch.Tensor, then: _Then, layout: Layout) -> None:
    shape, examples = tuple(parameter.shape), watch.examples
    watch.listen(copies, lambda tape, gradient: then(tape, _folded(gradient, layout, shape, examples)))


def _folded(gradient: torch.Tensor, layout: Layout, shape: tuple[int, ...], examples: int) -> torch.Tensor:
    """The gradients of the copies, (B, *shape), summed where the parameter was stretched."""
    apart = layout.apart(gradient, examples)
    axis = 0 if layout.axis is None else layout.axis
    rest = [1] * (gradient.dim() - len(shape)) + list(shape)
    del rest[axis]
    stretched = [1 + each for each, size in enumerate(rest) if size == 1 and apart.shape[1 + each] != 1]
    summed = apart.sum(stretched, keepdim=True) if stretched else apart
    return summed.reshape(examples, *shape)


HANDLERS: dict[Any, Handler] = {
    **{getattr(home, name): _elementwise for home in (torch, torch.Tensor) for name in _NAMES if hasattr(home, name)},
    **{getattr(torch.Tensor, name): _elementwise for name in _METHODS},
    torch.Tensor.expand: _expanded,
    torch.Tensor.repeat: _expanded,
}
