"""What functions are called with besides tensors, and how it may change with the number of examples."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Number
from typing import Any, final

import torch

__all__ = ["Expected", "expected", "leaves"]

_PLAIN = (int, float, str, Number, torch.dtype, torch.device, torch.layout, torch.memory_format, type(None))


@final
@dataclass(frozen=True, slots=True)
class Expected:
    """A function that a pass calls, and the leaves of its arguments for two examples and for three.

    A leaf that is the same for both must stay the same. Whole numbers may grow along with the examples, in one line
    with both. Any other leaf could be chosen by how many examples there are, as the axis of a sum.
    """

    func: Callable[..., Any]
    two: tuple[Any, ...]
    three: tuple[Any, ...]
    fixed: bool

    def fits(self, args: tuple[Any, ...], keywords: dict[str, Any], examples: int) -> bool:
        """Whether arguments are those of the trial runs, for another number of examples."""
        found = leaves(args, keywords)
        if self.fixed or len(found) != len(self.three):
            return found == self.three
        return all(
            c == b if a == b else _whole(c) and c == a + (examples - 2) * (b - a)
            for a, b, c in zip(self.two, self.three, found, strict=True)
        )


def expected(
    two: Sequence[tuple[Callable[..., Any], tuple[Any, ...]]],
    three: Sequence[tuple[Callable[..., Any], tuple[Any, ...]]],
) -> tuple[Expected, ...] | None:
    """What later passes must call, out of the functions and leaves of two trial runs; None if they disagree."""
    if len(two) != len(three):
        return None
    found = []
    for (func, a), (other, b) in zip(two, three, strict=True):
        if func is not other or len(a) != len(b):
            return None
        if not all(x == y or (_whole(x) and _whole(y)) for x, y in zip(a, b, strict=True)):
            return None
        found.append(Expected(func, a, b, fixed=a == b))
    return tuple(found)


def leaves(args: tuple[Any, ...], keywords: dict[str, Any]) -> tuple[Any, ...]:
    """All numbers and names among arguments, in their order, with a mark where there are tensors between them."""
    found: list[Any] = []
    for each in args:
        _gather(each, found)
    for name, each in keywords.items():
        found.append(name)
        _gather(each, found)
    return tuple(found)


def _gather(value: Any, found: list[Any]) -> None:
    if isinstance(value, torch.Tensor):
        if not found or found[-1] is not torch.Tensor:
            found.append(torch.Tensor)
    elif isinstance(value, list | tuple):
        for each in value:
            _gather(each, found)
    elif isinstance(value, dict):
        for name, each in value.items():
            found.append(name)
            _gather(each, found)
    elif isinstance(value, slice):
        found += [value.start, value.stop, value.step]
    elif isinstance(value, float) and math.isnan(value):
        found.append(float)  # unlike itself
    else:
        found.append(value if isinstance(value, _PLAIN) else type(value))


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
