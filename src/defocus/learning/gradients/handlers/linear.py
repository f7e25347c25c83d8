"""Linear layers and products with a matrix of parameters, on tensors of any rank."""

from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional as F  # noqa: N812 -- its name everywhere

from defocus.learning.gradients.hooks import Handler, Watch
from defocus.learning.gradients.pieces import Direct, Outer
from defocus.learning.gradients.pieces.piece import wide
from defocus.learning.gradients.tape import Tape

__all__ = ["HANDLERS", "bare", "lowered"]


def bare(tensor: Any) -> Any:
    """A tensor without its place in the graph; None stays None."""
    return tensor.detach() if isinstance(tensor, torch.Tensor) else tensor


def lowered(tensor: torch.Tensor) -> torch.Tensor:
    """What autocast would make of an input of a matrix product, so that what is kept is what was multiplied."""
    kind = tensor.device.type
    if tensor.dtype == torch.float32 and torch.is_autocast_enabled(kind):
        return tensor.to(torch.get_autocast_dtype(kind))
    return tensor


def _linear(watch: Watch, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    def layer(input: torch.Tensor, weight: torch.Tensor, bias: Any = None) -> Any:  # noqa: A002 -- PyTorch's name
        return _product(watch, func, "linear", input, weight, bias, transposed=False)

    return layer(*args, **kwargs)


def _matmul(watch: Watch, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if len(args) != 2 or kwargs:
        return NotImplemented
    return _product(watch, lambda x, w, _: func(x, w), "matmul", args[0], args[1], None, transposed=True)


def _addmm(watch: Watch, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if len(args) != 3 or kwargs:
        return NotImplemented
    bias, x, weight = args
    return _product(watch, lambda x, w, b: func(b, x, w), "addmm", x, weight, bias, transposed=True)


def _product(
    watch: Watch,
    func: Callable[..., Any],
    what: str,
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    *,
    transposed: bool,
) -> Any:
    """``x @ weight`` where ``transposed``, as addmm has it, else ``x @ weight.T``, as a linear layer has it."""
    matrix, shift = watch.region(weight), watch.region(bias)
    if (matrix is None and shift is None) or watch.region(x) is not None:
        return NotImplemented
    if weight.dim() != 2 or x.dim() < 2 or (bias is not None and bias.dim() != 1):
        return NotImplemented
    layout = watch.seat(what, x, matrix, shift)
    if layout is None or layout.axis is None or layout.axis == x.dim() - 1:
        return NotImplemented
    examples, kept = watch.examples, lowered(x)
    weight = bare(weight) if matrix is not None else weight
    bias = bare(bias) if shift is not None else bias
    output = watch.run(lambda: func(kept, weight, bias), x, weight, bias)

    def arrived(tape: Tape, gradient: torch.Tensor) -> None:
        right = layout.sequences(gradient, examples)
        if matrix is not None:
            left = layout.sequences(kept.detach(), examples)
            sides = (left, right) if transposed else (right, left)
            tape.take(Outer(matrix, *sides, tape.tools))
        if shift is not None:
            sums = right if right.dim() == 2 else right.sum(1, dtype=wide(right.dtype))
            tape.take(Direct(shift, sums, tape.tools))

    watch.listen(output, arrived, x)
    return output


HANDLERS: dict[Any, Handler] = {
    F.linear: _linear,
    torch.matmul: _matmul,
    torch.Tensor.matmul: _matmul,
    torch.Tensor.__matmul__: _matmul,
    torch.mm: _matmul,
    torch.Tensor.mm: _matmul,
    torch.addmm: _addmm,
}
